/**
 * A node on its way from one place to another: what is copied of it, and how two of them differ.
 *
 * Paths are relative to the root of what is copied: "/" is that root itself. What only a server can
 * give (zxids, times, versions, the owner's session) is carried along to be read, and never written.
 */

import type { Acl, StatView } from '../client/index.ts';
import { openAcl } from '../protocol/index.ts';
import { ownerKind, ttlOfOwner } from '../tree/index.ts';

export type NodeMode = 'persistent' | 'container' | 'persistentTtl' | 'ephemeral';

/** As a server had it, in text: for people, and for comparing backups. */
export interface StatRecord {
  readonly czxid: string;
  readonly mzxid: string;
  readonly pzxid: string;
  readonly ctime: string;
  readonly mtime: string;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: string;
  readonly numChildren: number;
}

export interface TreeNode {
  readonly path: string;
  readonly data: Buffer | null;
  /** Undefined: nothing is known of it, as in a folder of plain files. */
  readonly acl?: readonly Acl[] | undefined;
  readonly mode: NodeMode;
  readonly ttlMs?: number | undefined;
  readonly stat?: StatRecord | undefined;
  /** Undefined where it is not known ahead. */
  readonly childCount?: number | undefined;
}

export function modeOf(owner: bigint): { mode: NodeMode; ttlMs?: number } {
  // Any server may have them switched on, and none says so: a session's id never begins with 0xff.
  const kind = ownerKind(owner, true);
  if (kind === 'ttl') return { mode: 'persistentTtl', ttlMs: Number(ttlOfOwner(owner)) };
  if (kind === 'container') return { mode: 'container' };
  return { mode: kind === 'session' ? 'ephemeral' : 'persistent' };
}

export function statRecord(stat: StatView): StatRecord {
  const zxid = (value: bigint) => `0x${BigInt.asUintN(64, value).toString(16)}`;
  const time = (value: bigint) => {
    const ms = Number(value);
    return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms}`;
  };
  return {
    czxid: zxid(stat.czxid),
    mzxid: zxid(stat.mzxid),
    pzxid: zxid(stat.pzxid),
    ctime: time(stat.ctime),
    mtime: time(stat.mtime),
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ephemeralOwner: zxid(stat.ephemeralOwner),
    numChildren: stat.numChildren,
  };
}

export function sameData(a: Buffer | null, b: Buffer | null): boolean {
  // An empty node and one without data are told apart by nobody but the server's own get.
  if ((a?.length ?? 0) === 0 || (b?.length ?? 0) === 0)
    return (a?.length ?? 0) === (b?.length ?? 0);
  return a!.equals(b!);
}

/** The order of entries means nothing. Unknown is equal to anything. */
export function sameAcl(a: readonly Acl[] | undefined, b: readonly Acl[] | undefined): boolean {
  if (a === undefined || b === undefined) return true;
  const text = (acl: readonly Acl[]) =>
    acl
      .map(({ perms, id }) => JSON.stringify([perms, id.scheme, id.id]))
      .sort()
      .join();
  return text(a) === text(b);
}

export function isOpen(acl: readonly Acl[] | undefined): boolean {
  return acl === undefined || sameAcl(acl, openAcl);
}

/**
 * Servers show `digest:user:x` to who may read an ACL and not change it. Copied, it would lock everybody
 * out: nobody has a password whose sum is "x".
 */
export function isMasked(acl: readonly Acl[] | undefined): boolean {
  return acl?.some(({ id }) => id.scheme === 'digest' && /^[^:]*:x$/.test(id.id)) ?? false;
}

export function depthOf(path: string): number {
  return path === '/' ? 0 : path.split('/').length - 1;
}

/** `/a/b` below `/a` is `/b`; `/a` itself is `/`. */
export function relativeTo(root: string, path: string): string {
  if (root === '/') return path;
  return path === root ? '/' : path.slice(root.length);
}

export function joined(root: string, path: string): string {
  if (path === '/') return root;
  return root === '/' ? path : `${root}${path}`;
}

/** ZooKeeper's own nodes belong to the server: they are neither copied nor deleted. */
export function isServersOwn(path: string): boolean {
  return path === '/zookeeper' || path.startsWith('/zookeeper/');
}
