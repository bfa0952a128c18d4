/**
 * Queues: what was put is taken. With confirmation nothing is lost and nothing is confirmed twice; without,
 * nothing is taken twice, and what is lost is no more than takes whose reply was lost for good. In a queue
 * by time nothing is handed out before it is due; all processes have one calendar here.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { Queue, QueueError, type QueueOptions, SimpleQueue } from '../../src/recipes/index.ts';
import { type Asked, Judge, type Situation, type Workload } from './workload.ts';

class Items extends Judge {
  readonly #put = new Set<string>();
  readonly #maybePut = new Set<string>();
  /** And by whom, and at which node and try. */
  readonly #out = new Map<string, string>();
  /** Handed out and worked on, and whether the confirmation took place nobody knows. */
  readonly #maybeOut = new Set<string>();
  readonly #rest: (situation: Situation) => Promise<string[]>;
  /** Takes of which not even the item is known. */
  #unknownTakes = 0;

  constructor(rest: (situation: Situation) => Promise<string[]>) {
    super();
    this.#rest = rest;
  }

  override hear({ worker, what, args: [item, ...times] }: Asked): void {
    if (what === 'taken') {
      const [dueMs, takenMs] = times as [number, number];
      this.count('taken');
      if (takenMs < dueMs)
        this.broken.push(`${worker}: ${item} was out ${dueMs - takenMs} ms early`);
      return;
    }
    if (what === 'put') this.#put.add(item);
    else if (what === 'maybePut') this.#maybePut.add(item);
    else if (what === 'maybeOut') this.#maybeOut.add(item);
    else if (what === 'unknownTake') this.#unknownTakes += 1;
    else if (what === 'out') this.#leave(`${worker} at ${times[0]}`, item);
    else throw new Error(`what is ${what}?`);
  }

  #leave(who: string, item: string): void {
    const before = this.#out.get(item);
    if (before) this.broken.push(`${who}: ${item} is out for the second time, before: ${before}`);
    this.#out.set(item, who);
  }

  override async end(situation: Situation): Promise<void> {
    for (const item of await this.#rest(situation)) this.#leave('the rest', item);
    const isAccountedFor = (item: string) => this.#out.has(item) || this.#maybeOut.has(item);
    const lost = [...this.#put].filter((item) => !isAccountedFor(item));
    this.count('put', this.#put.size);
    this.count('out', this.#out.size);
    this.count('maybeOut', this.#maybeOut.size);
    this.count('unknownTakes', this.#unknownTakes);
    if (lost.length > this.#unknownTakes) {
      this.broken.push(`lost: ${lost.join(', ')}; only ${this.#unknownTakes} may have been taken`);
    }
    for (const item of this.#out.keys()) {
      const isKnown = this.#put.has(item) || this.#maybePut.has(item);
      if (!isKnown) this.broken.push(`${item} was never put`);
    }
  }
}

/** In a queue by time no item has to wait for longer. */
const delayMaxMs = 60;

/** Puts one, takes one. In a queue by time an item says itself when it is due. */
function queue(path: string, options: QueueOptions): Workload {
  const isByTime = options.order === 'delay';
  // A fault after the other costs tries: here none may give an item up.
  const open = (client: Situation['witness']) =>
    new Queue(client, path, { ...options, triesMax: 1_000 });
  return {
    begin({ client, name, tell, stopped: signal }) {
      const own = open(client);
      let puts = 0;
      const put = async () => {
        puts += 1;
        const dueMs = Date.now() + ((puts * 17) % delayMaxMs);
        const item = isByTime ? `${name}-${puts}@${dueMs}` : `${name}-${puts}`;
        try {
          await own.put(item, { signal, ...(isByTime && { dueMs }) });
          tell('put', item);
        } catch (error) {
          tell('maybePut', item);
          throw error;
        }
      };
      return {
        async round() {
          await put();
          const item = await own.take({ signal });
          if (isByTime) {
            const [, dueMs] = String(item.data).split('@');
            tell('taken', String(item.data), Number(dueMs), Date.now());
          }
          try {
            await item.confirm();
            tell('out', String(item.data), `${item.claim.waiting.path}, try ${item.tries}`);
          } catch (error) {
            tell('maybeOut', String(item.data));
            throw error;
          }
        },
        close: () => own.close(),
      };
    },
    judge: () =>
      new Items(async ({ witness }) => {
        await using own = open(witness);
        if (isByTime) await delay(delayMaxMs); // then all is due
        const rest: string[] = [];
        for (let item = await own.tryTake(); item !== null; item = await own.tryTake()) {
          rest.push(String(item.data));
          await item.confirm();
        }
        return rest;
      }),
  };
}

export const queueWorkloads: Readonly<Record<string, Workload>> = {
  queue: queue('/queue', { bucketItemsMax: 20 }),
  curatorQueue: queue('/curator-queue', { layout: 'curator' }),
  delayQueue: queue('/delay-queue', { order: 'delay' }),
  curatorDelayQueue: queue('/curator-delay-queue', { order: 'delay', layout: 'curator' }),

  simpleQueue: {
    begin({ client, name, tell, stopped: signal }) {
      const own = new SimpleQueue(client, '/simple-queue');
      let puts = 0;
      return {
        async round() {
          puts += 1;
          const item = `${name}-${puts}`;
          try {
            await own.put(item);
            tell('put', item);
          } catch (error) {
            tell('maybePut', item);
            throw error;
          }
          try {
            tell('out', String(await own.take({ signal })));
          } catch (error) {
            if (error instanceof QueueError && error.code === 'OUTCOME_UNKNOWN')
              tell('unknownTake');
            throw error;
          }
        },
        close: () => own.close(),
      };
    },
    judge: () =>
      new Items(async ({ witness }) => {
        const own = new SimpleQueue(witness, '/simple-queue');
        const rest: string[] = [];
        for (let one = await own.tryTake(); one !== null; one = await own.tryTake()) {
          rest.push(String(one.data));
        }
        return rest;
      }),
  },
};
