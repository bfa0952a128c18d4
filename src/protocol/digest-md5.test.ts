import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ProtocolError } from '../jute/index.ts';
import { DigestMd5Client, DigestMd5Server, digestMd5 } from './digest-md5.ts';
import { isZkError } from './errors.ts';

const bytes = (text: string) => Buffer.from(text);
const passwords: Record<string, string> = {
  ann: 'secret',
  'bö"\\b': 'pässword',
  Дима: 'пароль',
  '\ufeffann': 'x',
};
const passwordOf = (user: string) => (Object.hasOwn(passwords, user) ? passwords[user] : undefined);

const server = () => new DigestMd5Server({ passwordOf, nonce: () => 'server-nonce' });
const client = (username = 'ann', password = 'secret') =>
  new DigestMd5Client({ username, password, nonce: () => 'client-nonce' });

/** As far as it goes: what each side said, or the error that ended it. */
function negotiate(from: DigestMd5Client, to: DigestMd5Server): void {
  let token: Buffer | null = from.start();
  while (token !== null) token = from.step(to.step(token));
}

function failure(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}
const isRefused = (act: () => unknown) => isZkError(failure(act), 'AUTH_FAILED');

/** A response that holds, changed before it is sent. */
function respond(change: (response: string) => string): () => unknown {
  const to = server();
  const from = client();
  const response = from.step(to.step(from.start()))!.toString();
  return () => to.step(bytes(change(response)));
}

describe('held against others', () => {
  const rfc = {
    username: 'chris',
    realm: 'elwood.innosoft.com',
    password: 'secret',
    nonce: 'OA6MG9tEQGm2hh',
    cnonce: 'OA6MHXh6VqTrRk',
    digestUri: 'imap/elwood.innosoft.com',
  };
  const names = { protocol: 'imap', serverName: 'elwood.innosoft.com' };

  test('the digests are those of the example in RFC 2831 section 4', () => {
    expect(digestMd5(rfc, 'AUTHENTICATE')).toBe('d388dad90d4bbd760a152321f2143af7');
    expect(digestMd5(rfc, '')).toBe('ea40f60335c427b5527b84dbabcdfffd');
  });

  test('a client answers the challenge of RFC 2831 and takes its end', () => {
    const from = new DigestMd5Client({ ...rfc, ...names, authzid: null, nonce: () => rfc.cnonce });

    const response = from.step(
      bytes(
        'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8',
      ),
    );

    expect(response?.toString().replace('maxbuf=65536,', '')).toBe(
      'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",response=d388dad90d4bbd760a152321f2143af7,qop=auth',
    );
    expect(from.isComplete).toBe(false);
    expect(from.step(bytes('rspauth=ea40f60335c427b5527b84dbabcdfffd'))).toBeNull();
    expect(from.isComplete).toBe(true);
  });

  test('a server takes the response of RFC 2831', () => {
    const to = new DigestMd5Server({
      ...names,
      realm: rfc.realm,
      passwordOf: () => 'secret',
      nonce: () => rfc.nonce,
    });
    to.step(Buffer.alloc(0));

    const end = to.step(
      bytes(
        'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",response=d388dad90d4bbd760a152321f2143af7,qop=auth',
      ),
    );

    expect(end.toString()).toBe('rspauth=ea40f60335c427b5527b84dbabcdfffd');
    expect(to.authorizedId).toBe('chris');
  });

  /** What Java's own two sides said to each other; the first as ZooKeeper 3.9.5 was heard to use them. */
  const java = [
    {
      username: 'ann',
      password: 'secret',
      nonce: '807Bzk7lc/fz94naNmDlImECcZOAvWi28p+X6htf',
      cnonce: 'TqOlfdOalO/3jaqnZ+IfOPjQDi0os//YHGbBuZI1',
      response: 'e03bdb6c61498de57ff294bfa97d8b6a',
      rspauth: '25b60f4c68bb7bdcd1f28e0d0e9d9167',
    },
    {
      username: 'bö',
      password: 'pässword',
      nonce: 'Um0yVk+D6CjZfP76AuJhi9rJbzy/o8FGFLIXdYgR',
      cnonce: 'RGDsWj1pLlLR8UKPhM+ECExkHZ5gpuPRulTZhP0v',
      response: '8ee74dcc24001322672a611e1d9ef5f4',
      rspauth: 'd9b99191653345aa0ac742781d758a14',
    },
    {
      username: 'Дима',
      password: 'пароль',
      nonce: 'QbPolAtzMJW441STd8a0hQBTqizVidn6voX1S6XF',
      cnonce: '1dRsnwPNxDEqPB5t113+l1/m/PDYUeb6bELZ1HnE',
      response: 'b98227d73c423d7f457cd65f5ce16a12',
      rspauth: '5e96d61692aa77dc620dae83ae9005f5',
    },
    {
      username: 'bö',
      password: 'пароль',
      nonce: '+2MGO4rM2HXCF8HsvIfhbB5qTkgngaK+dddw5usU',
      cnonce: 'p1WUVausF11LaF+k/GzampOctoGFLVbIAAac1t7K',
      response: 'dfd9b5e3b66169e63d6db1d82de02d67',
      rspauth: 'ebcf869de8dc62f5bfe7c8b59a997b01',
    },
    {
      username: 'a"b\\c',
      password: 's\u0001',
      nonce: 'cal8BsMi/2FFVGVuDE9ftp6GJ6WfY8Cm2yh9dcTf',
      cnonce: 'AKp5dPcXiP5kaMOxgTHPOPqgyKiB3Sr+a4frGZIP',
      response: '8607bef1e0de69731bb07eb607323060',
      rspauth: '0eab280d92491de6ae149983b83d1961',
    },
  ];

  describe.each(java)('$username with $password', (said) => {
    const { username, password, nonce, cnonce } = said;
    const name = `"${username.replace(/["\\]/g, '\\$&')}"`;
    const challenge = `realm="zk-sasl-md5",nonce="${nonce}",charset=utf-8,algorithm=md5-sess`;
    const response = `charset=utf-8,username=${name},realm="zk-sasl-md5",nonce="${nonce}",nc=00000001,cnonce="${cnonce}",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=${said.response},qop=auth,authzid=${name}`;
    const end = `rspauth=${said.rspauth}`;

    test('a client says what Java says, to the byte', () => {
      const from = new DigestMd5Client({ username, password, nonce: () => cnonce });

      expect(from.step(bytes(challenge))?.toString()).toBe(response);
      expect(from.step(bytes(end))).toBeNull();
    });

    test('a server says what Java says, to the byte', () => {
      const to = new DigestMd5Server({ passwordOf: () => password, nonce: () => nonce });

      expect(to.step(Buffer.alloc(0)).toString()).toBe(challenge);
      expect(to.step(bytes(response)).toString()).toBe(end);
      expect(to.authorizedId).toBe(username);
    });
  });
});

describe('a negotiation', () => {
  test.each(Object.entries(passwords))('of %s ends well for both', (username, password) => {
    const from = client(username, password);
    const to = server();

    negotiate(from, to);

    expect(from.isComplete).toBe(true);
    expect(to.authorizedId).toBe(username);
  });

  test('ends well for whatever name and password the two agree on', () => {
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(text, text, text, (username, password, realm) => {
        const from = new DigestMd5Client({ username, password });
        const to = new DigestMd5Server({ passwordOf: () => password, realm });

        negotiate(from, to);

        expect([from.isComplete, to.authorizedId]).toEqual([true, username]);
      }),
      { numRuns: 100 },
    );
  });

  test('fails for a wrong password and for a user that nobody knows, alike', () => {
    const errors = [
      failure(() => negotiate(client('ann', 'wrong'), server())),
      failure(() => negotiate(client('nobody', 'secret'), server())),
      failure(() => negotiate(client('__proto__', ''), server())),
    ];

    for (const error of errors) {
      expect(isZkError(error, 'AUTH_FAILED')).toBe(true);
      expect((error as Error).message).toBe((errors[0] as Error).message);
      expect((error as Error).message).not.toMatch(/secret|wrong/);
    }
  });

  test('leaves a server that was not convinced with nobody, and without a second try', () => {
    const to = server();
    const from = client('ann', 'wrong');
    const wrong = from.step(to.step(from.start()))!;

    expect(isRefused(() => to.step(wrong))).toBe(true);
    expect(to.authorizedId).toBeUndefined();
    const right = client().step(server().step(Buffer.alloc(0)))!;
    expect(() => to.step(right)).toThrow(ProtocolError);
  });

  test('fails for a client when the server does not have the password, and has no second try', () => {
    const from = client();
    from.step(server().step(from.start()));

    expect(isRefused(() => from.step(bytes(`rspauth=${'0'.repeat(32)}`)))).toBe(true);
    expect(from.isComplete).toBe(false);
    expect(() => from.step(bytes(`rspauth=${'0'.repeat(32)}`))).toThrow(ProtocolError);
  });

  test('is not taken up again once it is over', () => {
    const [from, to] = [client(), server()];
    negotiate(from, to);

    expect(() => from.step(Buffer.alloc(0))).toThrow(ProtocolError);
    expect(() => to.step(Buffer.alloc(0))).toThrow(ProtocolError);
    expect(to.authorizedId).toBe('ann');
  });

  test('is new every time: no nonce comes twice', () => {
    const challenges = Array.from({ length: 50 }, () =>
      new DigestMd5Server({ passwordOf }).step(Buffer.alloc(0)).toString(),
    );
    const responses = Array.from({ length: 50 }, () =>
      new DigestMd5Client({ username: 'ann', password: 'secret' })
        .step(bytes(challenges[0]!))!
        .toString(),
    );

    expect(new Set([...challenges, ...responses]).size).toBe(100);
    expect(challenges[0]).toMatch(/nonce="[A-Za-z0-9+/]{40}"/);
  });
});

describe('a server refuses', () => {
  test.each([
    ['another nonce', (it: string) => it.replace('server-nonce', 'other-nonce')],
    ['another realm', (it: string) => it.replace('realm="zk-sasl-md5"', 'realm="elsewhere"')],
    ['no realm', (it: string) => it.replace('realm="zk-sasl-md5",', '')],
    ['another service', (it: string) => it.replace('zookeeper/zk-sasl-md5', 'imap/zk-sasl-md5')],
    ['another client nonce', (it: string) => it.replace('client-nonce', 'client-nonsense')],
    ['another authzid', (it: string) => it.replace('authzid="ann"', 'authzid="super"')],
    ['an authzid taken away', (it: string) => it.replace(',authzid="ann"', '')],
    ['another user', (it: string) => it.replace('username="ann"', 'username="bob"')],
    ['another digest', (it: string) => it.replace(/response=\w+/, `response=${'0'.repeat(32)}`)],
  ])('%s', (_, change) => {
    expect(isRefused(respond(change))).toBe(true);
  });

  test('what was signed for another challenge', () => {
    const signed = client().step(
      new DigestMd5Server({ passwordOf, nonce: () => 'another' }).step(Buffer.alloc(0)),
    )!;

    const to = server();
    to.step(Buffer.alloc(0));

    expect(isRefused(() => to.step(signed))).toBe(true);
  });

  test('another realm or service even where all of it is signed', () => {
    const realm = new DigestMd5Server({ passwordOf, realm: 'other', nonce: () => 'server-nonce' });
    const elsewhere = new DigestMd5Client({
      username: 'ann',
      password: 'secret',
      serverName: 'other',
    });

    for (const signed of [
      client().step(realm.step(Buffer.alloc(0)))!,
      elsewhere.step(server().step(Buffer.alloc(0)))!,
    ]) {
      const to = server();
      to.step(Buffer.alloc(0));
      expect(isRefused(() => to.step(signed))).toBe(true);
    }
  });

  test.each([
    ['a nonce used before', (it: string) => it.replace('nc=00000001', 'nc=00000002')],
    ['a layer that is not offered', (it: string) => it.replace('qop=auth', 'qop=auth-conf')],
    ['another charset', (it: string) => it.replace('charset=utf-8', 'charset=utf-16')],
    [
      'a digest in capitals',
      (it: string) => it.replace(/response=\w+/, `response=${'A'.repeat(32)}`),
    ],
    ['a digest of another length', (it: string) => it.replace(/response=\w+/, 'response=abc')],
    ['no user', (it: string) => it.replace('username="ann",', '')],
    ['an empty user', (it: string) => it.replace('username="ann"', 'username=""')],
    ['no response', (it: string) => it.replace(/response=\w+,/, '')],
    ['two users', (it: string) => `${it},username="bob"`],
    ['two users, differently spelt', (it: string) => `${it},USERNAME="ann"`],
    ['a quote left open', (it: string) => it.replace('"ann"', '"ann')],
    ['a quote that ends in a backslash', () => 'username="ann\\'],
    ['text behind a quote', (it: string) => it.replace('"ann"', '"ann"x')],
    ['a name without a value', (it: string) => `${it},stale`],
    ['a value without a name', (it: string) => `${it},="x"`],
    ['an empty value', (it: string) => `${it},stale=`],
    ['nothing', () => ''],
    ['4,097 bytes', (it: string) => `${it}${','.repeat(4_097 - it.length)}`],
  ])('as no response at all: %s', (_, change) => {
    expect(failure(respond(change))).toBeInstanceOf(ProtocolError);
  });

  test('text that is not UTF-8 where it should be', () => {
    const to = server();
    to.step(Buffer.alloc(0));
    const text = client()
      .step(server().step(Buffer.alloc(0)))!
      .toString();

    const response = Buffer.from(text.replace('ann', '\xff'), 'latin1');

    expect(() => to.step(response)).toThrow(ProtocolError);
  });

  test('a client that begins with more than a response may be long', () => {
    expect(() => server().step(Buffer.alloc(4_097, 'a'))).toThrow(ProtocolError);
  });
});

describe('a server takes', () => {
  test.each([
    ['white space and empty items', (it: string) => ` ,, ${it.replaceAll(',', ' \t,\r\n ')} , ,`],
    ['names in capitals', (it: string) => it.replace('username=', 'UserName=')],
    ['quotes where none are needed', (it: string) => it.replace('qop=auth', 'qop="auth"')],
    [
      'no quotes where none are needed',
      (it: string) => it.replace('"server-nonce"', 'server-nonce'),
    ],
    ['escapes where none are needed', (it: string) => it.replace('"ann"', '"\\a\\n\\n"')],
    ['no qop, which means auth', (it: string) => it.replace('qop=auth,', '')],
    ['directives that nobody knows', (it: string) => `${it},colour="blue, or not"`],
    ['4,096 bytes', (it: string) => `${it}${','.repeat(4_096 - it.length)}`],
  ])('%s', (_, change) => {
    expect(String(respond(change)())).toMatch(/^rspauth=[0-9a-f]{32}$/);
  });

  test('a client that begins, whatever it says', () => {
    const to = server();

    const challenge = to.step(bytes('username="ann",nonce="of another day"'));
    to.step(new DigestMd5Client({ username: 'ann', password: 'secret' }).step(challenge)!);

    expect(to.authorizedId).toBe('ann');
  });

  test('the service in capitals', () => {
    const from = new DigestMd5Client({
      username: 'ann',
      password: 'secret',
      protocol: 'ZooKeeper',
      serverName: 'ZK-SASL-MD5',
    });

    negotiate(from, server());

    expect(from.isComplete).toBe(true);
  });

  test('a name in ISO 8859-1 from a client that says nothing of UTF-8', () => {
    const to = new DigestMd5Server({
      passwordOf: (user) => (user === 'bö' ? 'pässword' : undefined),
      nonce: () => 'n',
    });
    to.step(Buffer.alloc(0));
    const from = new DigestMd5Client({ username: 'bö', password: 'pässword', authzid: null });

    const response = from.step(bytes('realm="zk-sasl-md5",nonce="n",algorithm=md5-sess'))!;

    expect(response.includes(0xf6)).toBe(true);
    expect(response.includes('charset')).toBe(false);
    to.step(response);
    expect(to.authorizedId).toBe('bö');
  });
});

describe('a client refuses', () => {
  const good = 'realm="r",nonce="n",charset=utf-8,algorithm=md5-sess';

  test.each([
    ['no nonce', good.replace('nonce="n",', '')],
    ['an empty nonce', good.replace('"n"', '""')],
    ['two nonces', `${good},nonce="m"`],
    ['a nonce that is not ASCII', good.replace('"n"', '"ñ"')],
    ['no algorithm', good.replace(',algorithm=md5-sess', '')],
    ['another algorithm', good.replace('md5-sess', 'md5')],
    ['layers alone', `${good},qop="auth-int,auth-conf"`],
    ['another charset', good.replace('utf-8', 'latin1')],
    ['no directives', 'hello'],
    ['nothing', ''],
    ['2,049 bytes', `${good}${','.repeat(2_049 - good.length)}`],
  ])('as no challenge: %s', (_, challenge) => {
    expect(failure(() => client().step(bytes(challenge)))).toBeInstanceOf(ProtocolError);
  });

  test('an end without a proof', () => {
    const from = client();
    from.step(bytes(good));

    expect(() => from.step(bytes('rspauth='))).toThrow(ProtocolError);
  });

  test('realms that are not the one asked for', () => {
    const from = new DigestMd5Client({ username: 'ann', password: 'secret', realm: 'mine' });

    expect(isRefused(() => from.step(bytes(good)))).toBe(true);
  });

  test('to write a name that the server could not read', () => {
    const challenge = bytes(good.replace('charset=utf-8,', ''));

    expect(isRefused(() => client('Дима').step(challenge))).toBe(true);
    expect(isRefused(() => client('bö').step(challenge))).toBe(false);
  });
});

describe('a client takes', () => {
  test('the first realm on offer, or the one asked for, or none', () => {
    const challenge = (realms: string) => bytes(`${realms}nonce="n",algorithm=md5-sess`);
    const response = (realms: string, realm?: string) =>
      new DigestMd5Client({ username: 'u', password: 'p', ...(realm ? { realm } : {}) })
        .step(challenge(realms))!
        .toString();

    expect(response('realm="a",realm="b",')).toContain(',realm="a",');
    expect(response('realm="a",realm="b",', 'b')).toContain(',realm="b",');
    expect(response('')).not.toContain('realm=');
  });

  test('auth among other layers', () => {
    const challenge = 'nonce="n",algorithm=MD5-sess,qop="auth-conf, auth",maxbuf=1024,stale=true';

    expect(client().step(bytes(challenge))?.toString()).toContain(',qop=auth,');
  });
});

test('whatever bytes come, each side answers, refuses or says that these are none', () => {
  const pieces = fc.constantFrom(
    'username="ann"',
    'nonce="n"',
    'nonce=n',
    'realm="zk-sasl-md5"',
    'cnonce="c"',
    'nc=00000001',
    'digest-uri="zookeeper/zk-sasl-md5"',
    'algorithm=md5-sess',
    'charset=utf-8',
    `response=${'0'.repeat(32)}`,
    `rspauth=${'0'.repeat(32)}`,
    ',',
    '"',
    '\\',
    '=',
    ' ',
    '\xff',
    '\0',
  );
  const token = fc.oneof(
    fc.array(pieces, { maxLength: 14 }).map((parts) => Buffer.from(parts.join(','), 'latin1')),
    fc.array(pieces, { maxLength: 14 }).map((parts) => Buffer.from(parts.join(''), 'latin1')),
    fc.uint8Array({ maxLength: 200 }).map((noise) => Buffer.from(noise)),
  );
  fc.assert(
    fc.property(token, token, (first, second) => {
      const to = server();
      to.step(Buffer.alloc(0));
      const from = client();
      const errors = [
        failure(() => to.step(first)),
        failure(() => from.step(first)),
        failure(() => from.step(second)),
      ];

      expect(to.authorizedId).toBeUndefined();
      for (const error of errors) {
        const isNamed = error instanceof ProtocolError || isZkError(error, 'AUTH_FAILED');
        expect(error === undefined || isNamed, String(error)).toBe(true);
      }
    }),
    { numRuns: 1_000 },
  );
});

test('a token made to slow its reader down does not', () => {
  const hostile = [
    '"'.repeat(4_000),
    ' '.repeat(4_000),
    `a="${'\\"'.repeat(2_000)}`,
    ','.repeat(4_000),
  ];

  // What takes more than a look at each letter does not come to an end before the test's time is over.
  for (const text of hostile) {
    const to = server();
    to.step(Buffer.alloc(0));
    expect(() => to.step(bytes(text))).toThrow(ProtocolError);
  }
});
