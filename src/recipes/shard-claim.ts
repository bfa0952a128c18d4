/**
 * Taking a shard: makes its ownership node as soon as nobody else has one, and not before.
 *
 *   <path>/owners/<shard>    ephemeral; data: which member has it
 *
 * In: a path, and data that no other claim ever has. Out: a grant, whose node is owned by the client's
 * current session. Whoever gives up leaves neither node nor watch, also when the reply to the create is
 * still on its way.
 */

import { type Acl, type Client, type DataAndStat, isZkError } from '../client/index.ts';
import { unlessAborted } from '../support/index.ts';
import { Grant } from './grant.ts';
import { watchNode } from './node-watch.ts';
import { withParents } from './parents.ts';

export interface Claim {
  readonly path: string;
  /** Tells our node from that of anybody else, also of the same session. */
  readonly data: string;
  readonly acl?: readonly Acl[] | undefined;
  readonly signal: AbortSignal;
}

export async function claimNode(client: Client, claim: Claim): Promise<Grant> {
  const { path, data, acl, signal } = claim;
  const input = { mode: 'ephemeral', data, ...(acl && { acl }), signal } as const;
  for (;;) {
    signal.throwIfAborted();
    try {
      const node = await withParents(client, path, acl, () => client.create(path, input));
      return await watchedGrant(client, node);
    } catch (error) {
      if (signal.aborted) await takeBack(client, claim);
      else if (!isZkError(error, 'NODE_EXISTS', 'CONNECTION_LOSS')) throw error;
    }
    signal.throwIfAborted();
    const found = await gone(client, claim);
    if (found !== null) return watchedGrant(client, { path, stat: found.stat });
  }
}

/** Waits until nobody has the node. What it returns is ours: a create whose reply was lost. */
async function gone(client: Client, claim: Claim): Promise<DataAndStat | null> {
  const { path, signal } = claim;
  const asked = watchNode(client, path);
  void asked.then((late) => (signal.aborted ? late?.stop() : undefined)).catch(() => {});
  const watched = await unlessAborted(asked, signal);
  if (watched === null) return null;
  try {
    if (isOurs(client, claim, watched.found)) return watched.found;
    await unlessAborted(watched.changed, signal);
    return null;
  } finally {
    await watched.stop();
  }
}

async function watchedGrant(
  client: Client,
  node: ConstructorParameters<typeof Grant>[1],
): Promise<Grant> {
  const grant = new Grant(client, node);
  try {
    await grant.ready;
  } catch (error) {
    await grant.release();
    throw error;
  }
  return grant;
}

function isOurs(client: Client, { data }: Claim, found: DataAndStat): boolean {
  return found.stat.ephemeralOwner === client.sessionId && String(found.data) === data;
}

/** Without a link it is looked for as soon as there is one; if there is none, the session takes it. */
async function takeBack(client: Client, claim: Claim): Promise<void> {
  const work = (async () => {
    try {
      const found = await client.get(claim.path);
      if (isOurs(client, claim, found)) await client.discard(claim.path);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE', 'SESSION_EXPIRED')) throw error;
    }
  })();
  if (client.state.name === 'connected') await work;
  else work.catch(() => {}); // the session is over, and the node with it
}
