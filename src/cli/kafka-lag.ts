/**
 * How far a group is behind, in records and in time, as far as anybody can say.
 *
 * Records: the end of the partition less what was committed. Time: the age of the next record to read.
 * Brokers cannot be asked for that, but for the first offset at or after a time: the time is looked for
 * by halving, to within a twentieth, so no record is read and no group is joined. Where no broker can be
 * asked both are null: unknown, which is not 0.
 */

import {
  type GroupPartitionInfo,
  NdjsonSource,
  type OffsetSource,
  openKafkaJsOffsets,
  type PartitionId,
  ReaderError,
} from '../kafka/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError } from './exit-codes.ts';
import type { BrokerView } from './kafka-cluster.ts';

/** Longest age that is looked for. */
const ageMaxMs = 10 * 365 * 86_400_000;
const firstAgeMs = 1_000;
const precision = 0.05;

/** How old the record at `offset` is, which has to be there. */
export async function timeLagMs(
  source: Pick<OffsetSource, 'offsetForTime'>,
  id: PartitionId,
  offset: bigint,
  nowMs: number,
): Promise<number> {
  // The record is at least as old as this: what came since then lies behind it.
  const isOlder = async (ageMs: number) => (await source.offsetForTime(id, nowMs - ageMs)) > offset;
  let [young, old] = [0, firstAgeMs];
  while (await isOlder(old)) {
    young = old;
    old *= 2;
    if (old > ageMaxMs) return young;
  }
  while (old - young > Math.max(firstAgeMs / 4, old * precision)) {
    const middle = Math.round((young + old) / 2);
    if (await isOlder(middle)) young = middle;
    else old = middle;
  }
  return young;
}

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
function sentenceOf({ message, code }: ReaderError): string {
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

function addressesOf(options: OptionValues, brokers: readonly BrokerView[]): string[] {
  if (typeof options.brokers === 'string') {
    const given = options.brokers.split(',').map((one) => one.trim());
    const bad = given.find((one) => !/^[^\s:]+:\d+$|^\[[^\]]+\]:\d+$/.test(one));
    if (bad === undefined) return given;
    throw new CommandError('usage', `--brokers: host:port,host:port is wanted, not "${bad}"`);
  }
  return brokers.flatMap(({ registration: { endpoints } }) => {
    const plain = endpoints.find(({ protocol, host }) => protocol === 'PLAINTEXT' && host !== null);
    if (plain === undefined) return [];
    const host = plain.host!.includes(':') ? `[${plain.host}]` : plain.host;
    return [`${host}:${plain.port}`];
  });
}
