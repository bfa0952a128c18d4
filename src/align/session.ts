/**
 * What every loop of this room waits for: a session, a ring of its bell, a while. And watches that go
 * as they came.
 */

import { type Client, isZkError, type Listener, ZkError } from '../client/index.ts';
import { type Clock, type Deferred, deferred, onAbort } from '../support/index.ts';

/** What alignment needs of a client. A group's member and an election need a little more. */
export type AlignClient = Client;

/** Waits for a link in a session. Undefined when the signal aborts first; rejects when there will be none. */
export async function connected(
  client: AlignClient,
  signal: AbortSignal,
): Promise<bigint | undefined> {
  for (;;) {
    const { state } = client;
    if (signal.aborted) return undefined;
    if (state.name === 'connected' && !state.readOnly) return client.sessionId;
    if (isOver(client)) {
      const cause = 'cause' in state ? state.cause : undefined;
      throw new ZkError('SESSION_EXPIRED', { cause, detail: `the session is ${state.name}` });
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

/** For good: without `renew`, or closed. */
export function isOver({ state }: AlignClient): boolean {
  return state.name === 'expired' || state.name === 'closed' || state.name === 'authFailed';
}

/** Whether a call that failed so may be made again once there is a link, or a session. */
export function isPassing(error: unknown): boolean {
  return (
    isZkError(error) &&
    (error.retryable || error.outcomeUnknown || isZkError(error, 'SESSION_EXPIRED'))
  );
}

/** Takes a watch away, here and on the server. Gone already is fine; without a link, here alone. */
export async function dropWatch(
  client: AlignClient,
  path: string,
  listener: Listener,
): Promise<void> {
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
export async function ensurePath(client: AlignClient, path: string): Promise<void> {
  try {
    await client.create(path, { parents: true });
  } catch (error) {
    // After a lost reply whoever needs it finds out.
    if (!isZkError(error, 'NODE_EXISTS', 'CONNECTION_LOSS')) throw error;
  }
}

/** Wakes a loop; a ring while it is busy is kept, as one. */
export class Bell {
  #isRung = false;
  #waiting: Deferred<void> | undefined;

  ring(): void {
    this.#isRung = true;
    this.#waiting?.resolve();
  }

  /** Also resolves when the signal aborts: look at it next. */
  async rung(signal: AbortSignal): Promise<void> {
    if (!this.#isRung && !signal.aborted) {
      const waiting = deferred();
      this.#waiting = waiting;
      const stopHearing = onAbort(signal, () => waiting.resolve());
      await waiting.promise;
      stopHearing();
      this.#waiting = undefined;
    }
    this.#isRung = false;
  }
}

/** Resolves after a time, or at once when the signal aborts: look at it next. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const stopHearing = onAbort(signal, () => {
      timer.cancel();
      resolve();
    });
    const timer = clock.after(ms, () => {
      stopHearing();
      resolve();
    });
  });
}
