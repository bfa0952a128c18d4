/** What a group needs of a client: so much can be simulated. */

import {
  type Client,
  isZkError,
  type Listener,
  type SessionState,
  ZkError,
} from '../client/index.ts';
import { deferred, onAbort } from '../support/index.ts';

export type GroupClient = Pick<
  Client,
  | 'children'
  | 'create'
  | 'createProtected'
  | 'delete'
  | 'exists'
  | 'get'
  | 'multi'
  | 'off'
  | 'on'
  | 'removeWatches'
  | 'sessionId'
  | 'sessionSignal'
  | 'set'
  | 'state'
  | 'sync'
>;

/** Takes a watch away, here and on the server. Gone already is fine; without a link, here alone. */
export async function dropWatch(
  client: GroupClient,
  path: string,
  listener: Listener,
): Promise<void> {
  // Without a link the request would wait for one, and hold up whoever closes.
  const limit =
    client.state.name === 'connected'
      ? { timeoutMs: dropTimeoutMs }
      : { signal: AbortSignal.abort() };
  try {
    await client.removeWatches(path, { listener, local: true, ...limit });
  } catch (error) {
    if (!isZkError(error, 'NO_WATCHER')) throw error;
  }
}

const dropTimeoutMs = 5_000;

/** Makes a persistent node and those above it. There already is fine. */
export async function ensurePath(client: GroupClient, path: string): Promise<void> {
  try {
    await client.create(path, '', { parents: true });
  } catch (error) {
    // After a lost reply whoever needs it finds out.
    if (!isZkError(error, 'NODE_EXISTS', 'CONNECTION_LOSS')) throw error;
  }
}

/** Waits for a session. Undefined when the signal aborts first; rejects when there will be none. */
export async function connected(
  client: GroupClient,
  signal: AbortSignal,
): Promise<bigint | undefined> {
  for (;;) {
    const { state } = client;
    if (signal.aborted) return undefined;
    if (state.name === 'connected' && !state.readOnly) return client.sessionId;
    if (isOver(state)) {
      const detail = `the session is ${state.name}`;
      throw new ZkError('SESSION_EXPIRED', { cause: state.cause, detail });
    }
    const changed = deferred();
    const heard = () => changed.resolve();
    client.on('state', heard);
    const stopHearing = onAbort(signal, heard);
    if (client.state.name === state.name) await changed.promise;
    client.off('state', heard);
    stopHearing();
  }
}

export function isOver(state: SessionState): state is Extract<SessionState, { cause?: unknown }> {
  return state.name === 'expired' || state.name === 'closed' || state.name === 'authFailed';
}
