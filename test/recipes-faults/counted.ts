/** Numbers: no increment is lost and none counts twice, and no id is given to two. */

import type { Client } from '../../src/client/index.ts';
import { isZkError } from '../../src/client/index.ts';
import {
  AtomicLong,
  ConfigStore,
  Counter,
  CounterError,
  IdGenerator,
  SharedCount,
} from '../../src/recipes/index.ts';
import { type Asked, type Hand, Judge, type Situation, type Workload } from './workload.ts';

class Sum extends Judge {
  readonly #read: (client: Client) => Promise<number>;
  #added = 0;
  #unknown = 0;

  constructor(read: (client: Client) => Promise<number>) {
    super();
    this.#read = read;
  }

  override hear({ what }: Asked): void {
    if (what === 'added') this.#added += 1;
    else this.#unknown += 1;
  }

  override async end({ witness }: Situation): Promise<void> {
    const value = await this.#read(witness);
    this.count('added', this.#added);
    this.count('unknown', this.#unknown);
    if (value >= this.#added && value <= this.#added + this.#unknown) return;
    this.broken.push(
      `it is ${value} after ${this.#added} increments, and ${this.#unknown} of unknown outcome`,
    );
  }
}

const isUnknown = (error: unknown): boolean =>
  (isZkError(error) && error.outcomeUnknown) ||
  (error instanceof CounterError && error.code === 'OUTCOME_UNKNOWN') ||
  (error instanceof Error && isUnknown(error.cause));

/** `open` gives what adds one. */
const counted = (
  open: (hand: Hand) => { add(): Promise<unknown>; close?(): Promise<void> },
  read: (client: Client) => Promise<number>,
): Workload => ({
  begin(hand) {
    const { add, close } = open(hand);
    return {
      async round() {
        try {
          await add();
          hand.tell('added');
        } catch (error) {
          if (isUnknown(error)) hand.tell('unknown');
          throw error;
        }
      },
      ...(close && { close }),
    };
  },
  judge: () => new Sum(read),
});

/** Every id that anybody was given. */
class Ids extends Judge {
  readonly #given = new Set<bigint>();

  override hear({ worker, args }: Asked): void {
    for (const id of args as bigint[]) {
      if (this.#given.has(id)) this.broken.push(`${worker}: id ${id} was given before`);
      this.#given.add(id);
      this.count('given');
    }
  }
}

const schemas = { n: Number };
const store = (client: Client) => new ConfigStore<{ n: number }>(client, '/config', { schemas });

export const countedWorkloads: Readonly<Record<string, Workload>> = {
  counter: counted(
    ({ client, stopped: signal }) => {
      const counter = new Counter(client, '/counter');
      return { add: () => counter.increment({ signal }), close: () => counter.close() };
    },
    (client) => new Counter(client, '/counter').get(),
  ),

  atomicLong: counted(
    ({ client, stopped: signal }) => {
      const number = new AtomicLong(client, '/atomic', { lockPath: '/atomic-lock', triesMax: 3 });
      return { add: () => number.increment({ signal }), close: () => number.close() };
    },
    async (client) => Number(await new AtomicLong(client, '/atomic').get()),
  ),

  sharedCount: counted(
    ({ client, stopped: signal }) => {
      const count = new SharedCount(client, '/count');
      return { add: () => count.update((n) => n + 1, { signal }), close: () => count.close() };
    },
    async (client) => (await new SharedCount(client, '/count').get()).value,
  ),

  configStore: counted(
    ({ client }) => {
      const config = store(client);
      return {
        add: () => config.update('n', (n) => (n ?? 0) + 1),
        close: () => config.close(),
      };
    },
    async (client) => {
      await using config = store(client);
      await config.ready;
      return config.snapshot.values.n ?? 0;
    },
  ),

  ids: {
    begin({ client, tell, stopped: signal }) {
      const ids = new IdGenerator(client, '/ids', { blockSize: 5 });
      return { round: async () => tell('given', ...(await ids.nextMany(3, { signal }))) };
    },
    judge: () => new Ids(),
  },
};
