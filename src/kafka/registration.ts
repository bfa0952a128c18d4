/**
 * A member's own node: /consumers/[group]/ids/[consumer], ephemeral, made whole in one write, so that
 * nobody ever reads half of it.
 *
 * The node counts only if the session that we have now owns it. One that an earlier session of ours left
 * is deleted; one of somebody else, who uses the same fixed id, is waited for, however long it takes,
 * and reported meanwhile. Members that share a client share its session, too, so by their nodes they
 * cannot be told apart: of those with the same id, one has it, and the others wait until it is closed.
 */

import { isZkError, type StatView } from '../client/index.ts';
import { parentOf } from '../protocol/index.ts';
import { type Deferred, deferred, onAbort, unlessAborted } from '../support/index.ts';
import { dropWatch, ensurePath, type GroupClient } from './group-client.ts';

export interface RegistrationOptions {
  readonly path: string;
  readonly data: string;
  readonly formerSessions: ReadonlySet<bigint>;
  /** Somebody else has our id; null: nobody has any more. */
  readonly onBlocked: (by: { readonly session: bigint; readonly sinceMs: number } | null) => void;
}

interface Taken {
  readonly sinceMs: number;
  readonly gone: Deferred<void>;
}

/** Whose id is in use in this process, by the client that they share. */
const takenBy = new WeakMap<GroupClient, Map<string, Taken>>();

/** Resolves once no other member on this client has the id; with what gives it up. */
export async function takeId(
  client: GroupClient,
  { path, onBlocked }: Pick<RegistrationOptions, 'path' | 'onBlocked'>,
  { sessionId, sinceMs }: { readonly sessionId: bigint; readonly sinceMs: number },
  signal: AbortSignal,
): Promise<() => void> {
  const taken = takenBy.get(client) ?? new Map<string, Taken>();
  takenBy.set(client, taken);
  for (;;) {
    signal.throwIfAborted();
    const other = taken.get(path);
    if (other === undefined) break;
    onBlocked({ session: sessionId, sinceMs: other.sinceMs });
    try {
      await unlessAborted(other.gone.promise, signal);
    } finally {
      onBlocked(null);
    }
  }
  const mine = { sinceMs, gone: deferred() };
  taken.set(path, mine);
  return () => {
    if (taken.get(path) === mine) taken.delete(path);
    mine.gone.resolve();
  };
}

/** Resolves once the node is there and ours. */
export async function register(
  client: GroupClient,
  options: RegistrationOptions,
  signal: AbortSignal,
): Promise<void> {
  const { path, data } = options;
  for (;;) {
    signal.throwIfAborted();
    try {
      await client.create(path, data, { mode: 'ephemeral' });
      return;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) {
        await ensurePath(client, parentOf(path)!);
        continue;
      }
      const isThere = isZkError(error, 'NODE_EXISTS');
      if (!isThere && !(isZkError(error) && error.outcomeUnknown)) throw error;
    }
    if (await settle(client, options, signal)) return;
  }
}

/** Looks whose node it is. True: ours. False: it is gone, or will be; try again. */
async function settle(
  client: GroupClient,
  options: RegistrationOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const { path, formerSessions, onBlocked } = options;
  const changed = deferred();
  const listener = () => changed.resolve();
  const stat: StatView | null = await client.exists(path, { watch: listener });
  const owner = stat?.ephemeralOwner;
  if (stat !== null && owner === client.sessionId) {
    await dropWatch(client, path, listener);
    return true;
  }
  if (stat === null || formerSessions.has(stat.ephemeralOwner)) {
    await dropWatch(client, path, listener);
    if (stat !== null) await deleteLeftOver(client, path, stat.version);
    return false;
  }
  onBlocked({ session: stat.ephemeralOwner, sinceMs: Number(stat.ctime) });
  const stopHearing = onAbort(signal, () => changed.resolve());
  await changed.promise;
  stopHearing();
  onBlocked(null);
  if (signal.aborted) await dropWatch(client, path, listener);
  return false;
}

async function deleteLeftOver(client: GroupClient, path: string, version: number): Promise<void> {
  try {
    await client.delete(path, { version });
  } catch (error) {
    if (!isZkError(error, 'NO_NODE', 'BAD_VERSION', 'CONNECTION_LOSS')) throw error;
  }
}

/** Takes the node away, if it is ours. */
export async function unregister(
  client: GroupClient,
  path: string,
  sessionId: bigint,
): Promise<void> {
  for (;;) {
    if (client.sessionId !== sessionId) return;
    try {
      return await client.delete(path);
    } catch (error) {
      if (isZkError(error, 'NO_NODE', 'SESSION_EXPIRED')) return; // with its session it goes too
      if (!isZkError(error) || !error.outcomeUnknown) throw error;
    }
    // It may be gone, and the same fixed id be another's already.
    const stat = await client.exists(path);
    if (stat === null || stat.ephemeralOwner !== sessionId) return;
  }
}
