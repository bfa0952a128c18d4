/** The model client of the group simulation, and the little more that an election asks of it. */

import type { Client, MultiOp } from '../../src/client/index.ts';
import { isZkError } from '../../src/client/index.ts';
import { onAbort } from '../../src/support/index.ts';
import { ModelClient } from '../kafka-simulation/client.ts';

export class SimClient extends ModelClient {
  get asClient(): Client {
    return this as unknown as Client;
  }

  /** In a transaction, `set` answers with the Stat alone. */
  override async multi(ops: readonly MultiOp[]) {
    const results = (await super.multi(ops)) as { path: string; stat: unknown }[];
    return results.map((result, i) => {
      if (ops[i]!.op === 'set') return result.stat;
      return ops[i]!.op === 'create' ? result : undefined;
    });
  }

  async connected({ signal }: { signal?: AbortSignal } = {}): Promise<this> {
    while (this.state.name !== 'connected') {
      signal?.throwIfAborted();
      if (this.state.name === 'closed') throw new Error('the client was closed');
      await new Promise<void>((resolve) => {
        this.once('state', () => resolve());
        if (signal) onAbort(signal, resolve);
      });
    }
    signal?.throwIfAborted();
    return this;
  }

  /** Through lost links, until it is known to be gone. */
  async discard(path: string): Promise<void> {
    const session = this.sessionId;
    for (;;) {
      try {
        return await this.delete(path);
      } catch (error) {
        if (isZkError(error, 'NO_NODE')) return;
        if (!isZkError(error, 'CONNECTION_LOSS')) throw error;
        if (this.sessionId !== session) return;
      }
    }
  }
}
