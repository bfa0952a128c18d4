/**
 * The side of a cache that talks to the server: sets watches, hears of changes, reads what changed.
 *
 * In: `look`, once for every link. Out: what was read, into the ledger. At most so many requests are
 * under way at once. Replies are taken in one turn of the event loop after they came: by then every
 * event that came before them has been heard, which is what the ledger's order stands on.
 */

import { setImmediate } from 'node:timers';
import { type Client, isZkError, type WatchEvent } from '../client/index.ts';
import { childOf, isWithin, nameOf } from '../protocol/index.ts';
import type { CacheScope } from './cache.ts';
import type { CacheLedger, ReadToken } from './cache-ledger.ts';
import { isUnreadable } from './unreadable.ts';
import { unwatch } from './unwatch.ts';

export interface ReaderHooks {
  /** Something is in the ledger that was not. */
  onProgress(): void;
  /** A read failed, on a link that works. */
  onFailure(error: unknown): void;
  /** A reply broke the link, again and again: it would break every next one, too. */
  onBroken(error: Error): void;
}

/** Requests under way at once: enough to hide the way to the server, few enough to be polite. */
const atOnceMax = 64;

/** What a reply means for the ledger, told when its turn has come. */
type Take = (token: ReadToken) => void;

/** What is read of a node: its data, or the list of its children. */
interface Job {
  readonly kind: 'data' | 'list';
  readonly path: string;
  readonly epoch: number;
  /** Part of a look at everything. */
  readonly isLook: boolean;
}

export class CacheReader {
  readonly unreadable = new Set<string>();
  readonly #client: Client;
  readonly #root: string;
  readonly #scope: CacheScope;
  readonly #ledger: CacheLedger;
  readonly #hooks: ReaderHooks;
  readonly #listener = (event: WatchEvent) => this.#heard(event);
  /** The session in which the watch on the root was set. */
  #armedIn: AbortSignal | undefined;
  #isClosed = false;
  /** Counts looks. What was asked for in an earlier one is worth nothing. */
  #epoch = 0;
  #jobs: Job[] = [];
  #taken = 0;
  #underWay = 0;
  #lookJobs = 0;
  #lookBytes = 0;
  #lookNodes = 0;
  #lookDone: (() => void) | undefined;
  #turn: Promise<void> | undefined;
  #isTelling = false;

  constructor(
    client: Client,
    root: string,
    scope: CacheScope,
    ledger: CacheLedger,
    hooks: ReaderHooks,
  ) {
    this.#client = client;
    this.#root = root;
    this.#scope = scope;
    this.#ledger = ledger;
    this.#hooks = hooks;
  }

  /** What a look that is under way has found so far: the ledger tells of it only at the end. */
  get expected(): number {
    return this.#lookNodes;
  }

  get expectedBytes(): number {
    return this.#lookBytes;
  }

  /** Reads everything. Resolves when all is in the ledger; never, when it is broken off. */
  async look(): Promise<void> {
    this.breakOff();
    const epoch = this.#epoch;
    if (!this.#isArmed) await this.#arm();
    // Broken off meanwhile: whoever waits for this waits for that, too.
    if (epoch !== this.#epoch || this.#isClosed) return new Promise(() => {});
    this.#ledger.begin();
    this.unreadable.clear();
    const done = new Promise<void>((resolve) => {
      this.#lookDone = resolve;
    });
    this.#lookAt(this.#root, true);
    await done;
    this.#lookNodes = 0;
    this.#lookBytes = 0;
  }

  /** What is known may be old from now on, and nothing is told before the next look has its end. */
  breakOff(): void {
    this.#ledger.begin();
    this.#epoch += 1;
    this.#jobs = [];
    this.#taken = 0;
    this.#lookJobs = 0;
    this.#lookNodes = 0;
    this.#lookBytes = 0;
    this.#lookDone = undefined;
  }

  async close(): Promise<void> {
    this.breakOff();
    this.#isClosed = true;
    if (this.#isArmed) {
      const kind = this.#scope === 'node' ? 'persistent' : 'persistentRecursive';
      await unwatch(this.#client, this.#root, kind, this.#listener);
    }
  }

  get #isArmed(): boolean {
    return this.#armedIn?.aborted === false;
  }

  async #arm(): Promise<void> {
    const mode = this.#scope === 'node' ? 'persistent' : 'persistentRecursive';
    // The reply may come in the very moment in which the session is found to be over: then the end is
    // heard of before this goes on, and the watch is gone with the session.
    const session = this.#client.sessionSignal;
    await this.#client.addWatch(this.#root, mode, this.#listener);
    if (this.#isClosed) await unwatch(this.#client, this.#root, mode, this.#listener);
    else this.#armedIn = session;
  }

  // ── events ────────────────────────────────────────────────────────────────────────────────────

  #heard({ type, path, zxid }: WatchEvent): void {
    if (this.#isClosed) return;
    if (type === 'none') {
      this.#armedIn = undefined;
      return;
    }
    if (type === 'deleted') {
      this.unreadable.delete(path);
      if (this.#holds(path)) this.#ledger.gone(path, zxid);
      this.#progressed();
    } else if (type === 'created' || type === 'dataChanged') {
      if (this.#holds(path)) this.#owe('data', path, zxid);
    }
  }

  #owe(kind: Job['kind'], path: string, zxid: bigint | null, since?: bigint): void {
    if (!this.#ledger.heard(keyOf(kind, path), zxid, since)) return;
    this.#enqueue({ kind, path, epoch: this.#epoch, isLook: false });
  }

  // ── reads ─────────────────────────────────────────────────────────────────────────────────────

  /** Whether the node is one of those that the cache holds. */
  #holds(path: string): boolean {
    if (this.#scope === 'subtree') return isWithin(path, this.#root);
    if (this.#scope === 'node') return path === this.#root;
    return path !== this.#root && childOf(this.#root, nameOf(path)) === path;
  }

  /** Whether its children are. */
  #lists(path: string): boolean {
    if (this.#scope === 'subtree') return true;
    return this.#scope === 'children' && path === this.#root;
  }

  #lookAt(path: string, isLook: boolean, since?: bigint): void {
    const kinds: Job['kind'][] = [];
    if (this.#holds(path)) kinds.push('data');
    if (this.#lists(path)) kinds.push('list');
    for (const kind of kinds) {
      if (isLook) this.#enqueue({ kind, path, epoch: this.#epoch, isLook });
      else this.#owe(kind, path, null, since);
    }
  }

  #enqueue(job: Job): void {
    if (job.isLook) this.#lookJobs += 1;
    if (job.isLook && job.kind === 'data') this.#lookNodes += 1;
    this.#jobs.push(job);
    this.#next();
  }

  #next(): void {
    while (this.#underWay < atOnceMax && this.#taken < this.#jobs.length) {
      const job = this.#jobs[this.#taken++]!;
      if (this.#taken === this.#jobs.length) {
        this.#jobs = [];
        this.#taken = 0;
      }
      this.#underWay += 1;
      void this.#perform(job);
    }
  }

  async #perform(job: Job): Promise<void> {
    const token = this.#ledger.reading(keyOf(job.kind, job.path));
    let take: Take;
    try {
      take = job.kind === 'data' ? await this.#readData(job) : await this.#readList(job);
    } catch (error) {
      if (isUnreadable(error) && !this.#isClosed) this.#hooks.onBroken(error);
      take = () => this.#failed(job, token, error);
    }
    await this.#nextTurn();
    this.#underWay -= 1;
    this.#ledger.release(token);
    if (job.epoch === this.#epoch && !this.#isClosed) {
      if (!token.isStale) take(token);
      if (job.isLook && job.epoch === this.#epoch) this.#lookedAt();
      this.#progressed();
    }
    this.#next();
  }

  /** Told once for all that one turn has brought. */
  #progressed(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    queueMicrotask(() => {
      this.#isTelling = false;
      this.#hooks.onProgress();
    });
  }

  #lookedAt(): void {
    this.#lookJobs -= 1;
    if (this.#lookJobs > 0) return;
    this.#ledger.end();
    this.#lookDone?.();
  }

  /** After all that has come so far: one for all who wait. */
  #nextTurn(): Promise<void> {
    this.#turn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#turn = undefined;
        resolve();
      });
    });
    return this.#turn;
  }

  async #readData(job: Job): Promise<Take> {
    const { path, isLook } = job;
    const known = isLook ? this.#ledger.nodes.get(path) : undefined;
    if (known !== undefined) {
      const stat = await this.#client.exists(path);
      if (stat === null) return (token) => this.#missing(job, token);
      if (stat.czxid === known.stat.czxid && stat.mzxid === known.stat.mzxid) {
        return () => this.#ledger.confirm(path);
      }
    }
    const { data, stat } = await this.#client.get(path);
    return (token) => {
      this.unreadable.delete(path);
      if (isLook) this.#lookBytes += data?.length ?? 0;
      const isAgain = this.#ledger.read({ path, data, stat }, token);
      if (isAgain) this.#enqueue({ ...job, isLook: false });
    };
  }

  async #readList(job: Job): Promise<Take> {
    const { path, isLook } = job;
    const { children, stat } = await this.#client.childrenAndStat(path);
    return (token) => {
      this.unreadable.delete(path);
      this.#ledger.listed(path, stat);
      const since = this.#ledger.owedAfter(token.path);
      for (const name of children) {
        const child = childOf(path, name);
        if (isLook) this.#lookAt(child, true);
        else this.#lookAt(child, false, since);
      }
      if (this.#ledger.settled(token, stat.pzxid)) this.#enqueue({ ...job, isLook: false });
    };
  }

  #missing({ kind, path }: Job, token: ReadToken): void {
    if (this.#ledger.missing(token)) {
      this.#enqueue({ kind, path, epoch: this.#epoch, isLook: false });
    }
  }

  #failed(job: Job, token: ReadToken, error: unknown): void {
    if (isZkError(error, 'NO_NODE')) {
      this.unreadable.delete(job.path);
      this.#missing(job, token);
    } else if (isZkError(error, 'NO_AUTH')) {
      this.unreadable.add(job.path);
      this.#missing(job, token);
    } else this.#hooks.onFailure(error);
  }
}

/** Under which name a read is owed: no path ends in a slash, so a list's is never a node's. */
function keyOf(kind: Job['kind'], path: string): string {
  return kind === 'data' ? path : `${path}/`;
}
