/**
 * One link, from the moment a server took us in until it breaks: requests out, replies and events in,
 * and a ping when it has been quiet.
 *
 * In: calls that wait, frames. Out: settled calls, events, and what the session must know: when the
 * last request left that was answered. A server that is silent for too long is given up.
 */

import { ProtocolError, Reader } from '../jute/index.ts';
import {
  eventTypeNames,
  ops,
  SetWatches,
  SetWatches2,
  specialXids,
  WatcherEvent,
  wireOf,
  ZkError,
} from '../protocol/index.ts';
import {
  Backoff,
  type Clock,
  type Deferred,
  deferred,
  type Timer,
  wakefulness,
} from '../support/index.ts';
import type { AuthInfo } from './auth.ts';
import type { Calls } from './calls.ts';
import { hostText } from './connection-string.ts';
import { refusals } from './refusals.ts';
import type { SeenZxid } from './seen-zxid.ts';
import { type OldServers, ServerVersion } from './server-version.ts';
import type { Transport } from './transport.ts';
import {
  type Listener,
  oneShotKinds,
  serverKinds,
  type WatchEvent,
  type Watches,
} from './watches.ts';

export interface ConversationOptions {
  readonly calls: Calls;
  readonly watches: Watches;
  readonly seen: SeenZxid;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly requestBytesMax: number;
  readonly oldServers: OldServers;
  /** Something that left at `sentMs` was answered: told once for all that left together. */
  readonly onAnswered: (sentMs: number) => void;
  /** Looks at the clock, unless it was just read: a session that may be over ends now, before anyone is told. */
  readonly checkClock: (nowMs?: number) => void;
  readonly onAuthRefused: (error: ZkError) => void;
  readonly onEvent: (listeners: ReadonlySet<Listener>, event: WatchEvent) => void;
}

/** How long a reply is looked for: what a server on the same machine takes, unless it waits for its disk. */
const awakeMs = 0.1;
/** With more of them a server has work for longer, and may need the core, unless it answers many at a time. */
const awakeInFlightMax = 4;
const awakeShareMin = 1 / 4;
/** So often a server may refuse to set watches again; then another is looked for. */
const refusalsMax = 10;
const refusalErrs: ReadonlySet<number> = new Set(refusals.map(wireOf));
/** At least this often, so that a server with long timeouts still hears from us and we from it. */
const pingIntervalMaxMs = 10_000;
/** What a connection and its handshake may take, on a network of ordinary speed. */
const reconnectMs = 100;

/** What a connection on which nothing but pings may leave sends as soon as anything may. */
interface Probe {
  readonly auth: readonly AuthInfo[];
  readonly added: { readonly info: AuthInfo; readonly reply: Deferred<void> }[];
}

export class Conversation {
  readonly transport: Transport;
  readonly version: ServerVersion;
  readonly #options: ConversationOptions;
  readonly #reader = new Reader();
  readonly #authReplies: Deferred<void>[] = [];
  #timer: Timer | undefined;
  #sendAsked = false;
  /** While it is set nothing but pings leaves. What else is to be sent waits for `endProbe`. */
  #probe: Probe | undefined;
  #isOver = false;
  #ackedMs = Number.NEGATIVE_INFINITY;
  #heardMs: number;
  /** How many were answered by what came last. */
  #answered = 0;
  /** Requests that set watches again and are not answered, in their order. */
  readonly #setting: SetWatches2[] = [];
  /** Those of them that were refused, and are to be sent once more. */
  readonly #refused: SetWatches2[] = [];
  #refusals = 0;
  readonly #refusalBackoff = new Backoff({ firstMs: 50, maxMs: 5_000 });
  #refusalTimer: Timer | undefined;
  #sentMs: number;
  /** When each ping left that is not answered. A pong says nothing of the pings after its own. */
  readonly #pingsSentMs: number[] = [];

  constructor(transport: Transport, options: ConversationOptions) {
    this.transport = transport;
    this.#options = options;
    this.#heardMs = options.clock.nowMs();
    this.#sentMs = this.#heardMs;
    const { host, address } = transport.endpoint;
    this.version = new ServerVersion(`${address}:${host.port}`, options.oldServers, (op) =>
      transport.close(new Error(`${hostText(host)} does not know ${op}; connecting again`)),
    );
    transport.onHeard = () => {
      this.#heardMs = options.clock.nowMs();
      this.#answered = 0;
    };
    transport.onFrame = (bytes, start, end, borrowed) => this.#frame(bytes, start, end, borrowed);
    // Whoever was answered goes on only after all of this: for a chunk one look at the clock is enough.
    transport.onTaken = () => {
      options.checkClock();
      if (options.calls.waiting > 0) this.sendSoon();
    };
  }

  /** Before anything else: who we are, and the watches, set again. On a probe only a ping leaves, and all that later. */
  begin(auth: readonly AuthInfo[], isProbe = false): void {
    // Before the first answer, a pong's too: what it has seen has not been told to any watch.
    this.#options.seen.beginSetting();
    if (isProbe) {
      this.#probe = { auth: [...auth], added: [] };
      this.#ping(this.#options.clock.nowMs());
    } else {
      this.#introduce(auth);
    }
    this.#schedule();
  }

  /** It may be used as any other connection from now on. */
  endProbe(): void {
    const probe = this.#probe;
    if (probe === undefined || this.#isOver) return;
    this.#probe = undefined;
    this.#introduce(probe.auth);
    for (const { info, reply } of probe.added) this.#writeAuth(info, reply);
  }

  #introduce(auth: readonly AuthInfo[]): void {
    for (const info of auth) {
      this.sendAuth(info).catch(() => {}); // a refusal ends the session, and is told so
    }
    const { seen, watches, requestBytesMax } = this.#options;
    const { lacksPersistentWatches } = this.version;
    for (const request of watches.requests(
      seen.toldZxid,
      requestBytesMax,
      lacksPersistentWatches ? oneShotKinds : serverKinds,
    )) {
      this.#setWatches(request);
    }
    if (this.#setting.length === 0) seen.endSetting();
    this.transport.flushSoon();
    this.sendSoon();
  }

  /** Whether a send at the end of this tick was asked for already. It looks at the clock first. */
  get isSendAsked(): boolean {
    return this.#sendAsked;
  }

  /** All that is asked for in one tick goes out as one: encoded at its end, in one write. */
  sendSoon(): void {
    if (this.#sendAsked || this.#probe !== undefined) return;
    this.#sendAsked = true;
    process.nextTick(() => {
      this.#sendAsked = false;
      const { calls, clock, requestBytesMax, checkClock } = this.#options;
      const nowMs = clock.nowMs();
      checkClock(nowMs); // time may have passed in the tick: nothing leaves in a session that may be over
      // What waits goes with the next connection: in flight on a closed one its outcome would be unknown.
      if (this.#isOver || this.transport.isOver) return;
      if (calls.send(this.transport.writer, nowMs, requestBytesMax, this.version))
        this.#sentMs = nowMs;
      this.transport.flush();
      const { inFlight } = calls;
      const isBrisk = inFlight <= awakeInFlightMax || this.#answered >= inFlight * awakeShareMin;
      if (isBrisk) wakefulness.touch(awakeMs);
    });
  }

  /** Resolves once the server has accepted it. */
  sendAuth(info: AuthInfo): Promise<void> {
    const reply = deferred();
    if (this.#probe === undefined) this.#writeAuth(info, reply);
    else this.#probe.added.push({ info, reply });
    return reply.promise;
  }

  #writeAuth({ scheme, auth }: AuthInfo, reply: Deferred<void>): void {
    this.#authReplies.push(reply);
    this.#write(specialXids.auth, ops.auth.code, () =>
      ops.auth.request.write(this.transport.writer, { type: 0, scheme, auth }),
    );
    this.transport.flushSoon();
  }

  /** The link is over: nothing of it is left behind. */
  end(reason: Error): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#refusalTimer?.cancel();
    const held = this.#probe?.added.map(({ reply }) => reply) ?? [];
    for (const reply of [...this.#authReplies.splice(0), ...held]) {
      reply.reject(new ZkError('CONNECTION_LOSS', { op: 'auth', cause: reason }));
    }
  }

  #frame(bytes: Buffer, start: number, end: number, borrowed: boolean): void {
    const reader = this.#reader.reset(bytes, start, end, borrowed);
    const xid = reader.int();
    const zxidHigh = reader.int();
    const zxidLow = reader.int();
    const err = reader.int();
    if (xid === specialXids.notification) {
      this.#notified(reader, zxidHigh, zxidLow);
      return;
    }
    this.#options.seen.sees(zxidHigh, zxidLow);
    const { calls } = this.#options;
    let sentMs = Number.NEGATIVE_INFINITY;
    if (xid > 0) {
      sentMs = calls.reply(xid, err, reader, this.version);
      this.#answered += 1;
    } else if (xid === specialXids.ping) sentMs = this.#pingsSentMs.shift() ?? sentMs;
    else if (xid === specialXids.auth) this.#authReplied(err);
    else if (xid === specialXids.setWatches) this.#watchesSet(err);
    else {
      throw new ProtocolError(`a reply with xid ${xid}, which no request has`);
    }
    if (sentMs > this.#ackedMs) {
      this.#ackedMs = sentMs;
      this.#options.onAnswered(sentMs);
    }
  }

  #notified(reader: Reader, zxidHigh: number, zxidLow: number): void {
    const event = WatcherEvent.read(reader);
    reader.finish();
    const type = eventTypeNames.get(event.type);
    if (type === undefined) throw new ProtocolError(`no event has type ${event.type}`);
    if (type !== 'none' && !event.path.startsWith('/')) {
      throw new ProtocolError('an event whose path is none');
    }
    const hasZxid = zxidHigh >= 0 && (zxidHigh | zxidLow) !== 0;
    const zxid = hasZxid ? (BigInt(zxidHigh) << 32n) | BigInt(zxidLow >>> 0) : null;
    const { watches, onEvent, checkClock } = this.#options;
    checkClock();
    onEvent(watches.take(type, event.path), { type, path: event.path, zxid });
  }

  #setWatches(request: SetWatches2): void {
    this.#setting.push(request);
    const hasPersistent = isPersistent(request);
    if (hasPersistent) this.version.settingWatches();
    // 3.5 has only the older op, which is enough for the older kinds.
    const { code } = hasPersistent ? ops.setWatches2 : ops.setWatches;
    this.#write(specialXids.setWatches, code, () =>
      (hasPersistent ? SetWatches2 : SetWatches).write(this.transport.writer, request),
    );
  }

  /** One that an overloaded server refuses is asked for again: else its listeners would be deaf on this link. */
  #watchesSet(err: number): void {
    const request = this.#setting.shift();
    if (request !== undefined && isPersistent(request)) this.version.watchesSet(err);
    if (request !== undefined && refusalErrs.has(err)) {
      this.#refused.push(request);
      if (this.#refusalTimer === undefined) {
        const delayMs = this.#refusalBackoff.next();
        this.#refusalTimer = this.#options.clock.after(delayMs, () => this.#setRefused());
      }
    }
    if (this.#setting.length + this.#refused.length === 0) this.#options.seen.endSetting();
  }

  #setRefused(): void {
    this.#refusalTimer = undefined;
    this.#refusals += 1;
    if (this.#refusals > refusalsMax) {
      const host = hostText(this.transport.endpoint.host);
      this.transport.close(new Error(`${host} refuses to set the watches again`));
      return;
    }
    for (const request of this.#refused.splice(0)) this.#setWatches(request);
    this.transport.flush();
  }

  #authReplied(err: number): void {
    const reply = this.#authReplies.shift();
    if (err === 0) {
      reply?.resolve();
      return;
    }
    const refused = new ZkError('AUTH_FAILED', { op: 'auth' });
    reply?.reject(refused);
    this.#options.onAuthRefused(refused);
  }

  #write(xid: number, code: number, body?: () => void): void {
    const { writer } = this.transport;
    const start = writer.beginFrame();
    writer.int(xid);
    writer.int(code);
    body?.();
    writer.endFrame(start);
  }

  /** As Java's client has it: two thirds of the timeout without a word, and the link is given up. */
  get #silenceMaxMs(): number {
    return (this.#options.timeoutMs * 2) / 3;
  }

  /**
   * The session's deadline counts from the last request that was answered, so a ping that left long before an
   * outage shortens the outage that the session survives. With this interval that is up to 0.95 of the timeout,
   * with a tenth of a second left to connect again.
   */
  get #pingEveryMs(): number {
    const { timeoutMs } = this.#options;
    const everyMs = Math.max(timeoutMs / 40, timeoutMs / 20 - reconnectMs);
    return Math.min(everyMs, pingIntervalMaxMs);
  }

  #schedule(): void {
    const { clock } = this.#options;
    const dueMs = Math.min(this.#heardMs + this.#silenceMaxMs, this.#sentMs + this.#pingEveryMs);
    this.#timer = clock.after(dueMs - clock.nowMs(), () => this.#ticked());
  }

  #ticked(): void {
    if (this.#isOver) return;
    const nowMs = this.#options.clock.nowMs();
    // Compared by the sums that the timer was set by: differences may come out a rounding error below them.
    if (nowMs >= this.#heardMs + this.#silenceMaxMs) {
      const silentMs = nowMs - this.#heardMs;
      const host = hostText(this.transport.endpoint.host);
      this.transport.close(new Error(`${host} was silent for ${Math.round(silentMs)} ms`));
      return;
    }
    if (nowMs >= this.#sentMs + this.#pingEveryMs) {
      this.#ping(nowMs);
    }
    this.#schedule();
  }

  #ping(nowMs: number): void {
    this.#write(specialXids.ping, ops.ping.code);
    this.transport.flush();
    this.#sentMs = nowMs;
    this.#pingsSentMs.push(nowMs);
  }
}

/** Servers before 3.6 do not know how to set these again. */
function isPersistent(request: SetWatches2): boolean {
  return request.persistentWatches.length + request.persistentRecursiveWatches.length > 0;
}
