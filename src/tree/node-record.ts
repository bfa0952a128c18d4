/**
 * The record of a node: the bytes of it that stand together in a slab.
 *
 *            pathLength:int  cversion:int  owner:long  crc:int  path
 *            dataLength:int  data  Stat[68]
 *
 * The second line is, byte for byte, what a getData is answered with, so that a read is one copy.
 * `cversion` there is the one that clients see; the stored one, which counts creates alone and from
 * which sequence numbers come, stands in front, as does the owner that says more than clients are told
 * (containers, TTLs) and the node's share in the tree's digest, where one is kept.
 *
 * In: a slab, and where the record begins in it. Out: what it holds, or the place of it.
 */

import type { Buffer } from 'node:buffer';
import { copyAll, copyBytes, readInt, type Writer, writeInt } from '../jute/index.ts';
import { crcBytes, crcEnd, crcStart } from '../protocol/index.ts';
import { readLong, writeLong } from './longs.ts';

export const headBytes = 20;
/** Offsets within the head. */
export const head = { pathLength: 0, cversion: 4, owner: 8, crc: 16 } as const;
export const statBytes = 68;
export const persistedBytes = 60;
/** Offsets within the Stat, in the order of its record. */
export const stat = {
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

/** What a record is made of, but for its path. */
export interface NewRecord {
  readonly data: Buffer | null;
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

export function recordBytes(pathBytes: number, dataBytes: number): number {
  return headBytes + pathBytes + 4 + dataBytes + statBytes;
}

export function dataAt(slab: Buffer, at: number): number {
  return at + headBytes + readInt(slab, at);
}

export function statAt(slab: Buffer, at: number): number {
  const from = dataAt(slab, at);
  const length = readInt(slab, from);
  return from + 4 + Math.max(0, length);
}

// ── writing ─────────────────────────────────────────────────────────────────────────────────────

/** All of a new one but its path, which is so long. */
export function putRecord(slab: Buffer, at: number, pathBytes: number, made: NewRecord): void {
  const { data, zxid, timeMs, owner, shownOwner } = made;
  const dataBytes = data === null ? 0 : data.length;
  writeInt(slab, at + head.pathLength, pathBytes);
  writeInt(slab, at + head.cversion, 0);
  if (owner === 0n) writeLong(slab, at + head.owner, 0);
  else slab.writeBigInt64BE(owner, at + head.owner);
  writeInt(slab, at + head.crc, 0);
  const from = at + headBytes + pathBytes;
  putData(slab, from, data);
  const to = from + 4 + dataBytes;
  writeLong(slab, to + stat.czxid, zxid);
  writeLong(slab, to + stat.mzxid, zxid);
  writeLong(slab, to + stat.ctime, timeMs);
  writeLong(slab, to + stat.mtime, timeMs);
  writeInt(slab, to + stat.version, 0);
  writeInt(slab, to + stat.cversion, 0);
  writeInt(slab, to + stat.aversion, 0);
  if (shownOwner === 0n) writeLong(slab, to + stat.owner, 0);
  else slab.writeBigInt64BE(shownOwner, to + stat.owner);
  writeInt(slab, to + stat.dataLength, dataBytes);
  writeInt(slab, to + stat.numChildren, 0);
  writeLong(slab, to + stat.pzxid, zxid);
}

/**
 * One that nobody owns, as a snapshot has it: path, data and a StatPersisted, each where `from` says, the
 * first two with their lengths before them. In the record they stand in the same order.
 */
export function putEncoded(slab: Buffer, at: number, bytes: Buffer, from: EncodedNodeAt): void {
  const pathBytes = from.dataAt - from.pathAt - 4;
  const dataBytes = Math.max(0, readInt(bytes, from.dataAt));
  writeInt(slab, at + head.pathLength, pathBytes);
  writeInt(slab, at + head.cversion, readInt(bytes, from.statAt + stat.cversion));
  writeLong(slab, at + head.owner, 0);
  writeInt(slab, at + head.crc, 0);
  copyBytes(bytes, from.pathAt + 4, slab, at + headBytes, pathBytes + 4 + dataBytes);
  const to = at + headBytes + pathBytes + 4 + dataBytes;
  copyBytes(bytes, from.statAt, slab, to, stat.owner);
  writeLong(slab, to + stat.owner, 0);
  writeInt(slab, to + stat.dataLength, dataBytes);
  writeInt(slab, to + stat.numChildren, 0);
  copyBytes(bytes, from.statAt + stat.owner + 8, slab, to + stat.pzxid, 8);
}

/** Its length and the data itself, as a reply and a snapshot have them. */
export function putData(slab: Buffer, at: number, data: Buffer | null): void {
  writeInt(slab, at, data === null ? -1 : data.length);
  if (data !== null) copyAll(data, slab, at + 4);
}

/** A child came: both fields that say so, in one look. The counter is the stored one. */
export function putChildMade(slab: Buffer, at: number, cversion: number, zxid: number): void {
  const to = statAt(slab, at);
  const shown = shownCversion(cversion, readInt(slab, to + stat.numChildren));
  writeInt(slab, at + head.cversion, cversion);
  writeInt(slab, to + stat.cversion, shown);
  writeLong(slab, to + stat.pzxid, zxid);
}

export function countChildren(slab: Buffer, at: number, more: number): void {
  const to = statAt(slab, at);
  const count = readInt(slab, to + stat.numChildren) + more;
  writeInt(slab, to + stat.numChildren, count);
  writeInt(slab, to + stat.cversion, shownCversion(readInt(slab, at + head.cversion), count));
}

/** Clients see creates and deletes: twice the creates, less what is still there (copyStat). */
function shownCversion(stored: number, children: number): number {
  return Math.imul(stored, 2) - children;
}

// ── reading ─────────────────────────────────────────────────────────────────────────────────────

/** What a write has to know, in one look: every write takes one or two. */
export function loadStat(slab: Buffer, at: number, into: LoadedStat, isSummed: boolean): void {
  const from = statAt(slab, at);
  into.version = readInt(slab, from + stat.version);
  into.cversion = readInt(slab, at + head.cversion);
  into.aversion = readInt(slab, from + stat.aversion);
  into.childCount = readInt(slab, from + stat.numChildren);
  into.dataBytes = readInt(slab, from + stat.dataLength);
  if (!isSummed) return; // the rest matters to the digest alone
  into.czxid = readLong(slab, from + stat.czxid);
  into.pzxid = readLong(slab, from + stat.pzxid);
  into.ctimeMs = readLong(slab, from + stat.ctime);
  into.crc = readInt(slab, at + head.crc);
}

export function agrees(slab: Buffer, at: number, foretold: ForetoldStat): boolean {
  const from = statAt(slab, at);
  return (
    readInt(slab, from + stat.version) === foretold.version &&
    readInt(slab, at + head.cversion) === foretold.cversion &&
    readInt(slab, from + stat.aversion) === foretold.aversion &&
    readInt(slab, from + stat.dataLength) === foretold.dataBytes &&
    readLong(slab, from + stat.czxid) === foretold.czxid &&
    readLong(slab, from + stat.pzxid) === foretold.pzxid &&
    readLong(slab, from + stat.ctime) === foretold.ctimeMs
  );
}

/** The share in the digest as it should be, from every byte that counts (tree-digest.ts). */
export function computeCrc(slab: Buffer, at: number): number {
  const pathBytes = readInt(slab, at);
  const data = at + headBytes + pathBytes;
  const from = data + 4 + Math.max(0, readInt(slab, data));
  let state = pathBytes === 1 ? crcStart : crcBytes(crcStart, slab, at + headBytes, data);
  state = crcBytes(state, slab, data + 4, from);
  state = crcBytes(state, slab, from + stat.czxid, from + stat.ctime);
  state = crcBytes(state, slab, from + stat.pzxid, from + statBytes);
  state = crcBytes(state, slab, from + stat.ctime, from + stat.cversion);
  state = crcBytes(state, slab, at + head.cversion, at + head.owner);
  state = crcBytes(state, slab, from + stat.aversion, from + stat.owner);
  return crcEnd(crcBytes(state, slab, at + head.owner, at + head.crc));
}

/**
 * As a snapshot has it: path, data, the ACL's number, StatPersisted. Path, length and data lie side by
 * side already. The root's path is empty there.
 */
export function writeSnapshot(writer: Writer, slab: Buffer, at: number, acl: number): void {
  const pathBytes = readInt(slab, at);
  const isRoot = pathBytes === 1;
  writer.int(isRoot ? 0 : pathBytes);
  writer.rawRange(slab, at + headBytes + (isRoot ? 1 : 0), statAt(slab, at));
  const to = writer.skip(8 + persistedBytes);
  const { memory } = writer;
  writeInt(memory, to, acl < 0 ? -1 : 0);
  writeInt(memory, to + 4, acl);
  copyPersisted(slab, at, memory, to + 8);
}

/** What a snapshot holds of the Stat. The counter is the stored one. */
export function copyPersisted(slab: Buffer, at: number, target: Buffer, to: number): void {
  const from = statAt(slab, at);
  copyBytes(slab, from, target, to, stat.owner);
  writeInt(target, to + stat.cversion, readInt(slab, at + head.cversion));
  copyBytes(slab, at + head.owner, target, to + stat.owner, 8);
  copyBytes(slab, from + stat.pzxid, target, to + stat.owner + 8, 8);
}
