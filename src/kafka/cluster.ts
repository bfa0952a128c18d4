/**
 * The nodes that every broker makes at its start where they are missing, and the cluster's own id.
 */

import { randomBytes } from 'node:crypto';
import { type Client, isZkError } from '../client/index.ts';
import { basePaths, layout08 } from './layout-08.ts';
import { layoutDrover } from './layout-drover.ts';

/** Makes what is missing; whoever makes it first, it is made once. */
export async function prepareCluster(client: Client): Promise<void> {
  const paths = [...basePaths, layoutDrover.deletions.at(), layoutDrover.leavings.at()];
  await Promise.all(paths.map((path) => ensure(client, path, null)));
}

/** The id of the cluster, made now if this is its first broker. */
export async function clusterId(client: Client): Promise<string> {
  const path = layout08.clusterId.at();
  await ensure(client, path, layout08.clusterId.format(randomBytes(16).toString('base64url')));
  return layout08.clusterId.parse((await client.get(path)).data, path);
}

async function ensure(client: Client, path: string, data: string | null): Promise<void> {
  if ((await client.exists(path)) !== null) return;
  try {
    // Kafka makes its folders with no data at all, which is not the same as empty.
    const parent = path.slice(0, path.lastIndexOf('/'));
    if (parent !== '') await ensure(client, parent, null);
    await client.create(path, data);
  } catch (error) {
    // Made by another, or by us, with the reply lost.
    if (isZkError(error, 'NODE_EXISTS')) return;
    if (isZkError(error) && error.outcomeUnknown && (await client.exists(path)) !== null) return;
    throw error;
  }
}
