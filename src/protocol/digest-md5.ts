/**
 * SASL DIGEST-MD5 (RFC 2831), both sides of it, as ZooKeeper speaks it: `auth` alone, no layers.
 *
 *   client  (nothing)
 *   server  realm="zk-sasl-md5",nonce="…",charset=utf-8,algorithm=md5-sess
 *   client  charset=utf-8,username="ann",realm=…,nonce=…,nc=00000001,cnonce="…",
 *           digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=…,qop=auth,authzid="ann"
 *   server  rspauth=…
 *
 * In: tokens, as they stand in a sasl op. Out: tokens. Text that is none of these is a `ProtocolError`;
 * a proof that does not hold is a `ZkError` AUTH_FAILED. The order and the choice of directives are
 * those of Java's com.sun.security.sasl.digest, so that our tokens can't be told from its own.
 *
 * MD5 is long broken as a hash. This proves a password to who has it; against listeners, use TLS.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ProtocolError } from '../jute/index.ts';
import { ZkError } from './errors.ts';

/** ZooKeeper's own names for what elsewhere are a service and its host: the same on every server. */
const zooKeeper = { protocol: 'zookeeper', serverName: 'zk-sasl-md5', realm: 'zk-sasl-md5' };

/** RFC 2831 2.1.1 and 2.1.2. */
const challengeBytesMax = 2048;
const responseBytesMax = 4096;
/** Java offers this with every response, although without layers nobody uses it. */
const layerBytesMax = 65_536;

interface Names {
  readonly protocol?: string;
  readonly serverName?: string;
  /** Makes a nonce: for tests, which want the same one every time. */
  readonly nonce?: () => string;
}

export interface DigestMd5ClientOptions extends Names {
  readonly username: string;
  readonly password: string;
  /** Which of the realms on offer to take. The first, unless named. */
  readonly realm?: string;
  /** Whom to act as; null leaves it out. The user, unless named, as ZooKeeper's Java client has it. */
  readonly authzid?: string | null;
}

/** One negotiation, from the side that has to prove itself. */
export class DigestMd5Client {
  readonly #options: DigestMd5ClientOptions;
  #state: 'asked' | 'answered' | 'complete' | 'failed' = 'asked';
  #rspauth = '';

  constructor(options: DigestMd5ClientOptions) {
    this.#options = options;
  }

  /** The server's proof was seen and holds. */
  get isComplete(): boolean {
    return this.#state === 'complete';
  }

  /** The first token: the mechanism has the server begin. */
  start(): Buffer {
    return Buffer.alloc(0);
  }

  /** An answer to the server's token, or null when there is nothing left to say. */
  step(token: Buffer): Buffer | null {
    const before = this.#state;
    this.#state = 'failed'; // until it has gone well: there is no second try
    if (before === 'asked') {
      const answer = this.#answer(parse(token, challengeBytesMax, ['realm']));
      this.#state = 'answered';
      return answer;
    }
    if (before !== 'answered') throw new ProtocolError('SASL: a token after the last one');
    const { rspauth } = single(parse(token, challengeBytesMax), 'rspauth');
    if (!isSame(rspauth, this.#rspauth)) {
      throw refused('the server could not prove that it has the password');
    }
    this.#state = 'complete';
    return null;
  }

  #answer(challenge: Directives): Buffer {
    const { nonce, algorithm } = single(challenge, 'nonce', 'algorithm');
    if (algorithm.toLowerCase() !== 'md5-sess') throw unsupported('algorithm', algorithm);
    if (!/^[ -~]+$/.test(nonce)) throw unsupported('nonce', nonce);
    const [qop = 'auth'] = challenge.get('qop') ?? [];
    const offered = qop.toLowerCase().split(',');
    if (!offered.some((each) => each.trim() === 'auth')) throw unsupported('qop', qop);
    const { isUtf8, text } = charsetOf(challenge);

    const { username, password, protocol, serverName, authzid = username } = this.#options;
    const realm = this.#realm((challenge.get('realm') ?? []).map(text));
    if (!isUtf8 && ![username, authzid ?? ''].every(isLatin1)) {
      throw refused('the server takes no name outside ISO 8859-1');
    }
    const proof: Proof = {
      username,
      realm: realm ?? '',
      password,
      nonce,
      cnonce: (this.#options.nonce ?? randomNonce)(),
      digestUri: digestUri(protocol, serverName),
      ...(authzid === null ? {} : { authzid }),
    };
    this.#rspauth = digestMd5(proof, '');
    return Buffer.from(
      [
        ...(isUtf8 ? ['charset=utf-8'] : []),
        `username=${quoted(username)}`,
        ...(realm === undefined ? [] : [`realm=${quoted(realm)}`]),
        `nonce=${quoted(nonce)}`,
        `nc=${nonceCount}`,
        `cnonce=${quoted(proof.cnonce)}`,
        `digest-uri=${quoted(proof.digestUri)}`,
        `maxbuf=${layerBytesMax}`,
        `response=${digestMd5(proof, 'AUTHENTICATE')}`,
        'qop=auth',
        ...(authzid === null ? [] : [`authzid=${quoted(authzid)}`]),
      ].join(','),
      isUtf8 ? 'utf8' : 'latin1',
    );
  }

  #realm(offered: string[]): string | undefined {
    const { realm = offered[0] } = this.#options;
    if (realm !== undefined && offered.length > 0 && !offered.includes(realm)) {
      throw refused('the server does not offer the realm');
    }
    return realm;
  }
}

export interface DigestMd5ServerOptions extends Names {
  readonly realm?: string;
  /** The password of a user, or undefined for one who is none. */
  readonly passwordOf: (username: string) => string | undefined;
}

/** One negotiation, from the side that has to be convinced. */
export class DigestMd5Server {
  readonly #options: DigestMd5ServerOptions;
  readonly #nonce: string;
  #state: 'begun' | 'challenged' | 'over' = 'begun';
  #authorizedId: string | undefined;
  #claimedId: string | undefined;

  constructor(options: DigestMd5ServerOptions) {
    this.#options = options;
    this.#nonce = (options.nonce ?? randomNonce)();
  }

  /**
   * Who it is, once that is proven: always the user. Whom the client would rather act as is part of
   * what it signs and of no further use, as in SaslServerCallbackHandler.
   */
  get authorizedId(): string | undefined {
    return this.#authorizedId;
  }

  /** The user that the client says it is, proven or not. Undefined until it has said so, and for an unknown user. */
  get claimedId(): string | undefined {
    return this.#claimedId;
  }

  /** The token to send back. Throws when the client has failed, and then there is no second try. */
  step(token: Buffer): Buffer {
    if (this.#state === 'begun') {
      this.#state = 'over';
      // As in Java it is no matter what it says: a client of Cyrus that has been here may begin with
      // what it knows from then (RFC 2831 2.2), and goes on with the challenge that it gets.
      checkLength(token, responseBytesMax);
      this.#state = 'challenged';
      const realm = quoted(this.#options.realm ?? zooKeeper.realm);
      const nonce = quoted(this.#nonce);
      return Buffer.from(`realm=${realm},nonce=${nonce},charset=utf-8,algorithm=md5-sess`);
    }
    if (this.#state === 'over') throw new ProtocolError('SASL: a token after the last one');
    this.#state = 'over';
    return Buffer.from(`rspauth=${this.#judge(parse(token, responseBytesMax))}`);
  }

  #judge(response: Directives): string {
    const {
      username: usernameBytes,
      nonce,
      cnonce,
      nc,
      'digest-uri': uri,
      response: claim,
    } = single(response, 'username', 'nonce', 'cnonce', 'nc', 'digest-uri', 'response');
    const { text } = charsetOf(response);
    const [qop = 'auth'] = response.get('qop') ?? [];
    if (qop.toLowerCase() !== 'auth') throw unsupported('qop', qop);
    if (nc !== nonceCount) throw unsupported('nc', nc);
    if (!/^[0-9a-f]{32}$/.test(claim)) throw new ProtocolError('SASL: the response is no digest');

    const { protocol, serverName, realm: ownRealm = zooKeeper.realm, passwordOf } = this.#options;
    const realm = text(response.get('realm')?.[0] ?? '');
    const authzid = response.get('authzid')?.[0];
    const username = text(usernameBytes);
    const password = passwordOf(username);
    if (password !== undefined) this.#claimedId = username;
    const proof: Proof = {
      username,
      realm,
      // Someone whom nobody knows takes as long to refuse as a wrong password.
      password: password ?? '',
      nonce,
      cnonce: text(cnonce),
      digestUri: text(uri),
      ...(authzid === undefined ? {} : { authzid: text(authzid) }),
    };
    const holds = [
      isSame(claim, digestMd5(proof, 'AUTHENTICATE')),
      password !== undefined,
      nonce === this.#nonce,
      realm === ownRealm,
      proof.digestUri.toLowerCase() === digestUri(protocol, serverName).toLowerCase(),
    ];
    if (holds.includes(false)) throw refused('the response does not fit the challenge');
    this.#authorizedId = username;
    return digestMd5(proof, '');
  }
}

/** Each side makes its nonce anew for every negotiation, so that each is used once. */
const nonceCount = '00000001';

/** What is signed. */
export interface Proof {
  readonly username: string;
  readonly realm: string;
  readonly password: string;
  readonly nonce: string;
  readonly cnonce: string;
  readonly digestUri: string;
  readonly authzid?: string;
}

/** RFC 2831 2.1.2.1 for a client's `response`; 2.1.3, with no method, for a server's `rspauth`. */
export function digestMd5(proof: Proof, method: 'AUTHENTICATE' | ''): string {
  const { username, realm, password, nonce, cnonce, authzid } = proof;
  const secret = md5(
    Buffer.concat([hashable(username), colon, hashable(realm), colon, hashable(password)]),
  ).digest();
  const tail = [nonce, cnonce, ...(authzid === undefined ? [] : [authzid])];
  const a1 = Buffer.concat([secret, Buffer.from(tail.map((part) => `:${part}`).join(''))]);
  const a2 = `${method}:${proof.digestUri}`;
  return hex(`${hex(a1)}:${nonce}:${nonceCount}:${cnonce}:auth:${hex(a2)}`);
}

const colon = Buffer.from(':');
const md5 = (bytes: Buffer | string) => createHash('md5').update(bytes);
const hex = (bytes: Buffer | string) => md5(bytes).digest('hex');

/** As ISO 8859-1 where that has all of its characters, as UTF-8 otherwise: each part for itself. */
function hashable(text: string): Buffer {
  return Buffer.from(text, isLatin1(text) ? 'latin1' : 'utf8');
}

const isLatin1 = (text: string) => /^[\0-\u00ff]*$/.test(text);

/** 30 bytes, as Java's. */
const randomNonce = () => randomBytes(30).toString('base64');

const digestUri = (protocol = zooKeeper.protocol, serverName = zooKeeper.serverName) =>
  `${protocol}/${serverName}`;

/** Takes as long wherever the two differ. */
function isSame(claim: string, truth: string): boolean {
  const [a, b] = [Buffer.from(claim), Buffer.from(truth)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function refused(detail: string): ZkError {
  return new ZkError('AUTH_FAILED', { op: 'sasl', detail });
}

function unsupported(directive: string, value: string): ProtocolError {
  return new ProtocolError(`SASL: ${directive} ${JSON.stringify(value.slice(0, 40))} is not taken`);
}

// ── the text of a token ─────────────────────────────────────────────────────────────────────────

/** By name in lower case. Values as they came, one character for each byte: see `utf8Text`. */
type Directives = ReadonlyMap<string, readonly string[]>;

const whiteSpace = '[ \\t\\r\\n]*';
const token = '[^\\0-\\x20\\x7f-\\xff()<>@,;:\\\\"/\\[\\]?={}]+';
const quotedString = '"(?:[^"\\\\]|\\\\[\\0-\\x7f])*"';
const directive = new RegExp(
  `${whiteSpace}(?:(${token})${whiteSpace}=${whiteSpace}(${quotedString}|${token})${whiteSpace})?(,|$)`,
  'y',
);

/** A list as in RFC 2616 2.1: empty items are passed over. A name comes once, but for `several`. */
function parse(bytes: Buffer, bytesMax: number, several: readonly string[] = []): Directives {
  checkLength(bytes, bytesMax);
  const text = bytes.toString('latin1');
  const found = new Map<string, string[]>();
  for (let at = 0; at < text.length; ) {
    directive.lastIndex = at;
    const match = directive.exec(text);
    if (match === null) throw new ProtocolError(`SASL: no directive, at byte ${at}`);
    at = directive.lastIndex;
    const [, name, value] = match;
    if (name === undefined || value === undefined) continue;
    const key = name.toLowerCase();
    const values = found.get(key) ?? [];
    if (values.length > 0 && !several.includes(key)) {
      throw new ProtocolError(`SASL: ${key} is there more than once`);
    }
    found.set(key, [...values, value.startsWith('"') ? unquoted(value) : value]);
  }
  return found;
}

function checkLength({ length }: Buffer, bytesMax: number): void {
  if (length <= bytesMax) return;
  throw new ProtocolError(`SASL: a token of ${length} bytes; at most ${bytesMax} are taken`);
}

function single<N extends string>(directives: Directives, ...names: N[]): Record<N, string> {
  const entries = names.map((name) => {
    const value = directives.get(name)?.[0];
    if (value === undefined || value === '') throw new ProtocolError(`SASL: ${name} is missing`);
    return [name, value];
  });
  return Object.fromEntries(entries) as Record<N, string>;
}

const unquoted = (value: string) => value.slice(1, -1).replace(/\\([\s\S])/g, '$1');
const quoted = (value: string) => `"${value.replace(/["\\]/g, '\\$&')}"`;

/** How the other side has written its texts: as UTF-8 if it says so, as ISO 8859-1 otherwise. */
function charsetOf(directives: Directives): { isUtf8: boolean; text: (bytes: string) => string } {
  const [charset] = directives.get('charset') ?? [];
  if (charset === undefined) return { isUtf8: false, text: (bytes) => bytes };
  if (charset.toLowerCase() !== 'utf-8') throw unsupported('charset', charset);
  return { isUtf8: true, text: utf8Text };
}

/** What stands for bytes, one character each, as the text that these bytes are in UTF-8. */
function utf8Text(bytes: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      Buffer.from(bytes, 'latin1'),
    );
  } catch (cause) {
    throw new ProtocolError('SASL: text that is not UTF-8', { cause });
  }
}
