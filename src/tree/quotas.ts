/**
 * Quotas: which paths have one, and the text in which limits and usage stand.
 *
 *   /zookeeper/quota/<path>/zookeeper_limits   count=5,bytes=100=;byteHardLimit=200;countHardLimit=9
 *   /zookeeper/quota/<path>/zookeeper_stats    count=3,bytes=42
 *
 * The odd "=" after the second value keeps old parsers from reading on (StatsTrack). -1, or a missing
 * key, is no limit. Any client may write such a text, and so also one that can't be read.
 */

import { TextMap } from '../support/index.ts';
import { PathPrefixes } from './path-prefixes.ts';

export const quotaRoot = '/zookeeper/quota';
export const limitsName = 'zookeeper_limits';
export const statsName = 'zookeeper_stats';

export const limitsPath = (path: string): string => `${quotaRoot}${path}/${limitsName}`;
export const statsPath = (path: string): string => `${quotaRoot}${path}/${statsName}`;

/** Longs, as Java's: whoever writes the text may choose any. */
export interface QuotaText {
  readonly count: bigint;
  readonly bytes: bigint;
  readonly countHardLimit: bigint;
  readonly byteHardLimit: bigint;
  /** Every key but count and bytes, known or not: they stay when usage is counted on. */
  readonly others: ReadonlyMap<string, bigint>;
}

const none: ReadonlyMap<string, bigint> = new Map();
const noQuota: QuotaText = {
  count: -1n,
  bytes: -1n,
  countHardLimit: -1n,
  byteHardLimit: -1n,
  others: none,
};

/** As Long.parseLong: undefined where that throws. */
function javaLong(text: string): bigint | undefined {
  if (!/^[+-]?0*\d{1,19}$/.test(text)) return undefined;
  const digits = BigInt(text.replace(/^[+-]?0*(?=\d)/, ''));
  const value = text.startsWith('-') ? -digits : digits;
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/** Null for a text that StatsTrack would throw at. */
export function parseQuota(data: Buffer | null): QuotaText | null {
  if (data === null) return null;
  // Java's split drops empty texts at the end: `count=` has no value, and `count==1` an empty one.
  const pairs = data.toString('utf8').split(/[,;]+/);
  while (pairs.at(-1) === '') pairs.pop();
  const values = new Map<string, bigint>();
  for (const pair of pairs) {
    const [key, value, ...more] = pair.split('=');
    if (value === undefined || (value === '' && more.every((each) => each === ''))) return null;
    const long = value === '' ? -1n : javaLong(value);
    if (long === undefined) return null;
    values.set(key!, long);
  }
  const get = (key: string) => values.get(key) ?? -1n;
  const quota = {
    count: get('count'),
    bytes: get('bytes'),
    countHardLimit: get('countHardLimit'),
    byteHardLimit: get('byteHardLimit'),
  };
  values.delete('count');
  values.delete('bytes');
  return { ...quota, others: values };
}

/** As `parseQuota`; what can't be read counts as nothing. */
export function readQuota(data: Buffer | null): QuotaText {
  return parseQuota(data) ?? noQuota;
}

/** Sums that no long holds turn over, as in Java: it has to be able to read the text again. */
export function usageText(count: bigint, bytes: bigint, others = none): Buffer {
  const more = [...others.keys()].sort().map((key) => `;${key}=${others.get(key)}`);
  const sums = `count=${BigInt.asIntN(64, count)},bytes=${BigInt.asIntN(64, bytes)}`;
  return Buffer.from(`${sums}${more.length > 0 ? '=' : ''}${more.join('')}`);
}

interface QuotaPath {
  readonly path: string;
}

/** The paths that have limits, and which of them stands above a given path. */
export class QuotaPaths {
  readonly #paths = new TextMap<QuotaPath>();
  readonly #prefixes = new PathPrefixes<QuotaPath>();

  add(path: string): void {
    if (path === '' || path === '/' || this.#paths.has(path)) return;
    const quota = { path };
    this.#paths.set(path, quota);
    this.#prefixes.add(path, quota);
  }

  delete(path: string): void {
    const quota = this.#paths.get(path);
    if (quota === undefined) return;
    this.#paths.delete(path);
    this.#prefixes.delete(path, quota);
  }

  /** The longest of them that is `path` or above it. The root has none: its quota is not kept. */
  above(path: string): string | undefined {
    return this.#prefixes.isEmpty ? undefined : this.#prefixes.find(path)[0]?.path;
  }
}
