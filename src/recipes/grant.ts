/**
 * A grant: something that is ours as long as one ephemeral node is, with the signal and the token of it.
 *
 * In: a node that was just made. Out: `signal`, which aborts at the moment from which the grant may be
 * somebody else's, and `fencingToken`, which only grows from one holder to the next.
 *
 *   held ──released, session over, node deleted, server without quorum──▶ ended: no way back
 *
 * What always holds: a grant is held only in the session that owns its node. A link that is lost does not
 * end it; the session's deadline does, on this process's own clock, before any server can have given
 * the place away. The signal looks at the clock whenever it is asked, so it is right after a pause too.
 *
 * What is NOT promised: that work stops in time. A process that is stopped in the middle of a write goes
 * on with that write when it wakes. Only what is written to can refuse it: by the token, or by `guard`.
 */

import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers';
import {
  type CallOptions,
  type Client,
  isZkError,
  MultiError,
  type MultiOp,
  type ResultsOf,
  type SessionState,
  type StatView,
} from '../client/index.ts';
import { type Deferred, deferred, HeldSignal, onAbort } from '../support/index.ts';
import { watchNode } from './node-watch.ts';
import { NotHeldError, type NotHeldReason } from './not-held-error.ts';

/** What Curator's `Revoker` writes into a node to ask its holder to let go. */
export const revokeMessage = '__REVOKE__';

/** How often the watch on our own node is set again when links break under it. */
const watchTriesMax = 10;

export interface GrantOptions {
  /** Instead of the node's own czxid, where another node's decides who comes first. */
  readonly fencingToken?: bigint;
  /** The node is watched after this, which never rejects. At once unless said. */
  readonly watchAfter?: Promise<unknown>;
  /** Told before the server is asked to take the node away. */
  readonly onLeave?: () => void;
}

export class Grant {
  /** The ephemeral node by which it is held. */
  readonly path: string;
  /** The czxid: what is written under a lower one than was ever seen, comes from a holder of before. */
  readonly fencingToken: bigint;
  /** The session that owns the node. */
  readonly sessionId: bigint;
  readonly #client: Client;
  readonly #session: AbortSignal;
  readonly #onLeave: (() => void) | undefined;
  // Made when they are first asked for: many a grant comes and goes without that.
  #stopHearing: (() => void) | undefined;
  #held: HeldSignal | undefined;
  #revocation: AbortController | undefined;
  #ready: Deferred<void> | undefined;
  #error: NotHeldError | undefined;
  #isWatched = false;
  #wasWatched = false;
  #isRevoked = false;
  #links = 0;
  #ended: { readonly reason: NotHeldReason; readonly cause?: unknown } | undefined;
  #leaving: Promise<void> | undefined;
  #isFollowed = false;
  #atEnd: ((why: NotHeldError) => void)[] | undefined;

  /** `node` is an ephemeral one of this client. If its session is no longer the client's, it is ended. */
  constructor(
    client: Client,
    node: { readonly path: string; readonly stat: StatView },
    options: GrantOptions = {},
  ) {
    this.#client = client;
    this.path = node.path;
    this.fencingToken = options.fencingToken ?? node.stat.czxid;
    this.sessionId = node.stat.ephemeralOwner;
    this.#session = client.sessionSignal;
    this.#onLeave = options.onLeave;
    this.#look();
    if (options.watchAfter === undefined) this.#watchLater();
    else void options.watchAfter.then(this.#watchLater);
  }

  /**
   * Aborts, with a `NotHeldError`, from the moment at which another process may hold it. `aborted` and
   * `throwIfAborted()` look at the clock first, also in a signal that was kept or passed on.
   */
  get signal(): AbortSignal {
    this.#hear();
    if (this.#held === undefined) {
      this.#held = new HeldSignal(() => this.#look());
      if (this.#ended !== undefined) this.#held.abort(this.#why);
    }
    return this.#held.signal;
  }

  get isHeld(): boolean {
    this.#look();
    return this.#ended === undefined;
  }

  /** Resolves once the node is watched; rejects when the grant ends before. */
  get ready(): Promise<void> {
    this.#hear();
    if (this.#ready === undefined) {
      this.#ready = deferred();
      this.#ready.promise.catch(() => {}); // who waits for it hears of it; `signal` tells all others
      if (this.#wasWatched) this.#ready.resolve();
      else if (this.#ended !== undefined) this.#ready.reject(this.#why);
    }
    return this.#ready.promise;
  }

  /** Whether the node's end would be told us at once, and before all that happened after it. */
  get isWatched(): boolean {
    return this.#isWatched;
  }

  /** Another number means that the link was another since. Counts from the first `watch` on. */
  get links(): number {
    this.#look();
    return this.#links;
  }

  /** Aborts when somebody asks us to let go. It is a request: until `release` it stays ours. */
  get revocation(): AbortSignal {
    if (this.#revocation === undefined) {
      this.#revocation = new AbortController();
      setMaxListeners(0, this.#revocation.signal);
      if (this.#isRevoked) this.#revocation.abort();
    }
    return this.#revocation.signal;
  }

  /** Runs it with why it ended, once; at once if it has. Returns how not to. Much lighter than `signal`. */
  onEnd(run: (why: NotHeldError) => void): () => void {
    this.#hear();
    if (this.#ended !== undefined) {
      run(this.#why);
      return () => {};
    }
    this.#atEnd ??= [];
    this.#atEnd.push(run);
    return () => {
      const at = this.#atEnd?.indexOf(run) ?? -1;
      if (at !== -1) this.#atEnd!.splice(at, 1);
    };
  }

  /** Throws unless it is held, as far as this process can know. */
  check(): void {
    this.#look();
    if (this.#ended !== undefined) throw this.#why;
  }

  /**
   * All of these ops or none, and only while it is still held: the server itself looks, in the same
   * transaction. Rejects with a `NotHeldError` when it is not.
   */
  async guard<const T extends readonly MultiOp[]>(
    ops: T,
    options: CallOptions = {},
  ): Promise<ResultsOf<T>> {
    return guarded(this.#client, [this], ops, options);
  }

  /** Ends it here at once, then lets go of the node, through lost links. Once: again does nothing more. */
  release(): Promise<void> {
    this.#end('released');
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** The server found that the node is gone, before its event came. */
  missing(): void {
    this.#end('nodeDeleted');
  }

  async #leave(): Promise<void> {
    // The session takes the node along. It may be quicker to say so, where a new one is there to say it.
    if (this.#session.aborted && this.#client.state.name !== 'connected') return;
    this.#onLeave?.();
    try {
      await this.#client.discard(this.path);
    } catch (error) {
      // It ends in this moment, or the client is closing, and the node goes with it.
      const isOver = isZkError(error, 'SESSION_EXPIRED', 'AUTH_FAILED') || this.#session.aborted;
      if (isOver) return;
      this.#leaving = undefined; // it may still be there: who asks again, tries again
      throw error;
    }
  }

  /** A turn later: what is let go of at once need not be watched, and nobody waits for this. */
  readonly #watchLater = (): void => {
    if (!this.#isFollowed && this.#ended === undefined) setImmediate(() => this.watch());
  };

  /** Asks for the watch on the node now. Who goes on asking has it asked for in the same breath. */
  watch(): void {
    if (this.#isFollowed) return;
    this.#isFollowed = true;
    this.#hear();
    void this.#follow();
  }

  /** Sees to it that the node's end, and a request to let go, are heard of. */
  async #follow(): Promise<void> {
    for (let tries = 1; this.#ended === undefined; ) {
      try {
        const watched = await watchNode(this.#client, this.path);
        if (watched === null) return this.#end('nodeDeleted');
        tries = 1;
        if (watched.found.data?.toString('latin1') === revokeMessage) {
          this.#isRevoked = true;
          this.#revocation?.abort();
        }
        this.#isWatched = true;
        this.#wasWatched = true;
        this.#ready?.resolve();
        const { type } = await watched.changed;
        this.#isWatched = false;
        if (type === 'deleted') return this.#end('nodeDeleted');
      } catch (error) {
        const isWorthIt = isZkError(error) && error.retryable && tries < watchTriesMax;
        if (!isWorthIt) return this.#end('unwatched', error);
        tries += 1;
      }
    }
  }

  /** Ends it if it is over by now. To ask for the state makes the client look at its clock. */
  #look(): void {
    if (this.#ended !== undefined) return;
    const { state } = this.#client;
    if (this.#session.aborted) this.#sessionOver();
    else this.#judge(state);
  }

  /** From now on it ends by itself, and not only when somebody looks. */
  #hear(): void {
    this.#look();
    if (this.#ended !== undefined || this.#stopHearing !== undefined) return;
    const client = this.#client;
    const stopSession = onAbort(this.#session, () => this.#sessionOver());
    const onState = (state: SessionState) => {
      this.#links += 1;
      this.#judge(state);
    };
    client.on('state', onState);
    this.#stopHearing = () => {
      stopSession();
      client.off('state', onState);
    };
  }

  #judge(state: SessionState): void {
    // A server without a quorum answers on its own, and proves nothing about the session.
    if (state.name === 'connected' && state.readOnly) this.#end('readOnly');
    else if (!('identity' in state) || state.identity.sessionId !== this.sessionId) {
      this.#sessionOver();
    }
  }

  #sessionOver(): void {
    const { reason } = this.#session;
    this.#end('sessionOver', reason);
  }

  #end(reason: NotHeldReason, cause?: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = { reason, ...(cause !== undefined && { cause }) };
    this.#stopHearing?.();
    this.#ready?.reject(this.#why);
    const atEnd = this.#atEnd ?? [];
    this.#atEnd = undefined;
    for (const run of atEnd) run(this.#why);
    this.#held?.abort(this.#why);
  }

  /** Why it is not held any more. */
  get #why(): NotHeldError {
    const { reason, ...options } = this.#ended!;
    this.#error ??= new NotHeldError(this.path, reason, options);
    return this.#error;
  }
}

/** What `guard` does, for one grant or for several that must all be held. */
export async function guarded<const T extends readonly MultiOp[]>(
  client: Client,
  grants: readonly Grant[],
  ops: T,
  options: CallOptions,
): Promise<ResultsOf<T>> {
  for (const grant of grants) grant.check();
  // Names are unique by their mark, so a node of this name is ours, and it is there as long as we hold it.
  const checks = grants.map(({ path }) => ({ op: 'check', path }) as const);
  try {
    const results = await client.multi([...checks, ...ops], options);
    return results.slice(checks.length) as ResultsOf<T>;
  } catch (error) {
    if (!(error instanceof MultiError)) throw error;
    const grant = grants[error.index];
    if (grant === undefined) {
      const index = error.index - checks.length;
      throw new MultiError(error.code, index, ops[index]!, ops.length);
    }
    if (error.code !== 'NO_NODE') throw error;
    grant.missing();
    throw new NotHeldError(grant.path, 'nodeDeleted', { cause: error });
  }
}
