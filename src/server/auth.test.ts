import * as crypto from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { digestId, type Id, openAcl } from '../protocol/index.ts';
import { addressMatches, isAddressRange } from './addresses.ts';
import { Auth, superId } from './auth.ts';

vi.mock('node:crypto', async (original) => {
  const real = await original<typeof crypto>();
  return { ...real, timingSafeEqual: vi.fn(real.timingSafeEqual) };
});

test.each([
  ['127.0.0.1', '127.0.0.1', true],
  ['127.0.0.1', '127.0.0.0/8', true],
  ['128.0.0.1', '127.0.0.0/8', false],
  ['10.1.2.3', '10.1.2.0/23', true],
  ['10.1.3.3', '10.1.2.0/23', true],
  ['10.1.4.3', '10.1.2.0/23', false],
  ['10.1.2.3', '0.0.0.0/0', true],
  ['fe80::1', 'fe80::/10', true],
  ['::1', '::1', true],
  ['::1', '::2/127', false],
  ['127.0.0.1', '::/0', false],
])('%s is meant by %s: %s', (address, range, meant) => {
  expect(addressMatches(address, range)).toBe(meant);
});

test.each(['300.1.1.1', '1.2.3', '1.2.3.4/33', '1.2.3.4/x', '::1::', '1:2', 'x', '', '12345::'])(
  '%j can stand in no ACL',
  (range) => {
    expect(isAddressRange(range)).toBe(false);
  },
);

test.each([
  ['a:b', true],
  [':b', true],
  ['a:b:', true],
  ['a:', false],
  ['a', false],
  ['a:b:c', false],
  ['', false],
])('a digest id %j is legal: %s', (id, legal) => {
  const acl = [{ perms: 31, id: { scheme: 'digest', id } }];

  expect(new Auth().fixUp(acl, []) !== null).toBe(legal);
});

test.each([
  ...([
    ['ann', true],
    ['ann@REALM', true],
    ['zk/host@REALM', true],
    ['a/b/c', true],
    ['@', true],
    ['', true],
  ] as const),
  ...([
    ['a@b@c', false],
    ['a/b/c@REALM', false],
    ['zk@REALM/host', false],
  ] as const),
])('a SASL id %j is legal: %s', (id, legal) => {
  const acl = [{ perms: 31, id: { scheme: 'sasl', id } }];

  expect(new Auth({ extraSchemes: ['sasl'] }).fixUp(acl, []) !== null).toBe(legal);
});

test('an x509 id that names no subject is no legal one', () => {
  const auth = new Auth({ extraSchemes: ['x509'] });
  const fixed = (id: string) => auth.fixUp([{ perms: 31, id: { scheme: 'x509', id } }], []);

  expect(fixed('CN=ann,O=Foo')).not.toBeNull();
  expect(fixed('ann')).toBeNull();
});

test('the SASL user super is meant by every entry for a SASL user, and by no other', () => {
  const auth = new Auth({ extraSchemes: ['sasl', 'x509'] });
  const may = (user: string, scheme: string) =>
    auth.permits([{ perms: 31, id: { scheme, id: 'bob' } }], 1, [{ scheme: 'sasl', id: user }]);

  expect([may('super', 'sasl'), may('bob', 'sasl'), may('ann', 'sasl')]).toEqual([
    true,
    true,
    false,
  ]);
  expect(may('super', 'x509')).toBe(false);
});

test('the open ACL is one and the same, so that it is known at a glance', () => {
  const acl = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

  expect(new Auth().fixUp(acl, [])).toBe(openAcl);
});

test('an entry that stands there again counts once', () => {
  const [ann, bob] = ['ann:right', 'bob:right'].map((each) => digestId(each));
  const [first, other, last] = [
    { perms: 1, id: ann! },
    { perms: 2, id: ann! },
    { perms: 1, id: bob! },
  ];

  expect(new Auth().fixUp([first!, other!, { ...first! }, last!, { ...last! }], [])).toEqual([
    first,
    other,
    last,
  ]);
});

test('an ACL of very many entries is read at once: whoever sends it must not hold up all others', () => {
  const acl = Array.from({ length: 200_000 }, (_, i) => ({
    perms: 1,
    id: { scheme: 'digest', id: `ann:${i}` },
  }));

  expect(new Auth().fixUp(acl, [])).toHaveLength(200_000);
});

test('so is an id of very many colons', { timeout: 2_000 }, () => {
  const acl = [{ perms: 1, id: { scheme: 'digest', id: `${':'.repeat(200_000)}x` } }];

  expect(new Auth().fixUp(acl, [])).toBeNull();
});

test('of an ACL that becomes longer than it may be, no more is made than shows it', () => {
  const ids = Array.from({ length: 50 }, (_, i) => digestId(`ann:${i}`));
  const acl = Array.from({ length: 50 }, (_, perms) => ({ perms, id: { scheme: 'auth', id: '' } }));

  expect(new Auth().fixUp(acl, ids)).toHaveLength(2_500);
  expect(new Auth().fixUp(acl, ids, 100)).toHaveLength(101);
  expect(
    new Auth().fixUp([...acl, { perms: 1, id: { scheme: 'no', id: '' } }], ids, 100),
  ).toBeNull();
});

test('sasl and x509 ids are legal only where somebody proves them, and matched as they are', () => {
  const id = { scheme: 'sasl', id: 'bob' };
  const acl = [{ perms: 1, id }];
  const auth = new Auth({ extraSchemes: ['sasl'] });

  expect(new Auth().fixUp(acl, [])).toBeNull();
  expect(auth.fixUp(acl, [])).toEqual(acl);
  expect(auth.permits(acl, 1, [id])).toBe(true);
  expect(auth.permits(acl, 1, [{ scheme: 'sasl', id: 'Bob' }])).toBe(false);
});

test('hashes of passwords are compared in a time that tells nothing, and only under one name', () => {
  const [right, wrong, other] = ['ann:right', 'ann:wrong', 'bob:right'].map((each) =>
    digestId(each),
  );
  const auth = new Auth({ superDigest: digestId('super:test').id });
  const compared = vi.mocked(crypto.timingSafeEqual);
  const acl = [{ perms: 31, id: right! }];
  compared.mockClear();

  expect(auth.permits(acl, 1, [right!])).toBe(true);
  expect(auth.permits(acl, 1, [wrong!])).toBe(false);
  expect(compared).toHaveBeenCalledTimes(2);
  expect(auth.permits(acl, 1, [other!])).toBe(false);
  expect(compared).toHaveBeenCalledTimes(2);

  expect(auth.prove('digest', Buffer.from('super:test'), '::1')).toContain(superId);
  expect(auth.prove('digest', Buffer.from('super:tess'), '::1')).not.toContain(superId);
  expect(compared).toHaveBeenCalledTimes(4);
});

test('many ids are held against a long ACL once, whatever is asked and however often', () => {
  const ids = Array.from({ length: 50 }, (_, i) => digestId(`ann:${i}`));
  const strangers = Array.from({ length: 50 }, (_, i) => digestId(`ann:${100 + i}`));
  let looked = 0;
  const acl = strangers.map((id, i) => ({
    perms: i < 10 ? 1 : 2,
    get id() {
      looked += 1;
      return id;
    },
  }));
  const shared = [...acl, { perms: 4, id: ids[49]! }];
  const auth = new Auth();

  const asked = () => [1, 2, 4, 8].map((perms) => auth.permits(acl, perms, ids));
  expect([asked(), asked()]).toEqual([Array(4).fill(false), Array(4).fill(false)]);
  expect(looked).toBe(50);
  expect([1, 2, 4, 8].map((perms) => auth.permits(shared, perms, ids))).toEqual([
    ...[false, false, true, false],
  ]);
  expect([1, 2, 4, 8].map((perms) => auth.permits(shared, perms, strangers))).toEqual([
    ...[true, true, false, false],
  ]);
});

test('each of many ids is not held against each entry of a long ACL: it may be new each time', () => {
  const auth = new Auth({ extraSchemes: ['sasl', 'x509'] });
  const ids = Array.from({ length: 99 }, (_, i) => digestId(`ann:${i}`));
  const entry = (perms: number, scheme: string, id: string) => ({ perms, id: { scheme, id } });
  const acl = [
    ...Array.from({ length: 990 }, (_, i) => ({ perms: 2, id: digestId(`ann:-${i}`) })),
    { perms: 1, id: ids[98]! },
    ...[entry(4, 'ip', '10.0.0.0/8'), entry(8, 'sasl', 'bob'), entry(16, 'x509', 'CN=bob')],
  ];
  const granted = (...own: Id[]) =>
    [1, 2, 4, 8, 16].filter((perms) => auth.permits(acl, perms, own));
  const compared = vi.mocked(crypto.timingSafeEqual);
  compared.mockClear();

  expect(granted(...ids, { scheme: 'ip', id: '10.1.2.3' })).toEqual([1, 4]);
  expect(granted({ scheme: 'sasl', id: 'super' })).toEqual([8]);
  expect(granted({ scheme: 'sasl', id: 'bob' })).toEqual([8]);
  expect(granted({ scheme: 'x509', id: 'CN=bob' })).toEqual([16]);
  expect(granted({ scheme: 'x509', id: 'bob' }, { scheme: 'ip', id: '11.1.2.3' })).toEqual([]);
  expect(compared).not.toHaveBeenCalled();
});

test('digest is no scheme where it is switched off: neither a proof nor fit for an ACL', () => {
  const auth = new Auth({
    digestSchemeEnabled: false,
    superDigest: digestId('super:test').id,
  });
  const id = digestId('ann:right');

  expect(auth.prove('digest', Buffer.from('super:test'), '::1')).toBeNull();
  expect(auth.fixUp([{ perms: 31, id }], [])).toBeNull();
  expect(auth.permits([{ perms: 31, id }], 1, [id])).toBe(false);
});

test('a certificate without a subject is not the super user of a configuration that names none', () => {
  const [none, ann] = ['', 'CN=ann'].map((id) => ({ scheme: 'x509', id }));

  expect(new Auth({ x509SuperUser: '' }).withSuper([none!])).toEqual([none]);
  expect(new Auth({ x509SuperUser: 'CN=ann' }).withSuper([ann!])).toEqual([ann, superId]);
});

test('who shows a certificate again proves what TLS has proved, and nobody else anything', () => {
  const auth = new Auth({ extraSchemes: ['x509'] });
  const known = [
    { scheme: 'ip', id: '::1' },
    { scheme: 'x509', id: 'CN=ann' },
  ];

  expect(auth.prove('x509', Buffer.from('CN=bob'), '::1', known)).toEqual([known[1]]);
  expect(auth.prove('x509', Buffer.from('CN=ann'), '::1', known.slice(0, 1))).toBeNull();
});
