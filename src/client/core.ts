/**
 * What the public methods, the helpers and the watch streams all stand on: calls with deadlines,
 * the chroot, listeners, and the one session that is current.
 *
 * In: an op and its request. Out: its response, exactly once, or an error that says what is known of
 * the outcome. When the session expires and another is asked for, this is where it begins.
 */

import {
  isWithin,
  type OpName,
  type RequestOf,
  type ResponseOf,
  ZkError,
} from '../protocol/index.ts';
import { type Clock, onAbort } from '../support/index.ts';
import { checkLimits } from './arguments.ts';
import type { AuthInfo } from './auth.ts';
import { type Call, mayChange } from './calls.ts';
import { isTraced, traceConnect, traceRequest } from './diagnostics.ts';
import type { EmulatedWatch } from './emulated-watch.ts';
import { EmulatedWatches, type EmulateOptions, kindOf } from './emulated-watches.ts';
import type { Settings } from './options.ts';
import { OldServers } from './server-version.ts';
import { type CloseResult, Session } from './session.ts';
import type { SessionState } from './session-state.ts';
import { type Listener, type WatchEvent, Watches } from './watches.ts';

export interface CallOptions {
  /** Calls the wait off. A request that has left may still take place. */
  readonly signal?: AbortSignal;
  /** As `signal`, after a time; rejects with OPERATION_TIMEOUT. */
  readonly timeoutMs?: number;
}

export interface CoreHooks {
  onState(state: SessionState, previous: SessionState): void;
  /** A new session has begun. */
  onSession(isFirst: boolean): void;
}

export class Core {
  readonly watches = new Watches((...removed) => this.#emulated.stop(...removed));
  readonly settings: Settings;
  readonly #hooks: CoreHooks;
  readonly #oldServers = new OldServers();
  readonly #emulated = new EmulatedWatches(this);
  readonly #auth: AuthInfo[];
  /** Listeners inside the client: called in the order of the link, not after what runs now. */
  readonly #direct = new WeakSet<Listener>();
  /** Told of every link that a session gets: whether the session is still the same. */
  readonly #linked = new Set<(sameSession: boolean) => void>();
  /** Told of every end of a session, with a watch or without. */
  readonly #ended = new Set<() => void>();
  #session: Session;
  #sessions = 0;
  /** Whether a server ever had us. */
  #hasBegun = false;
  #isClosed = false;

  constructor(settings: Settings, auth: AuthInfo[], hooks: CoreHooks) {
    this.settings = settings;
    this.#auth = auth;
    this.#hooks = hooks;
    this.#session = this.#newSession();
  }

  /** The one that is there now. To look may end the one that was, and then with `renew` it is the next. */
  get session(): Session {
    void this.#session.state;
    return this.#session;
  }

  /** Where the one that is there now is in its life. */
  get state(): SessionState {
    const session = this.#session;
    const { state } = session;
    return this.#session === session ? state : this.#session.state; // to look has ended one
  }

  get clock(): Clock {
    return this.settings.session.clock;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  start(): void {
    this.#session.start();
  }

  /**
   * `path` is the caller's, for messages; the request holds the server's. Not async: most calls have
   * no other promise around them than the one that their reply settles.
   */
  call<N extends OpName>(
    op: N,
    request: RequestOf<N>,
    path: string | undefined,
    options: CallOptions | undefined,
    onReply?: Call<N>['onReply'],
  ): Promise<ResponseOf<N>> {
    if (!isTraced()) return this.#settled(op, request, path, options, onReply);
    return traceRequest(
      { op, path, server: this.#session.endpoint, sessionId: this.sessionId },
      () => this.#settled(op, request, path, options, onReply),
    );
  }

  get sessionId(): bigint | undefined {
    const { state } = this.#session;
    return state.name === 'connected' || state.name === 'suspended'
      ? state.identity.sessionId
      : undefined;
  }

  #settled<N extends OpName>(
    op: N,
    request: RequestOf<N>,
    path: string | undefined,
    options: CallOptions | undefined,
    onReply: Call<N>['onReply'],
  ): Promise<ResponseOf<N>> {
    const timeoutMs = options?.timeoutMs ?? this.settings.requestTimeoutMs;
    const signal = options?.signal;
    const session = this.#session;
    return new Promise((resolve, reject) => {
      checkLimits(signal, timeoutMs);
      signal?.throwIfAborted();
      const call: Call<N> = {
        op,
        request,
        path,
        resolve,
        reject,
        adopts: true,
        onReply,
        retriesLeft: this.settings.readRetries,
        xid: 0,
        sentMs: 0,
        settled: false,
      };
      session.call(call as unknown as Call);
      if (signal || Number.isFinite(timeoutMs)) limit(call, session, this.clock, signal, timeoutMs);
    });
  }

  // ── paths ─────────────────────────────────────────────────────────────────────────────────────

  toServer(path: string): string {
    const { chroot } = this.settings;
    if (chroot === '') return path;
    return path === '/' ? chroot : chroot + path;
  }

  toClient(path: string): string {
    const { chroot } = this.settings;
    if (chroot === '' || !isWithin(path, chroot)) return path;
    return path.slice(chroot.length) || '/';
  }

  // ── listeners ─────────────────────────────────────────────────────────────────────────────────

  direct(listener: Listener): Listener {
    this.#direct.add(listener);
    return listener;
  }

  tell(listeners: Iterable<Listener>, event: WatchEvent): void {
    for (const listener of listeners) {
      // In a task of its own, so that what a listener throws is its own and harms nothing here.
      if (this.#direct.has(listener)) listener(event);
      else queueMicrotask(() => listener(event));
    }
  }

  /** Inside the client, and so told at once. */
  isDirect(listener: Listener): boolean {
    return this.#direct.has(listener);
  }

  /** Keeps up a persistent watch where the server has none. It ends when its listener is removed. */
  emulateWatch(options: EmulateOptions): EmulatedWatch {
    return this.#emulated.start(options);
  }

  /** As `emulateWatch`, and waits until it is set. */
  emulatedWatch(options: EmulateOptions, limits: CallOptions): Promise<void> {
    return this.#emulated.started(options, limits);
  }

  stopEmulating(full: string, recursive: boolean, listener: Listener): void {
    const kind = kindOf(recursive);
    this.watches.remove(kind, full, listener);
    this.#emulated.stop(kind, full, listener); // where its session took the listener along
  }

  onLinked(heard: (sameSession: boolean) => void): () => void {
    this.#linked.add(heard);
    return () => this.#linked.delete(heard);
  }

  onEnded(heard: () => void): () => void {
    this.#ended.add(heard);
    return () => this.#ended.delete(heard);
  }

  // ── sessions ──────────────────────────────────────────────────────────────────────────────────

  async addAuth(info: AuthInfo): Promise<void> {
    await this.#session.addAuth(info);
  }

  close(timeoutMs: number | undefined): Promise<CloseResult> {
    this.#isClosed = true;
    return this.#session.close(timeoutMs);
  }

  #newSession(): Session {
    const isFirst = this.#sessions === 0;
    this.#sessions += 1;
    const { identity, ...rest } = this.settings.session;
    const fresh = { ...rest, oldServers: this.#oldServers };
    return new Session(
      isFirst ? { ...fresh, identity } : fresh,
      {
        onState: (state, previous) => this.#moved(state, previous),
        onEvent: (listeners, event) =>
          this.tell(listeners, { ...event, path: this.toClient(event.path) }),
        traceConnect,
      },
      this.watches,
      this.#auth,
    );
  }

  #moved(state: SessionState, previous: SessionState): void {
    if (state.name === 'connected') {
      const isFirst = !this.#hasBegun;
      this.#hasBegun = true;
      // A server without a quorum hands out ids of its own: behind it the real session is a new one.
      const before = 'identity' in previous ? previous.identity.sessionId : undefined;
      const isNew = before !== state.identity.sessionId;
      if (this.#session.lacksPersistentWatches) this.#emulated.takeOver();
      for (const heard of this.#linked) heard(!isNew);
      this.#hooks.onState(state, previous);
      if (isNew) this.#hooks.onSession(isFirst);
      return;
    }
    const hasEnded =
      state.name === 'expired' || state.name === 'authFailed' || state.name === 'closed';
    if (hasEnded) {
      this.#emulated.sessionEnded();
      this.tell(this.watches.takeAll(), { type: 'none', path: '', zxid: null });
      for (const heard of this.#ended) heard();
    }
    this.#hooks.onState(state, previous);
    if (state.name === 'expired' && this.settings.renew && !this.#isClosed) {
      this.#session = this.#newSession();
      this.#session.start();
    }
  }
}

/** Gives the call up when its time is over or its caller no longer wants it; cleans up behind it. */
function limit<N extends OpName>(
  call: Call<N>,
  session: Session,
  clock: Clock,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
): void {
  const plain = call as unknown as Call;
  const { resolve, reject } = plain;
  const late = () => {
    const sent = call.xid !== 0;
    const error = new ZkError('OPERATION_TIMEOUT', {
      op: call.op,
      path: call.path,
      detail: `${timeoutMs} ms are over${sent ? '' : '; it was not sent'}`,
      outcomeUnknown: sent && mayChange(plain),
    });
    session.abandon(plain, error);
  };
  const aborted = () => session.abandon(plain, signal!.reason);
  const timer = timeoutMs === undefined ? undefined : clock.after(timeoutMs, late);
  const stopHearing = signal && onAbort(signal, aborted);
  const done = () => {
    timer?.cancel();
    stopHearing?.();
  };
  const settle = plain as { resolve: typeof resolve; reject: typeof reject };
  settle.resolve = (response) => {
    done();
    resolve(response);
  };
  settle.reject = (error) => {
    done();
    reject(error);
  };
}
