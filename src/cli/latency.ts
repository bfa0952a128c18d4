/**
 * `drover latency`: how long each server takes, seen from here: to take us in, to answer a read of its
 * own, and to answer a sync, which goes by way of the leader. Nothing is written.
 */

import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { faultText, type Server, serversOf } from './four-letter.ts';
import { escaped } from './output.ts';
import { within } from './within.ts';

interface Measured {
  readonly server: Server;
  readonly connectMs?: number;
  readonly read?: RecordableHistogram;
  readonly sync?: RecordableHistogram;
  readonly error?: string;
}

export async function latency(
  context: Context,
  _: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const count = within(options.count, '--count', 1, 1_000_000, 100);
  const intervalMs = within(options.interval, '--interval', 0, 60_000, 10);
  const servers = serversOf(await context.target());
  const all: Measured[] = [];
  // One after the other: they share this machine and its line.
  for (const server of servers) {
    const measured = await measure(context, server, { count, intervalMs });
    all.push(measured);
    if (output.isJson) output.record(recordOf(measured));
  }
  signal.throwIfAborted();
  if (!output.isJson) print(output, all);
  return all.every(({ error }) => error === undefined) ? exitCodes.ok : exitCodes.unreachable;
}

async function measure(
  context: Context,
  server: Server,
  { count, intervalMs }: { readonly count: number; readonly intervalMs: number },
): Promise<Measured> {
  const { signal, output } = context;
  const startMs = performance.now();
  try {
    const client = await context.connect(server.name);
    const connectMs = performance.now() - startMs;
    try {
      const [read, sync] = [createHistogram(), createHistogram()];
      for (let i = 0; i < count; i++) {
        output.status(() => `${escaped(server.name)}: ${i} of ${count}`);
        await timed(read, () => client.exists('/', { signal }));
        await timed(sync, () => client.sync('/', { signal }));
        if (intervalMs > 0) await delay(intervalMs, undefined, { signal });
      }
      return { server, connectMs, read, sync };
    } finally {
      await client.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    return { server, error: faultText(error) };
  }
}

async function timed(histogram: RecordableHistogram, work: () => Promise<unknown>): Promise<void> {
  const startMs = performance.now();
  await work();
  histogram.record(Math.max(1, Math.round((performance.now() - startMs) * 1e6)));
}

export function msOf(nanoseconds: number): number {
  return Math.round(nanoseconds / 1e4) / 100;
}

export function percentilesOf(histogram: RecordableHistogram): Record<string, number> {
  return {
    minMs: msOf(histogram.min),
    p50Ms: msOf(histogram.percentile(50)),
    p90Ms: msOf(histogram.percentile(90)),
    p99Ms: msOf(histogram.percentile(99)),
    maxMs: msOf(histogram.max),
  };
}

function recordOf({ server, connectMs, read, sync, error }: Measured): object {
  if (error !== undefined) return { server: server.name, error };
  const connect = { connectMs: Math.round(connectMs! * 100) / 100 };
  return {
    server: server.name,
    ...connect,
    read: percentilesOf(read!),
    sync: percentilesOf(sync!),
  };
}

function print(output: Context['output'], all: readonly Measured[]): void {
  const columns = new Columns(
    output,
    'SERVER',
    'CONNECT',
    'READ P50',
    'P99',
    'MAX',
    'SYNC P50',
    'P99',
    'MAX',
    '',
  );
  for (const { server, connectMs, read, sync, error } of all) {
    const cells = [read, sync].flatMap((one) => {
      if (one === undefined) return ['-', '-', '-'];
      return [one.percentile(50), one.percentile(99), one.max].map((ns) => `${msOf(ns)}ms`);
    });
    const connect = connectMs === undefined ? '-' : `${msOf(connectMs * 1e6)}ms`;
    columns.row(
      escaped(server.name),
      connect,
      ...cells,
      error === undefined ? '' : `! ${escaped(error)}`,
    );
  }
  columns.end();
}
