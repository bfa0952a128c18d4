/**
 * Which partition the next record goes to.
 *
 *   round robin   one after the other, in the order of the list: MetaQ's rule, and the documents'
 *   keyed         by a hash of the key over all partitions, so that a key keeps its partition;
 *                 murmur2 as Kafka's producers have it since 0.8.2
 *   sticky        the same for a while, then another, so that batches fill: Kafka's rule since 2.4
 *
 * In: the partitions that can take records now. Out: one of them, or null when there is none. Pure but
 * for a counter, which starts anywhere and wraps where Java's int does.
 */

import { ArgumentError } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { stickyTable } from './option-tables.ts';

export interface ProducerPartition {
  readonly topic: string;
  /** Its number, on its broker where brokers count for themselves. */
  readonly partition: number;
  /** As it stands in the nodes of owners and offsets: `4`, or `29-4`. */
  readonly name: string;
  /** Who takes its records now; null: nobody. */
  readonly broker: number | null;
}

/** In the order of brokers, and of partitions on each. */
export function byBrokerAndPartition(a: ProducerPartition, b: ProducerPartition): number {
  return (a.broker ?? -1) - (b.broker ?? -1) || a.partition - b.partition;
}

export class RoundRobin {
  #next: number;

  /** `first`: where to start. 0. */
  constructor(first = 0) {
    this.#next = first;
  }

  choose<P extends ProducerPartition>(available: readonly P[]): P | null {
    if (available.length === 0) return null;
    const chosen = available[this.#next % available.length]!;
    this.#next = (this.#next + 1) & 0x7fff_ffff;
    return chosen;
  }
}

export interface StickyOptions {
  /** How many records stay together. 16,384. */
  readonly recordsMax?: number;
  readonly random?: () => number;
}

export class Sticky {
  readonly #recordsMax: number;
  readonly #random: () => number;
  #name: string | undefined;
  #records = 0;

  constructor(options: StickyOptions = {}) {
    checkOptions('Sticky', options, stickyTable);
    const { recordsMax = 16_384, random = Math.random } = options;
    if (!Number.isSafeInteger(recordsMax) || recordsMax < 1) {
      throw new ArgumentError('recordsMax', `a whole number from 1 is wanted, not ${recordsMax}`);
    }
    this.#recordsMax = recordsMax;
    this.#random = random;
  }

  choose<P extends ProducerPartition>(available: readonly P[]): P | null {
    const current = available.find(({ name }) => name === this.#name);
    if (current !== undefined && this.#records < this.#recordsMax) {
      this.#records += 1;
      return current;
    }
    // Another one, where there is another.
    const others = available.filter((one) => one !== current);
    const from = others.length > 0 ? others : available;
    const chosen = from[Math.floor(this.#random() * from.length)];
    if (chosen === undefined) return null;
    this.#name = chosen.name;
    this.#records = 1;
    return chosen;
  }

  /** The batch is full, or was sent: the next record goes elsewhere. */
  batchEnded(): void {
    this.#records = this.#recordsMax;
  }
}

/** Among all, also those that nobody leads now: a key that moved would lose its order. */
export function chooseByKey<P extends ProducerPartition>(
  key: string | Uint8Array,
  all: readonly P[],
): P | null {
  if (all.length === 0) return null;
  return all[(murmur2(key) & 0x7fff_ffff) % all.length]!;
}

const multiplier = 0x5bd1e995;

/** MurmurHash2, 32 bits, with the seed of Kafka's clients. As a Java int: it may be negative. */
export function murmur2(key: string | Uint8Array): number {
  const data = typeof key === 'string' ? Buffer.from(key) : key;
  const { length } = data;
  let hash = 0x9747b28c ^ length;
  const whole = length & ~3;
  for (let i = 0; i < whole; i += 4) {
    let word = data[i]! | (data[i + 1]! << 8) | (data[i + 2]! << 16) | (data[i + 3]! << 24);
    word = Math.imul(word, multiplier);
    word ^= word >>> 24;
    hash = Math.imul(hash, multiplier) ^ Math.imul(word, multiplier);
  }
  if (whole < length) {
    if (length - whole > 2) hash ^= data[whole + 2]! << 16;
    if (length - whole > 1) hash ^= data[whole + 1]! << 8;
    hash = Math.imul(hash ^ data[whole]!, multiplier);
  }
  hash = Math.imul(hash ^ (hash >>> 13), multiplier);
  return hash ^ (hash >>> 15);
}
