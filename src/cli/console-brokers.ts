/**
 * Who tells the console how far Kafka's partitions reach: brokers, asked through kafkajs where it is there.
 *
 * In: the brokers that stand in ZooKeeper, or those that were named. Out: a source, once a broker has
 * answered; until then, and after brokers went, none, and a sentence that says why. It begins to look when
 * it is first asked, tries again every `againMs` at most, and never keeps anybody waiting.
 */

import type { Client } from '../client/index.ts';
import type { Ends } from '../console/index.ts';
import {
  isReaderError,
  type OffsetSource,
  openKafkaJsOffsets,
  type PartitionId,
  ReaderError,
  readBrokers,
} from '../kafka/index.ts';
import { type Clock, systemClock } from '../support/index.ts';
import { givenAddresses, plainAddresses, sentenceOf } from './kafka-lag.ts';

/**
 * Those that stand in ZooKeeper, nobody, or these. A client that may write `/brokers/ids/1` chooses a
 * host and a port, so the console connects to those in ZooKeeper only when it was told to.
 */
export type AskedBrokers = 'registered' | 'none' | readonly string[];

export function askedBrokers(given: unknown): AskedBrokers {
  if (given === undefined || given === 'none') return 'none';
  return given === 'registered' ? 'registered' : givenAddresses(String(given));
}

const notAsked =
  'brokers are not asked for the ends of partitions; start with --brokers registered (drover serve: --console-brokers registered) to ask those in ZooKeeper, or name them';
/** A broker that does not answer is not asked again sooner. */
const againMs = 10_000;
const timeoutMs = 3_000;

type State =
  | { readonly name: 'closed'; readonly why: string; readonly sinceMs: number }
  | { readonly name: 'opening'; readonly why: string; readonly done: Promise<void> }
  | { readonly name: 'open'; readonly source: OffsetSource };

export interface BrokerEndsOptions {
  readonly open?: (addresses: readonly string[]) => Promise<OffsetSource | null>;
  readonly clock?: Clock;
}

export class BrokerEnds {
  readonly #client: Client;
  readonly #brokers: AskedBrokers;
  readonly #open: NonNullable<BrokerEndsOptions['open']>;
  readonly #clock: Clock;
  #state: State;
  #isClosed = false;
  /** When a broker answered last. */
  #heardMs = Number.NEGATIVE_INFINITY;
  readonly #ends: Ends = {
    bounds: (id: PartitionId) => this.#asked((source) => source.bounds(id)),
    offsetForTime: (id: PartitionId, timestampMs: number) =>
      this.#asked((source) => source.offsetForTime(id, timestampMs)),
  };

  constructor(client: Client, brokers: AskedBrokers, options: BrokerEndsOptions = {}) {
    this.#client = client;
    this.#brokers = brokers;
    this.#open =
      options.open ?? ((addresses) => openKafkaJsOffsets(addresses, { timeoutMs, keptMs: 900 }));
    this.#clock = options.clock ?? systemClock;
    const why = 'no broker was asked for the ends of partitions yet';
    this.#state = { name: 'closed', why, sinceMs: Number.NEGATIVE_INFINITY };
  }

  get source(): Ends | undefined {
    if (this.#state.name === 'open') return this.#ends;
    this.#begin();
    return undefined;
  }

  get why(): string {
    return this.#state.name === 'open' ? '' : this.#state.why;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#state.name === 'opening') await this.#state.done;
    await this.#drop('the console is closing');
  }

  #begin(): void {
    const state = this.#state;
    if (this.#isClosed || state.name !== 'closed') return;
    if (this.#brokers === 'none') {
      this.#fail(notAsked);
      return;
    }
    if (this.#clock.nowMs() - state.sinceMs < againMs) return;
    this.#state = { name: 'opening', why: state.why, done: this.#opened() };
  }

  /** Never rejects: what went wrong is what `why` says. */
  async #opened(): Promise<void> {
    try {
      const addresses = await this.#addresses();
      if (typeof addresses === 'string') return this.#fail(addresses);
      const source = await this.#open(addresses);
      if (source === null) {
        return this.#fail('npm install kafkajs beside drover lets brokers be asked for lag');
      }
      this.#state = { name: 'open', source };
      this.#heardMs = this.#clock.nowMs();
      if (this.#isClosed) await this.#drop('the console is closing');
    } catch (error) {
      this.#fail(error instanceof ReaderError ? sentenceOf(error) : (error as Error).message);
    }
  }

  /** Text: why there are none. */
  async #addresses(): Promise<readonly string[] | string> {
    if (typeof this.#brokers !== 'string') return this.#brokers;
    const brokers = await readBrokers(this.#client);
    if (brokers.length === 0) return 'no broker lives in ZooKeeper; --brokers names others to ask';
    const plain = plainAddresses(brokers);
    const why = 'no broker listens without TLS and SASL; --brokers names one that can be asked';
    return plain.length > 0 ? plain : why;
  }

  #fail(why: string): void {
    this.#state = { name: 'closed', why, sinceMs: this.#clock.nowMs() };
  }

  async #asked<T>(ask: (source: OffsetSource) => Promise<T>): Promise<T> {
    const state = this.#state;
    if (state.name !== 'open') throw new ReaderError('SOURCE_FAILED', state.why);
    try {
      const answer = await ask(state.source);
      this.#heardMs = this.#clock.nowMs();
      return answer;
    } catch (error) {
      // A topic that is gone is refused too: only when nothing is answered are brokers looked for anew.
      const isSilent = this.#clock.nowMs() - this.#heardMs >= againMs;
      if (isReaderError(error, 'SOURCE_FAILED') && isSilent && this.#state === state) {
        await this.#drop(sentenceOf(error));
      }
      throw error;
    }
  }

  async #drop(why: string): Promise<void> {
    const state = this.#state;
    this.#fail(why);
    if (state.name === 'open') await state.source.close().catch(() => {}); // it was broken already
  }
}
