/**
 * Taking watches away behind oneself, here and on the server.
 *
 * A read that was given up may still set its watch when its reply comes: `settled` waits until none
 * can. Gone already is fine: a one-shot watch may have fired meanwhile. Without a link a watch is
 * forgotten here alone, and so never set again.
 */

import { type Client, isZkError, type Listener, type WatcherType } from '../client/index.ts';

/** Longer than any answer takes; a server that is silent this long loses the link anyway. */
const answerTimeoutMs = 5_000;

export async function unwatch(
  client: Client,
  path: string,
  kind: WatcherType,
  listener: Listener,
): Promise<void> {
  // Without a link the request would wait for one, and hold up whoever closes.
  const limit =
    client.state.name === 'connected'
      ? { timeoutMs: answerTimeoutMs }
      : { signal: AbortSignal.abort() };
  try {
    await client.removeWatches(path, { kind, listener, local: true, ...limit });
  } catch (error) {
    if (!isZkError(error, 'NO_WATCHER')) throw error;
  }
}

/** Replies come in order: once this one is here, so are those of all reads before it. */
export async function settled(client: Client, path: string): Promise<void> {
  if (client.state.name !== 'connected') return; // what had been sent is lost, and with it its watch
  try {
    await client.exists(path, { timeoutMs: answerTimeoutMs });
  } catch (error) {
    if (!isZkError(error)) throw error; // no answer, no link: then there is no watch on it either
  }
}
