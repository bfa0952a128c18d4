/**
 * Taking a shard: makes its ownership node as soon as nobody else has one, and not before.
 *
 *   <path>/owners/<shard>    ephemeral; data: which member has it
 *
 * In: a path, and data that no other claim ever has. Out: a grant, whose node is owned by the client's
 * current session. Whoever gives up leaves neither node nor watch, also when the reply to the create is
 * still on its way.
 *
 * A claim lasts through lost replies and moments of overload: only it knows a node of its own, which
 * the next claim of the same member would take for somebody else's and wait for without end.
 */

import { type Acl, type Client, type DataAndStat, isZkError } from '../client/index.ts';
import { Backoff, type Clock, unbounded, unlessAborted } from '../support/index.ts';
import { Grant } from './grant.ts';
import { watchNode } from './node-watch.ts';
import { withParents } from './parents.ts';
import { isPassing } from './passing.ts';
import { pause, retryBackoff } from './pause.ts';
import { takeBack } from './take-back.ts';
import { whileLinked } from './while-linked.ts';

export interface Claim {
  readonly path: string;
  /** Tells our node from that of anybody else, also of the same session. */
  readonly data: string;
  readonly acl?: readonly Acl[] | undefined;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** What is known of the node: whether one of ours may be there. */
interface Attempt {
  isUnsure: boolean;
}

export async function claimNode(client: Client, claim: Claim): Promise<Grant> {
  const { signal, clock } = claim;
  const attempt: Attempt = { isUnsure: false };
  const backoff = new Backoff(retryBackoff);
  try {
    for (;;) {
      signal.throwIfAborted();
      try {
        const grant = await take(client, claim, attempt);
        if (grant !== null) return grant;
      } catch (error) {
        signal.throwIfAborted();
        if (!isPassing(error)) throw error;
        await pause(clock, backoff.next(), signal);
      }
    }
  } catch (error) {
    if (attempt.isUnsure) await takeAway(client, claim);
    throw error;
  }
}

/** Null: somebody else had the node, and has it no more. */
async function take(client: Client, claim: Claim, attempt: Attempt): Promise<Grant | null> {
  const { path, data, acl, signal } = claim;
  const options = { mode: 'ephemeral', ...(acl && { acl }), signal } as const;
  let node: ConstructorParameters<typeof Grant>[1] | null;
  try {
    node = await withParents(client, path, acl, () => client.create(path, data, options));
  } catch (error) {
    const isUnknown = signal.aborted || (isZkError(error) && error.outcomeUnknown);
    if (isUnknown) attempt.isUnsure = true;
    if (signal.aborted || (!isUnknown && !isZkError(error, 'NODE_EXISTS'))) throw error;
    node = await gone(client, claim, attempt);
  }
  if (node === null) return null;
  attempt.isUnsure = false;
  return watchedGrant(client, node);
}

/** Waits until nobody has the node. What it returns is ours: a create whose reply was lost. */
async function gone(
  client: Client,
  claim: Claim,
  attempt: Attempt,
): Promise<ConstructorParameters<typeof Grant>[1] | null> {
  const { path, signal } = claim;
  const asked = watchNode(client, path);
  void asked.then((late) => (signal.aborted ? late?.stop() : undefined)).catch(() => {});
  const watched = await unlessAborted(asked, signal);
  if (watched === null) return null;
  try {
    if (isOurs(client, claim, watched.found)) return { path, stat: watched.found.stat };
    attempt.isUnsure = false;
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
async function takeAway(client: Client, claim: Claim): Promise<void> {
  const { path, clock } = claim;
  const isOwn = async () => {
    try {
      return isOurs(client, claim, await client.get(path, unbounded));
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return false;
      throw error;
    }
  };
  const work = takeBack(client, path, isOwn, clock).catch((error: unknown) => {
    if (!isZkError(error, 'SESSION_EXPIRED', 'AUTH_FAILED')) throw error; // it goes with the session
  });
  await whileLinked(client, work);
}
