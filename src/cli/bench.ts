/**
 * `drover bench`: how many requests an ensemble answers, and how fast. Bounded in time, sessions,
 * requests in flight and bytes; what it makes stands below one node of its own, which it takes away again,
 * also when it is interrupted. It is load: not for an ensemble that others depend on.
 */

import { randomBytes } from 'node:crypto';
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { type Client, isZkError } from '../client/index.ts';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { percentilesOf } from './latency.ts';
import { escaped } from './output.ts';
import { thousands } from './status.ts';
import { within } from './within.ts';

const kinds = ['get', 'set', 'create'] as const;
type Kind = (typeof kinds)[number];
const cleanUpTimeoutMs = 30_000;

export async function bench(
  context: Context,
  _: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const seconds = within(options.seconds, '--seconds', 0.1, 600, 5);
  const sessions = within(options.sessions, '--sessions', 1, 500, 4);
  const inFlight = within(options.inFlight, '--in-flight', 1, 1_000, 16);
  const bytes = within(options.bytes, '--bytes', 0, (await context.target()).dataBytesMax, 100);
  const only = kindOf(options.only);
  const parent = context.path(typeof options.under === 'string' ? options.under : '/');
  const root = `${parent === '/' ? '' : parent}/drover-bench-${randomBytes(6).toString('hex')}`;
  const clients: Client[] = [];
  const data = randomBytes(bytes);
  const results: Result[] = [];
  const keeper = await context.client();
  await keeper.create(root, '', { signal });
  try {
    for (let i = 0; i < sessions; i++) clients.push(await context.connect());
    for (const [i] of clients.entries()) await keeper.create(`${root}/n${i}`, data, { signal });
    for (const kind of only === undefined ? kinds : [only]) {
      output.status(`${kind} for ${seconds} s`);
      const result = await run(kind, clients, { root, data, inFlight, seconds, signal });
      results.push(result);
      if (output.isJson) output.record({ ...recordOf(result), sessions, inFlight, bytes });
    }
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await takeAway(keeper, root);
  }
  if (!output.isJson) print(output, results);
  return exitCodes.ok;
}

interface Result {
  readonly kind: Kind;
  readonly requests: number;
  readonly seconds: number;
  readonly latency: RecordableHistogram;
}

interface Run {
  readonly root: string;
  readonly data: Buffer;
  readonly inFlight: number;
  readonly seconds: number;
  readonly signal: AbortSignal;
}

async function run(kind: Kind, clients: readonly Client[], asked: Run): Promise<Result> {
  const { root, data, inFlight, seconds, signal } = asked;
  const latency = createHistogram();
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  let requests = 0;
  let made = 0;
  const one = (client: Client, path: string): Promise<unknown> => {
    if (kind === 'get') return client.get(path, { signal });
    if (kind === 'set') return client.set(path, data, { signal });
    return client.create(`${path}/c${made++}`, data, { signal });
  };
  const worker = async (client: Client, path: string) => {
    while (performance.now() < endMs) {
      const beganMs = performance.now();
      await one(client, path);
      latency.record(Math.max(1, Math.round((performance.now() - beganMs) * 1e6)));
      requests += 1;
    }
  };
  const workers = clients.flatMap((client, i) =>
    Array.from({ length: inFlight }, () => worker(client, `${root}/n${i}`)),
  );
  // All have ended before anything is said of it, also when one failed.
  const ends = await Promise.allSettled(workers);
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return { kind, requests, seconds: (performance.now() - startMs) / 1_000, latency };
}

async function takeAway(keeper: Client, root: string): Promise<void> {
  try {
    await keeper.deleteRecursive(root, { signal: AbortSignal.timeout(cleanUpTimeoutMs) });
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return;
    const message = `${escaped(root)} is left over: ${(error as Error).message}; drover deleteall ${escaped(root)} takes it away`;
    throw new CommandError('unknown', message, { cause: error });
  }
}

function perSecond({ requests, seconds }: Result): number {
  return Math.round(requests / seconds);
}

function recordOf(result: Result): object {
  const { kind, requests, latency } = result;
  return { kind, requests, perSecond: perSecond(result), ...percentilesOf(latency) };
}

function print(output: Context['output'], results: readonly Result[]): void {
  const columns = new Columns(
    output,
    'REQUEST',
    'PER SECOND',
    'P50',
    'P90',
    'P99',
    'MAX',
    'REQUESTS',
  );
  for (const result of results) {
    const { p50Ms, p90Ms, p99Ms, maxMs } = percentilesOf(result.latency);
    const times = [p50Ms, p90Ms, p99Ms, maxMs].map((ms) => `${ms}ms`);
    columns.row(result.kind, thousands(perSecond(result)), ...times, thousands(result.requests));
  }
  columns.end();
}

function kindOf(given: OptionValues[string]): Kind | undefined {
  if (given === undefined) return undefined;
  const kind = kinds.find((each) => each === given);
  if (kind !== undefined) return kind;
  throw new CommandError('usage', `--only: one of ${kinds.join(', ')} is wanted`);
}
