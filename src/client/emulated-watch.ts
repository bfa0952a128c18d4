/**
 * A persistent watch made of one-shot watches, for servers before 3.6, which have no other.
 *
 * In: notifications of one-shot watches, which say where to look. Out: the changes, found by comparing
 * what a node was like with what it is like now, in `onChange`. A watch is set by the very read that is
 * compared, so nothing is missed between the two; after a gap the client's one-shot watches are set
 * again, and tell what happened meanwhile. So there is always a look behind the last change.
 *
 * It sees states, not transactions: several changes of a node's data between two looks are one, a node
 * that came and went is none, and a change is told one round trip after the server told of it. Each
 * node takes two watches on the server, and a read or two for every change.
 */

import { ProtocolError } from '../jute/index.ts';
import { childOf, isWithin, isZkError, type StatView, wireOf } from '../protocol/index.ts';
import { Backoff, deferred, unbounded } from '../support/index.ts';
import type { Core } from './core.ts';
import { refusals } from './refusals.ts';
import { type Change, type Listener, tooManyNodes, type WatchEvent } from './watches.ts';

/** What is known of a node. No czxid: it is taken for the node that is found there. */
export interface KnownNode {
  readonly czxid: bigint | null;
  readonly version: number;
  readonly cversion: number;
}

export interface EmulatedWatchOptions {
  readonly core: Core;
  /** As the caller names it. */
  readonly path: string;
  readonly recursive: boolean;
  /** What the caller knows already: differences from it are told. Without it the first look tells nothing. */
  readonly known?: ReadonlyMap<string, KnownNode> | undefined;
  /** `latestZxid`: of a deletion, the last transaction that it can have been, where that is known. */
  readonly onChange: (change: Change, latestZxid: bigint | null) => void;
  readonly nodesMax: number;
  /** It can't go on. */
  readonly onFailed: (error: unknown) => void;
}

/** Nodes that are looked at at once. */
const lookAtOnce = 64;
/** So often in a row the server may refuse a look, or its answer may break the connection. */
const failuresMax = 10;
const noNode = wireOf('NO_NODE');

/** What is to be looked at, and why: bits. */
const stat = 1;
const children = 2;
const late = 4;
/** Part of the first look at everything. */
const first = 8;

export class EmulatedWatch {
  readonly #options: EmulatedWatchOptions;
  readonly #core: Core;
  readonly #root: string;
  readonly #listener: Listener;
  readonly #stopHearing: () => void;
  readonly #nodes = new Map<string, KnownNode>();
  /** The names below each node, where the watch is recursive. */
  readonly #names = new Map<string, ReadonlySet<string>>();
  readonly #due = new Map<string, number>();
  readonly #ready = deferred();
  readonly #backoff = new Backoff({ firstMs: 50, maxMs: 5_000 });
  #looking = 0;
  #failures = 0;
  #isWaiting = false;
  #isOver = false;
  /** Looks that the first one still takes. Others make no end of that: a busy tree always has some. */
  #firstLooks = 0;

  constructor(options: EmulatedWatchOptions) {
    this.#options = options;
    this.#core = options.core;
    this.#root = options.path;
    this.#listener = this.#core.direct((event) => this.#heard(event));
    this.#stopHearing = this.#core.onLinked(() => this.#pump());
    this.#ready.promise.catch(() => {}); // told by onFailed, too
    for (const [path, node] of options.known ?? []) {
      this.#nodes.set(path, node);
      if (path !== this.#root) this.#addName(path);
    }
    this.#lookAtAll(options.known === undefined ? first : first | late);
  }

  /** Resolves once every node is watched. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** All watches are gone, as with a session: every node is looked at again. */
  startAnew(): void {
    this.#isWaiting = false;
    this.#lookAtAll(late);
  }

  #lookAtAll(why: number): void {
    this.#look(this.#root, stat | why);
    for (const path of this.#nodes.keys()) this.#look(path, stat | children | why);
    this.#pump();
  }

  stop(reason: unknown = new Error(`the watch of ${this.#root} was closed`)): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopHearing();
    this.#ready.reject(reason);
    for (const path of [this.#root, ...this.#nodes.keys()]) {
      const full = this.#core.toServer(path);
      for (const kind of ['data', 'exist', 'child'] as const) {
        this.#core.watches.remove(kind, full, this.#listener);
      }
    }
    this.#nodes.clear();
    this.#due.clear();
  }

  #heard({ type, path }: WatchEvent): void {
    if (this.#isOver || !isWithin(path, this.#root)) return;
    const isLate = this.#core.session.isCatchingUp ? late : 0;
    switch (type) {
      case 'deleted':
        this.#gone(path, isLate);
        // The watch on the list of its parent's children tells when it comes back; the root has no other.
        if (path === this.#root) this.#look(path, stat | isLate);
        break;
      case 'created':
        this.#look(path, stat | children | isLate);
        break;
      case 'dataChanged':
      case 'dataWatchRemoved':
        this.#look(path, stat | isLate);
        break;
      case 'childrenChanged':
      case 'childWatchRemoved':
        this.#look(path, children | isLate);
        break;
    }
    this.#pump();
  }

  #look(path: string, what: number): void {
    const before = this.#due.get(path) ?? 0;
    if (what & ~before & first) this.#firstLooks += 1;
    this.#due.set(path, before | what);
  }

  #forgetLook(path: string): void {
    if ((this.#due.get(path) ?? 0) & first) this.#firstLooks -= 1;
    this.#due.delete(path);
  }

  #pump(): void {
    for (const [path, what] of this.#due) {
      if (this.#isOver || this.#isWaiting || this.#looking >= lookAtOnce) break;
      this.#due.delete(path);
      this.#looking += 1;
      void this.#lookAt(path, what);
    }
    if (this.#firstLooks === 0) this.#ready.resolve();
  }

  async #lookAt(path: string, what: number): Promise<void> {
    const looks = [
      what & stat ? this.#readStat(path, what) : undefined,
      what & children ? this.#readChildren(path, what) : undefined,
    ];
    const outcomes = await Promise.allSettled(looks);
    this.#looking -= 1;
    if (this.#isOver) return;
    if (what & first) this.#firstLooks -= 1;
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed === undefined) this.#failures = 0;
    else this.#failed(failed.reason, path, what);
    this.#pump();
  }

  async #readStat(path: string, what: number): Promise<void> {
    const { watches } = this.#core;
    const full = this.#core.toServer(path);
    const request = { path: full, watch: true };
    try {
      await this.#core.call('exists', request, path, unbounded, (err, response) => {
        if (this.#isOver) return;
        if (err === 0) {
          this.#seen(path, response!.stat as StatView, what);
          if (!this.#isOver) watches.add('data', full, this.#listener);
        } else if (err === noNode) {
          if (path === this.#root) watches.add('exist', full, this.#listener);
          this.#gone(path, what);
        }
      });
    } catch (error) {
      if (!isZkError(error, 'NO_NODE', 'NO_AUTH')) throw error;
    }
  }

  async #readChildren(path: string, what: number): Promise<void> {
    const { watches } = this.#core;
    const full = this.#core.toServer(path);
    const request = { path: full, watch: true };
    try {
      await this.#core.call('getChildren2', request, path, unbounded, (err, response) => {
        if (this.#isOver) return;
        if (err === 0) {
          this.#seen(path, response!.stat as StatView, what);
          if (this.#isOver) return;
          watches.add('child', full, this.#listener);
          if (this.#options.recursive) this.#listed(path, response!.children, what);
        } else if (err === noNode) this.#gone(path, what);
      });
    } catch (error) {
      // What may not be listed is watched itself, and nothing below it.
      if (!isZkError(error, 'NO_NODE', 'NO_AUTH')) throw error;
    }
  }

  #failed(error: unknown, path: string, what: number): void {
    const isLoss = isZkError(error, 'CONNECTION_LOSS');
    const isRefused = isZkError(error, ...refusals);
    // A session that is over takes all watches along: `startAnew` comes with the next one, or `stop`.
    if (isZkError(error, 'SESSION_EXPIRED')) {
      this.#isWaiting = true;
      this.#look(path, what);
      return;
    }
    if (isRefused || (isLoss && error.cause instanceof ProtocolError)) this.#failures += 1;
    if (!(isLoss || isRefused) || this.#failures > failuresMax) {
      this.#fail(error);
      return;
    }
    this.#look(path, what);
    if (!isRefused) return; // calls wait by themselves until there is a connection
    this.#isWaiting = true;
    this.#core.clock.after(this.#backoff.next(), () => {
      this.#isWaiting = false;
      this.#pump();
    });
  }

  #fail(error: unknown): void {
    this.stop(error);
    this.#options.onFailed(error);
  }

  // ── what differs ──────────────────────────────────────────────────────────────────────────────

  #seen(path: string, { czxid, mzxid, pzxid, version, cversion }: StatView, what: number): void {
    let node = this.#nodes.get(path);
    if (node !== undefined && node.czxid !== null && node.czxid !== czxid) {
      this.#gone(path, what, czxid - 1n);
      node = undefined;
      this.#look(path, stat | children | (what & (late | first))); // its watches went with the old one
    }
    this.#nodes.set(path, { czxid, version, cversion });
    if (node === undefined) {
      const unasked = (stat | children) & ~what;
      if (unasked) this.#look(path, unasked | (what & (late | first)));
      if (this.#nodes.size > this.#options.nodesMax) this.#fail(tooManyNodes(this.#options));
      else if (this.#options.known !== undefined || !(what & first))
        this.#tell('created', path, czxid, what);
      return;
    }
    if (node.version !== version) this.#tell('dataChanged', path, mzxid, what);
    if (!this.#options.recursive && node.cversion !== cversion) {
      this.#tell('childrenChanged', path, pzxid, what);
    }
  }

  #listed(path: string, list: readonly string[], what: number): void {
    const before = this.#names.get(path) ?? new Set();
    const names = new Set(list);
    this.#names.set(path, names);
    for (const name of before) if (!names.has(name)) this.#gone(childOf(path, name), what);
    for (const name of names) {
      const child = childOf(path, name);
      if (!this.#nodes.has(child)) this.#look(child, stat | children | (what & (late | first)));
    }
  }

  /** With all that was below it, deepest first, as it must have been deleted. */
  #gone(path: string, what: number, latestZxid: bigint | null = null): void {
    const all = [path];
    for (const one of all) {
      for (const name of this.#names.get(one) ?? []) all.push(childOf(one, name));
      this.#names.delete(one);
    }
    for (const one of all.reverse()) {
      if (one !== this.#root) this.#forgetLook(one);
      if (!this.#nodes.delete(one)) continue;
      const full = this.#core.toServer(one);
      this.#core.watches.remove('data', full, this.#listener);
      this.#core.watches.remove('child', full, this.#listener);
      this.#tell('deleted', one, null, what, latestZxid);
    }
  }

  #tell(
    type: Change['type'],
    path: string,
    zxid: bigint | null,
    what: number,
    latestZxid = zxid,
  ): void {
    this.#options.onChange({ type, path, zxid, late: (what & late) !== 0 }, latestZxid);
  }

  #addName(path: string): void {
    const slash = path.lastIndexOf('/');
    const parent = path.slice(0, slash) || '/';
    const names = (this.#names.get(parent) ?? new Set<string>()) as Set<string>;
    names.add(path.slice(slash + 1));
    this.#names.set(parent, names);
  }
}
