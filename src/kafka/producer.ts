/**
 * The partitions of a topic as a producer needs them: who takes their records now, kept fresh.
 *
 * In: the nodes of 0.7 (each broker says how many it has), of MetaQ (the same, masters alone), or of
 * 0.8 and later (the leader stands in each partition's state). Out: `available`, in the order of
 * broker and partition, and `all`. A partition whose leader is gone, or whose broker is not registered,
 * is left out and comes back with it.
 *
 * One look at a time, however many changes there were; one-shot watches, so that servers of any age
 * will do. While there is no session the list stays as it was last seen: `isFresh` says so. A look
 * that failed is made again, with pauses that grow, until it succeeds or the list is closed.
 */

import { EventEmitter } from 'node:events';
import {
  ArgumentError,
  type Client,
  checkClient,
  isZkError,
  type Listener,
} from '../client/index.ts';
import { Backoff, type Clock, checkOptions, systemClock, type Timer } from '../support/index.ts';
import type { LayoutProblem, OnProblem } from './layout.ts';
import { layout07 } from './layout-07.ts';
import { layout08 } from './layout-08.ts';
import { formatBrokerPartition } from './layout-consumer.ts';
import { PartitionSum } from './layout-fields.ts';
import { layoutMetaq, metaqBrokerOf } from './layout-metaq.ts';
import { OneShotWatches } from './one-shot-watches.ts';
import { producerPartitionsTable } from './option-tables.ts';
import { byBrokerAndPartition, type ProducerPartition } from './producer-choice.ts';
import { TurnQueue } from './turn-queue.ts';

export type ProducerLayout = '0.7' | '0.8' | 'metaq';

export interface ProducerPartitionsOptions {
  /** How the cluster writes its nodes. `0.8` and all after it unless said. */
  readonly layout?: ProducerLayout;
  readonly onProblem?: OnProblem;
  readonly clock?: Clock;
}

export interface ProducerPartitionsEvents {
  change: [available: readonly ProducerPartition[]];
}

/** A node that comes and goes is looked at so often, and then a little later. */
const readTriesMax = 5;

type Found = Omit<ProducerPartition, 'topic'>;

export class ProducerPartitions extends EventEmitter<ProducerPartitionsEvents> {
  readonly topic: string;
  readonly #client: Client;
  readonly #layout: ProducerLayout;
  readonly #onProblem: OnProblem;
  readonly #clock: Clock;
  readonly #turns = new TurnQueue();
  readonly #watches: OneShotWatches;
  readonly #backoff = new Backoff({ firstMs: 100, maxMs: 10_000 });
  #all: readonly ProducerPartition[] = [];
  #available: readonly ProducerPartition[] = [];
  #session: AbortSignal | undefined;
  #again: Timer | undefined;
  #isClosed = false;

  private constructor(client: Client, topic: string, options: ProducerPartitionsOptions) {
    checkClient('ProducerPartitions', client);
    checkOptions('ProducerPartitions', options, producerPartitionsTable);
    super();
    this.topic = topic;
    this.#client = client;
    this.#layout = options.layout ?? '0.8';
    this.#onProblem = options.onProblem ?? (() => {});
    this.#clock = options.clock ?? systemClock;
    this.#watches = new OneShotWatches(client);
  }

  /** Resolves with the list as it stands now. A topic that is not there yet has an empty one. */
  static async open(
    client: Client,
    topic: string,
    options: ProducerPartitionsOptions = {},
  ): Promise<ProducerPartitions> {
    checkOptions('open', options, producerPartitionsTable);
    const { layout = '0.8' } = options;
    if (!Object.hasOwn(looks, layout)) {
      const known = Object.keys(looks).join(', ');
      throw new ArgumentError('layout', `one of ${known} is wanted, not ${layout}`);
    }
    const list = new ProducerPartitions(client, topic, options);
    client.on('session', list.#sessionBegan);
    try {
      await list.#look();
      return list;
    } catch (error) {
      await list.close();
      throw error;
    }
  }

  /** Those that take records now, by broker and partition. */
  get available(): readonly ProducerPartition[] {
    return this.#available;
  }

  /** Every partition there is, by its name's order: what a key is hashed over. */
  get all(): readonly ProducerPartition[] {
    return this.#all;
  }

  /** False: as it was last seen, and perhaps not any more. */
  get isFresh(): boolean {
    return this.#session !== undefined && !this.#session.aborted;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#again?.cancel();
    this.#client.off('session', this.#sessionBegan);
    await this.#turns.close(new Error('closed'));
    await this.#watches.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  readonly #sessionBegan = (): void => this.#changed();

  #changed(): void {
    this.#turns.put('look', async () => {
      if (this.#isClosed) return;
      try {
        await this.#look();
      } catch (error) {
        if (this.#isClosed || this.#client.state.name === 'closed') return;
        const path = layout08.topic.at({ topic: this.topic });
        this.#onProblem({ path, why: `not read, tried again: ${error}`, content: null });
        this.#again?.cancel();
        this.#again = this.#clock.after(this.#backoff.next(), () => this.#changed(), true);
      }
    });
  }

  async #look(): Promise<void> {
    const session = this.#client.sessionSignal;
    const found = await looks[this.#layout](this.#reader());
    this.#session = session;
    this.#backoff.reset();
    const all = found.map((one) => ({ topic: this.topic, ...one }));
    const available = all.filter(({ broker }) => broker !== null).sort(byBrokerAndPartition);
    const before = JSON.stringify([this.#all, this.#available]);
    this.#all = all;
    this.#available = available;
    if (JSON.stringify([all, available]) !== before) this.emit('change', available);
  }

  #reader(): Reader {
    const client = this.#client;
    const watch = (kind: 'data' | 'children', path: string): { watch: Listener } => ({
      watch: this.#watches.on(kind, path, () => this.#changed()),
    });
    // Made between two questions, it is asked for again: only who finds nothing is told when it is made.
    const read = async <T>(path: string, ask: () => Promise<T>): Promise<T | undefined> => {
      for (let tries = 1; tries <= readTriesMax; tries++) {
        try {
          return await ask();
        } catch (error) {
          if (!isZkError(error, 'NO_NODE')) throw error;
        }
        if ((await client.exists(path, watch('data', path))) === null) return undefined;
      }
      throw new Error(`${path} comes and goes`);
    };
    return {
      topic: this.topic,
      onProblem: this.#onProblem,
      children: async (path) =>
        (await read(path, () => client.children(path, watch('children', path)))) ?? [],
      data: async (path) => (await read(path, () => client.get(path, watch('data', path))))?.data,
    };
  }
}

/** Reads that are heard of again when what they read changes. Undefined: there is no such node. */
interface Reader {
  readonly topic: string;
  readonly onProblem: (problem: LayoutProblem) => void;
  children(path: string): Promise<string[]>;
  data(path: string): Promise<Buffer | null | undefined>;
}

/** How each generation says who takes what. */
const looks: Readonly<Record<ProducerLayout, (reader: Reader) => Promise<Found[]>>> = {
  '0.7': async (reader) => {
    const path = layout07.topic.at({ topic: reader.topic });
    const names = await reader.children(path);
    const brokers = await reader.children(layout07.brokerIds.at());
    const sum = new PartitionSum();
    const lists = await Promise.all(
      names.map(async (name) => {
        const at = layout07.topicBroker.at({ topic: reader.topic, broker: name });
        const stated = await counted(reader, at, layout07.topicBroker);
        const count = sum.take(stated, at, reader.onProblem);
        return isBroker(name) ? shares(Number(name), count, brokers.includes(name)) : [];
      }),
    );
    return lists.flat().sort(byName);
  },

  metaq: async (reader) => {
    const path = layoutMetaq.topicPub.at({ topic: reader.topic });
    const names = await reader.children(path);
    const sum = new PartitionSum();
    const lists = await Promise.all(
      names.map(async (name) => {
        const known = metaqBrokerOf(name);
        if (known === null || known.slave !== null) return []; // slaves take no records
        const at = layoutMetaq.sharePub.at({ topic: reader.topic, broker: name });
        const data = await reader.data(at);
        const share =
          data === undefined ? null : layoutMetaq.sharePub.tryParse(data, at, reader.onProblem);
        const count = sum.take(share?.numParts ?? 0, at, reader.onProblem);
        return shares(known.broker, count, true);
      }),
    );
    return lists.flat().sort(byName);
  },

  '0.8': async (reader) => {
    const { topic, onProblem } = reader;
    const path = layout08.topic.at({ topic });
    const data = await reader.data(path);
    const assignment = data === undefined ? null : layout08.topic.tryParse(data, path, onProblem);
    if (assignment === null) return [];
    const live = new Set(await reader.children(layout08.brokerIds.at()));
    return Promise.all(
      [...assignment.partitions.keys()].map(async (partition) => {
        const at = layout08.partitionState.at({ topic, partition });
        const bytes = await reader.data(at);
        const state =
          bytes === undefined ? null : layout08.partitionState.tryParse(bytes, at, onProblem);
        const leads = state !== null && live.has(String(state.leader));
        return { partition, name: String(partition), broker: leads ? state.leader : null };
      }),
    );
  },
};

async function counted(reader: Reader, at: string, row: typeof layout07.topicBroker) {
  const data = await reader.data(at);
  return data === undefined ? 0 : (row.tryParse(data, at, reader.onProblem) ?? 0);
}

function isBroker(name: string): boolean {
  return /^\d+$/.test(name);
}

function shares(broker: number, count: number, isLive: boolean): Found[] {
  return Array.from({ length: count }, (_, partition) => ({
    partition,
    name: formatBrokerPartition({ broker, partition }),
    broker: isLive ? broker : null,
  }));
}

function byName(a: Found, b: Found): number {
  const [x, y] = [a.name.split('-').map(Number), b.name.split('-').map(Number)];
  return x[0]! - y[0]! || x[1]! - y[1]!;
}
