/**
 * How far a group is behind, in records and in time, as far as it can be known.
 *
 * Records: the end of the partition less what was committed. Time: the age of the next record to read.
 * Where no broker can be asked both are null: unknown, which is not 0.
 */

import {
  type BrokerSeen,
  type GroupPartitionInfo,
  NdjsonSource,
  type OffsetSource,
  openKafkaJsOffsets,
  ReaderError,
  timeLagMs,
} from '../kafka/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError } from './exit-codes.ts';
import type { BrokerView } from './kafka-cluster.ts';

export interface Lag {
  readonly earliest: bigint | null;
  readonly latest: bigint | null;
  readonly records: bigint | null;
  readonly timeMs: number | null;
  /** What was committed is not there any more, or not yet. */
  readonly isOutOfRange: boolean;
}

export const unknownLag: Lag = {
  earliest: null,
  latest: null,
  records: null,
  timeMs: null,
  isOutOfRange: false,
};

export async function lagOf(
  source: OffsetSource | null,
  partition: GroupPartitionInfo,
  { nowMs, onUnknown }: { readonly nowMs: number; readonly onUnknown: (why: string) => void },
): Promise<Lag> {
  if (source === null) return unknownLag;
  try {
    const { earliest, latest } = await source.bounds(partition);
    const { offset } = partition;
    if (offset === null) return { ...unknownLag, earliest, latest };
    const isOutOfRange = offset < earliest || offset > latest;
    const next = larger(offset, earliest);
    const records = next > latest ? 0n : latest - next;
    const timeMs = records === 0n ? 0 : await timeLagMs(source, partition, next, nowMs);
    return { earliest, latest, records, timeMs, isOutOfRange };
  } catch (error) {
    if (!(error instanceof ReaderError)) throw error;
    onUnknown(sentenceOf(error));
    return unknownLag;
  }
}

/** Without the code, which is for programs. */
export function sentenceOf({ message, code }: ReaderError): string {
  return message.startsWith(`${code}: `) ? message.slice(code.length + 2) : message;
}

function larger(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

/** Who is asked for ends of partitions, as `--ndjson`, `--brokers` and the cluster say; null: nobody. */
export async function openOffsets(
  context: Context,
  options: OptionValues,
  brokers: readonly BrokerView[],
): Promise<OffsetSource | null> {
  const { output } = context;
  if (typeof options.ndjson === 'string') {
    return new NdjsonSource({ directory: options.ndjson, follow: false });
  }
  if (options.ask === false) return null;
  const addresses = addressesOf(options, brokers);
  if (addresses.length === 0) {
    output.tell('lag is unknown: no broker listens without TLS and SASL; name one with --brokers');
    return null;
  }
  try {
    const source = await openKafkaJsOffsets(addresses);
    if (source === null) {
      output.tell('lag is unknown: npm install kafkajs lets brokers be asked');
    }
    return source;
  } catch (error) {
    if (!(error instanceof ReaderError)) throw error;
    output.tell(`lag is unknown: ${sentenceOf(error)}`);
    return null;
  }
}

export function givenAddresses(text: string): string[] {
  const given = text.split(',').map((one) => one.trim());
  const bad = given.find((one) => !/^[^\s:]+:\d+$|^\[[^\]]+\]:\d+$/.test(one));
  if (bad === undefined) return given;
  throw new CommandError('usage', `--brokers: host:port,host:port is wanted, not "${bad}"`);
}

function addressesOf(options: OptionValues, brokers: readonly BrokerView[]): string[] {
  if (typeof options.brokers === 'string') {
    return givenAddresses(options.brokers);
  }
  return plainAddresses(brokers);
}

/** What can be asked without keys and passwords. */
export function plainAddresses(brokers: readonly Pick<BrokerSeen, 'registration'>[]): string[] {
  return brokers.flatMap(({ registration: { endpoints } }) => {
    const plain = endpoints.find(({ protocol, host }) => protocol === 'PLAINTEXT' && host !== null);
    if (plain === undefined) return [];
    const host = plain.host!.includes(':') ? `[${plain.host}]` : plain.host;
    return [`${host}:${plain.port}`];
  });
}
