/** Reading what may not be there: null where there is no node, or nothing in it yet. */

import { type DataAndStat, isZkError } from '../client/index.ts';
import type { AlignClient } from './session.ts';

export async function nodeOf(client: AlignClient, path: string): Promise<DataAndStat | null> {
  try {
    return await client.get(path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

export async function childrenOf(client: AlignClient, path: string): Promise<string[] | null> {
  try {
    return await client.children(path);
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}

/** Rejects with a LayoutError where it makes no sense. */
export async function readNode<T>(
  client: AlignClient,
  path: string,
  parse: (data: Buffer | null, path: string) => T,
): Promise<{ readonly value: T; readonly version: number; readonly mzxid: bigint } | null> {
  const node = await nodeOf(client, path);
  if (node === null || node.data === null || node.data.length === 0) return null;
  const { version, mzxid } = node.stat;
  return { value: parse(node.data, path), version, mzxid };
}
