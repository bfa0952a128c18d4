/**
 * What a server said, as lines of text that can be compared with what another said. What is different
 * by nature is replaced here: see `byNature` in allowed.ts for each and why.
 */

import { Reader, type Type } from '../../src/jute/index.ts';
import { type Acl, ops, type Stat, WatcherEvent } from '../../src/protocol/index.ts';
import { bodyOf, headerOf } from './decode.ts';
import type { Transcript } from './play.ts';
import { decodeWelcome, type Said, type Session } from './play-line.ts';

export interface Line {
  readonly text: string;
  /** Which command it follows, -1 for those around the script. */
  readonly command: number;
}

export function normalise(transcript: Transcript): Line[][] {
  const view = new View(transcript);
  return transcript.links.map((said) => view.link(said));
}

class View {
  readonly #base: bigint;
  readonly #sessions: readonly Session[];
  /** When the txn of each zxid took place, as far as Stats tell. */
  readonly #times = new Map<bigint, bigint>();
  readonly #closings = new Set<bigint>();

  constructor({ base, sessions, links }: Transcript) {
    this.#base = base;
    this.#sessions = sessions;
    for (const said of links.flat()) {
      if (said.kind === 'reply' && said.to.op === 'closeSession') {
        this.#closings.add(said.frame.readBigInt64BE(4));
      }
    }
  }

  link(said: readonly Said[]): Line[] {
    const lines: Line[] = [];
    for (let at = 0; at < said.length; ) {
      const end = this.#runOfEvents(said, at);
      const run = said.slice(at, end).map((one) => this.#line(one));
      lines.push(...(run.length > 1 ? run.sort(byText) : run));
      at = end;
    }
    return lines;
  }

  /** Events of one session's end come in the order of a hash set. */
  #runOfEvents(said: readonly Said[], at: number): number {
    const first = said[at]!;
    if (first.kind !== 'event') return at + 1;
    const zxid = first.frame.readBigInt64BE(4);
    if (!this.#closings.has(zxid)) return at + 1;
    let end = at + 1;
    for (; end < said.length; end++) {
      const next = said[end]!;
      if (next.kind !== 'event' || next.frame.readBigInt64BE(4) !== zxid) break;
    }
    return end;
  }

  #line(said: Said): Line {
    return { text: this.#text(said), command: said.command };
  }

  #text(said: Said): string {
    switch (said.kind) {
      case 'welcome':
        return this.#welcome(said.frame);
      case 'event':
        return `event ${this.#header(said.frame)} ${this.#event(said.frame)}`;
      case 'reply': {
        const name = typeof said.to.op === 'number' ? `op ${said.to.op}` : said.to.op;
        return `reply to ${name}: ${this.#header(said.frame)} ${this.#body(said.to.op, said.frame)}`;
      }
      default:
        return said.kind;
    }
  }

  #welcome(frame: Buffer): string {
    const { protocolVersion, timeOut, sessionId, passwd, readOnly } = decodeWelcome(frame);
    const session = this.#sessions.find(({ id }) => id === sessionId);
    const password =
      session === undefined
        ? passwd?.toString('hex')
        : passwd?.equals(session.passwd)
          ? 'its own'
          : 'another';
    return `welcome version ${protocolVersion} timeOut ${timeOut} session ${this.#session(sessionId)} passwd ${password} readOnly ${readOnly} (${frame.length} bytes)`;
  }

  #header(frame: Buffer): string {
    if (frame.length < 16) return `short ${frame.toString('hex')}`;
    const { xid, zxid, err } = headerOf(frame);
    return `xid ${xid} zxid ${this.#zxid(zxid)} err ${err}`;
  }

  #event(frame: Buffer): string {
    const reader = new Reader(bodyOf(frame));
    const { type, state, path } = WatcherEvent.read(reader);
    return `type ${type} state ${state} ${JSON.stringify(path)} left ${reader.remaining}`;
  }

  #body(op: keyof typeof ops | number, frame: Buffer): string {
    const body = bodyOf(frame);
    if (typeof op === 'number' || frame.length < 16 || frame.readInt32BE(12) !== 0) {
      return body.toString('hex');
    }
    const reader = new Reader(body);
    try {
      const value = (ops[op].response as Type<unknown>).read(reader);
      return `${this.#print(value)}${reader.remaining > 0 ? ` and ${reader.remaining} bytes` : ''}`;
    } catch {
      return `unreadable ${body.toString('hex')}`;
    }
  }

  #print(value: unknown, key = ''): string {
    if (value === null || value === undefined) return String(value);
    if (Buffer.isBuffer(value)) return key === 'token' ? challenge(value) : hex(value);
    if (typeof value === 'string') return JSON.stringify(value);
    if (Array.isArray(value)) return this.#list(value, key);
    if (typeof value !== 'object') return String(value);
    if ('ephemeralOwner' in value) return this.#stat(value as Stat);
    const fields = 'toObject' in value ? (value as { toObject(): object }).toObject() : value;
    const parts = Object.entries(fields).map(
      ([name, field]) => `${name}: ${this.#print(field, name)}`,
    );
    return `{${parts.join(', ')}}`;
  }

  #list(items: readonly unknown[], key: string): string {
    const texts = items.map((item) => this.#print(item));
    if (key === 'children' || key === 'ephemerals' || key === 'clientInfo') texts.sort();
    if (key === 'acl') sortProved(items as Acl[], texts);
    return `[${texts.join(', ')}]`;
  }

  #stat(stat: Stat): string {
    const { czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion } = stat;
    return (
      `Stat(c ${this.#zxid(czxid)} m ${this.#zxid(mzxid)} p ${this.#zxid(pzxid)} ` +
      `ctime ${this.#time(czxid, ctime)} mtime ${this.#time(mzxid, mtime)} ` +
      `v ${version} cv ${cversion} av ${aversion} owner ${this.#session(stat.ephemeralOwner)} ` +
      `length ${stat.dataLength} children ${stat.numChildren})`
    );
  }

  #zxid(zxid: bigint): string {
    return zxid > this.#base ? `+${zxid - this.#base}` : String(zxid);
  }

  #session(id: bigint): string {
    const index = this.#sessions.findIndex((session) => session.id === id);
    return index === -1 ? `0x${BigInt.asUintN(64, id).toString(16)}` : `#${index}`;
  }

  /** A node's times are those of the txns that its zxids name: one time for each zxid, everywhere. */
  #time(zxid: bigint, ms: bigint): string {
    if (zxid === 0n || ms === 0n) return String(ms);
    const known = this.#times.get(zxid);
    if (known === undefined) this.#times.set(zxid, ms);
    else if (known !== ms) return 'of another txn';
    if (ms < ancientMs || ms > distantMs) return String(ms); // made up, and the same on every server
    return Math.abs(Number(ms) - Date.now()) < 600_000 ? 'its txn' : 'long ago';
  }
}

/** 2001 and 2286. */
const ancientMs = 10n ** 12n;
const distantMs = 10n ** 13n;

const hex = (bytes: Buffer): string => `<${bytes.toString('hex')}>`;

/** What SASL says is text, and new each time. */
const challenge = (token: Buffer): string =>
  token.toString('latin1').replace(/nonce="[^"]*"/, 'nonce="…"');

const byText = (a: Line, b: Line): number => (a.text < b.text ? -1 : 1);

/** What `auth` was expanded to comes in the order of a hash set. */
function sortProved(acl: readonly Acl[], texts: string[]): void {
  for (let at = 0; at < acl.length; ) {
    let end = at + 1;
    while (
      end < acl.length &&
      acl[end]!.perms === acl[at]!.perms &&
      acl[end]!.id.scheme === 'digest'
    ) {
      end += 1;
    }
    const run = texts.slice(at, end).sort();
    texts.splice(at, run.length, ...run);
    at = end;
  }
}
