/**
 * What a watch stream knows of the nodes it watches, and how it learns what it has missed.
 *
 * In: events and replies, in the order of the link. Out: the changes that no event told of. Pure: it
 * knows nothing of links or time. Its state is at every moment what the events told so far add up to,
 * so whatever a look at the server shows beyond that was missed.
 */

import type { StatView } from '../protocol/index.ts';

export interface Known {
  /** Which incarnation of the node: null when only an event without a zxid told of it. */
  czxid: bigint | null;
  version: number;
  cversion: number;
  pzxid: bigint;
  /** The look that last confirmed it. */
  look: number;
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
  }

  happened(type: MissedType, path: string, zxid: bigint | null): void {
    const node = this.#nodes.get(path);
    switch (type) {
      case 'created':
        // There already, as far as we know: so it went, and nobody said so.
        if (node !== undefined && this.#hasLooked) this.#miss('deleted', path, null, zxid ?? 0n);
        this.#nodes.set(path, {
          czxid: zxid,
          version: 0,
          cversion: 0,
          pzxid: zxid ?? 0n,
          look: this.#look,
        });
        break;
      case 'deleted':
        if (node === undefined && this.#hasLooked) this.#miss('created', path, null, zxid ?? 0n);
        this.#nodes.delete(path);
        break;
      case 'dataChanged':
        if (node !== undefined) node.version += 1;
        break;
      case 'childrenChanged':
        if (node !== undefined) node.cversion += 1;
        break;
    }
  }

  beginLook(toldZxid: bigint): void {
    this.#look += 1;
    this.#toldZxid = toldZxid;
  }

  seen(path: string, stat: StatView): void {
    const node = this.#nodes.get(path);
    if (node === undefined) {
      if (this.#hasLooked) this.#miss('created', path, stat.czxid, stat.czxid);
    } else if (node.czxid !== null && node.czxid !== stat.czxid) {
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

  #compare(path: string, node: Known, stat: StatView): void {
    // Told of by an event without a zxid, just before the gap: perhaps this node, perhaps one that
    // came after it. Then its data may be other than the reader thinks.
    const isUncertain =
      node.czxid === null && node.look !== this.#look && stat.czxid > this.#toldZxid;
    if (stat.version !== node.version || isUncertain) {
      this.#miss('dataChanged', path, stat.mzxid, stat.mzxid);
    }
    if (!this.#recursive && stat.cversion !== node.cversion) {
      this.#miss('childrenChanged', path, stat.pzxid, stat.pzxid);
    }
  }

  /** The server says that there is no such node. */
  missing(path: string): void {
    const node = this.#nodes.get(path);
    if (node === undefined) return;
    this.#nodes.delete(path);
    this.#miss('deleted', path, null, this.#latest(path));
  }

  /** All was looked at: what nobody confirmed is gone. */
  endLook(): void {
    for (const [path, node] of this.#nodes) {
      if (node.look === this.#look) continue;
      this.#nodes.delete(path);
      this.#miss('deleted', path, null, this.#latest(path));
    }
    this.#hasLooked = true;
  }

  /** What was missed, in the order of the transactions, as far as the server can tell it. */
  takeMissed(): Missed[] {
    const missed = this.#missed;
    this.#missed = [];
    // A sort keeps the order of equals: a deletion stands before the creation that took its place.
    return missed.sort((a, b) => {
      if (a.order !== b.order) return a.order < b.order ? -1 : 1;
      return a.type === 'deleted' && b.type === 'deleted' ? b.path.length - a.path.length : 0;
    });
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
