/** Barriers and notifications: nobody passes a closed barrier, and who is said to have heard, has. */

import { Barrier, NotificationTopic } from '../../src/recipes/index.ts';
import { type Asked, Judge, type Workload } from './workload.ts';

const patienceMs = 5_000;
/** The one who closes and opens; all others wait. */
const keeper = 'w1';

/** Knows for certain when it is closed: from after closing until before opening. */
class Gate extends Judge {
  #closings = 0;
  #isClosed = false;

  override answer({ worker, what, args: [began] }: Asked): unknown {
    if (what === 'closed') {
      this.#closings += 1;
      this.#isClosed = true;
    } else if (what === 'opening') this.#isClosed = false;
    else if (what === 'waiting') return this.#isClosed ? this.#closings : null;
    else {
      this.count('passed');
      if (this.#isClosed && began === this.#closings) {
        this.broken.push(`${worker} has passed although it was closed all the time`);
      }
    }
    return null;
  }
}

class Hearings extends Judge {
  readonly #heard = new Map<string, Set<string>>();
  readonly #last = new Map<string, bigint>();
  readonly #receipts: (readonly [id: string, names: readonly string[]])[] = [];

  override hear({ worker, what, args: [id, more] }: Asked): void {
    if (what === 'receipt') {
      this.#receipts.push([id, more]);
      return;
    }
    const by = this.#heard.get(id) ?? new Set();
    this.#heard.set(id, by);
    if (!by.has(worker) && more < (this.#last.get(worker) ?? 0n)) {
      this.broken.push(`${worker} hears ${id} after what was sent later`);
    }
    if (!by.has(worker)) this.#last.set(worker, more);
    by.add(worker);
    this.count('heard');
  }

  override async end(): Promise<void> {
    this.count('receipts', this.#receipts.length);
    for (const [id, names] of this.#receipts) {
      for (const name of names) {
        if (!this.#heard.get(id)?.has(name)) this.broken.push(`${name} has never heard ${id}`);
      }
    }
  }
}

export const signalWorkloads: Readonly<Record<string, Workload>> = {
  barrier: {
    begin({ client, name, ask, stopped: signal }) {
      const barrier = new Barrier(client, '/barrier');
      return {
        async round() {
          if (name !== keeper) {
            const began = await ask('waiting');
            await barrier.wait({ signal });
            await ask('passed', began);
            return;
          }
          await barrier.close();
          await ask('closed');
          for (let i = 0; i < 3; i++) await client.exists('/');
          await ask('opening');
          await barrier.open();
        },
        // Those who wait are let go of by the signal; the next to use it finds it open.
        ...(name === keeper && { finish: () => barrier.open() }),
      };
    },
    judge: () => new Gate(),
  },

  notification: {
    async begin({ client, name, tell, stopped: signal }) {
      const topic = new NotificationTopic(client, '/topic', { keepMax: 500 });
      const subscription = topic.subscribe(name);
      await subscription.ready;
      void (async () => {
        for await (const message of subscription) {
          tell('heard', message.id, message.zxid);
          // Without a link it waits for one. An acknowledgement that fails is as if we had not heard.
          await message.ack().catch(() => false);
        }
      })();
      let sent = 0;
      return {
        async round() {
          sent += 1;
          const receipt = await topic.send(`${name}-${sent}`, { signal });
          const { heard } = await receipt.all({ timeoutMs: patienceMs, signal });
          tell('receipt', receipt.id, [...heard]);
        },
        close: () => subscription.close(),
      };
    },
    judge: () => new Hearings(),
  },
};
