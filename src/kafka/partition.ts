/**
 * A partition, by topic and name: the number as text, or `broker-number` where brokers count for
 * themselves, as in 0.7 and MetaQ. The name is what stands in the nodes of owners and offsets.
 */

import { ArgumentError } from '../client/index.ts';
import { parseBrokerPartition } from './layout-consumer.ts';

export interface PartitionId {
  readonly topic: string;
  readonly partition: string;
}

/** A topic holds no slash, so this is unique and can be taken apart. */
export function keyOf({ topic, partition }: PartitionId): string {
  return `${topic}/${partition}`;
}

export function partitionOf(key: string): PartitionId {
  const slash = key.indexOf('/');
  return { topic: key.slice(0, slash), partition: key.slice(slash + 1) };
}

/** The number of a partition within its topic, or on its broker. */
export function partitionNumber({ topic, partition }: PartitionId): number {
  if (/^\d+$/.test(partition)) return Number(partition);
  try {
    return parseBrokerPartition(partition).partition;
  } catch {
    const why = `${topic}: a number, or broker-number, is wanted, not "${partition}"`;
    throw new ArgumentError('partition', why);
  }
}

/** By number where names are numbers, as from 0.8; else as text, as 0.7 did. */
export function sortPartitions(names: readonly string[]): string[] {
  const isNumeric = names.every((name) => /^\d+$/.test(name));
  if (isNumeric) return [...names].sort((a, b) => Number(a) - Number(b));
  return [...names].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}
