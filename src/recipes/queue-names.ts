/**
 * How the items of a queue are named, in both layouts, and the order that the names give. Pure.
 *
 *   curator   queue-<seq>                           first in, first out
 *             queue-<sign><8 hex><seq>              by priority, lowest first; the sign is 0 or 1
 *             queue-|<hex epoch>|<seq>              by the time before which it is not handed out
 *   buckets   b-<seq>  b-<key>-<seq>                a bucket; the key is a priority or a slot of time
 *             i-<id>-<tries>-<hex due>-<seq>        an item in it
 *             c-<name of the item>                  the claim of whoever took it, ephemeral
 *
 * The server's sequence goes on below zero past 2^31-1. Numbers are therefore compared modulo 2^32:
 * right as long as fewer than 2^31 stand between two items that wait.
 */

export type QueueOrder = 'fifo' | 'priority' | 'delay';

const sequence = '(\\d{10}|-\\d{9,10})';

const flatPatterns: Record<QueueOrder, RegExp> = {
  // Curator's DistributedIdQueue has the id between two bars.
  fifo: new RegExp(`^queue-(?:\\|([^|]*)\\|)?${sequence}$`),
  priority: new RegExp(`^queue-([01][0-9A-F]{8})${sequence}$`),
  delay: new RegExp(`^queue-\\|([0-9A-Fa-f]+)\\|${sequence}$`),
};

/** As Curator's: a digit for the sign, then the number's 32 bits, so that text sorts as numbers do. */
export function priorityText(priority: number): string {
  return (priority >= 0 ? '1' : '0') + hex(priority >>> 0, 8);
}

/** As Curator's: the time in hex, between bars. */
export function delayText(dueMs: number): string {
  return `|${hex(dueMs, 8)}|`;
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}

export interface FlatName {
  readonly name: string;
  readonly sequence: number;
  /** What sorts before the sequence: a priority. Empty for the other orders. */
  readonly key: string;
  readonly dueMs: number;
}

/** Null for a name that is no item of a queue of this order. */
export function flatName(order: QueueOrder, name: string): FlatName | null {
  const match = flatPatterns[order].exec(name);
  if (match === null) return null;
  const key = order === 'priority' ? match[1]! : '';
  const dueMs = order === 'delay' ? Number.parseInt(match[1]!, 16) : 0;
  return { name, sequence: Number(match[2]), key, dueMs };
}

export interface BucketName {
  readonly name: string;
  readonly key: string;
  readonly sequence: number;
}

const bucketPattern = new RegExp(`^b-(?:([0-9A-F]+)-)?${sequence}$`);

export function bucketName(name: string): BucketName | null {
  const match = bucketPattern.exec(name);
  return match && { name, key: match[1] ?? '', sequence: Number(match[2]) };
}

export function bucketPrefix(key: string): string {
  return key === '' ? 'b-' : `b-${key}-`;
}

/** Eleven hex digits reach past the year 2500, and text of one length sorts as numbers do. */
export function slotKey(dueMs: number, slotMs: number): string {
  return hex(Math.floor(dueMs / slotMs) * slotMs, 11);
}

export interface ItemName {
  readonly name: string;
  readonly id: string;
  /** How often it had been taken before it came to be here. */
  readonly tries: number;
  readonly dueMs: number;
  readonly sequence: number;
}

const itemPattern = new RegExp(`^i-([0-9a-f]{32})-(\\d{1,9})-([0-9A-F]+)-${sequence}$`);

export function itemName(name: string): ItemName | null {
  const match = itemPattern.exec(name);
  if (match === null) return null;
  const [, id, tries, due, number] = match;
  return {
    name,
    id: id!,
    tries: Number(tries),
    dueMs: Number.parseInt(due!, 16),
    sequence: Number(number),
  };
}

export function itemPrefix(id: string, tries: number, dueMs: number): string {
  return `i-${id}-${tries}-${hex(dueMs, 1)}-`;
}

export function claimName(item: string): string {
  return `c-${item}`;
}

/** The item that a name claims, or null. */
export function claimedBy(name: string): string | null {
  return name.startsWith('c-') ? name.slice(2) : null;
}

interface Sortable {
  readonly key?: string;
  readonly dueMs?: number;
  readonly sequence: number;
}

/** First to be taken first: by key, then by time, then as they were put. */
export function byTurn(a: Sortable, b: Sortable): number {
  const [left, right] = [a.key ?? '', b.key ?? ''];
  if (left !== right) return left < right ? -1 : 1;
  return (a.dueMs ?? 0) - (b.dueMs ?? 0) || (a.sequence - b.sequence) | 0;
}
