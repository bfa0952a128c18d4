import type { Client } from '../client/index.ts';

/**
 * Resolves once a server has us. When none ever will, because the client is closed or its session is
 * over and not renewed, rejects with the session's own end, which has a code and says why.
 */
export async function linked(client: Client, signal: AbortSignal): Promise<void> {
  try {
    await client.connected({ signal });
  } catch (error) {
    signal.throwIfAborted();
    const { sessionSignal } = client;
    throw sessionSignal.aborted ? sessionSignal.reason : error;
  }
}
