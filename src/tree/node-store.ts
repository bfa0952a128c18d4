/**
 * The nodes, as numbers and bytes: no object for a node, nothing for the garbage collector to walk.
 *
 *   path ──▶ node      path-index.ts
 *   node ──▶ record    node-table.ts, which has the parent, the children and the ACL as well
 *   record             node-record.ts: path, data, Stat; in slabs.ts
 *
 * In: paths, data, changes of single fields. Out: nodes and their bytes. What always holds: every
 * node but the root is in its parent's ring, and numChildren is the length of that ring.
 */

import { Buffer } from 'node:buffer';
import { copyBytes, readInt, type Writer, writeInt } from '../jute/index.ts';
import { readLong, writeLong } from './longs.ts';
import {
  agrees,
  computeCrc,
  copyPersisted,
  countChildren,
  dataAt,
  type EncodedNodeAt,
  type ForetoldStat,
  head,
  headBytes,
  type LoadedStat,
  loadStat,
  type NewRecord,
  persistedBytes,
  putChildMade,
  putData,
  putEncoded,
  putRecord,
  recordBytes,
  stat,
  statAt,
  statBytes,
  writeSnapshot,
} from './node-record.ts';
import { NodeTable } from './node-table.ts';
import { hashOf, pathHash } from './path-hash.ts';
import { nextSlot, nodeAt, noNode, PathIndex, slotOf } from './path-index.ts';
import { Slabs } from './slabs.ts';

/** Paths that are longer are encoded and compared by the runtime, shorter ones here. */
const loopMax = 64;

export interface NewNode extends NewRecord {
  readonly path: string;
  /** Of the path, where it is known already. */
  readonly hash: number | undefined;
  readonly acl: number;
}

export class NodeStore {
  readonly #table = new NodeTable();
  readonly #slabs = new Slabs();
  readonly #index = new PathIndex();
  #count = 0;
  #shape = 0;
  #scratch = Buffer.allocUnsafeSlow(1024);
  readonly #list = Buffer.allocUnsafeSlow(16 * 1024);

  get count(): number {
    return this.#count;
  }

  /** Another number means that nodes came or went since. */
  get shape(): number {
    return this.#shape;
  }

  get slabBytes(): number {
    return this.#slabs.bytes;
  }

  /** Whether more may be promised. */
  get hasRoom(): boolean {
    return this.#slabs.hasRoom;
  }

  // ── finding ───────────────────────────────────────────────────────────────────────────────────

  find(path: string, hash: number = pathHash(path)): number {
    const table = this.#index.table(hash);
    for (let at = slotOf(table, hash); ; at = nextSlot(table, at)) {
      const node = nodeAt(table, at);
      if (node === noNode) return noNode;
      if (table[at] === hash && this.#isAt(this.#table.address(node), path)) return node;
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
      const address = this.#table.address(node);
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
    return this.#table.isNode(node);
  }

  parentOf(node: number): number {
    return this.#table.parent(node);
  }

  pathOf(node: number): string {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    return slab.toString('utf8', at + headBytes, at + headBytes + readInt(slab, at));
  }

  /** The children at this moment, in the order of their creation. */
  childrenOf(node: number): Int32Array {
    const children = new Int32Array(this.childCount(node));
    let child = this.#table.firstChild(node);
    for (let i = 0; i < children.length; i++) {
      children[i] = child;
      child = this.#table.after(child);
    }
    return children;
  }

  // ── making and removing ───────────────────────────────────────────────────────────────────────

  add(parent: number, made: NewNode): number {
    const { path, data } = made;
    const pathBytes = this.#encode(path);
    const address = this.#slabs.allocate(recordBytes(pathBytes, data === null ? 0 : data.length));
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    putRecord(slab, at, pathBytes, made);
    copyBytes(this.#scratch, 0, slab, at + headBytes, pathBytes);
    return this.#enter(parent, address, made.hash ?? pathHash(path), made.acl);
  }

  /** One that nobody owns, from where it stands in a snapshot's bytes. */
  addEncoded(
    parent: number,
    bytes: Buffer,
    from: EncodedNodeAt,
    hash: number,
    acl: number,
  ): number {
    const pathBytes = from.dataAt - from.pathAt - 4;
    const dataBytes = Math.max(0, readInt(bytes, from.dataAt));
    const address = this.#slabs.allocate(recordBytes(pathBytes, dataBytes));
    putEncoded(this.#slabs.slab(address), this.#slabs.offset(address), bytes, from);
    const node = this.#enter(parent, address, hash, acl);
    this.#countChildren(node, 0);
    return node;
  }

  /** A number for what stands at `address`, and its place in the index and among its parent's children. */
  #enter(parent: number, address: number, hash: number, acl: number): number {
    const node = this.#table.add(parent, address, acl);
    this.#index.add(hash, node);
    this.#count += 1;
    this.#shape += 1;
    if (parent !== noNode) this.#countChildren(parent, 1);
    return node;
  }

  remove(node: number): void {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const pathBytes = readInt(slab, at);
    const dataBytes = Math.max(0, readInt(slab, at + headBytes + pathBytes));
    this.#countChildren(this.#table.parent(node), -1);
    const pathAt = at + headBytes;
    this.#index.remove(hashOf(slab, pathAt, pathAt + pathBytes), node);
    this.#slabs.free(address, recordBytes(pathBytes, dataBytes));
    this.#table.remove(node);
    this.#count -= 1;
    this.#shape += 1;
  }

  // ── data ──────────────────────────────────────────────────────────────────────────────────────

  dataBytes(node: number): number {
    return this.#statInt(node, stat.dataLength);
  }

  /** A copy, which stays as it is when the node changes. */
  dataOf(node: number): Buffer | null {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = dataAt(slab, this.#slabs.offset(address));
    const length = readInt(slab, at);
    return length < 0 ? null : Buffer.from(slab.subarray(at + 4, at + 4 + length));
  }

  setData(node: number, data: Buffer | null): void {
    const old = this.#table.address(node);
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
        this.#table.setAddress(node, address);
      }
      from.copy(slab, at + headBytes + pathBytes + 4 + bytes, oldStatAt, oldStatAt + statBytes);
      if (slab !== from || at !== fromAt) this.#slabs.free(old, before);
    }
    const to = at + headBytes + pathBytes;
    putData(slab, to, data);
    writeInt(slab, to + 4 + bytes + stat.dataLength, bytes);
  }

  // ── the Stat ──────────────────────────────────────────────────────────────────────────────────

  aclOf(node: number): number {
    return this.#table.acl(node);
  }

  setAcl(node: number, acl: number, aversion: number): void {
    this.#table.setAcl(node, acl);
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
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = statAt(slab, this.#slabs.offset(address));
    writeLong(slab, at + stat.mzxid, zxid);
    writeLong(slab, at + stat.mtime, timeMs);
    writeInt(slab, at + stat.version, version);
  }

  /** A child came. The counter is the stored one. */
  setChildMade(node: number, cversion: number, zxid: number): void {
    const address = this.#table.address(node);
    putChildMade(this.#slabs.slab(address), this.#slabs.offset(address), cversion, zxid);
  }

  setPzxid(node: number, zxid: number): void {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    writeLong(slab, statAt(slab, this.#slabs.offset(address)) + stat.pzxid, zxid);
  }

  /** The counter of child creates, as it is stored: not the one that clients see. */
  cversion(node: number): number {
    const address = this.#table.address(node);
    return readInt(this.#slabs.slab(address), this.#slabs.offset(address) + head.cversion);
  }

  setCversion(node: number, cversion: number): void {
    const address = this.#table.address(node);
    writeInt(this.#slabs.slab(address), this.#slabs.offset(address) + head.cversion, cversion);
    this.#countChildren(node, 0);
  }

  /** True for whatever has an owner field: an ephemeral, a container, a node with a TTL. */
  isOwned(node: number): boolean {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    return readInt(slab, at + head.owner) !== 0 || readInt(slab, at + head.owner + 4) !== 0;
  }

  ownerOf(node: number): bigint {
    if (!this.isOwned(node)) return 0n;
    const address = this.#table.address(node);
    return this.#slabs.slab(address).readBigInt64BE(this.#slabs.offset(address) + head.owner);
  }

  loadStat(node: number, into: LoadedStat, isSummed: boolean): void {
    const address = this.#table.address(node);
    loadStat(this.#slabs.slab(address), this.#slabs.offset(address), into, isSummed);
  }

  /** All 68 bytes, copied. */
  statOf(node: number): Buffer {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = statAt(slab, this.#slabs.offset(address));
    return Buffer.from(slab.subarray(at, at + statBytes));
  }

  /** Whether its path begins with these bytes. */
  startsWith(node: number, prefix: Uint8Array): boolean {
    const address = this.#table.address(node);
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
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = this.#slabs.offset(address);
    const bytes = Buffer.allocUnsafe(persistedBytes);
    copyPersisted(slab, at, bytes, 0);
    return bytes;
  }

  restoreStat(node: number, persisted: Buffer): void {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const to = statAt(slab, this.#slabs.offset(address));
    persisted.copy(slab, to, 0, stat.owner);
    copyBytes(persisted, stat.owner + 8, slab, to + stat.pzxid, 8);
    this.setCversion(node, readInt(persisted, stat.cversion));
  }

  // ── the share in the digest ───────────────────────────────────────────────────────────────────

  /** As it was computed last; 0 where none is kept. */
  crcOf(node: number): number {
    const address = this.#table.address(node);
    return readInt(this.#slabs.slab(address), this.#slabs.offset(address) + head.crc);
  }

  setCrc(node: number, crc: number): void {
    const address = this.#table.address(node);
    writeInt(this.#slabs.slab(address), this.#slabs.offset(address) + head.crc, crc);
  }

  agrees(node: number, foretold: ForetoldStat): boolean {
    const address = this.#table.address(node);
    return agrees(this.#slabs.slab(address), this.#slabs.offset(address), foretold);
  }

  /** What it should be: of a node that has a share. */
  computeCrc(node: number): number {
    const address = this.#table.address(node);
    return computeCrc(this.#slabs.slab(address), this.#slabs.offset(address));
  }

  // ── straight into a reply ─────────────────────────────────────────────────────────────────────

  /** dataLength, data, Stat. */
  writeData(writer: Writer, node: number): void {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = dataAt(slab, this.#slabs.offset(address));
    writer.rawRange(slab, at, at + 4 + Math.max(0, readInt(slab, at)) + statBytes);
  }

  /** As a snapshot has it; `acl` is the number that the ACL has there. */
  writeSnapshot(writer: Writer, node: number, acl: number): void {
    const address = this.#table.address(node);
    writeSnapshot(writer, this.#slabs.slab(address), this.#slabs.offset(address), acl);
  }

  writeStat(writer: Writer, node: number): void {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    const at = statAt(slab, this.#slabs.offset(address));
    writer.rawRange(slab, at, at + statBytes);
  }

  /** How many, then each name: put together here, since a call into the writer costs more than a name. */
  writeChildren(writer: Writer, node: number): void {
    const count = this.childCount(node);
    writer.int(count);
    const skip = this.nameStart(node);
    let child = this.#table.firstChild(node);
    let list = this.#list;
    let listed = 0;
    for (let i = 0; i < count; i++) {
      const address = this.#table.address(child);
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
      child = this.#table.after(child);
    }
    writer.rawRange(list, 0, listed);
  }

  /** Where, in a child's path, its name begins. */
  nameStart(node: number): number {
    const address = this.#table.address(node);
    const length = readInt(this.#slabs.slab(address), this.#slabs.offset(address));
    return length === 1 ? 1 : length + 1;
  }

  // ── inside ────────────────────────────────────────────────────────────────────────────────────

  #countChildren(node: number, more: number): void {
    const address = this.#table.address(node);
    countChildren(this.#slabs.slab(address), this.#slabs.offset(address), more);
  }

  #statInt(node: number, which: number): number {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    return readInt(slab, statAt(slab, this.#slabs.offset(address)) + which);
  }

  #setStatInt(node: number, which: number, value: number): void {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    writeInt(slab, statAt(slab, this.#slabs.offset(address)) + which, value);
  }

  #statLong(node: number, which: number): number {
    const address = this.#table.address(node);
    const slab = this.#slabs.slab(address);
    return readLong(slab, statAt(slab, this.#slabs.offset(address)) + which);
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
