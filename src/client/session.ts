/**
 * One session with whatever server holds it: dialing, the handshake, calls, pings, watches, and the
 * end.
 *
 * In: calls from above, frames from a link. Out: replies, events, and every change of state through
 * `onState`. A session outlives its links and ends once. It never says that it is alive without
 * having looked at the clock, so after a pause of the process nobody acts on what may be over.
 */

import type { Infer } from '../jute/index.ts';
import { type ConnectResponse, isZkError, passwordBytes, ZkError } from '../protocol/index.ts';
import {
  type Clock,
  type Deferred,
  deferred,
  HeldSignal,
  type Logger,
  type Timer,
} from '../support/index.ts';
import type { AuthInfo, SaslMechanism } from './auth.ts';
import { type Call, Calls } from './calls.ts';
import { hostText } from './connection-string.ts';
import { Conversation } from './conversation.ts';
import { ConnectError, Dialer, type DialerOptions } from './dialer.ts';
import { Dispute, proofsMax } from './dispute.ts';
import { hello, negotiate, type Patience } from './handshake.ts';
import { ReadWriteSearch } from './read-write-search.ts';
import type { SavingTime } from './saving-wait.ts';
import { SeenZxid } from './seen-zxid.ts';
import type { OldServers } from './server-version.ts';
import {
  type Identity,
  isFinal,
  next,
  type SessionEvent,
  SessionIdentity,
  type SessionState,
} from './session-state.ts';
import { isByPeer, type Transport } from './transport.ts';
import type { Listener, WatchEvent, Watches } from './watches.ts';
import { Witness } from './witness.ts';

export interface SessionOptions {
  readonly dialer: Omit<DialerOptions, 'clock' | 'saving' | 'onFailed'>;
  readonly sessionTimeoutMs: number;
  readonly allowReadOnly: boolean;
  readonly requestBytesMax: number;
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

/** What became of a session that was closed. */
export interface CloseResult {
  /**
   * A server has confirmed that the session is over, or there was none: its ephemeral nodes are gone. False: no
   * server could be asked in time, and they may last until the session timeout is over.
   */
  readonly sessionEnded: boolean;
}

export interface SessionHooks {
  onState(state: SessionState, previous: SessionState): void;
  onEvent(listeners: ReadonlySet<Listener>, event: WatchEvent): void;
  traceConnect<T>(context: object, work: () => Promise<T>): Promise<T>;
}

export class Session {
  readonly watches: Watches;
  readonly #options: SessionOptions & { readonly oldServers: OldServers };
  readonly #hooks: SessionHooks;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #dialer: Dialer;
  readonly #calls: Calls;
  readonly #auth: AuthInfo[];
  readonly #life = new AbortController();
  readonly #ended = deferred();
  readonly #seen = new SeenZxid();
  readonly #dispute: Dispute;
  /** Aborts with the life, or before it where the session may be over and a read-only server has us. */
  #held = this.#newHeld();
  /**
   * Until when the session is ours for certain. A server without a quorum answers for itself alone, so its
   * answers keep the link and not this. No limit before a server with a quorum ever had us.
   */
  #oursUntilMs = Number.POSITIVE_INFINITY;
  #state: SessionState = { name: 'connecting' };
  /** Set while a server has us: calls may be sent. */
  #conversation: Conversation | undefined;
  /** Runs while the server that has us is read-only. */
  #search: ReadWriteSearch | undefined;
  #timer: Timer | undefined;
  #isClosing = false;
  /** A server said that the session is over, or there was none. */
  #isEndConfirmed = false;
  /** A new session was asked for and no answer came: there may be one that we know nothing of. */
  #mayHaveBegun = false;
  /** For who waits for a link in order to close. */
  #linked: Deferred<void> | undefined;
  /** Whether a server with a quorum ever knew our identity: one without hands out ids of its own. */
  #isIdentityReal = false;
  /**
   * Whether the link has brought an answer. One that breaks before that is a try that failed: a
   * server that takes us in and lets us go at once would else be asked again without end or wait.
   */
  #isLinkProven = false;

  constructor(
    options: SessionOptions & { readonly oldServers: OldServers },
    hooks: SessionHooks,
    watches: Watches,
    auth: AuthInfo[],
  ) {
    this.#options = options;
    this.#hooks = hooks;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#calls = new Calls(options);
    const saving = () => this.#savingTime;
    const onFailed = () => this.#dispute.drop();
    this.#dialer = new Dialer({ ...options.dialer, clock: options.clock, saving, onFailed });
    this.#dispute = this.#newDispute();
    this.watches = watches;
    this.#auth = auth;
    if (options.identity) {
      const identity = new SessionIdentity(options.identity);
      const deadlineMs = this.#clock.nowMs() + identity.timeoutMs;
      this.#state = { name: 'suspended', identity, deadlineMs };
      this.#isIdentityReal = true;
      this.#oursUntilMs = deadlineMs;
    }
  }

  /** Looks at the clock first: a session that may be over is never called alive. */
  get state(): SessionState {
    this.#checkClock();
    return this.#state;
  }

  /** Aborts at the moment from which the session may be over. Looks at the clock whenever it is asked. */
  get signal(): AbortSignal {
    this.#checkClock();
    return this.#held.signal;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  get lastZxid(): bigint {
    return this.#seen.zxid;
  }

  get inFlight(): number {
    return this.#calls.inFlight;
  }

  get waiting(): number {
    return this.#calls.waiting;
  }

  get endpoint(): string | undefined {
    return this.#conversation && hostText(this.#conversation.transport.endpoint.host);
  }

  /** Whether the server that has us is known to have no persistent watches. */
  get lacksPersistentWatches(): boolean {
    return this.#conversation?.version.lacksPersistentWatches ?? false;
  }

  /** A new connection's server is still telling what happened while there was none. */
  get isCatchingUp(): boolean {
    return this.#seen.isSetting;
  }

  get localAddress(): string | undefined {
    return this.#conversation?.transport.localAddress;
  }

  /** What was tried since a server last took us in, and why it failed. */
  get connectError(): ConnectError {
    return new ConnectError('no server took us in', this.#dialer.soFar);
  }

  start(): void {
    this.#schedule();
    void this.#run();
  }

  call(call: Call): void {
    // What is asked for in one tick leaves together, after a look at the clock: the first may do with one.
    if (this.#conversation?.isSendAsked !== true) this.#checkClock();
    if (isFinal(this.#state) || this.#isClosing) throw this.endError(call.op, call.path);
    this.#calls.add(call);
    this.#conversation?.sendSoon();
  }

  abandon(call: Call, error: unknown): void {
    this.#calls.abandon(call, error);
  }

  /** The calls on their way: whatever is asked for next is answered after them. */
  asked(): Iterable<Call> {
    return this.#calls.asked();
  }

  /** Sends a proof now, if a server has us; on later links it goes first. Resolves once accepted. */
  async addAuth(info: AuthInfo): Promise<void> {
    this.#checkClock();
    if (isFinal(this.#state) || this.#isClosing) throw this.endError('auth');
    this.#auth.push(info);
    await this.#conversation?.sendAuth(info);
  }

  /**
   * Asks a server to end the session. Without a link it tries to get one, for as long as there is a session to
   * end. When the time is over, the session is over for this client all the same.
   */
  async close(timeoutMs = this.#options.closeTimeoutMs): Promise<CloseResult> {
    if (!isFinal(this.#state) && !this.#isClosing) {
      this.#isClosing = true;
      this.#dispute.stop();
      await this.#sayGoodbye(timeoutMs);
      this.#move({ type: 'closeAsked' });
    }
    await this.#ended.promise;
    return { sessionEnded: this.#isEndConfirmed };
  }

  /** Lets the link go without a word, as if it had been cut. */
  dropLink(reason: Error): void {
    this.#conversation?.transport.close(reason);
  }

  /** It was asked to close, and is on its way. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Why calls fail once the session is over. */
  endError(op?: string, path?: string): ZkError {
    const state = this.#state;
    const code = state.name === 'authFailed' ? 'AUTH_FAILED' : 'SESSION_EXPIRED';
    const cause = isFinal(state) && state.cause !== undefined ? { cause: state.cause } : {};
    return new ZkError(code, { op, path, detail: this.#endDetail(), ...cause });
  }

  #endDetail(): string | undefined {
    const { cause } = this.#state as { cause?: unknown };
    if (!this.#isClosing && cause instanceof Error) return cause.message;
    return this.#isClosing || this.#state.name === 'closed' ? 'the client was closed' : undefined;
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
        if (!this.#isLinkProven) this.#dialer.failed(transport.endpoint, reason);
        this.#linkLost(reason);
        await this.#judge(transport, reason);
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
        return transport;
      } catch (error) {
        transport.close(error as Error);
        this.#life.signal.throwIfAborted();
        this.#dispute.drop();
        this.#dialer.failed(transport.endpoint, error as Error);
        this.#logger.warn(
          { host: hostText(transport.endpoint.host), err: error },
          'handshake failed',
        );
      }
    }
  }

  async #shakeHands(transport: Transport): Promise<void> {
    const { clock, sasl } = this.#options;
    const patience = { clock, limitMs: this.#dialer.attemptTimeoutMs, signal: this.#life.signal };
    const identity = this.#isIdentityReal ? this.#identity : undefined;
    const sentMs = clock.nowMs();
    if (identity === undefined) this.#mayHaveBegun = true;
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
    const host = hostText(transport.endpoint.host);
    if (response.timeOut <= 0) {
      if (identity === undefined) {
        this.#mayHaveBegun = false;
        throw new Error('refused a new session');
      }
      this.#serverEnded(new Error(`${host} says that the session is over`));
    }
    // ClickHouse Keeper takes nobody back in. One without a quorum proves nothing either way.
    const isOther = identity !== undefined && identity.sessionId !== response.sessionId;
    if (isOther && response.readOnly !== true) {
      this.#serverEnded(new Error(`${host} handed out another session in place of ours`));
    }
    this.#life.signal.throwIfAborted();
    if (sasl) await this.#authenticate(transport, sasl, patience);
    this.#life.signal.throwIfAborted(); // who is over meanwhile must not go on pinging
    const tookMs = clock.nowMs() - sentMs;
    // A slow answer that gives less than was asked for, a slow negotiation: it may be over again already.
    if (tookMs >= response.timeOut) {
      const took = `took us in only after ${Math.round(tookMs)} ms`;
      throw new Error(`${took}, and the session timeout is ${response.timeOut} ms`);
    }
    this.#welcomed(transport, response, sentMs);
  }

  /** The server says that the session has ended. That is what a client wants to hear that is closing. */
  #serverEnded(cause: Error): void {
    this.#isEndConfirmed = true;
    this.#move(this.#isClosing ? { type: 'closeAsked' } : { type: 'refused', cause });
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
    this.#isLinkProven = false;
    this.#conversation = new Conversation(transport, {
      calls: this.#calls,
      watches: this.watches,
      seen: this.#seen,
      clock: this.#clock,
      timeoutMs: response.timeOut,
      requestBytesMax: this.#options.requestBytesMax,
      oldServers: this.#options.oldServers,
      onAnswered: (answeredMs) => this.#answered(answeredMs),
      checkClock: (nowMs) => this.#checkClock(nowMs),
      onAuthRefused: (cause) => this.#move({ type: 'authRefused', cause }),
      onEvent: this.#hooks.onEvent,
    });
    this.#conversation.begin(this.#auth, this.#dispute.welcomed(transport, readOnly));
    if (readOnly) this.#searchReadWrite(transport);
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
    this.#linked?.resolve();
  }

  #answered(sentMs: number): void {
    if (!this.#isLinkProven) this.#dialer.succeeded();
    this.#isLinkProven = true;
    this.#move({ type: 'answered', sentMs });
  }

  #searchReadWrite(transport: Transport): void {
    const { dialer, clock } = this.#options;
    this.#search = new ReadWriteSearch({
      hosts: dialer.hosts,
      tls: dialer.tls,
      clock,
      limitMs: this.#dialer.attemptTimeoutMs,
      saving: () => this.#readOnlySavingTime,
      onFound: (host) => {
        this.#dialer.prefer(host);
        transport.close(new Error(`${hostText(host)} has a quorum; going there`));
      },
    });
  }

  #newDispute(): Dispute {
    const { clock, dialer, identity, sessionTimeoutMs } = this.#options;
    const { tls, frameBytesMax } = dialer;
    return new Dispute({
      clock,
      proofsMax: identity ? proofsMax.heir : proofsMax.owner,
      timeoutMs: () => this.#identity?.timeoutMs ?? sessionTimeoutMs,
      openWitness: (endpoint, signal) => {
        const limitMs = this.#dialer.attemptTimeoutMs;
        return Witness.open(endpoint, { clock, tls, frameBytesMax, limitMs, signal });
      },
      onOver: () => this.#conversation?.endProbe(),
    });
  }

  /** Two clients with one identity would take the session from each other for ever: one of them must end. */
  async #judge(transport: Transport, reason: Error): Promise<void> {
    if (isFinal(this.#state)) return;
    const isTaken = await this.#dispute.closed({
      transport,
      byPeer: isByPeer(reason),
      hadAnswer: this.#isLinkProven,
    });
    if (isTaken) {
      const cause = new Error('another client took the session over by its identity');
      this.#move({ type: 'refused', cause });
    }
    const { host } = this.#dispute;
    if (host !== undefined) this.#dialer.prefer(host);
  }

  #linkLost(reason: Error): void {
    this.#conversation?.end(reason);
    this.#conversation = undefined;
    this.#search?.stop();
    if (!isFinal(this.#state)) this.#logger.warn({ err: reason }, 'link lost');
    this.#checkClock();
    this.#move({ type: 'lost' });
    if (!isFinal(this.#state)) this.#calls.linkLost(reason);
  }

  async #sayGoodbye(timeoutMs: number): Promise<void> {
    const late = deferred();
    const timer = this.#clock.after(timeoutMs, () => late.resolve());
    if (timeoutMs === 0) late.resolve();
    let isLate = false;
    const over = Promise.race([late.promise, this.#ended.promise]).then(() => {
      isLate = true;
    });
    try {
      while (!isLate && !this.#isEndConfirmed) {
        this.#checkClock();
        if (this.#conversation !== undefined) {
          if (!(await this.#askToEnd(this.#conversation, over))) return;
        } else if (this.#state.name === 'suspended') {
          this.#linked = deferred();
          await Promise.race([this.#linked.promise, over]);
        } else {
          this.#isEndConfirmed = this.#state.name === 'connecting' && !this.#mayHaveBegun;
          return; // no session to end, or none that is known
        }
      }
    } finally {
      timer.cancel();
    }
  }

  /** By this link, for as long as it lasts. False: so many calls wait that even this one finds no room. */
  async #askToEnd(conversation: Conversation, over: Promise<void>): Promise<boolean> {
    const answered = deferred();
    const call: Call<'closeSession'> = {
      op: 'closeSession',
      request: {},
      path: undefined,
      resolve: () => {
        this.#isEndConfirmed = true;
        answered.resolve();
      },
      reject: () => {}, // the link broke, or the time is over: both are waited for
      retriesLeft: 0,
      xid: 0,
      sentMs: 0,
      settled: false,
    };
    try {
      this.#calls.add(call as unknown as Call);
    } catch {
      return false;
    }
    conversation.sendSoon();
    await new Promise<void>((resolve) => process.nextTick(resolve)); // it leaves, also when nobody waits for the answer
    await Promise.race([answered.promise, conversation.transport.ended, over]);
    return true;
  }

  // ── time ──────────────────────────────────────────────────────────────────────────────────────

  #checkClock(nowMs?: number): void {
    const state = this.#state;
    if (state.name !== 'connected' && state.name !== 'suspended') return;
    nowMs ??= this.#clock.nowMs();
    if (nowMs < state.deadlineMs) {
      if (nowMs >= this.#oursUntilMs) this.#giveUpIdentity(state.identity);
      return;
    }
    const { soFar } = this.#dialer;
    const why = `no server answered for ${state.identity.timeoutMs} ms, the session timeout`;
    this.#move({ type: 'ticked', nowMs, cause: new ConnectError(why, soFar) });
  }

  /**
   * A read-only server has us, and those with a quorum may have ended the session. Reads go on; the next
   * server with a quorum is asked for a session of its own, which begins as any new one does.
   */
  #giveUpIdentity({ timeoutMs }: Identity): void {
    this.#oursUntilMs = Number.POSITIVE_INFINITY;
    this.#isIdentityReal = false;
    const detail = `no server with a quorum answered for ${timeoutMs} ms, the session timeout`;
    this.#logger.warn({ timeoutMs }, detail);
    this.#held.abort(new ZkError('SESSION_EXPIRED', { detail }));
  }

  /** Wakes when the session may be over. The deadline moves with every answer, the timer only when it fires. */
  #schedule(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const state = this.#state;
    if (state.name !== 'connected' && state.name !== 'suspended') return;
    const dueMs = Math.min(state.deadlineMs, this.#oursUntilMs);
    this.#timer = this.#clock.after(dueMs - this.#clock.nowMs(), () => {
      this.#checkClock();
      this.#schedule();
    });
  }

  /** What is left to save the session by another link. */
  get #savingTime(): SavingTime | undefined {
    const state = this.#state;
    if (state.name !== 'suspended') return undefined;
    const leftMs = state.deadlineMs - this.#clock.nowMs();
    return { leftMs, timeoutMs: state.identity.timeoutMs };
  }

  /** The same while a read-only server has us, whose answers save nothing. */
  get #readOnlySavingTime(): SavingTime | undefined {
    const { timeoutMs } = this.#identity ?? {};
    const leftMs = this.#oursUntilMs - this.#clock.nowMs();
    return timeoutMs !== undefined && Number.isFinite(leftMs) ? { leftMs, timeoutMs } : undefined;
  }

  #newHeld(): HeldSignal {
    return new HeldSignal(() => this.#checkClock());
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
    if (state.name === 'connected' && !state.readOnly) {
      this.#oursUntilMs = state.deadlineMs;
      if (this.#held.isAborted) this.#held = this.#newHeld();
    }
    if (isFinal(state)) this.#endLife();
    if (state.name !== previous.name || event.type === 'welcomed') {
      this.#schedule();
      this.#logger.info({ from: previous.name, to: state.name }, 'session state');
      this.#hooks.onState(state, previous);
    }
  }

  #endLife(): void {
    const error = this.endError();
    this.#dispute.stop();
    this.#held.abort(error);
    this.#life.abort(error);
    const code = error.code as 'SESSION_EXPIRED' | 'AUTH_FAILED';
    this.#calls.sessionEnded(code, error.cause, this.#endDetail());
    this.#conversation?.transport.closeGently(error);
  }
}
