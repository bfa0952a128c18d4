/**
 * What a watch stream knows of the nodes it watches, and how it learns what it has missed.
 *
 * In: events and replies, in the order of the link. Out: the changes that no event told of. Pure: it
 * knows nothing of links or time. Its state is at every moment what the events told so far add up to,
 * so whatever a look at the server shows beyond that was missed. A look that is broken off is as if it
 * had never been, with all that was heard beside it: nobody was told of that yet, and the next look
 * finds it again.
 */

import { parentOf, type StatView } from '../protocol/index.ts';

export interface Known {
  /** Which incarnation of the node: null when only an event without a zxid told of it. */
  czxid: bigint | null;
  version: number;
  cversion: number;
  pzxid: bigint;
  /** The look that last confirmed it. */
  look: number;
  /** The look beside which a change of its data, and of its children, was last heard of. */
  dataHeard?: number;
  childHeard?: number;
}

export type MissedType = 'created' | 'deleted' | 'dataChanged' | 'childrenChanged';

export interface Missed {
  readonly type: MissedType;
  readonly path: string;
  readonly zxid: bigint | null;
  /** What it is sorted by: its own zxid, or the latest that it can have had. */
  readonly order: bigint;
}

export class KnownNodes {
  readonly #recursive: boolean;
  readonly #nodes = new Map<string, Known>();
  #missed: Missed[] = [];
  #look = 0;
  #hasLooked = false;
  /** Every event up to this transaction has been told: no reply with it can overtake an event. */
  #toldZxid = 0n;
  /** Found by this look to be other nodes than before. */
  readonly #recreated = new Set<string>();
  /** Heard of before they were looked at, and taken for the nodes that were known. */
  readonly #assumed = new Set<string>();
  readonly #unreadable = new Set<string>();
  /** While a look lasts: each node as it was before, where it was touched. */
  #before: Map<string, Known | undefined> | undefined;

  constructor(recursive: boolean) {
    this.#recursive = recursive;
  }

  get size(): number {
    return this.#nodes.size;
  }

  /** Whether there was ever a whole look: before it there is nothing to compare with. */
  get hasLooked(): boolean {
    return this.#hasLooked;
  }

  clear(): void {
    this.#nodes.clear();
    this.#missed = [];
    this.#before = undefined;
  }

  /** What was known when the last whole look ended, for who goes on from there; undefined before the first. */
  takeNodes(): ReadonlyMap<string, Known> | undefined {
    if (this.#before !== undefined) this.#undo(this.#before);
    const nodes = this.#hasLooked ? new Map(this.#nodes) : undefined;
    this.clear();
    return nodes;
  }

  happened(type: MissedType, path: string, zxid: bigint | null): void {
    const node = this.#nodes.get(path);
    if (node !== undefined && type !== 'created' && this.#before?.has(path) === false) {
      this.#assumed.add(path);
    }
    this.#touch(path, node);
    switch (type) {
      case 'created':
        // There already, as far as we know: so it went, and nobody said so.
        if (node !== undefined && this.#hasLooked) this.#miss('deleted', path, null, lastOfAll);
        this.#nodes.set(path, {
          czxid: zxid,
          version: 0,
          cversion: 0,
          pzxid: zxid ?? 0n,
          look: this.#look,
        });
        break;
      case 'deleted':
        if (node === undefined && this.#hasLooked) this.#miss('created', path, null, lastOfAll);
        this.#nodes.delete(path);
        break;
      case 'dataChanged':
        if (node !== undefined) {
          node.version += 1;
          node.dataHeard = this.#look;
        }
        break;
      case 'childrenChanged':
        if (node !== undefined) {
          node.cversion += 1;
          node.childHeard = this.#look;
        }
        break;
    }
  }

  /** `toldZxid`: the newest transaction that a reply had shown before the gap, or 0 if that is unknown. */
  beginLook(toldZxid: bigint): void {
    if (this.#before === undefined) this.#toldZxid = toldZxid;
    else this.#undo(this.#before);
    this.#before = new Map();
    this.#recreated.clear();
    this.#assumed.clear();
    this.#unreadable.clear();
    this.#look += 1;
  }

  #undo(before: ReadonlyMap<string, Known | undefined>): void {
    for (const [path, node] of before) {
      if (node === undefined) this.#nodes.delete(path);
      else this.#nodes.set(path, node);
    }
    this.#missed = [];
  }

  #touch(path: string, node: Known | undefined): void {
    if (this.#before === undefined || this.#before.has(path)) return;
    this.#before.set(path, node && { ...node });
  }

  seen(path: string, stat: StatView): void {
    const node = this.#nodes.get(path);
    this.#touch(path, node);
    if (node === undefined) {
      if (this.#hasLooked) this.#miss('created', path, stat.czxid, stat.czxid);
    } else if (this.#isOther(path, node, stat)) {
      this.#recreated.add(path);
      this.#miss('deleted', path, null, stat.czxid);
      this.#miss('created', path, stat.czxid, stat.czxid);
    } else {
      this.#compare(path, node, stat);
    }
    this.#nodes.set(path, {
      czxid: stat.czxid,
      version: stat.version,
      cversion: stat.cversion,
      pzxid: stat.pzxid,
      look: this.#look,
    });
  }

  /** Whether it is another node than the one known, in the same place. */
  #isOther(path: string, node: Known, stat: StatView): boolean {
    if (node.czxid !== null) return node.czxid !== stat.czxid;
    // Nothing outlives the node above it.
    return node.look !== this.#look && this.#recreated.has(parentOf(path) ?? '');
  }

  #isHidden(path: string): boolean {
    if (this.#unreadable.size === 0) return false;
    for (let at: string | null = path; at !== null; at = parentOf(at)) {
      if (this.#unreadable.has(at)) return true;
    }
    return false;
  }

  #isBelowRecreated(path: string): boolean {
    for (let at = parentOf(path); at !== null; at = parentOf(at)) {
      if (this.#recreated.has(at)) return true;
    }
    return false;
  }

  #compare(path: string, node: Known, stat: StatView): void {
    // Told of by an event without a zxid, just before the gap: perhaps this node, perhaps one that
    // came after it. Then its data may be other than the reader thinks.
    const isUncertain =
      node.czxid === null && node.look !== this.#look && stat.czxid > this.#toldZxid;
    if (stat.version !== node.version || isUncertain) {
      this.#changed('dataChanged', path, stat.mzxid, node.dataHeard);
    }
    if (!this.#recursive && stat.cversion !== node.cversion) {
      this.#changed('childrenChanged', path, stat.pzxid, node.childHeard);
    }
  }

  /** Where another change was heard of beside this look, the Stat's zxid is of that one. */
  #changed(type: MissedType, path: string, zxid: bigint, heard: number | undefined): void {
    if (heard === this.#look) this.#miss(type, path, null, lastOfAll);
    else this.#miss(type, path, zxid, zxid);
  }

  /** The server says that there is no such node. */
  missing(path: string): void {
    const node = this.#nodes.get(path);
    if (node === undefined) return;
    this.#touch(path, node);
    this.#nodes.delete(path);
    this.#miss('deleted', path, null, this.#latest(path));
  }

  /** It is there, or was a moment ago, but we may not see it, nor what is below it. */
  unreadable(path: string): void {
    this.#unreadable.add(path);
  }

  /** All was looked at: what nobody confirmed is gone. */
  endLook(): void {
    for (const path of this.#assumed) {
      if (this.#recreated.has(path) || !this.#isBelowRecreated(path)) continue;
      this.#miss('deleted', path, null, lastOfAll);
      this.#miss('created', path, null, lastOfAll);
    }
    for (const [path, node] of this.#nodes) {
      if (node.look === this.#look || this.#isHidden(path)) continue;
      this.#nodes.delete(path);
      this.#miss('deleted', path, null, this.#latest(path));
    }
    this.#hasLooked = true;
    this.#before = undefined;
  }

  /** What was missed, in the order of the transactions, as far as the server can tell it. */
  takeMissed(): Missed[] {
    const missed = this.#missed;
    if (missed.length === 0) return missed;
    this.#missed = [];
    const gone = new Map<string, bigint>();
    for (const { type, path, order } of missed) if (type === 'deleted') gone.set(path, order);
    return missed
      .map((one) => (one.type === 'deleted' ? { ...one, order: deletedBy(one, gone) } : one))
      .sort(
        (a, b) =>
          compare(a.order, b.order) ||
          rank(a) - rank(b) ||
          (a.type === 'deleted' ? b.path.length - a.path.length : a.path.length - b.path.length),
      );
  }

  #miss(type: MissedType, path: string, zxid: bigint | null, order: bigint): void {
    this.#missed.push({ type, path, zxid, order });
  }

  /** A deletion is no later than the last change among the children of the nearest parent left. */
  #latest(path: string): bigint {
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
      const parent = this.#nodes.get(path.slice(0, slash));
      if (parent !== undefined && parent.look === this.#look) return parent.pzxid;
    }
    return this.#nodes.get('/')?.pzxid ?? this.#toldZxid;
  }
}

/** What comes live after a gap is later than all that the gap held. */
const lastOfAll = 1n << 63n;

/** A node goes no later than the one above it. */
function deletedBy({ path, order }: Missed, gone: ReadonlyMap<string, bigint>): bigint {
  let latest = order;
  for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
    const above = gone.get(path.slice(0, slash));
    if (above !== undefined && above < latest) latest = above;
  }
  return latest;
}

/** At one moment, what goes makes room for what comes. */
function rank({ type }: Missed): number {
  return type === 'deleted' ? 0 : 1;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
