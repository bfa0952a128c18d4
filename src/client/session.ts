/**
 * One session with whatever server holds it: dialing, the handshake, calls, pings, watches, and the
 * end.
 *
 * In: calls from above, frames from a link. Out: replies, events, and every change of state through
 * `onState`. A session outlives its links and ends once. It never says that it is alive without
 * having looked at the clock, so after a pause of the process nobody acts on what may be over.
 */

import { type Infer, ProtocolError, Reader } from '../jute/index.ts';
import {
  type ConnectResponse,
  eventTypeNames,
  isZkError,
  ops,
  passwordBytes,
  SetWatches,
  SetWatches2,
  specialXids,
  WatcherEvent,
  ZkError,
} from '../protocol/index.ts';
import { type Clock, type Deferred, deferred, type Timer } from '../support/index.ts';
import type { AuthInfo, SaslMechanism } from './auth.ts';
import { type Call, Calls } from './calls.ts';
import { hostText } from './connection-string.ts';
import { ConnectError, Dialer, type DialerOptions } from './dialer.ts';
import { hello, negotiate, type Patience } from './handshake.ts';
import type { Logger } from './logger.ts';
import {
  type Identity,
  isFinal,
  next,
  type SessionEvent,
  SessionIdentity,
  type SessionState,
} from './session-state.ts';
import type { Transport } from './transport.ts';
import type { Listener, WatchEvent, Watches } from './watches.ts';

export interface SessionOptions {
  readonly dialer: Omit<DialerOptions, 'clock'>;
  readonly sessionTimeoutMs: number;
  readonly allowReadOnly: boolean;
  readonly frameBytesMax: number;
  readonly inFlightMax: number;
  readonly waitingMax: number;
  readonly closeTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sasl?: SaslMechanism | undefined;
  /** An identity from elsewhere, to take an existing session over. */
  readonly identity?: Identity | undefined;
  readonly firstXid?: number | undefined;
}

export interface SessionHooks {
  onState(state: SessionState, previous: SessionState): void;
  onEvent(listeners: ReadonlySet<Listener>, event: WatchEvent): void;
  traceConnect<T>(context: object, work: () => Promise<T>): Promise<T>;
}

/** At least this often, so that a server with long timeouts still hears from us and we from it. */
const pingIntervalMaxMs = 10_000;

export class Session {
  readonly watches: Watches;
  readonly #options: SessionOptions;
  readonly #hooks: SessionHooks;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #dialer: Dialer;
  readonly #calls: Calls;
  readonly #auth: AuthInfo[];
  readonly #life = new AbortController();
  readonly #ended = deferred();
  readonly #reader = new Reader();
  #state: SessionState = { name: 'connecting' };
  /** Set while a server has us: calls may be sent. */
  #transport: Transport | undefined;
  #authReplies: Deferred<void>[] = [];
  #timer: Timer | undefined;
  #zxidHigh = 0;
  #zxidLow = 0;
  #ackedMs = 0;
  #heardMs = 0;
  #sentMs = 0;
  #pingSentMs = 0;
  #isClosing = false;
  /** Whether a server with a quorum ever knew our identity: one without hands out ids of its own. */
  #isIdentityReal = false;

  constructor(options: SessionOptions, hooks: SessionHooks, watches: Watches, auth: AuthInfo[]) {
    this.#options = options;
    this.#hooks = hooks;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#calls = new Calls(options);
    this.#dialer = new Dialer({ ...options.dialer, clock: options.clock });
    this.watches = watches;
    this.#auth = auth;
    if (options.identity) {
      const identity = new SessionIdentity(options.identity);
      const deadlineMs = this.#clock.nowMs() + identity.timeoutMs;
      this.#state = { name: 'suspended', identity, deadlineMs };
      this.#isIdentityReal = true;
    }
  }

  /** Looks at the clock first: a session that may be over is never called alive. */
  get state(): SessionState {
    this.#checkClock();
    return this.#state;
  }

  /** Aborts at the moment from which the session may be over. */
  get signal(): AbortSignal {
    this.#checkClock();
    return this.#life.signal;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get lastZxid(): bigint {
    return (BigInt(this.#zxidHigh) << 32n) | BigInt(this.#zxidLow >>> 0);
  }

  get inFlight(): number {
    return this.#calls.inFlight;
  }

  get waiting(): number {
    return this.#calls.waiting;
  }

  get endpoint(): string | undefined {
    return this.#transport && hostText(this.#transport.endpoint.host);
  }

  get localAddress(): string | undefined {
    return this.#transport?.localAddress;
  }

  /** What was tried since a server last took us in, and why it failed. */
  get connectError(): ConnectError {
    return new ConnectError('no server took us in', this.#dialer.attempts);
  }

  start(): void {
    this.#schedule();
    void this.#run();
  }

  call(call: Call): void {
    this.#checkClock();
    if (isFinal(this.#state) || this.#isClosing) throw this.endError(call.op, call.path);
    this.#calls.add(call);
    this.#sendSoon();
  }

  abandon(call: Call, error: unknown): void {
    this.#calls.abandon(call, error);
  }

  /** Sends a proof now, if a server has us; on later links it goes first. Resolves once accepted. */
  async addAuth(info: AuthInfo): Promise<void> {
    this.#auth.push(info);
    if (this.#transport === undefined) return;
    await this.#sendAuth(this.#transport, info);
  }

  /** Asks the server to end the session, for as long as it may take; then it is over all the same. */
  async close(): Promise<void> {
    if (isFinal(this.#state)) return this.#ended.promise;
    if (!this.#isClosing) {
      this.#isClosing = true;
      if (this.#transport !== undefined) await this.#sayGoodbye(this.#transport);
      this.#move({ type: 'closeAsked' });
    }
    return this.#ended.promise;
  }

  /** Lets the link go without a word, as if it had been cut. */
  dropLink(reason: Error): void {
    this.#transport?.close(reason);
  }

  /** Why calls fail once the session is over. */
  endError(op?: string, path?: string): ZkError {
    const state = this.#state;
    const code = state.name === 'authFailed' ? 'AUTH_FAILED' : 'SESSION_EXPIRED';
    const cause = isFinal(state) && state.cause !== undefined ? { cause: state.cause } : {};
    return new ZkError(code, { op, path, detail: this.#endDetail(), ...cause });
  }

  #endDetail(): string | undefined {
    if (this.#isClosing || this.#state.name === 'closed') return 'the client was closed';
    const { cause } = this.#state as { cause?: unknown };
    return cause instanceof Error ? cause.message : undefined;
  }

  // ── the life ──────────────────────────────────────────────────────────────────────────────────

  async #run(): Promise<void> {
    try {
      while (!isFinal(this.#state)) {
        const { sessionTimeoutMs } = this.#options;
        const transport = await this.#hooks.traceConnect({ sessionTimeoutMs }, () =>
          this.#connect(),
        );
        const reason = await transport.ended;
        this.#linkLost(reason);
      }
    } catch (error) {
      // Final already: that is why dialing was called off. Else the rounds that were allowed are used up.
      this.#move({ type: 'closeAsked', cause: error });
    }
    this.#ended.resolve();
  }

  /** Tries servers until one takes us in. */
  async #connect(): Promise<Transport> {
    for (;;) {
      const transport = await this.#dialer.next(this.#life.signal);
      try {
        await this.#shakeHands(transport);
        this.#dialer.succeeded();
        return transport;
      } catch (error) {
        transport.close(error as Error);
        this.#life.signal.throwIfAborted();
        this.#dialer.failed(transport.endpoint, error as Error);
        this.#logger.warn(
          { host: hostText(transport.endpoint.host), err: error },
          'handshake failed',
        );
      }
    }
  }

  async #shakeHands(transport: Transport): Promise<void> {
    const { clock, sasl, dialer } = this.#options;
    const patience = { clock, limitMs: dialer.attemptTimeoutMs, signal: this.#life.signal };
    const identity = this.#isIdentityReal ? this.#identity : undefined;
    const sentMs = clock.nowMs();
    const response = await hello(
      transport,
      {
        protocolVersion: 0,
        lastZxidSeen: this.lastZxid,
        timeOut: this.#options.sessionTimeoutMs,
        sessionId: identity?.sessionId ?? 0n,
        passwd: identity?.password ?? Buffer.alloc(passwordBytes),
        readOnly: this.#options.allowReadOnly,
      },
      patience,
    );
    if (response.timeOut <= 0) {
      const host = hostText(transport.endpoint.host);
      this.#move({ type: 'refused', cause: new Error(`${host} says that the session is over`) });
    }
    this.#life.signal.throwIfAborted();
    if (sasl) await this.#authenticate(transport, sasl, patience);
    this.#welcomed(transport, response, sentMs);
  }

  async #authenticate(
    transport: Transport,
    sasl: SaslMechanism,
    patience: Patience,
  ): Promise<void> {
    try {
      await negotiate(transport, sasl, patience);
    } catch (error) {
      if (isZkError(error, 'AUTH_FAILED')) this.#move({ type: 'authRefused', cause: error });
      throw error;
    }
  }

  #welcomed(transport: Transport, response: Infer<typeof ConnectResponse>, sentMs: number): void {
    const readOnly = response.readOnly ?? false;
    if (!readOnly) this.#isIdentityReal = true;
    this.#ackedMs = sentMs;
    this.#heardMs = this.#clock.nowMs();
    this.#sentMs = this.#heardMs;
    this.#transport = transport;
    transport.onFrame = (bytes, start, end, borrowed) => this.#frame(bytes, start, end, borrowed);
    this.#sendPrologue(transport);
    this.#move({
      type: 'welcomed',
      sentMs,
      readOnly,
      identity: new SessionIdentity({
        sessionId: response.sessionId,
        password: response.passwd ?? Buffer.alloc(passwordBytes),
        timeoutMs: response.timeOut,
      }),
    });
  }

  /** Before anything else: who we are, and the watches, set again. */
  #sendPrologue(transport: Transport): void {
    for (const info of this.#auth) {
      this.#sendAuth(transport, info).catch(() => {}); // a refusal ends the session, and is told so
    }
    for (const request of this.watches.requests(this.lastZxid)) {
      const hasPersistent =
        request.persistentWatches.length + request.persistentRecursiveWatches.length > 0;
      // 3.5 has only the older op, which is enough for the older kinds.
      this.#write(
        transport,
        specialXids.setWatches,
        hasPersistent ? ops.setWatches2.code : ops.setWatches.code,
        (writer) => (hasPersistent ? SetWatches2 : SetWatches).write(writer, request),
      );
    }
    transport.flushSoon();
    this.#sendSoon();
  }

  #linkLost(reason: Error): void {
    this.#transport = undefined;
    for (const reply of this.#authReplies.splice(0)) {
      reply.reject(new ZkError('CONNECTION_LOSS', { op: 'auth', cause: reason }));
    }
    this.#logger.warn({ err: reason }, 'link lost');
    this.#checkClock();
    this.#move({ type: 'lost' });
    if (!isFinal(this.#state)) this.#calls.linkLost(reason);
  }

  async #sayGoodbye(transport: Transport): Promise<void> {
    const gone = deferred();
    const call: Call<'closeSession'> = {
      op: 'closeSession',
      request: {},
      path: undefined,
      resolve: () => gone.resolve(),
      reject: () => gone.resolve(),
      retriesLeft: 0,
      xid: 0,
      sentMs: 0,
      settled: false,
    };
    const timer = this.#clock.after(this.#options.closeTimeoutMs, () => gone.resolve());
    try {
      this.#calls.add(call as unknown as Call);
      this.#sendSoon();
      await Promise.race([gone.promise, transport.ended, this.#ended.promise]);
    } catch {
      // So many calls wait that even this one finds no room: the server will notice by itself.
    } finally {
      timer.cancel();
    }
  }

  // ── frames ────────────────────────────────────────────────────────────────────────────────────

  #frame(bytes: Buffer, start: number, end: number, borrowed: boolean): void {
    const reader = this.#reader.reset(bytes, start, end, borrowed);
    this.#heardMs = this.#clock.nowMs();
    const xid = reader.int();
    const zxidHigh = reader.int();
    const zxidLow = reader.int();
    const err = reader.int();
    if (xid === specialXids.notification) {
      this.#notified(reader, zxidHigh, zxidLow);
      return;
    }
    this.#sawZxid(zxidHigh, zxidLow);
    let sentMs = this.#pingSentMs;
    if (xid > 0) sentMs = this.#calls.reply(xid, err, reader);
    else if (xid === specialXids.auth) this.#authReplied(err);
    else if (xid !== specialXids.ping && xid !== specialXids.setWatches) {
      throw new ProtocolError(`a reply with xid ${xid}, which no request has`);
    }
    if (sentMs > this.#ackedMs) {
      this.#ackedMs = sentMs;
      this.#move({ type: 'answered', sentMs });
    }
    if (this.#calls.waiting > 0) this.#sendSoon();
  }

  #notified(reader: Reader, zxidHigh: number, zxidLow: number): void {
    const event = WatcherEvent.read(reader);
    reader.finish();
    const type = eventTypeNames.get(event.type);
    if (type === undefined)
      throw new ProtocolError(`an event of type ${event.type}, which there is none`);
    const hasZxid = zxidHigh >= 0 && (zxidHigh | zxidLow) !== 0;
    const zxid = hasZxid ? (BigInt(zxidHigh) << 32n) | BigInt(zxidLow >>> 0) : null;
    this.#hooks.onEvent(this.watches.take(type, event.path), { type, path: event.path, zxid });
  }

  /** Only replies count: an event's zxid may run ahead of what this session has been answered. */
  #sawZxid(high: number, low: number): void {
    if (high > this.#zxidHigh || (high === this.#zxidHigh && low >>> 0 > this.#zxidLow >>> 0)) {
      this.#zxidHigh = high;
      this.#zxidLow = low;
    }
  }

  #authReplied(err: number): void {
    const reply = this.#authReplies.shift();
    if (err === 0) {
      reply?.resolve();
      return;
    }
    const refused = new ZkError('AUTH_FAILED', { op: 'auth' });
    reply?.reject(refused);
    this.#move({ type: 'authRefused', cause: refused });
  }

  #sendAuth(transport: Transport, { scheme, auth }: AuthInfo): Promise<void> {
    const reply = deferred();
    this.#authReplies.push(reply);
    this.#write(transport, specialXids.auth, ops.auth.code, (writer) =>
      ops.auth.request.write(writer, { type: 0, scheme, auth }),
    );
    transport.flushSoon();
    return reply.promise;
  }

  #write(
    { writer }: Transport,
    xid: number,
    code: number,
    body: (writer: Transport['writer']) => void,
  ): void {
    const start = writer.beginFrame();
    writer.int(xid);
    writer.int(code);
    body(writer);
    writer.endFrame(start);
  }

  #sendAsked = false;

  /** All that is asked for in one tick goes out as one: encoded at its end, in one write. */
  #sendSoon(): void {
    if (this.#sendAsked || this.#transport === undefined) return;
    this.#sendAsked = true;
    process.nextTick(() => {
      this.#sendAsked = false;
      if (this.#transport === undefined) return;
      this.#sendNow(this.#transport);
      this.#transport.flush();
    });
  }

  #sendNow(transport: Transport): void {
    const nowMs = this.#clock.nowMs();
    if (this.#calls.send(transport.writer, nowMs, this.#options.frameBytesMax))
      this.#sentMs = nowMs;
  }

  // ── time ──────────────────────────────────────────────────────────────────────────────────────

  #checkClock(): void {
    const state = this.#state;
    if (state.name !== 'connected' && state.name !== 'suspended') return;
    const nowMs = this.#clock.nowMs();
    if (nowMs < state.deadlineMs) return;
    const { attempts } = this.#dialer;
    const why = `no server answered for ${state.identity.timeoutMs} ms, the session timeout`;
    this.#move({ type: 'ticked', nowMs, cause: new ConnectError(why, attempts) });
  }

  #schedule(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const state = this.#state;
    if (state.name !== 'connected' && state.name !== 'suspended') return;
    const { timeoutMs } = state.identity;
    let dueMs = state.deadlineMs;
    if (state.name === 'connected') {
      dueMs = Math.min(
        dueMs,
        this.#heardMs + silenceMax(timeoutMs),
        this.#sentMs + pingEvery(timeoutMs),
      );
    }
    this.#timer = this.#clock.after(dueMs - this.#clock.nowMs(), () => this.#ticked());
  }

  #ticked(): void {
    this.#checkClock();
    const state = this.#state;
    if (state.name === 'connected' && this.#transport !== undefined) {
      const nowMs = this.#clock.nowMs();
      const { timeoutMs } = state.identity;
      const silentMs = nowMs - this.#heardMs;
      if (silentMs >= silenceMax(timeoutMs)) {
        const host = hostText(this.#transport.endpoint.host);
        this.#transport.close(new Error(`${host} was silent for ${Math.round(silentMs)} ms`));
      } else if (nowMs - this.#sentMs >= pingEvery(timeoutMs)) {
        this.#write(this.#transport, specialXids.ping, ops.ping.code, () => {});
        this.#transport.flush();
        this.#sentMs = nowMs;
        this.#pingSentMs = nowMs;
      }
    }
    this.#schedule();
  }

  get #identity(): Identity | undefined {
    const state = this.#state;
    return state.name === 'connected' || state.name === 'suspended' ? state.identity : undefined;
  }

  // ── the one place that changes the state, and so the one that tells ───────────────────────────

  #move(event: SessionEvent): void {
    const previous = this.#state;
    const state = next(previous, event);
    if (state === previous) return;
    this.#state = state;
    if (isFinal(state)) this.#endLife();
    if (state.name !== previous.name || event.type === 'welcomed') {
      this.#schedule();
      this.#logger.info({ from: previous.name, to: state.name }, 'session state');
      this.#hooks.onState(state, previous);
    }
  }

  #endLife(): void {
    const error = this.endError();
    this.#life.abort(error);
    const code = error.code as 'SESSION_EXPIRED' | 'AUTH_FAILED';
    this.#calls.sessionEnded(code, error.cause, this.#endDetail());
    this.#transport?.closeGently(error);
  }
}

/** As Java's client has it: two thirds of the timeout without a word, and the link is given up. */
function silenceMax(timeoutMs: number): number {
  return (timeoutMs * 2) / 3;
}

/** Early enough that one lost ping is not the end of the link. */
function pingEvery(timeoutMs: number): number {
  return Math.min(timeoutMs / 3, pingIntervalMaxMs);
}
