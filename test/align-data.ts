/**
 * Data to align: files of lines, a file a partition, with what a sort by one process makes of them.
 *
 * Seeded, so that a run can be made again. Partitions are skewed, some in bursts, with gaps that nobody
 * has records in, one partition empty if wanted; records of a partition are in order, but for `disorderMs`.
 */

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { seeded } from './random.ts';

export interface DataOptions {
  readonly topics: Readonly<Record<string, number>>;
  readonly records: number;
  readonly startMs: number;
  readonly spanMs: number;
  readonly seed: number;
  readonly disorderMs?: number;
  /** Nobody has records in here, as shares of the span. */
  readonly gap?: readonly [number, number];
  readonly hasEmpty?: boolean;
}

export interface Data {
  /** `--input` for each topic. */
  readonly inputs: string[];
  /** Lines by period, sorted as text. */
  expected(periodMs: number): Map<number, string[]>;
  readonly count: number;
}

export async function makeData(dir: string, options: DataOptions): Promise<Data> {
  const { topics, records, startMs, spanMs, seed, disorderMs = 0, gap, hasEmpty } = options;
  const chance = seeded(seed);
  const all: { ts: number; line: string }[] = [];
  const inputs: string[] = [];
  const ids = Object.entries(topics).flatMap(([topic, count]) =>
    Array.from({ length: count }, (_, i) => ({ topic, partition: i })),
  );
  const weights = ids.map(() => 0.2 + chance() ** 3 * 4);
  const total = weights.reduce((sum, each) => sum + each, 0);
  for (const [i, { topic, partition }] of ids.entries()) {
    const isEmpty = hasEmpty === true && i === ids.length - 1;
    const count = isEmpty ? 0 : Math.max(1, Math.round((records * weights[i]!) / total));
    const times = Array.from({ length: count }, () => {
      const at = chance();
      const moved = gap && at >= gap[0] && at < gap[1] ? gap[1] + chance() * (1 - gap[1]) : at;
      return startMs + Math.floor(moved * spanMs);
    }).sort((a, b) => a - b);
    const lines = times
      .map((ts) => ({ ts, at: ts + chance() * disorderMs }))
      .sort((a, b) => a.at - b.at)
      .map(({ ts }, n) => {
        const line = JSON.stringify({ id: `${topic}-${partition}-${n}`, ts });
        all.push({ ts, line });
        return line;
      });
    await mkdir(join(dir, topic), { recursive: true });
    // The last line of a file need not end.
    await writeFile(
      join(dir, topic, `${partition}.ndjson`),
      lines.join('\n') + (i % 2 ? '\n' : ''),
    );
  }
  for (const topic of Object.keys(topics)) inputs.push('--input', `${topic}=${join(dir, topic)}`);
  return {
    inputs,
    count: all.length,
    expected(periodMs) {
      const periods = new Map<number, string[]>();
      for (const { ts, line } of all) {
        const start = Math.floor(ts / periodMs) * periodMs;
        periods.set(start, [...(periods.get(start) ?? []), line]);
      }
      return new Map([...periods].map(([start, lines]) => [start, lines.sort()]));
    },
  };
}

/** What stands in a folder of periods, sorted as text. */
export async function readPeriods(dir: string): Promise<Map<number, string[]>> {
  const found = new Map<number, string[]>();
  for (const name of await readdir(dir)) {
    if (!/^\d+\.ndjson$/.test(name)) continue;
    const lines = (await readFile(join(dir, name), 'utf8')).split('\n').slice(0, -1);
    found.set(Number.parseInt(name, 10), lines.sort());
  }
  return found;
}

export const byStart = (periods: ReadonlyMap<number, string[]>) =>
  [...periods].sort(([a], [b]) => a - b);
