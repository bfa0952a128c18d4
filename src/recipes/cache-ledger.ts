/**
 * What a cache knows, and in which order it tells of it.
 *
 * In: events, and what reads showed, as they come. Out: changes, in the order of the transactions.
 * Pure: it knows nothing of links or time.
 *
 * An event says that a node has changed, and a read is needed to learn to what. Reads of several
 * nodes come back in any order, and a read may show a later change than the one that asked for it. So
 * what a read showed waits until no node is left whose change, of which only the event is known, may
 * have come before it. That ends: the server tells of a change before any reply that shows it or a
 * later one, so whatever is heard of after a reply is later than all the reply shows.
 *
 * While the tree is looked through (`begin` to `end`) everything waits; then what was found is told.
 */

import { parentOf, type StatView } from '../protocol/index.ts';

export interface CachedNode {
  readonly path: string;
  /** Null where the node was made with no data at all. */
  readonly data: Buffer | null;
  readonly stat: StatView;
}

export interface CacheChange {
  readonly type: 'added' | 'changed' | 'removed';
  readonly path: string;
  /** As it is now; for `removed`, as it last was. */
  readonly node: CachedNode;
  /** As it was before. Null for `added`. */
  readonly previous: CachedNode | null;
  /** The transaction. Null for a removal that was found out later, and for any before 3.9. */
  readonly zxid: bigint | null;
}

interface Finding {
  readonly path: string;
  /** Null: it is gone. */
  readonly node: CachedNode | null;
  /** What it is sorted by: its own zxid, or the latest that it is known to follow. */
  order: bigint;
  readonly seq: number;
  readonly zxid: bigint | null;
  /** Only a node made up to then can be the one that is gone. */
  readonly asOf: bigint;
  /** The server gave no zxid: it comes after whatever was heard of before it. */
  readonly isUnplaced?: boolean;
}

interface Owed {
  /** When it was first and last heard of, among all that was heard, begun and found. */
  readonly seq: number;
  lastSeq: number;
  /** The changes that were heard of, and that no read has shown yet, are later than this. */
  after: bigint;
  /** The newest zxid that was heard of, null when a server did not say. */
  newest: bigint | null;
  /** A read was asked for and has not begun. */
  isAsked: boolean;
  /** When the newest read of it began. */
  readSeq: number;
}

/** A read under way. One that was begun before the node went may show the node that went. */
export interface ReadToken {
  readonly path: string;
  /** When it was begun, among all that was heard and found. */
  readonly seq: number;
  isStale: boolean;
}

export class CacheLedger {
  readonly #nodes = new Map<string, CachedNode>();
  #bytes = 0;
  #findings: Finding[] = [];
  readonly #unplaced = new Set<Finding>();
  #seq = 0;
  readonly #owed = new Map<string, Owed>();
  readonly #reads = new Map<string, Set<ReadToken>>();
  /** The incarnations of nodes that findings, not told yet, have shown. */
  readonly #found = new Map<string, bigint>();
  /** Every event up to here has been heard. */
  #seenZxid = 0n;
  /** While the tree is looked through: nodes that are there, and the last change among the children. */
  #look: { readonly confirmed: Set<string>; readonly lists: Map<string, bigint> } | undefined;

  get size(): number {
    return this.#nodes.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Reads that are owed: what was heard of and is not known yet. */
  get owed(): number {
    return this.#owed.size;
  }

  get nodes(): ReadonlyMap<string, CachedNode> {
    return this.#nodes;
  }

  // ── looking through the tree ──────────────────────────────────────────────────────────────────

  /** From now on what is known may be old. What was not told yet is found again by the look. */
  begin(): void {
    this.#findings = [];
    this.#unplaced.clear();
    this.#found.clear();
    this.#owed.clear();
    for (const tokens of this.#reads.values()) for (const token of tokens) token.isStale = true;
    this.#reads.clear();
    this.#look = { confirmed: new Set(), lists: new Map() };
  }

  /** The node is there, and as it is known. */
  confirm(path: string): void {
    this.#look?.confirmed.add(path);
  }

  /** Its children were listed; `stat` is the one that came with the list. */
  listed(path: string, stat: StatView): void {
    this.#look?.lists.set(path, stat.pzxid);
    this.#sawUpTo(stat.pzxid);
  }

  /** All was looked at: what nobody confirmed is gone. */
  end(): void {
    const look = this.#look;
    if (look === undefined) return;
    this.#look = undefined;
    for (const [path, { stat }] of this.#nodes) {
      if (look.confirmed.has(path)) continue;
      let order = this.#seenZxid;
      for (let at = parentOf(path); at !== null; at = parentOf(at)) {
        const listed = look.lists.get(at);
        if (listed === undefined) continue;
        order = listed;
        break;
      }
      // The list may be older than the node, where that went with all above it after the list was made.
      if (order < stat.mzxid) order = stat.mzxid;
      this.#find({ path, node: null, order, zxid: null, asOf: stat.czxid });
    }
  }

  // ── what comes in ─────────────────────────────────────────────────────────────────────────────

  /** A read begins. Its outcome goes to `read` or `gone`, unless it is stale by then. */
  reading(path: string): ReadToken {
    const token = { path, seq: this.#seq++, isStale: false };
    const owed = this.#owed.get(path);
    if (owed !== undefined) {
      owed.isAsked = false;
      owed.readSeq = token.seq;
    }
    const tokens = this.#reads.get(path);
    if (tokens === undefined) this.#reads.set(path, new Set([token]));
    else tokens.add(token);
    return token;
  }

  /** The read is over, whatever came of it. */
  release(token: ReadToken): void {
    const tokens = this.#reads.get(token.path);
    tokens?.delete(token);
    if (tokens?.size === 0) this.#reads.delete(token.path);
  }

  /** When what is owed for this path can have happened at the earliest; undefined when nothing is. */
  owedAfter(path: string): bigint | undefined {
    return this.#owed.get(path)?.after;
  }

  /**
   * The node was made or changed. True when it has to be read now: nobody reads it yet. `since`:
   * later than this at least, where that is known better than from the zxid.
   */
  heard(path: string, zxid: bigint | null, since?: bigint): boolean {
    const seq = this.#seq++;
    const owed = this.#owed.get(path);
    if (owed !== undefined) {
      owed.lastSeq = seq;
      owed.newest = zxid;
      return false;
    }
    const after = since ?? (zxid === null ? this.#seenZxid : zxid - 1n);
    const fresh = { seq, lastSeq: seq, after, newest: zxid, isAsked: true, readSeq: -1 };
    this.#owed.set(path, fresh);
    return true;
  }

  /** The node is gone: an event said so, or a read found none. */
  gone(path: string, zxid: bigint | null): void {
    this.#unowe(path, 0n);
    for (const token of this.#reads.get(path) ?? []) token.isStale = true;
    this.#reads.delete(path);
    const wasFound = this.#found.delete(path);
    if (zxid !== null) {
      this.#find({ path, node: null, order: zxid, zxid, asOf: zxid });
      return;
    }
    // Nothing says that it is later than what was read of the node before, but it is.
    if (wasFound) {
      this.#findings = this.#findings.filter((one) => one.path !== path || one.node === null);
    }
    const order = this.#seenZxid;
    this.#find({ path, node: null, order, zxid, asOf: order, isUnplaced: true });
  }

  /** A read found no node. True when it has to be read once more: it may be there since. */
  missing(token: ReadToken): boolean {
    const owed = this.#owed.get(token.path);
    if (owed !== undefined && owed.lastSeq > token.seq) return this.#isUnread(owed);
    this.gone(token.path, null);
    return false;
  }

  /** What a read showed. True when it has to be read once more: it may have changed since. */
  read(node: CachedNode, token: ReadToken): boolean {
    const { path, stat } = node;
    this.#look?.confirmed.add(path);
    // A node is told of as made when it was made, so that parents come before children, and after
    // that by its last change.
    const czxid = this.#found.get(path) ?? this.#nodes.get(path)?.stat.czxid;
    const order = czxid === stat.czxid ? stat.mzxid : stat.czxid;
    this.#find({ path, node, order, zxid: order, asOf: order });
    this.#found.set(path, stat.czxid);
    this.#sawUpTo(stat.mzxid);
    return this.settled(token, stat.mzxid);
  }

  /** What was owed for a path was read, up to this transaction. True when it has to be read again. */
  settled({ path, seq }: ReadToken, zxid: bigint): boolean {
    const owed = this.#owed.get(path);
    if (owed === undefined) return false;
    if (seq > owed.lastSeq || (owed.newest !== null && owed.newest <= zxid)) {
      this.#unowe(path, zxid);
      return false;
    }
    if (owed.after < zxid) owed.after = zxid;
    return this.#isUnread(owed);
  }

  /** Nothing is on its way that was begun after the last that was heard. */
  #isUnread(owed: Owed): boolean {
    if (owed.isAsked || owed.readSeq > owed.lastSeq) return false;
    owed.isAsked = true;
    return true;
  }

  #find(finding: Omit<Finding, 'seq'>): void {
    const found = { ...finding, seq: this.#seq++ };
    this.#findings.push(found);
    if (found.isUnplaced) this.#unplaced.add(found);
  }

  /** Read, up to this transaction: what was heard of after it and has no zxid follows it. */
  #unowe(path: string, zxid: bigint): void {
    const owed = this.#owed.get(path);
    if (owed === undefined) return;
    this.#owed.delete(path);
    for (const finding of this.#unplaced) {
      if (finding.seq > owed.seq && finding.order < zxid) finding.order = zxid;
    }
  }

  #sawUpTo(zxid: bigint): void {
    if (zxid > this.#seenZxid) this.#seenZxid = zxid;
  }

  // ── what goes out ─────────────────────────────────────────────────────────────────────────────

  /** The changes that can be told now. They are known to `nodes` from then on. */
  take(): CacheChange[] {
    if (this.#look !== undefined || this.#findings.length === 0) return [];
    let limit: bigint | undefined;
    let firstOwed = Number.POSITIVE_INFINITY;
    for (const { after, seq } of this.#owed.values()) {
      if (limit === undefined || after < limit) limit = after;
      if (seq < firstOwed) firstOwed = seq;
    }
    const isReady = ({ order, seq, isUnplaced }: Finding) =>
      limit === undefined || (order <= limit && (!isUnplaced || seq < firstOwed));
    const ready = this.#findings.filter(isReady);
    if (ready.length === 0) return [];
    this.#findings = this.#findings.filter((one) => !isReady(one));
    if (this.#findings.length === 0) this.#found.clear();
    const changes: CacheChange[] = [];
    for (const finding of ready.sort(inOrder)) {
      this.#unplaced.delete(finding);
      this.#apply(finding, changes);
    }
    return changes;
  }

  #apply(finding: Finding, changes: CacheChange[]): void {
    const { path } = finding;
    const known = this.#nodes.get(path);
    if (finding.node === null) {
      // Made after what found it missing: another node.
      if (known === undefined || known.stat.czxid > finding.asOf) return;
      this.#remove(known, finding.zxid, changes);
      return;
    }
    const { node } = finding;
    const { czxid, mzxid } = node.stat;
    if (known !== undefined && known.stat.czxid === czxid) {
      if (mzxid < known.stat.mzxid) return;
      this.#put(node, known);
      if (mzxid === known.stat.mzxid) return;
      changes.push({ type: 'changed', path, node, previous: known, zxid: mzxid });
      return;
    }
    if (known !== undefined) {
      if (czxid < known.stat.czxid) return;
      this.#remove(known, null, changes);
    }
    this.#put(node, undefined);
    changes.push({ type: 'added', path, node, previous: null, zxid: czxid });
  }

  #put(node: CachedNode, known: CachedNode | undefined): void {
    this.#nodes.set(node.path, node);
    this.#bytes += bytesOf(node) - (known === undefined ? 0 : bytesOf(known));
  }

  #remove(node: CachedNode, zxid: bigint | null, changes: CacheChange[]): void {
    this.#nodes.delete(node.path);
    this.#bytes -= bytesOf(node);
    changes.push({ type: 'removed', path: node.path, node, previous: node, zxid });
  }
}

/** Roughly what a node takes: its path, its data, its Stat and what holds them. */
const overheadBytes = 600;

function bytesOf({ path, data }: CachedNode): number {
  return overheadBytes + 2 * path.length + (data?.length ?? 0);
}

/** By transaction; in one, what goes makes room for what comes, and children go before parents. */
function inOrder(a: Finding, b: Finding): number {
  if (a.order !== b.order) return a.order < b.order ? -1 : 1;
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return a.node === null && !a.isUnplaced ? b.path.length - a.path.length : a.seq - b.seq;
}

function rank({ node, isUnplaced }: Finding): number {
  if (isUnplaced) return 2;
  return node === null ? 0 : 1;
}
