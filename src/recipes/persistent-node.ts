/**
 * A node that stays: made again when its session was replaced, and when somebody deleted it.
 *
 * It is made once for each session, also when the reply to a create was lost: a sequential node
 * carries a mark in its name, and of any other the owner is looked at. A sequential node keeps the
 * number that it got first. It always has the data that was last given to `set`, until somebody else
 * writes: that is left alone until the node is made anew. A TTL node is written again three times in
 * its time, so that it goes only when this process does.
 *
 *   creating ──made──▶ present ──deleted, session renewed──▶ creating
 *       │                 │
 *       └─── taken: somebody else has the path ── over: failed or closed
 *
 * An ephemeral node of another session at the same path is one of ours from before, which is taken
 * away, or a stranger's. Then `whenTaken` decides: `wait` until it goes, `replace` it (a restarted
 * process takes the name over from the one that died), or `fail`. Whoever was replaced while its
 * session was alive ends with a NodeTakenError, so that two with one name do not fight.
 *
 * Not promised: that the node is there at every moment. While the link is away it may go with its
 * session. Without `renew` on the client, the end of the session is the end of the node.
 */

import { setImmediate } from 'node:timers/promises';
import {
  type Acl,
  ArgumentError,
  type Client,
  type CreateMode,
  checkClient,
  createModes,
  type DataAndStat,
  type DataInput,
  isZkError,
  type StatView,
} from '../client/index.ts';
import {
  Backoff,
  type Clock,
  checkOptions,
  type Deferred,
  deferred,
  systemClock,
  unlessAborted,
} from '../support/index.ts';
import { Feed } from './feed.ts';
import { linked } from './linked.ts';
import { NodeTakenError } from './node-taken-error.ts';
import { type Watched, watchNode } from './node-watch.ts';
import { persistentNodeTable } from './option-tables.ts';
import { withParents } from './parents.ts';
import { isPassing } from './passing.ts';
import { pause, retryBackoff } from './pause.ts';
import { takeBack } from './take-back.ts';

export interface PersistentNodeOptions {
  /** `ephemeral` unless said. */
  readonly mode?: CreateMode;
  readonly data?: DataInput;
  readonly acl?: readonly Acl[];
  /** For the TTL modes. */
  readonly ttlMs?: number;
  /** What to do about a living node of a stranger at our path. `wait` unless said. */
  readonly whenTaken?: 'wait' | 'replace' | 'fail';
  /** As `close()`. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/** The node was made, or was found to be ours after a lost reply. */
export interface Birth {
  readonly path: string;
  readonly czxid: bigint;
  readonly sessionId: bigint;
  readonly why: 'first' | 'sessionRenewed' | 'deleted';
}

export type PersistentNodeState =
  | { readonly name: 'creating' }
  | { readonly name: 'taken'; readonly owner: bigint }
  | { readonly name: 'present'; readonly path: string; readonly stat: StatView }
  | { readonly name: 'failed'; readonly error: unknown }
  | { readonly name: 'closed' };

/** A TTL node is touched so often within its time. */
const touchesPerTtl = 3;

export class PersistentNode implements AsyncIterable<Birth> {
  readonly #client: Client;
  readonly #base: string;
  readonly #options: PersistentNodeOptions;
  readonly #mode: CreateMode;
  readonly #clock: Clock;
  readonly #life = new AbortController();
  readonly #ready = deferred();
  readonly #feeds = new Set<Feed<Birth>>();
  readonly #backoff = new Backoff(retryBackoff);
  /** Sessions that this node had: what they left behind is ours to take away. */
  readonly #ownSessions = new Set<bigint>();
  readonly #loop: Promise<void>;
  #data: DataInput;
  /** Where it is, or was: with its number, once it has one. */
  #path: string | undefined;
  #state: PersistentNodeState = { name: 'creating' };
  #wake: Deferred<void> = deferred();
  #watched: Watched<DataAndStat> | undefined;
  #births = 0;
  /** The node of the last birth. */
  #czxid: bigint | undefined;
  /** What the node holds is not known to be what was last given. */
  #isOwed = false;
  #lastSessionId: bigint | undefined;
  #closing: Promise<void> | undefined;

  constructor(client: Client, path: string, options: PersistentNodeOptions = {}) {
    checkClient('PersistentNode', client);
    checkOptions('PersistentNode', options, persistentNodeTable);
    this.#client = client;
    this.#base = path;
    this.#options = options;
    this.#mode = options.mode ?? 'ephemeral';
    this.#data = options.data ?? '';
    this.#clock = options.clock ?? systemClock;
    if (!Object.hasOwn(createModes, this.#mode)) {
      throw new ArgumentError('mode', `one of ${Object.keys(createModes).join(', ')} is wanted`);
    }
    this.#ready.promise.catch(() => {}); // `state` says it, too
    this.#loop = this.#run();
    const { signal } = options;
    const aborted = () => void this.close().catch(() => {}); // nobody waits for it who could be told
    if (signal?.aborted) aborted();
    else signal?.addEventListener('abort', aborted, { signal: this.#life.signal });
  }

  get state(): PersistentNodeState {
    return this.#state;
  }

  /** Where the node is, or was last. Undefined before it was made for the first time. */
  get path(): string | undefined {
    return this.#path;
  }

  get data(): DataInput {
    return this.#data;
  }

  /** Resolves once the node was made for the first time; rejects when it never will be. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Every time that the node is made, from now on. */
  [Symbol.asyncIterator](): AsyncIterator<Birth> {
    const feed: Feed<Birth> = new Feed({
      of: `births of ${this.#base}`,
      onReturn: async () => void this.#feeds.delete(feed),
    });
    if (this.#state.name === 'failed') feed.end(this.#state.error);
    else if (this.#state.name === 'closed') feed.end();
    else this.#feeds.add(feed);
    return feed;
  }

  /** New data, now if the node is there, and whenever it is made. */
  async set(data: DataInput): Promise<void> {
    if (this.#state.name === 'failed') throw this.#state.error;
    if (this.#state.name === 'closed') throw new Error(`${this.#base} was closed`);
    this.#data = data;
    if (this.#state.name !== 'present') return;
    try {
      await this.#client.set(this.#state.path, data);
    } catch (error) {
      // It is made anew with this data, or, if it is still there, written again, as soon as it can be.
      if (!isZkError(error, 'NO_NODE') && !isPassing(error)) throw error;
      this.#isOwed = true;
      this.#wake.resolve();
    }
  }

  /** Deletes the node and lets go of it. Bounded: without a link an ephemeral one goes with its session. */
  async close(): Promise<void> {
    const isFirst = this.#closing === undefined;
    this.#closing ??= this.#close();
    // What went wrong is told to whoever closed it first; the others only wait.
    await (isFirst ? this.#closing : this.#closing.catch(() => {}));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#life.abort(new Error(`${this.#base} was closed`));
    this.#wake.resolve();
    await this.#loop;
    await this.#remove();
  }

  // ── the life ──────────────────────────────────────────────────────────────────────────────────

  async #run(): Promise<void> {
    const { signal } = this.#life;
    try {
      while (!signal.aborted) {
        this.#wake = deferred();
        try {
          await linked(this.#client, signal);
          await this.#round();
          this.#backoff.reset();
        } catch (error) {
          if (signal.aborted) break;
          if (!isPassing(error) || isOver(this.#client)) throw error;
          if (!isZkError(error, 'CONNECTION_LOSS', 'SESSION_EXPIRED')) {
            await pause(this.#clock, this.#backoff.next(), signal);
          } else {
            // A client that is being closed refuses at once while its state is still `connected`: the
            // event loop must turn, else the reply that ends this is never read.
            await setImmediate();
          }
        }
      }
      this.#end({ name: 'closed' });
    } catch (error) {
      this.#end(signal.aborted ? { name: 'closed' } : { name: 'failed', error });
    }
  }

  /** One look: makes the node if it is missing, then waits until something happens to it. */
  async #round(): Promise<void> {
    const { sessionId } = this.#client;
    if (sessionId === undefined) return;
    const node = await this.#look();
    if (node === null) {
      if (this.#state.name === 'present') this.#state = { name: 'creating' };
      await this.#create(sessionId);
    } else if (createModes[this.#mode].ephemeral && node.stat.ephemeralOwner !== sessionId) {
      await this.#meet(node.stat, sessionId);
    } else {
      await this.#found(node, sessionId);
      await this.#rest();
    }
  }

  /** What is there, and a watch on it. Null where there is none, and then no watch is left. */
  async #look(): Promise<DataAndStat | null> {
    const at = this.#where;
    if (at === undefined) return null;
    if (this.#watched === undefined) {
      const asked = watchNode(this.#client, at);
      void asked
        .then((late) => (this.#life.signal.aborted ? late?.stop() : undefined))
        .catch(() => {});
      const watched = await unlessAborted(asked, this.#life.signal);
      if (watched === null) return null;
      this.#watched = watched;
      void watched.changed.then(() => {
        this.#watched = undefined;
        this.#wake.resolve();
      });
    }
    return this.#watched.found;
  }

  /** Undefined while a sequential node has no number yet. */
  get #where(): string | undefined {
    return this.#path ?? (createModes[this.#mode].sequential ? undefined : this.#base);
  }

  async #create(sessionId: bigint): Promise<void> {
    const { acl, ttlMs } = this.#options;
    const { signal } = this.#life;
    const rest = { ...(acl && { acl }), ...(ttlMs !== undefined && { ttlMs }), signal };
    this.#ownSessions.add(sessionId);
    await withParents(this.#client, this.#base, acl, async () => {
      const at = this.#where;
      if (at === undefined) {
        const made = await this.#client.createProtected(this.#base, this.#data, {
          mode: this.#mode,
          ...rest,
        });
        this.#path = made.path;
        return;
      }
      const mode = unnumbered[this.#mode] ?? this.#mode;
      try {
        await this.#client.create(at, this.#data, { mode, ...rest });
      } catch (error) {
        if (!isZkError(error, 'NODE_EXISTS')) throw error; // else the next look says whose it is
      }
    });
  }

  /** An ephemeral node of another session stands at our path. */
  async #meet(stat: StatView, sessionId: bigint): Promise<void> {
    const path = this.#where!;
    const owner = stat.ephemeralOwner;
    const { whenTaken = 'wait' } = this.#options;
    const isOurs = this.#ownSessions.has(owner);
    const wasReplaced = this.#births > 0 && this.#lastSessionId === sessionId;
    if (wasReplaced || (whenTaken === 'fail' && !isOurs)) {
      throw new NodeTakenError(path, owner, wasReplaced);
    }
    if (isOurs || whenTaken === 'replace') {
      try {
        // The version guards data that changed since; a czxid would be better, and cannot be given.
        await this.#client.delete(path, { version: stat.version, signal: this.#life.signal });
      } catch (error) {
        if (!isZkError(error, 'NO_NODE', 'BAD_VERSION')) throw error;
      }
      return;
    }
    this.#state = { name: 'taken', owner };
    await this.#wake.promise;
  }

  async #found({ data, stat }: DataAndStat, sessionId: bigint): Promise<void> {
    const path = this.#where!;
    const isNew = this.#czxid !== stat.czxid;
    this.#path = path;
    this.#state = { name: 'present', path, stat };
    if (isNew) {
      this.#ownSessions.clear();
      this.#ownSessions.add(sessionId);
      // It may be older than the data that was given since, or somebody else's that we found.
      this.#isOwed = !sameData(data, this.#data);
    }
    if (this.#isOwed && !(await this.#write())) return;
    if (!isNew) return;
    this.#czxid = stat.czxid;
    const isRenewed = this.#lastSessionId !== sessionId;
    const why = this.#births === 0 ? 'first' : isRenewed ? 'sessionRenewed' : 'deleted';
    this.#births += 1;
    this.#lastSessionId = sessionId;
    this.#ready.resolve();
    for (const feed of this.#feeds) feed.push({ path, czxid: stat.czxid, sessionId, why });
  }

  /** False when the node is gone, of which its watch tells. */
  async #write(): Promise<boolean> {
    this.#isOwed = false;
    try {
      await this.#client.set(this.#path!, this.#data, { signal: this.#life.signal });
      return true;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return false;
      this.#isOwed = true;
      throw error;
    }
  }

  /** Until something happens to the node, or, for a TTL node, until it is time to touch it. */
  async #rest(): Promise<void> {
    const { ttlMs } = this.#options;
    if (ttlMs === undefined) return this.#wake.promise;
    let isTime = false;
    const due = () => {
      isTime = true;
      this.#wake.resolve();
    };
    const timer = this.#clock.after(ttlMs / touchesPerTtl, due, true);
    await this.#wake.promise;
    timer.cancel();
    if (isTime) await this.#write();
  }

  /** Behind a loop that was broken off anywhere: perhaps before the reply to a create. */
  async #remove(): Promise<void> {
    const path = this.#where;
    const client = this.#client;
    if (path === undefined || isOver(client)) return;
    const gone = this.#takeAway(path).catch((error: unknown) => {
      // The session ends meanwhile, as that of a client that is closed does, and an ephemeral node with it.
      const isOverToo = isZkError(error, 'SESSION_EXPIRED', 'AUTH_FAILED');
      if (!isOverToo || !createModes[this.#mode].ephemeral) throw error;
    });
    // Without a link it waits for one: it goes out first thing, or the session takes the node along.
    if (client.state.name === 'connected') await gone;
    else gone.catch(() => {});
  }

  async #takeAway(path: string): Promise<void> {
    const client = this.#client;
    const isOurs = ({ ephemeralOwner }: StatView) =>
      createModes[this.#mode].ephemeral ? ephemeralOwner === client.sessionId : this.#births > 0;
    await takeBack(client, path, isOurs, this.#clock);
    await this.#watched?.stop();
  }

  #end(state: PersistentNodeState & { name: 'failed' | 'closed' }): void {
    this.#state = state;
    const error = state.name === 'failed' ? state.error : undefined;
    this.#ready.reject(error ?? new Error(`${this.#base} was closed before it was made`));
    for (const feed of this.#feeds) feed.end(error);
    this.#feeds.clear();
  }
}

/** The mode in which a node that had a number is made again under the same name. */
const unnumbered: Partial<Record<CreateMode, CreateMode>> = {
  ephemeralSequential: 'ephemeral',
  persistentSequential: 'persistent',
  persistentSequentialTtl: 'persistentTtl',
};

function sameData(there: Buffer | null, wanted: DataInput): boolean {
  if (there === null || wanted === null) return there === wanted;
  return there.equals(typeof wanted === 'string' ? Buffer.from(wanted) : wanted);
}

function isOver({ state }: Client): boolean {
  return state.name === 'closed' || state.name === 'authFailed' || state.name === 'expired';
}
