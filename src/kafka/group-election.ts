/**
 * Who plans for a group: the member whose node came first. Every other watches only the one before it,
 * so the end of a planner wakes one member and not all.
 *
 * In: a session. Out: our turn, and a way to give it up. The place is lost with the session. Turns may
 * overlap, as a planner that was paused does not know of the next; the epoch of the plan keeps it from
 * writing.
 */

import { type Created, isZkError } from '../client/index.ts';
import { childOf, nameOf } from '../protocol/index.ts';
import { deferred, onAbort } from '../support/index.ts';
import { dropWatch, ensurePath, type GroupClient } from './group-client.ts';

export interface Turn {
  readonly path: string;
  /** Gives the place up. */
  leave(): Promise<void>;
}

/** Resolves when it is our turn; rejects with the signal's reason, leaving no node and no watch. */
export async function awaitTurn(
  client: GroupClient,
  path: string,
  data: string,
  signal: AbortSignal,
): Promise<Turn> {
  const { path: mine } = await stand(client, path, data, signal);
  const sessionId = client.sessionId;
  // As often as it takes: left behind it would be the first in line for as long as the session lasts,
  // and nobody would plan, not even we, who would wait behind it.
  const leave = async () => {
    while (client.sessionId === sessionId) {
      try {
        return await client.delete(mine); // its name is unique, so it is ours
      } catch (error) {
        if (isZkError(error, 'NO_NODE', 'SESSION_EXPIRED')) return; // or it went with its session
        if (!isZkError(error) || !(error.retryable || error.outcomeUnknown)) throw error;
      }
    }
  };
  try {
    for (;;) {
      signal.throwIfAborted();
      const names = await client.children(path);
      if (!names.includes(nameOf(mine))) {
        throw new Error(`${mine} is gone: the place in the election is lost`);
      }
      const before = justBefore(names, nameOf(mine));
      if (before === undefined) return { path: mine, leave };
      await gone(client, childOf(path, before), signal);
    }
  } catch (error) {
    await leave();
    throw error;
  }
}

async function stand(
  client: GroupClient,
  path: string,
  data: string,
  signal: AbortSignal,
): Promise<Created> {
  const options = { mode: 'ephemeralSequential', signal } as const;
  try {
    return await client.createProtected(`${path}/m-`, data, options);
  } catch (error) {
    if (!isZkError(error, 'NO_NODE')) throw error;
  }
  await ensurePath(client, path);
  return client.createProtected(`${path}/m-`, data, options);
}

async function gone(client: GroupClient, path: string, signal: AbortSignal): Promise<void> {
  const changed = deferred();
  const listener = () => changed.resolve();
  const stat = await client.exists(path, { watch: listener });
  if (stat === null) return dropWatch(client, path, listener);
  const stopHearing = onAbort(signal, () => changed.resolve());
  if (signal.aborted) changed.resolve();
  await changed.promise;
  stopHearing();
  if (signal.aborted) await dropWatch(client, path, listener);
}

const sequenceOf = (name: string) => Number(name.slice(name.lastIndexOf('m-') + 2));

/** The one that came last of those that came before. In one pass: there may be thousands. */
function justBefore(names: readonly string[], mine: string): string | undefined {
  const at = sequenceOf(mine);
  let found: string | undefined;
  let nearest = 0;
  for (const name of names) {
    // Around 2^31 the number that is shortly ahead, modulo 2^32, is the later one.
    const distance = (sequenceOf(name) - at) | 0;
    if (distance >= 0 || (found !== undefined && distance <= nearest)) continue;
    nearest = distance;
    found = name;
  }
  return found;
}
