/**
 * A snapshot, byte for byte as ZooKeeper writes it. Longs and ints are jute's, so are strings.
 *
 *   header     "ZKSN"  version:int = 2  dbid:long = -1
 *   sessions   count:int  { id:long  timeoutMs:int }*
 *   ACLs       count:int  { id:long  acl:vector<ACL> }*
 *   nodes      { path:string  data:buffer  aclId:long  StatPersisted }*  "/"     the root's path is ""
 *   seal       adler32:long  "/"         of everything so far; the sum then runs on through the seal
 *   digest     zxid:long  version:int  value:long  seal          not before 3.6, nor where none is kept
 *   lastZxid   zxid:long  seal                                   not before 3.9
 *
 * An Apache server takes what stands behind the nodes for a digest if it keeps one, and for the last zxid
 * if it does not, and refuses the file where that is wrong. Where nothing stands there all of them read it.
 *
 * The file is named for the zxid at which it was begun. Where the tree changes meanwhile (Apache's does)
 * the snapshot is fuzzy: nodes may be newer than its name. Replaying the log from the name's zxid mends
 * that, and the digest's zxid says from where on the tree is exact again.
 */

import type { Writer } from '../jute/index.ts';
import type { Acl, StatPersisted } from '../protocol/index.ts';

export const snapshotMagic = 0x5a4b534e; // ZKSN
export const snapshotVersion = 2;
export const snapshotDbid = -1n;
/** In place of a path: the end of the nodes, and the end of each seal. */
export const endPath = '/';
/** What stands for the open ACL without being in the list. */
export const openAclId = -1;

export interface SnapshotNode {
  /** Empty for the root. */
  readonly path: string;
  readonly data: Buffer | null;
  /** A number from the snapshot's list of ACLs, or -1. */
  readonly acl: number;
  readonly stat: StatPersisted;
}

/** Nodes that put their bytes down by themselves, as they stand in the file. Their ACLs are of the list. */
export interface EncodedNodes {
  /**
   * Puts down the next ones until there are so many bytes, and one at least, however many there are already:
   * what comes before the nodes may be longer. How many these were: 0 when there are no more, and only then.
   */
  writeSome(writer: Writer, untilBytes: number): number;
}

/** Where the parts of a node stand in the file's bytes; the path and the data with their lengths before them. */
export interface EncodedParts {
  pathAt: number;
  dataAt: number;
  aclAt: number;
  statAt: number;
}

/** The sum over the tree (tree-digest.ts) as it was right after `zxid`. */
export interface ZxidDigest {
  readonly zxid: bigint;
  readonly version: number;
  readonly value: bigint;
}

/** Told what a snapshot holds, in this order: sessions, ACLs, nodes (parents before children). */
export interface SnapshotSink {
  session(id: bigint, timeoutMs: number): void;
  acl(id: number, acl: Acl[]): void;
  node(node: SnapshotNode): void;
  /** Asked before `node`, where it is there: takes the node as it stands in the file, or declines with false. */
  encoded?(bytes: Buffer, parts: EncodedParts): boolean;
}
