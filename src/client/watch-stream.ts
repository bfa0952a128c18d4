/**
 * Every change at a path, or at and below it, as an async iterator without gaps.
 *
 * A persistent watch tells of changes while there is a link; what happens while there is none it
 * never tells. So the stream knows each node's czxid and version, and after every reconnect looks at
 * all of them again. What differs was missed, and is told, in the order of the transactions, before
 * anything that the new link brings. Each event moves a node's version by one here as it does on the
 * server, so that a change is never told twice.
 *
 * Several changes of one node's data during a gap are told as one; a node that came and went in it is
 * not told of at all. Memory grows with the nodes watched, up to `nodesMax`; changes that the reader
 * has not taken wait, up to `bufferMax`. Past either limit the stream ends with an error.
 */

import { ProtocolError } from '../jute/index.ts';
import { childOf, isZkError, type StatView, wireOf, ZkError } from '../protocol/index.ts';
import { Backoff, type Deferred, deferred, onAbort, unbounded } from '../support/index.ts';
import type { Client } from './client.ts';
import type { Core } from './core.ts';
import type { EmulatedWatch } from './emulated-watch.ts';
import { KnownNodes } from './known-nodes.ts';
import { refusals } from './refusals.ts';
import { removeWatches } from './remove-watches.ts';
import {
  type Change,
  type Listener,
  tooManyNodes,
  type WatchEvent,
  WatchOverflowError,
  watchedNodesMax,
} from './watches.ts';

export interface WatchOptions {
  /** All nodes below too. Then `childrenChanged` is never told: the children themselves are. */
  readonly recursive?: boolean;
  /** Ends the stream; the loop over it then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** Changes that wait for the reader. 10,000. */
  readonly bufferMax?: number;
  /** Nodes that a recursive watch may span. 1,000,000. */
  readonly nodesMax?: number;
}

/** Nodes that are looked at at once. */
const lookAtOnce = 64;
/** After so many refusals in a row the stream gives up. */
const refusalsMax = 10;
/** So many looks in a row may break the link by what they are answered: more would break it for ever. */
const unreadableMax = 3;
const noNode = wireOf('NO_NODE');
const noAuth = wireOf('NO_AUTH');

export class WatchStream implements AsyncIterableIterator<Change> {
  readonly path: string;
  readonly #client: Client;
  readonly #core: Core;
  readonly #options: Required<Omit<WatchOptions, 'signal'>>;
  readonly #signal: AbortSignal | undefined;
  readonly #ready = deferred();
  readonly #known: KnownNodes;
  readonly #listener: Listener;
  readonly #stopListening: () => void;
  #queue: Change[] = [];
  #taken = 0;
  #readers: Deferred<IteratorResult<Change>>[] = [];
  #end: { readonly error?: unknown } | undefined;
  /** Counts links. A look at the tree is worth something only for as long as its link lasts. */
  #epoch = 0;
  #nextEpoch = deferred();
  #isArmed = false;
  /** In place of the server's watch and of all looks, where the server has no persistent watches. */
  #emulated: EmulatedWatch | undefined;
  /** Looks that were refused, since the last that was not. */
  #refused = 0;
  /** Looks whose answer broke the link, since the last that did not: a list that fits no frame, say. */
  #unreadable = 0;
  readonly #backoff = new Backoff({ firstMs: 50, maxMs: 5_000 });
  #toldZxid = 0n;
  /** Live changes that wait until those missed before them are known. */
  #held: Change[] | undefined;

  constructor(client: Client, core: Core, path: string, options: WatchOptions) {
    this.path = path;
    this.#client = client;
    this.#core = core;
    this.#options = {
      recursive: options.recursive ?? false,
      bufferMax: options.bufferMax ?? 10_000,
      nodesMax: options.nodesMax ?? watchedNodesMax,
    };
    this.#known = new KnownNodes(this.#options.recursive);
    this.#signal = options.signal;
    this.#listener = core.direct((event) => this.#heard(event));
    const stopHearing = core.onLinked((sameSession) => this.#linked(sameSession));
    const stopHearingEnds = core.onEnded(() => this.#sessionEnded());
    const aborted = () => this.#finish({ error: this.#signal?.reason });
    const stopHearingAborts = this.#signal && onAbort(this.#signal, aborted);
    this.#stopListening = () => {
      stopHearing();
      stopHearingEnds();
      stopHearingAborts?.();
    };
    this.#ready.promise.catch(() => {}); // told to whoever reads, too
    if (this.#signal?.aborted) aborted();
    else void this.#run();
  }

  /** Resolves once the watch is set and the tree is known: from then on nothing is missed. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  // ── the reader's side ─────────────────────────────────────────────────────────────────────────

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Change>> {
    const change = this.#queue[this.#taken];
    if (change !== undefined) {
      this.#taken += 1;
      if (this.#taken === this.#queue.length) {
        this.#queue = [];
        this.#taken = 0;
      }
      return Promise.resolve({ done: false, value: change });
    }
    if (this.#end !== undefined) {
      const { error } = this.#end;
      this.#end = {}; // an iterator fails once; then it is done
      return error === undefined
        ? Promise.resolve({ done: true, value: undefined })
        : Promise.reject(error);
    }
    const reader = deferred<IteratorResult<Change>>();
    this.#readers.push(reader);
    return reader.promise;
  }

  async return(): Promise<IteratorResult<Change>> {
    this.#finish({});
    return { done: true, value: undefined };
  }

  async close(): Promise<void> {
    await this.return();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #push(change: Change): void {
    if (this.#end !== undefined) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader.resolve({ done: false, value: change });
      return;
    }
    if (this.#taken > 1024 && this.#taken * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#taken);
      this.#taken = 0;
    }
    this.#queue.push(change);
    const { bufferMax } = this.#options;
    if (this.#queue.length - this.#taken > bufferMax) {
      const why = `more than ${bufferMax} changes wait to be read; read the tree anew and watch again, or set bufferMax`;
      this.#finish({ error: new WatchOverflowError(`watch ${this.path}: ${why}`) });
    }
  }

  #finish(end: { error?: unknown }): void {
    if (this.#end !== undefined) return;
    const [first, ...others] = this.#readers.splice(0);
    if (first !== undefined && end.error !== undefined) first.reject(end.error);
    else first?.resolve({ done: true, value: undefined });
    for (const reader of others) reader.resolve({ done: true, value: undefined });
    this.#end = first === undefined ? end : {};
    this.#ready.reject(end.error ?? new Error(`watch ${this.path} was closed`));
    this.#stopListening();
    this.#nextEpoch.resolve();
    this.#known.clear();
    this.#removeWatch();
  }

  /** Best effort: a server that cannot be asked now will not be asked to set it again either. */
  #removeWatch(): void {
    const full = this.#core.toServer(this.path);
    const kind = this.#options.recursive ? 'recursive' : 'persistent';
    if (this.#emulated !== undefined) {
      this.#core.stopEmulating(full, this.#options.recursive, this.#listener);
      return;
    }
    if (!this.#core.watches.listeners(kind, full).has(this.#listener)) return;
    if (this.#client.state.name !== 'connected') {
      this.#core.watches.remove(kind, full, this.#listener);
      return;
    }
    removeWatches(this.#core, this.path, {
      kind: this.#options.recursive ? 'persistentRecursive' : 'persistent',
      listener: this.#listener,
      local: true,
    }).catch(() => {});
  }

  // ── the server's side ─────────────────────────────────────────────────────────────────────────

  async #run(): Promise<void> {
    while (this.#end === undefined) {
      const epoch = this.#epoch;
      try {
        this.#beginLook(); // before the watch is set: what it tells at once is heard beside the look
        if (!this.#isArmed) await this.#arm();
        if (await this.#lookAround(epoch)) {
          this.#refused = 0;
          this.#unreadable = 0;
          this.#backoff.reset();
          this.#ready.resolve();
          this.#release();
        }
      } catch (error) {
        if (isZkError(error, 'UNIMPLEMENTED')) return this.#emulate();
        if (isZkError(error, ...refusals) && ++this.#refused <= refusalsMax) {
          if (epoch === this.#epoch) await this.#rest();
          continue;
        }
        const isLoss = isZkError(error, 'CONNECTION_LOSS');
        if (isLoss && error.cause instanceof ProtocolError) {
          this.#unreadable += 1;
          if (this.#unreadable === unreadableMax) this.#finish({ error: unreadable(error) });
        }
        const isLinkOver = epoch !== this.#epoch || isLoss;
        const isRenewed = isZkError(error, 'SESSION_EXPIRED') && this.#willRenew;
        if (!isLinkOver && !isRenewed) this.#finish({ error });
      }
      if (this.#end === undefined && epoch === this.#epoch) await this.#nextEpoch.promise;
    }
  }

  /** For a moment, or until there is another link or the end. */
  async #rest(): Promise<void> {
    const waited = deferred();
    const timer = this.#core.clock.after(this.#backoff.next(), () => waited.resolve());
    await Promise.race([waited.promise, this.#nextEpoch.promise]);
    timer.cancel();
  }

  get #willRenew(): boolean {
    const { settings, isClosed, session } = this.#core;
    const { name } = session.state;
    return settings.renew && !isClosed && name !== 'closed' && name !== 'authFailed';
  }

  /** From now on one-shot watches tell of the changes, and of what was missed until now. */
  #emulate(): void {
    const { recursive } = this.#options;
    const known = this.#known.takeNodes();
    this.#held = undefined;
    // Where a newer server has kept it so far.
    const kind = recursive ? 'recursive' : 'persistent';
    this.#core.watches.remove(kind, this.#core.toServer(this.path), this.#listener);
    this.#emulated = this.#core.emulateWatch({
      path: this.path,
      recursive,
      nodesMax: this.#options.nodesMax,
      listener: this.#listener,
      known,
      onChange: (change) => this.#push(change),
      onFailed: (error) => this.#finish({ error }),
    });
    this.#emulated.ready.then(() => this.#ready.resolve()).catch(() => {}); // it was told why
  }

  #linked(sameSession: boolean): void {
    if (this.#emulated !== undefined) {
      if (!sameSession) this.#emulate();
      return;
    }
    this.#epoch += 1;
    if (!sameSession || this.#core.session.lacksPersistentWatches) this.#isArmed = false;
    // A new session has been told nothing yet, so nothing is known to be older than the gap.
    this.#toldZxid = sameSession ? this.#core.session.lastZxid : 0n;
    if (this.#known.hasLooked) this.#held ??= [];
    this.#nextEpoch.resolve();
    this.#nextEpoch = deferred();
  }

  async #arm(): Promise<void> {
    const full = this.#core.toServer(this.path);
    const { recursive } = this.#options;
    const request = { path: full, mode: recursive ? 1 : 0 };
    await this.#core.call('addWatch', request, this.path, unbounded, (err) => {
      if (err !== 0) return;
      this.#core.watches.add(recursive ? 'recursive' : 'persistent', full, this.#listener);
      this.#isArmed = true;
      if (this.#end !== undefined) this.#removeWatch();
    });
  }

  #sessionEnded(): void {
    this.#isArmed = false;
    if (this.#willRenew) return;
    const isClosed = this.#core.isClosed;
    this.#finish(isClosed ? {} : { error: this.#core.session.endError('watch', this.path) });
  }

  #heard({ type, path, zxid }: WatchEvent): void {
    if (this.#end !== undefined) return;
    if (type === 'persistentWatchRemoved') {
      this.#finish({});
      return;
    }
    if (
      this.#emulated !== undefined ||
      !(
        type === 'created' ||
        type === 'deleted' ||
        type === 'dataChanged' ||
        type === 'childrenChanged'
      )
    ) {
      return;
    }
    this.#known.happened(type, path, zxid);
    const change: Change = { type, path, zxid, late: false };
    if (this.#held === undefined) {
      this.#tellMissed();
      this.#push(change);
    } else this.#held.push(change);
    this.#checkSize();
  }

  #beginLook(): void {
    this.#known.beginLook(this.#toldZxid);
    // What a look that was broken off had held back is found again by this one.
    if (this.#known.hasLooked) this.#held = [];
  }

  /** Looks at every node there is, and learns what was missed. False when it was broken off. */
  async #lookAround(epoch: number): Promise<boolean> {
    let paths = [this.path];
    while (paths.length > 0) {
      const batch = paths.slice(0, lookAtOnce);
      paths = paths.slice(lookAtOnce);
      // All of them: what one of a look that failed has to say is nothing to the next look.
      const looks = batch.map((path) => this.#look(path, epoch, paths));
      await Promise.allSettled(looks);
      await Promise.all(looks);
      if (epoch !== this.#epoch || this.#end !== undefined) return false;
    }
    this.#known.endLook();
    return true;
  }

  async #look(path: string, epoch: number, further: string[]): Promise<void> {
    const full = this.#core.toServer(path);
    try {
      const request = { path: full, watch: false };
      // What it says is taken in as it comes off the link, so that it and the events keep their order.
      const seen = (err: number, stat: StatView | undefined, children: readonly string[]) => {
        if (epoch !== this.#epoch || this.#end !== undefined) return;
        if (err === noNode) this.#known.missing(path);
        if (err === noAuth) this.#known.unreadable(path);
        if (err !== 0 || stat === undefined) return;
        this.#known.seen(path, stat);
        for (const name of children) further.push(childOf(path, name));
        this.#checkSize();
      };
      // One node alone is no matter of its children, of which there may be more than fit a frame.
      if (this.#options.recursive) {
        await this.#core.call('getChildren2', request, path, unbounded, (err, response) =>
          seen(err, response?.stat as StatView | undefined, response?.children ?? []),
        );
      } else {
        await this.#core.call('exists', request, path, unbounded, (err, response) =>
          seen(err, response?.stat as StatView | undefined, []),
        );
      }
    } catch (error) {
      if (!isZkError(error, 'NO_NODE', 'NO_AUTH')) throw error;
    }
  }

  /** What was missed goes first; what came live meanwhile follows. */
  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    this.#tellMissed();
    for (const change of held) this.#push(change);
  }

  #tellMissed(): void {
    for (const { type, path, zxid } of this.#known.takeMissed()) {
      this.#push({ type, path, zxid, late: true });
    }
  }

  #checkSize(): void {
    const { nodesMax, bufferMax } = this.#options;
    if (this.#known.size > nodesMax) {
      this.#finish({ error: tooManyNodes({ path: this.path, nodesMax }) });
    } else if ((this.#held?.length ?? 0) > bufferMax) {
      const why = `more than ${bufferMax} changes while the tree was looked at; set bufferMax`;
      this.#finish({ error: new WatchOverflowError(`watch ${this.path}: ${why}`) });
    }
  }
}

/** What the server answers can't be read, however often it is asked. */
function unreadable({ code, op, path, cause }: ZkError): ZkError {
  const why = (cause as Error).message;
  const detail = `the answer broke the link each time: ${why}; where lists are long, set frameBytesMax`;
  return new ZkError(code, { op, path, detail, cause });
}
