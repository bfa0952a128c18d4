/**
 * Which brokers hold which partition of a new topic, exactly as Kafka's AdminUtils decides it.
 *
 * In: brokers (sorted by id here, if they are not), counts, and where to start. Out: replicas by
 * partition; the first of each is the preferred leader. First replicas go round the brokers; the
 * others follow at a shift that grows with each round, so that the load of a dead broker spreads.
 *
 * With racks, brokers are taken from each rack in turn, and a rack gets its second replica only when
 * every rack has one. Either all brokers have a rack or none. Pure, but for `random`.
 */

import { ArgumentError } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { assignmentTable } from './option-tables.ts';

export interface BrokerPlace {
  readonly id: number;
  /** Null or missing: not known. */
  readonly rack?: string | null;
}

export interface AssignmentOptions {
  readonly partitions: number;
  readonly replicationFactor: number;
  /** Where in the list of brokers partition 0 starts, and the first shift. By chance unless said. */
  readonly startIndex?: number;
  /** The number of the first partition to place. 0. */
  readonly firstPartition?: number;
  /** 0 (inclusive) to 1 (exclusive), as `Math.random`. */
  readonly random?: () => number;
}

/** As much as one znode can hold with room to spare; Kafka itself sets no bound. */
const partitionsMax = 100_000;

export function assignReplicas(
  brokers: readonly BrokerPlace[],
  options: AssignmentOptions,
): Map<number, number[]> {
  checkOptions('assignReplicas', options, assignmentTable);
  const { partitions, replicationFactor, startIndex, firstPartition = 0, ...rest } = options;
  const { random = Math.random } = rest;
  checkWhole('partitions', partitions, 1, partitionsMax);
  checkWhole('replicationFactor', replicationFactor, 1, 32_767);
  checkWhole('firstPartition', firstPartition, 0, partitionsMax);
  if (startIndex !== undefined) checkWhole('startIndex', startIndex, 0, partitionsMax);
  if (replicationFactor > brokers.length) {
    const why = `${replicationFactor} replicas need as many brokers, and there are ${brokers.length}`;
    throw new ArgumentError('replicationFactor', why);
  }
  const racks = racksOf(brokers);
  const ring = racks === null ? brokers.map(({ id }) => id).sort(ascending) : alternate(racks);
  const anyIndex = () => Math.floor(random() * ring.length);
  const start = startIndex ?? anyIndex();
  let shift = startIndex ?? anyIndex();

  const result = new Map<number, number[]>();
  for (let partition = firstPartition; partition < firstPartition + partitions; partition++) {
    if (partition > 0 && partition % ring.length === 0) shift += 1;
    const first = (partition + start) % ring.length;
    const replicas =
      racks === null
        ? plainReplicas(ring, first, shift, replicationFactor)
        : rackReplicas(ring, racks, first, shift, replicationFactor);
    result.set(partition, replicas);
  }
  return result;
}

/** One broker of each rack in turn, racks in the order of their names, brokers of theirs. */
export function alternate(racks: ReadonlyMap<number, string>): number[] {
  const byRack = new Map<string, number[]>();
  for (const [id, rack] of [...racks].sort(([a], [b]) => a - b)) {
    const ids = byRack.get(rack);
    if (ids) ids.push(id);
    else byRack.set(rack, [id]);
  }
  const names = [...byRack.keys()].sort();
  const ring: number[] = [];
  for (let round = 0; ring.length < racks.size; round++) {
    for (const name of names) {
      const id = byRack.get(name)![round];
      if (id !== undefined) ring.push(id);
    }
  }
  return ring;
}

function plainReplicas(ring: readonly number[], first: number, shift: number, count: number) {
  const others = Array.from({ length: count - 1 }, (_, j) => ring[after(first, shift, j, ring)]!);
  return [ring[first]!, ...others];
}

function rackReplicas(
  ring: readonly number[],
  racks: ReadonlyMap<number, string>,
  first: number,
  shift: number,
  count: number,
): number[] {
  const rackCount = new Set(racks.values()).size;
  const replicas = [ring[first]!];
  const usedRacks = new Set([racks.get(ring[first]!)!]);
  for (let step = 0; replicas.length < count; step++) {
    const broker = ring[after(first, shift * rackCount, step, ring)]!;
    const rack = racks.get(broker)!;
    const rackIsTaken = usedRacks.has(rack) && usedRacks.size < rackCount;
    if (rackIsTaken || replicas.includes(broker)) continue;
    replicas.push(broker);
    usedRacks.add(rack);
  }
  return replicas;
}

/** The place of a further replica: never that of the first, whatever the shift. */
function after(first: number, shift: number, step: number, ring: readonly number[]): number {
  return (first + 1 + ((shift + step) % (ring.length - 1))) % ring.length;
}

function racksOf(brokers: readonly BrokerPlace[]): Map<number, string> | null {
  const known = brokers.filter(({ rack }) => rack !== undefined && rack !== null);
  if (known.length === 0) return null;
  if (known.length < brokers.length) {
    const missing = brokers.filter((one) => !known.includes(one)).map(({ id }) => id);
    throw new ArgumentError('brokers', `all have a rack or none: ${missing.join(', ')} have none`);
  }
  return new Map(known.map(({ id, rack }) => [id, rack!]));
}

function checkWhole(name: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw new ArgumentError(name, `a whole number from ${min} to ${max} is wanted, not ${value}`);
}

const ascending = (a: number, b: number) => a - b;
