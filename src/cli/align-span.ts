/**
 * From when to when the data of a run goes, so that who watches it can tell how much is left.
 *
 *   /align/[group]/span   {"version":1,"start":1700000040000,"end":1700003640000}
 *
 * Written by runs over files without `--follow`, from the first and the last record of each file: an
 * estimate where records are out of order. For people alone; nothing is decided by it.
 */

import { alignPaths } from '../align/index.ts';
import { type Client, isZkError } from '../client/index.ts';
import { type AlignInput, partitionsOf } from './align-input.ts';

export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

/** Later than that is no time of the data, as in a run. */
const futureToleranceMs = 300_000;

const spanPath = (group: string) => `${alignPaths(group).base}/span`;

/** Null where no record has a time. */
export async function spanOf({ source, topics, timeOf }: AlignInput): Promise<Span | null> {
  const times: number[] = [];
  for (const id of partitionsOf(topics)) {
    const { earliest, latest } = await source.bounds(id);
    if (latest === earliest) continue;
    for (const offset of [earliest, latest - 1n]) {
      const reader = await source.open(id, offset);
      const { value } = await reader.next();
      await reader.close();
      const timeMs = value === undefined ? Number.NaN : timeOf(value.records[0]!);
      if (timeMs >= 0 && timeMs <= Date.now() + futureToleranceMs) times.push(timeMs);
    }
  }
  if (times.length === 0) return null;
  return { startMs: Math.min(...times), endMs: Math.max(...times) };
}

export async function writeSpan(client: Client, group: string, span: Span): Promise<void> {
  const path = spanPath(group);
  const data = JSON.stringify({ version: 1, start: span.startMs, end: span.endMs });
  try {
    await client.create(path, data, { parents: true });
  } catch (error) {
    if (!isZkError(error, 'NODE_EXISTS')) throw error;
    await client.set(path, data);
  }
}

/** Null where there is none, or what is there makes no sense. */
export async function readSpan(client: Client, group: string): Promise<Span | null> {
  try {
    const { data } = await client.get(spanPath(group));
    const { start, end } = JSON.parse(data?.toString('utf8') ?? '') as Record<string, unknown>;
    return typeof start === 'number' && typeof end === 'number'
      ? { startMs: start, endMs: end }
      : null;
  } catch (error) {
    if (isZkError(error, 'NO_NODE') || error instanceof SyntaxError) return null;
    throw error;
  }
}
