/** What older servers do not answer, found out by other means. */

import { encode, Reader } from '../jute/index.ts';
import { createModes, isZkError, Stat, type StatView, ZkError } from '../protocol/index.ts';
import type { Client } from './client.ts';
import type { CallOptions } from './core.ts';
import { walk } from './subtree.ts';

/**
 * The Stat of a node that was just created, from a server of 3.4, which answers with the path alone.
 * It is read behind the create, so it may show what others changed meanwhile. Where they deleted the
 * node, or it cannot be read, the Stat is what it must have been, with this process's time as ctime.
 */
export async function statOfCreated(
  client: Client,
  path: string,
  zxid: bigint,
  { flags, data }: { readonly flags: number; readonly data: Buffer | null },
  { signal, timeoutMs }: CallOptions,
): Promise<StatView> {
  const now = BigInt(Date.now());
  const isEphemeral =
    flags === createModes.ephemeral.flags || flags === createModes.ephemeralSequential.flags;
  const ephemeralOwner = isEphemeral ? (client.sessionId ?? 0n) : 0n;
  try {
    const stat = await client.exists(path, {
      ...(signal && { signal }),
      ...(timeoutMs && { timeoutMs }),
    });
    if (stat?.czxid === zxid) return stat;
  } catch {
    // The create took place all the same, and its caller must hear so.
  }
  const stat = {
    czxid: zxid,
    mzxid: zxid,
    ctime: now,
    mtime: now,
    version: 0,
    cversion: 0,
    aversion: 0,
    ephemeralOwner,
    dataLength: data?.length ?? 0,
    numChildren: 0,
    pzxid: zxid,
  };
  return Stat.read(new Reader(encode(Stat, stat)));
}

/** The nodes below one, counted one by one: servers before 3.6 have no op for it. */
export async function countByWalking(
  client: Client,
  path: string,
  options: CallOptions,
): Promise<number> {
  let count = -1; // the node itself is not below itself
  try {
    for await (const _ of walk(client, path, options)) count += 1;
  } catch (error) {
    if (!isZkError(error, 'NO_NODE')) throw error;
    throw new ZkError('NO_NODE', { op: 'getAllChildrenNumber', path });
  }
  return count;
}
