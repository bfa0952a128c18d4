/**
 * The nodes, as numbers and bytes: no object for a node, nothing for the garbage collector to walk.
 *
 *   node     a small number; six ints, in chunks: where its record is, parent, first child, siblings
 *            before and after (a ring), ACL
 *   record   in a slab:
 *            pathLength:int  cversion:int  owner:long  crc:int  path
 *            dataLength:int  data  Stat[68]
 *
 * The second line of a record is, byte for byte, what a getData is answered with, so that a read is
 * one copy. `cversion` there is the one that clients see; the stored one, which counts creates alone
 * and from which sequence numbers come, stands in front, as does the owner that says more than
 * clients are told (containers, TTLs) and the node's share in the tree's digest, where one is kept.
 *
 * In: paths, data, changes of single fields. Out: nodes and their bytes. What always holds: every
 * node but the root is in its parent's ring, and numChildren is the length of that ring.
 */

import { Buffer } from 'node:buffer';
import { copyAll, copyBytes, readInt, type Writer, writeInt } from '../jute/index.ts';
import { crcBytes, crcEnd, crcStart } from '../protocol/index.ts';
import { readLong, writeLong } from './longs.ts';
import { hashOf, nextSlot, nodeAt, noNode, PathIndex, pathHash, slotOf } from './path-index.ts';
import { Slabs } from './slabs.ts';

const chunkShift = 12;
const chunkNodes = 1 << chunkShift;
const stride = 6;
const field = {
  /** Below 0 for a number that is no node's. */
  address: 0,
  parent: 1,
  firstChild: 2,
  before: 3,
  /** Of a number that is no node's, the next such one. */
  after: 4,
  acl: 5,
} as const;

const headBytes = 20;
/** Where the CRC stands in the head. */
const crcAt = 16;
export const statBytes = 68;
export const persistedBytes = 60;
// Offsets within the Stat, in the order of its record.
const stat = {
  czxid: 0,
  mzxid: 8,
  ctime: 16,
  mtime: 24,
  version: 32,
  cversion: 36,
  aversion: 40,
  owner: 44,
  dataLength: 52,
  numChildren: 56,
  pzxid: 60,
} as const;

/** Paths that are longer are encoded and compared by the runtime, shorter ones here. */
const loopMax = 64;

export interface NewNode {
  readonly path: string;
  /** Of the path, where it is known already. */
  readonly hash: number | undefined;
  readonly data: Buffer | null;
  readonly acl: number;
  readonly zxid: number;
  readonly timeMs: number;
  readonly owner: bigint;
  /** The owner that clients are shown: 0 for containers and TTLs. */
  readonly shownOwner: bigint;
}

/** Where the parts of a node stand in a snapshot's bytes. */
export interface EncodedNodeAt {
  readonly pathAt: number;
  readonly dataAt: number;
  readonly aclAt: number;
  readonly statAt: number;
}

/** What a node's memory is held against. Its counter of child creates is the stored one. */
export interface ForetoldStat {
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly dataBytes: number;
  readonly czxid: number;
  readonly pzxid: number;
  readonly ctimeMs: number;
}

/** What `loadStat` fills, in numbers. */
export interface LoadedStat {
  version: number;
  /** The stored counter of child creates. */
  cversion: number;
  aversion: number;
  childCount: number;
  dataBytes: number;
  czxid: number;
  pzxid: number;
  ctimeMs: number;
  /** The share in the digest. */
  crc: number;
}

export class NodeStore {
  readonly #chunks: Int32Array[] = [];
  readonly #slabs = new Slabs();
  readonly #index = new PathIndex();
  #used = 0;
  #free = noNode;
  #count = 0;
  #scratch = Buffer.allocUnsafeSlow(1024);
  readonly #list = Buffer.allocUnsafeSlow(16 * 1024);

  get count(): number {
    return this.#count;
  }

  get slabBytes(): number {
    return this.#slabs.bytes;
  }

  // ── finding ───────────────────────────────────────────────────────────────────────────────────

  find(path: string, hash: number = pathHash(path)): number {
    const table = this.#index.table(hash);
    for (let at = slotOf(table, hash); ; at = nextSlot(table, at)) {
      const node = nodeAt(table, at);
      if (node === noNode) return noNode;
      if (table[at] === hash && this.#isAt(this.#get(node, field.address), path)) return node;
    }
  }

  #isAt(address: number, path: string): boolean {
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const start = at + headBytes;
    const length = readInt(slab, at);
    if (length === path.length && holdsAscii(slab, start, path)) return true;
    return slab.toString('utf8', start, start + length) === path; // or of the same hash by chance
  }

  findBytes(bytes: Buffer, start: number, end: number): number {
    return this.findHashed(hashOf(bytes, start, end), bytes, start, end);
  }

  findHashed(hash: number, bytes: Buffer, start: number, end: number): number {
    const length = end - start;
    const table = this.#index.table(hash);
    for (let at = slotOf(table, hash); ; at = nextSlot(table, at)) {
      const node = nodeAt(table, at);
      if (node === noNode) return noNode;
      if (table[at] !== hash) continue;
      const address = this.#get(node, field.address);
      const slab = this.#slabs.slab(address);
      const offset = this.#slabs.offset(address);
      if (
        readInt(slab, offset) === length &&
        same(slab, offset + headBytes, bytes, start, length)
      ) {
        return node;
      }
    }
  }

  /** False once the node was removed, until its number is given to another. */
  isNode(node: number): boolean {
    return node < this.#used && this.#get(node, field.address) >= 0;
  }

  parentOf(node: number): number {
    return this.#get(node, field.parent);
  }

  pathOf(node: number): string {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    return slab.toString('utf8', at + headBytes, at + headBytes + readInt(slab, at));
  }

  /** The children at this moment, in the order of their creation. */
  childrenOf(node: number): Int32Array {
    const children = new Int32Array(this.childCount(node));
    let child = this.#get(node, field.firstChild);
    for (let i = 0; i < children.length; i++) {
      children[i] = child;
      child = this.#get(child, field.after);
    }
    return children;
  }

  // ── making and removing ───────────────────────────────────────────────────────────────────────

  add(parent: number, made: NewNode): number {
    const { path, data, zxid, timeMs, owner, shownOwner } = made;
    const pathBytes = this.#encode(path);
    const dataBytes = data === null ? 0 : data.length;
    const address = this.#slabs.allocate(recordBytes(pathBytes, dataBytes));
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    writeInt(slab, at, pathBytes);
    writeInt(slab, at + 4, 0);
    if (owner === 0n) writeLong(slab, at + 8, 0);
    else slab.writeBigInt64BE(owner, at + 8);
    writeInt(slab, at + crcAt, 0);
    copyBytes(this.#scratch, 0, slab, at + headBytes, pathBytes);
    const dataAt = at + headBytes + pathBytes;
    putData(slab, dataAt, data);
    const statAt = dataAt + 4 + dataBytes;
    writeLong(slab, statAt + stat.czxid, zxid);
    writeLong(slab, statAt + stat.mzxid, zxid);
    writeLong(slab, statAt + stat.ctime, timeMs);
    writeLong(slab, statAt + stat.mtime, timeMs);
    writeInt(slab, statAt + stat.version, 0);
    writeInt(slab, statAt + stat.cversion, 0);
    writeInt(slab, statAt + stat.aversion, 0);
    if (shownOwner === 0n) writeLong(slab, statAt + stat.owner, 0);
    else slab.writeBigInt64BE(shownOwner, statAt + stat.owner);
    writeInt(slab, statAt + stat.dataLength, dataBytes);
    writeInt(slab, statAt + stat.numChildren, 0);
    writeLong(slab, statAt + stat.pzxid, zxid);

    return this.#enter(parent, address, made.hash ?? pathHash(path), made.acl);
  }

  /**
   * One that nobody owns, as a snapshot has it: path, data and a StatPersisted, each where `at` says, the
   * first two with their lengths before them. In the store they stand in the same order.
   */
  addEncoded(parent: number, bytes: Buffer, at: EncodedNodeAt, hash: number, acl: number): number {
    const { pathAt, dataAt, statAt } = at;
    const pathBytes = dataAt - pathAt - 4;
    const dataBytes = Math.max(0, readInt(bytes, dataAt));
    const address = this.#slabs.allocate(recordBytes(pathBytes, dataBytes));
    const slab = this.#slabs.slab(address);
    const to = this.#slabs.offset(address);
    writeInt(slab, to, pathBytes);
    writeInt(slab, to + 4, readInt(bytes, statAt + stat.cversion));
    writeLong(slab, to + 8, 0);
    writeInt(slab, to + crcAt, 0);
    copyBytes(bytes, pathAt + 4, slab, to + headBytes, pathBytes + 4 + dataBytes);
    const toStat = to + headBytes + pathBytes + 4 + dataBytes;
    copyBytes(bytes, statAt, slab, toStat, stat.owner);
    writeLong(slab, toStat + stat.owner, 0);
    writeInt(slab, toStat + stat.dataLength, dataBytes);
    writeInt(slab, toStat + stat.numChildren, 0);
    copyBytes(bytes, statAt + stat.owner + 8, slab, toStat + stat.pzxid, 8);
    const node = this.#enter(parent, address, hash, acl);
    this.#countChildren(node, 0);
    return node;
  }

  /** A number for what stands at `address`, and its place in the index and among its parent's children. */
  #enter(parent: number, address: number, hash: number, acl: number): number {
    const node = this.#number();
    this.#set(node, field.address, address);
    this.#set(node, field.parent, parent);
    this.#set(node, field.firstChild, noNode);
    this.#set(node, field.acl, acl);
    this.#index.add(hash, node);
    this.#count += 1;
    if (parent !== noNode) this.#link(parent, node);
    return node;
  }

  remove(node: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const pathBytes = readInt(slab, at);
    const dataBytes = Math.max(0, readInt(slab, at + headBytes + pathBytes));
    this.#unlink(this.#get(node, field.parent), node);
    const pathAt = at + headBytes;
    this.#index.remove(hashOf(slab, pathAt, pathAt + pathBytes), node);
    this.#slabs.free(address, recordBytes(pathBytes, dataBytes));
    this.#set(node, field.address, noNode);
    this.#set(node, field.after, this.#free);
    this.#free = node;
    this.#count -= 1;
  }

  // ── data ──────────────────────────────────────────────────────────────────────────────────────

  dataBytes(node: number): number {
    return this.#statInt(node, stat.dataLength);
  }

  /** A copy, which stays as it is when the node changes. */
  dataOf(node: number): Buffer | null {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#dataAt(slab, this.#slabs.offset(address));
    const length = readInt(slab, at);
    return length < 0 ? null : Buffer.from(slab.subarray(at + 4, at + 4 + length));
  }

  setData(node: number, data: Buffer | null): void {
    const old = this.#get(node, field.address);
    const from = this.#slabs.slab(old);
    const fromAt = this.#slabs.offset(old);
    const pathBytes = readInt(from, fromAt);
    const oldBytes = Math.max(0, readInt(from, fromAt + headBytes + pathBytes));
    const bytes = data === null ? 0 : data.length;
    const oldStatAt = fromAt + headBytes + pathBytes + 4 + oldBytes;
    let slab = from;
    let at = fromAt;
    if (bytes !== oldBytes) {
      const [before, after] = [recordBytes(pathBytes, oldBytes), recordBytes(pathBytes, bytes)];
      if (!this.#slabs.fits(before, after)) {
        const address = this.#slabs.allocate(after);
        slab = this.#slabs.slab(address);
        at = this.#slabs.offset(address);
        from.copy(slab, at, fromAt, fromAt + headBytes + pathBytes);
        this.#set(node, field.address, address);
      }
      from.copy(slab, at + headBytes + pathBytes + 4 + bytes, oldStatAt, oldStatAt + statBytes);
      if (slab !== from || at !== fromAt) this.#slabs.free(old, before);
    }
    const dataAt = at + headBytes + pathBytes;
    putData(slab, dataAt, data);
    writeInt(slab, dataAt + 4 + bytes + stat.dataLength, bytes);
  }

  // ── the Stat ──────────────────────────────────────────────────────────────────────────────────

  aclOf(node: number): number {
    return this.#get(node, field.acl);
  }

  setAcl(node: number, acl: number, aversion: number): void {
    this.#set(node, field.acl, acl);
    this.#setStatInt(node, stat.aversion, aversion);
  }

  version(node: number): number {
    return this.#statInt(node, stat.version);
  }

  aversion(node: number): number {
    return this.#statInt(node, stat.aversion);
  }

  childCount(node: number): number {
    return this.#statInt(node, stat.numChildren);
  }

  czxid(node: number): number {
    return this.#statLong(node, stat.czxid);
  }

  mzxid(node: number): number {
    return this.#statLong(node, stat.mzxid);
  }

  pzxid(node: number): number {
    return this.#statLong(node, stat.pzxid);
  }

  mtimeMs(node: number): number {
    return this.#statLong(node, stat.mtime);
  }

  setModified(node: number, zxid: number, timeMs: number, version: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = statAt(slab, this.#slabs.offset(address));
    writeLong(slab, at + stat.mzxid, zxid);
    writeLong(slab, at + stat.mtime, timeMs);
    writeInt(slab, at + stat.version, version);
  }

  /** A child came: both fields of the parent that say so, in one look. The counter is the stored one. */
  setChildMade(node: number, cversion: number, zxid: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const from = statAt(slab, at);
    writeInt(slab, at + 4, cversion);
    writeInt(
      slab,
      from + stat.cversion,
      shownCversion(cversion, readInt(slab, from + stat.numChildren)),
    );
    writeLong(slab, from + stat.pzxid, zxid);
  }

  setPzxid(node: number, zxid: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    writeLong(slab, statAt(slab, this.#slabs.offset(address)) + stat.pzxid, zxid);
  }

  /** The counter of child creates, as it is stored: not the one that clients see. */
  cversion(node: number): number {
    const address = this.#get(node, field.address);
    return readInt(this.#slabs.slab(address), this.#slabs.offset(address) + 4);
  }

  setCversion(node: number, cversion: number): void {
    const address = this.#get(node, field.address);
    writeInt(this.#slabs.slab(address), this.#slabs.offset(address) + 4, cversion);
    this.#countChildren(node, 0);
  }

  /** True for whatever has an owner field: an ephemeral, a container, a node with a TTL. */
  isOwned(node: number): boolean {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    return readInt(slab, at + 8) !== 0 || readInt(slab, at + 12) !== 0;
  }

  ownerOf(node: number): bigint {
    if (!this.isOwned(node)) return 0n;
    const address = this.#get(node, field.address);
    return this.#slabs.slab(address).readBigInt64BE(this.#slabs.offset(address) + 8);
  }

  /** What a write has to know, in one look: every write takes one or two. */
  loadStat(node: number, into: LoadedStat, isSummed: boolean): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const from = statAt(slab, at);
    into.version = readInt(slab, from + stat.version);
    into.cversion = readInt(slab, at + 4);
    into.aversion = readInt(slab, from + stat.aversion);
    into.childCount = readInt(slab, from + stat.numChildren);
    into.dataBytes = readInt(slab, from + stat.dataLength);
    if (!isSummed) return; // the rest matters to the digest alone
    into.czxid = readLong(slab, from + stat.czxid);
    into.pzxid = readLong(slab, from + stat.pzxid);
    into.ctimeMs = readLong(slab, from + stat.ctime);
    into.crc = readInt(slab, at + crcAt);
  }

  /** All 68 bytes, copied. */
  statOf(node: number): Buffer {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = statAt(slab, this.#slabs.offset(address));
    return Buffer.from(slab.subarray(at, at + statBytes));
  }

  /** Whether its path begins with these bytes. */
  startsWith(node: number, prefix: Uint8Array): boolean {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    if (readInt(slab, at) < prefix.length) return false;
    for (let i = 0; i < prefix.length; i++) {
      if (slab[at + headBytes + i] !== prefix[i]) return false;
    }
    return true;
  }

  /** A StatPersisted, 60 bytes: what a snapshot holds. Its counter is the stored one. */
  persistedOf(node: number): Buffer {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const bytes = Buffer.allocUnsafe(persistedBytes);
    copyPersisted(slab, at, bytes, 0);
    return bytes;
  }

  restoreStat(node: number, persisted: Buffer): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const to = statAt(slab, this.#slabs.offset(address));
    persisted.copy(slab, to, 0, stat.owner);
    copyBytes(persisted, stat.owner + 8, slab, to + stat.pzxid, 8);
    this.setCversion(node, readInt(persisted, stat.cversion));
  }

  // ── the share in the digest ───────────────────────────────────────────────────────────────────

  /** As it was computed last; 0 where none is kept. */
  crcOf(node: number): number {
    const address = this.#get(node, field.address);
    return readInt(this.#slabs.slab(address), this.#slabs.offset(address) + crcAt);
  }

  setCrc(node: number, crc: number): void {
    const address = this.#get(node, field.address);
    writeInt(this.#slabs.slab(address), this.#slabs.offset(address) + crcAt, crc);
  }

  agrees(node: number, foretold: ForetoldStat): boolean {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const from = statAt(slab, at);
    return (
      readInt(slab, from + stat.version) === foretold.version &&
      readInt(slab, at + 4) === foretold.cversion &&
      readInt(slab, from + stat.aversion) === foretold.aversion &&
      readInt(slab, from + stat.dataLength) === foretold.dataBytes &&
      readLong(slab, from + stat.czxid) === foretold.czxid &&
      readLong(slab, from + stat.pzxid) === foretold.pzxid &&
      readLong(slab, from + stat.ctime) === foretold.ctimeMs
    );
  }

  /** What it should be, from every byte that counts (tree-digest.ts): of a node that does. */
  computeCrc(node: number): number {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const pathBytes = readInt(slab, at);
    const dataAt = at + headBytes + pathBytes;
    const from = dataAt + 4 + Math.max(0, readInt(slab, dataAt));
    let state = pathBytes === 1 ? crcStart : crcBytes(crcStart, slab, at + headBytes, dataAt);
    state = crcBytes(state, slab, dataAt + 4, from);
    state = crcBytes(state, slab, from + stat.czxid, from + stat.ctime);
    state = crcBytes(state, slab, from + stat.pzxid, from + statBytes);
    state = crcBytes(state, slab, from + stat.ctime, from + stat.cversion);
    state = crcBytes(state, slab, at + 4, at + 8);
    state = crcBytes(state, slab, from + stat.aversion, from + stat.owner);
    return crcEnd(crcBytes(state, slab, at + 8, at + crcAt));
  }

  // ── straight into a reply ─────────────────────────────────────────────────────────────────────

  /** dataLength, data, Stat. */
  writeData(writer: Writer, node: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#dataAt(slab, this.#slabs.offset(address));
    writer.rawRange(slab, at, at + 4 + Math.max(0, readInt(slab, at)) + statBytes);
  }

  /**
   * As a snapshot has it: path, data, the ACL's number, StatPersisted. Path, length and data lie side by
   * side already. The root's path is empty there.
   */
  writeSnapshot(writer: Writer, node: number, acl: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const pathBytes = readInt(slab, at);
    const from = statAt(slab, at);
    const isRoot = pathBytes === 1;
    writer.int(isRoot ? 0 : pathBytes);
    writer.rawRange(slab, at + headBytes + (isRoot ? 1 : 0), from);
    const to = writer.skip(8 + persistedBytes);
    const { memory } = writer;
    writeInt(memory, to, acl < 0 ? -1 : 0);
    writeInt(memory, to + 4, acl);
    copyPersisted(slab, at, memory, to + 8);
  }

  writeStat(writer: Writer, node: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = statAt(slab, this.#slabs.offset(address));
    writer.rawRange(slab, at, at + statBytes);
  }

  /** How many, then each name: put together here, since a call into the writer costs more than a name. */
  writeChildren(writer: Writer, node: number): void {
    const count = this.childCount(node);
    writer.int(count);
    const skip = this.nameStart(node);
    let child = this.#get(node, field.firstChild);
    let list = this.#list;
    let listed = 0;
    for (let i = 0; i < count; i++) {
      const address = this.#get(child, field.address);
      const slab = this.#slabs.slab(address);
      const at = this.#slabs.offset(address);
      const length = readInt(slab, at) - skip;
      if (listed + 4 + length > list.length) {
        writer.rawRange(list, 0, listed);
        listed = 0;
        if (4 + length > list.length) list = Buffer.allocUnsafeSlow(4 + length);
      }
      writeInt(list, listed, length);
      copyBytes(slab, at + headBytes + skip, list, listed + 4, length);
      listed += 4 + length;
      child = this.#get(child, field.after);
    }
    writer.rawRange(list, 0, listed);
  }

  /** Where, in a child's path, its name begins. */
  nameStart(node: number): number {
    const address = this.#get(node, field.address);
    const length = readInt(this.#slabs.slab(address), this.#slabs.offset(address));
    return length === 1 ? 1 : length + 1;
  }

  // ── inside ────────────────────────────────────────────────────────────────────────────────────

  #get(node: number, which: number): number {
    return this.#chunks[node >>> chunkShift]![(node & (chunkNodes - 1)) * stride + which]!;
  }

  #set(node: number, which: number, value: number): void {
    this.#chunks[node >>> chunkShift]![(node & (chunkNodes - 1)) * stride + which] = value;
  }

  #number(): number {
    if (this.#free !== noNode) {
      const node = this.#free;
      this.#free = this.#get(node, field.after);
      return node;
    }
    const node = this.#used++;
    if ((node & (chunkNodes - 1)) === 0) this.#chunks.push(new Int32Array(chunkNodes * stride));
    return node;
  }

  #link(parent: number, node: number): void {
    const first = this.#get(parent, field.firstChild);
    if (first === noNode) {
      this.#set(node, field.before, node);
      this.#set(node, field.after, node);
      this.#set(parent, field.firstChild, node);
    } else {
      const last = this.#get(first, field.before);
      this.#set(node, field.before, last);
      this.#set(node, field.after, first);
      this.#set(last, field.after, node);
      this.#set(first, field.before, node);
    }
    this.#countChildren(parent, 1);
  }

  #unlink(parent: number, node: number): void {
    const before = this.#get(node, field.before);
    const after = this.#get(node, field.after);
    this.#set(before, field.after, after);
    this.#set(after, field.before, before);
    if (this.#get(parent, field.firstChild) === node) {
      this.#set(parent, field.firstChild, after === node ? noNode : after);
    }
    this.#countChildren(parent, -1);
  }

  #countChildren(node: number, more: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const from = statAt(slab, at);
    const count = readInt(slab, from + stat.numChildren) + more;
    writeInt(slab, from + stat.numChildren, count);
    writeInt(slab, from + stat.cversion, shownCversion(readInt(slab, at + 4), count));
  }

  #statInt(node: number, which: number): number {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    return readInt(slab, statAt(slab, this.#slabs.offset(address)) + which);
  }

  #setStatInt(node: number, which: number, value: number): void {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    writeInt(slab, statAt(slab, this.#slabs.offset(address)) + which, value);
  }

  #statLong(node: number, which: number): number {
    const address = this.#get(node, field.address);
    const slab = this.#slabs.slab(address);
    return readLong(slab, statAt(slab, this.#slabs.offset(address)) + which);
  }

  #dataAt(slab: Buffer, at: number): number {
    return at + headBytes + readInt(slab, at);
  }

  /** Puts the path into the scratch memory and returns its length in bytes. */
  #encode(path: string): number {
    const { length } = path;
    if (length * 3 > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(length * 3);
    const scratch = this.#scratch;
    if (length <= loopMax) {
      let i = 0;
      for (; i < length; i++) {
        const unit = path.charCodeAt(i);
        if (unit > 0x7f) break;
        scratch[i] = unit;
      }
      if (i === length) return length;
    }
    return scratch.write(path, 0, 'utf8');
  }
}

/** Its length and the data itself, as a reply and a snapshot have them. */
function putData(slab: Buffer, at: number, data: Buffer | null): void {
  writeInt(slab, at, data === null ? -1 : data.length);
  if (data !== null) copyAll(data, slab, at + 4);
}

/** Clients see creates and deletes: twice the creates, less what is still there (copyStat). */
function shownCversion(stored: number, children: number): number {
  return Math.imul(stored, 2) - children;
}

function recordBytes(pathBytes: number, dataBytes: number): number {
  return headBytes + pathBytes + 4 + dataBytes + statBytes;
}

/** What a snapshot holds of the Stat of the record at `at`. The counter is the stored one. */
function copyPersisted(slab: Buffer, at: number, target: Buffer, to: number): void {
  const from = statAt(slab, at);
  copyBytes(slab, from, target, to, stat.owner);
  writeInt(target, to + stat.cversion, readInt(slab, at + 4));
  copyBytes(slab, at + 8, target, to + stat.owner, 8);
  copyBytes(slab, from + stat.pzxid, target, to + stat.owner + 8, 8);
}

function statAt(slab: Buffer, at: number): number {
  const dataAt = at + headBytes + readInt(slab, at);
  const length = readInt(slab, dataAt);
  return dataAt + 4 + Math.max(0, length);
}

/** Whether these bytes are `text`, and all of it ASCII. */
function holdsAscii(bytes: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit !== bytes[start + i] || unit > 0x7f) return false;
  }
  return true;
}

function same(a: Buffer, aAt: number, b: Buffer, bAt: number, length: number): boolean {
  if (length > loopMax) return a.compare(b, bAt, bAt + length, aAt, aAt + length) === 0;
  for (let i = 0; i < length; i++) if (a[aAt + i] !== b[bAt + i]) return false;
  return true;
}
