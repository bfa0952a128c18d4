/**
 * Fields of JSON that several generations of writers have left behind, read forgivingly.
 *
 * In: text or a parsed object. Out: the value, or an Error that says which field is wrong and how.
 * A number may come as a string and the other way round; unknown keys are nobody's business.
 */

import { pathFault, printable } from '../protocol/index.ts';
import type { OnProblem } from './layout.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** An object, also where backslashes were not escaped, as in what Kafka wrote before 1.0.1. */
export function parseObject(text: string | null): JsonObject {
  if (text === null || text.trim() === '') throw new Error('a JSON object is wanted');
  const value = parseJson(text);
  if (!isObject(value)) throw new Error('a JSON object is wanted');
  return value;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!text.includes('\\')) throw new Error(`no JSON: ${(error as Error).message}`);
    try {
      return JSON.parse(text.replaceAll('\\', '\\\\'));
    } catch {
      throw new Error(`no JSON: ${(error as Error).message}`);
    }
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function toInt(value: unknown, field: string): number {
  const number = typeof value === 'string' && /^\s*-?\d+\s*$/.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) {
    throw new Error(`${field}: a whole number is wanted`);
  }
  return number;
}

/** A name that becomes part of a path: what no node can be called is a name of nothing. */
export function toName(value: string, field: string): string {
  const fault = value === '' || value.includes('/') ? 'no name' : pathFault(`/${value}`);
  if (fault !== null) throw new Error(`${field}: "${printable(value.slice(0, 100))}": ${fault}`);
  return value;
}

/**
 * No cluster with ZooKeeper has more partitions. A larger count, in one node or in several together, is a
 * mistake or an attack: seven bytes in a node must not take the memory of a million names.
 */
export const partitionsMax = 200_000;

/** Adds up partitions that are counted by nodes, and refuses the count that makes the sum too large. */
export class PartitionSum {
  #sum: number;

  constructor(already = 0) {
    this.#sum = already;
  }

  get sum(): number {
    return this.#sum;
  }

  /** Throws where it would be too many. */
  add(count: number, field: string): void {
    if (this.#sum + count > partitionsMax) {
      throw new Error(`${field}: ${count} makes more than ${partitionsMax} partitions in all`);
    }
    this.#sum += count;
  }

  /** The count that a node states, or 0 and a problem with its path. */
  take(count: number, path: string, onProblem: OnProblem): number {
    try {
      this.add(count, 'numParts');
      return count;
    } catch (error) {
      onProblem({ path, why: (error as Error).message, content: String(count) });
      return 0;
    }
  }
}

/** How many partitions there are. */
export function toCount(value: unknown, field: string): number {
  const count = toInt(value, field);
  if (count < 0 || count > partitionsMax) {
    throw new Error(`${field}: a count from 0 to ${partitionsMax} is wanted`);
  }
  return count;
}

export function intOf(object: JsonObject, field: string, otherwise?: number): number {
  const value = object[field];
  if ((value === undefined || value === null) && otherwise !== undefined) return otherwise;
  return toInt(value, field);
}

export function textOf(object: JsonObject, field: string): string | null {
  const value = object[field];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') throw new Error(`${field}: a string is wanted`);
  return value;
}

export function intsOf(value: unknown, field: string): number[] {
  if (!Array.isArray(value)) throw new Error(`${field}: a list of broker ids is wanted`);
  return value.map((one) => toInt(one, field));
}

/** Milliseconds. A string or a number; some writers (kazoo-go) count in seconds. */
export function timestampOf(object: JsonObject, field = 'timestamp'): number | null {
  const value = object[field];
  if (value === undefined || value === null) return null;
  const time = typeof value === 'string' ? Number(value) : value;
  if (typeof time !== 'number' || !Number.isFinite(time)) return null;
  // Those that count in seconds write a number. 10^11 s is the year 5138, and 10^11 ms is 1973.
  const isInSeconds = typeof value === 'number' && value > 0 && value < 1e11;
  return Math.trunc(isInSeconds ? time * 1_000 : time);
}

/** Decimal text, as offsets and epochs are written. */
export function parseDecimal(text: string | null, what: string): bigint {
  const trimmed = text?.trim() ?? '';
  if (!/^-?\d{1,19}$/.test(trimmed)) throw new Error(`${what}: a decimal number is wanted`);
  return BigInt(trimmed);
}

/** Written with the fields in this order; those without a value are left out. */
export function toJson(fields: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(fields);
}
