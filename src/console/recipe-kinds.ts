/**
 * Which recipe a node is, by the names of its children: Curator's names, which are ours too, and those of our
 * own queues. A guess by names: a program that names its nodes alike is taken for one.
 */

import type { StatView as ZkStat } from '../client/index.ts';
import { childOf, nameOf, parentOf } from '../protocol/index.ts';
import { Pace, sortInTurns } from '../support/index.ts';
import type { RecipeKind } from './views.ts';

const protectedPrefix = '(?:_c_[0-9a-f-]{36}-)?';
export const patterns = {
  lock: new RegExp(`^${protectedPrefix}lock-\\d{10}$`),
  readWrite: new RegExp(`^${protectedPrefix}__(READ|WRIT)__\\d{10}$`),
  /** And who plans for a group of consumers. */
  latch: new RegExp(`^(${protectedPrefix}latch|_c_[0-9a-f-]{36}-m)-\\d{10}$`),
  lease: new RegExp(`^${protectedPrefix}lease-\\d{10}$`),
  queue: /^(queue-|qn-)/,
  /** Of a queue in buckets: an item, its claim in the list beside it, and who waits for one. */
  item: /^i-[0-9a-f]{32}-/,
  claim: /^c-i-[0-9a-f]{32}-/,
  taker: new RegExp(`^${protectedPrefix}taker-\\d{10}$`),
  /** Of a queue's writers: what each wrote last, so that a lost reply can be asked for. Nobody stands in line. */
  receipt: /^receipt-[0-9a-f-]{36}$/,
} as const;

const bucketName = /^b-.*\d{10}$/;

type Place = keyof typeof patterns;
const placeKinds = Object.keys(patterns) as Place[];

export interface Visited {
  readonly path: string;
  readonly names: readonly string[];
  /** Kinds of places among the names. */
  readonly places: ReadonlySet<Place>;
  readonly stat: ZkStat;
}

export function placeOf(name: string): Place | null {
  // Most names are none, and are told apart by their end or their first letter.
  const last = name.charCodeAt(name.length - 1);
  const isCandidate = (last >= 48 && last <= 57) || /^(q|receipt-)/.test(name);
  return isCandidate ? (placeKinds.find((kind) => patterns[kind].test(name)) ?? null) : null;
}

export async function placesIn(names: readonly string[]): Promise<ReadonlySet<Place>> {
  const found = new Set<Place>();
  const pace = new Pace();
  for (const [at, name] of names.entries()) {
    const place = placeOf(name);
    if (place !== null) found.add(place);
    if ((at & 0xff) === 0xff) await pace.keep();
  }
  return found;
}

/** Those that are wanted, the first in line first. */
export async function inLine(
  names: readonly string[],
  isWanted: (name: string) => boolean = () => true,
): Promise<string[]> {
  const found: string[] = [];
  const pace = new Pace();
  for (const [at, name] of names.entries()) {
    if (isWanted(name)) found.push(name);
    if ((at & 0xff) === 0xff) await pace.keep();
  }
  return sortInTurns(found, bySequence);
}

export function kindOf(
  { path, names, places, stat }: Visited,
  byPath: ReadonlyMap<string, Visited>,
): RecipeKind | null {
  if (isSemaphore(path, names, byPath)) return 'semaphore';
  if (isBuckets(path, names, byPath)) return 'queue';
  if (places.has('readWrite')) return 'readWriteLock';
  if (places.has('latch')) return 'election';
  // The line of a semaphore is shown with it.
  if (places.has('lock')) {
    const above = parentOf(path);
    const parent = above === null ? undefined : byPath.get(above);
    const isOfSemaphore =
      nameOf(path) === 'locks' && parent && isSemaphore(parent.path, parent.names, byPath);
    return isOfSemaphore ? null : 'lock';
  }
  if (places.has('lease')) return null;
  if (places.has('queue')) return 'queue';
  if (names.includes('ready')) return 'doubleBarrier';
  if (names.length === 0) {
    return /barrier/i.test(nameOf(path)) && stat.ephemeralOwner === 0n ? 'barrier' : null;
  }
  // What stands beside or below a queue is shown with it.
  if (places.has('receipt') || places.has('taker') || places.has('item')) return null;
  const isEphemeral = (one: Visited | undefined) =>
    one !== undefined && one.stat.ephemeralOwner > 0n;
  const areEphemeral = names.every((name) => isEphemeral(byPath.get(childOf(path, name))));
  if (!areEphemeral) return null;
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
  return names.every((name) => uuid.test(name)) ? 'discovery' : 'membership';
}

/** A queue in buckets has its items one level below, and beside them who puts and who waits. */
export function isBuckets(
  path: string,
  names: readonly string[],
  byPath: ReadonlyMap<string, Visited>,
): boolean {
  const items = names.includes('items') ? byPath.get(childOf(path, 'items')) : undefined;
  if (items === undefined || !items.names.every((name) => bucketName.test(name))) return false;
  return ['producers', 'takers', 'dead'].some((name) => names.includes(name));
}

/** Leases, and a line for them; before the first lease only the line. A folder called locks is no line. */
function isSemaphore(
  path: string,
  names: readonly string[],
  byPath: ReadonlyMap<string, Visited>,
): boolean {
  if (names.includes('leases')) return byPath.has(childOf(path, 'leases'));
  const line = names.length === 1 && names[0] === 'locks' && byPath.get(childOf(path, 'locks'));
  return line ? line.places.has('lock') : false;
}

function bySequence(a: string, b: string): number {
  const [one, other] = [a.slice(-10), b.slice(-10)];
  return one < other ? -1 : one > other ? 1 : 0;
}
