/**
 * Reading in step beside reading as fast as it goes, of the same files, in one run, by turns.
 *
 *   even      as many records in every partition and period: what alignment itself costs
 *   skewed    one partition has ten times the records, and every fetch takes its time: nobody can be
 *             done before that partition is, and in step it should not be later by much
 *   requests  to ZooKeeper, for each period and member, as a server counts them
 *
 * And beside it the design of the Java original, replayed in a simulation: followers that ask for the
 * limit every 10 ms while they wait, a leader that asks for the progress of every partition every 50 ms,
 * one period at a time. Work and waiting are drawn from the same seed as for ours.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { align, type RuleInput } from '../src/align/index.ts';
import { connect } from '../src/client/index.ts';
import {
  NdjsonSource,
  type PartitionId,
  type PartitionReader,
  type RecordSource,
} from '../src/kafka/index.ts';
import { startTestServer } from '../src/testing/index.ts';
import { seeded } from '../test/kafka-simulation/world.ts';
import { median, short, tableText } from './figures.ts';
import { machineText } from './machine.ts';
import { type BenchOptions, isWanted, log } from './options.ts';

const partitions = 8;
const periods = 60;
const periodMs = 60_000;
const evenRecords = 400_000;
/** So that a period holds about a fifth of a second of work: a replay's, not a live stream's. */
const evenPeriods = 12;

const goals = { even: 0.9, skewed: 1.1 } as const;

export async function benchAlign(options: BenchOptions): Promise<unknown> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-align-'));
  const result: Record<string, unknown> = {};
  const rows: string[][] = [['row', 'in step', 'free', 'ratio', 'goal']];
  try {
    if (isWanted('even', options)) {
      const even = await benchEven(directory, options);
      result.even = even;
      const { aligned, free, ratio, cpuMs } = even;
      rows.push(['even, records/s', short(aligned), short(free), short(ratio), `>= ${goals.even}`]);
      const cpuRatio = cpuMs.free / cpuMs.aligned;
      rows.push(['even, CPU ms', short(cpuMs.aligned), short(cpuMs.free), short(cpuRatio), '']);
    }
    if (isWanted('skewed', options)) {
      const skewed = await benchSkewed(options);
      result.skewed = skewed;
      const { alignedMs, slowestMs, ratio } = skewed;
      const goal = `<= ${goals.skewed}`;
      rows.push(['skewed, ms', short(alignedMs), short(slowestMs), short(ratio), goal]);
    }
    if (isWanted('requests', options)) {
      const requests = await benchRequests(directory);
      const java = replayJava();
      result.requests = { ...requests, java };
      for (const one of requests) {
        const name = `requests, ${one.members} members`;
        const theirs = java.find(({ members }) => members === one.members)!.perPeriodAndMember;
        rows.push([name, short(one.perPeriodAndMember), `${short(theirs)} polling`, '', 'O(1)']);
      }
    }
  } finally {
    await rm(directory, { recursive: true });
  }
  if (!options.json) {
    process.stdout.write(`${machineText()}\n\n${tableText(rows)}\n`);
    process.stdout.write(`\nrequests: to ZooKeeper, for each period and member. In step: counted by a
server. Polling: the Java original's design, in a simulation with 200 ms of work a period.\n`);
  }
  return result;
}

// ── even ────────────────────────────────────────────────────────────────────────────────────────

async function write(directory: string, recordsEach: number, inPeriods: number): Promise<void> {
  const stepMs = (inPeriods * periodMs) / recordsEach;
  for (let p = 0; p < partitions; p++) {
    const lines = Array.from({ length: recordsEach }, (_, i) => {
      const timestamp = Math.floor(i * stepMs);
      return `{"timestamp":${timestamp},"key":"${p}-${i}","value":"${'x'.repeat(60)}"}\n`;
    });
    await writeFile(join(directory, `t-${p}.ndjson`), lines.join(''));
  }
}

async function benchEven(directory: string, { tries }: BenchOptions) {
  await write(directory, evenRecords / partitions, evenPeriods);
  const free: number[] = [];
  const aligned: number[] = [];
  const cpus: { aligned: number; free: number }[] = [];
  for (let i = 0; i <= tries; i++) {
    log(`even, try ${i} of ${tries}`);
    const freely = await readFreely(new NdjsonSource({ directory, follow: false }));
    const inStep = await readInStep(() => new NdjsonSource({ directory, follow: false }));
    if (i === 0) continue; // the first brings the files into memory
    free.push((evenRecords / freely.ms) * 1_000);
    aligned.push((inStep.records / inStep.ms) * 1_000);
    cpus.push({ aligned: inStep.cpuMs, free: freely.cpuMs });
  }
  const ratio = median(aligned) / median(free);
  const cpuMs = {
    aligned: median(cpus.map((one) => one.aligned)),
    free: median(cpus.map((one) => one.free)),
  };
  return { aligned: median(aligned), free: median(free), ratio, cpuMs, tries: { aligned, free } };
}

interface Read {
  readonly ms: number;
  readonly cpuMs: number;
  readonly records: number;
}

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Every partition as fast as it comes, in one process: from the first batch to the last. */
async function readFreely(source: RecordSource): Promise<Read> {
  let startMs = 0;
  let records = 0;
  const readers = await Promise.all(
    Array.from({ length: partitions }, (_, p) =>
      source.open({ topic: 't', partition: String(p) }, 'earliest'),
    ),
  );
  const cpu = process.cpuUsage();
  await Promise.all(
    readers.map(async (reader) => {
      for await (const batch of reader) {
        startMs ||= performance.now();
        records += batch.records.length;
      }
    }),
  );
  const ms = performance.now() - startMs;
  const cpuMs = cpuMsSince(cpu);
  await source.close();
  return { ms, cpuMs, records };
}

/** From the first batch to the last: to join a group is not what is measured here. */
async function readInStep(
  makeSource: () => RecordSource,
  { members = 1, mode = { period: periodMs, lookAhead: 3 } as RuleInput } = {},
): Promise<Read & { readonly asked: number }> {
  await using server = await startTestServer();
  const all = await Promise.all(
    Array.from({ length: members }, async () => {
      const client = await connect(server.address, { renew: true });
      const source = makeSource();
      const topics = { t: partitions };
      const run = align(client, { group: 'g', source, topics, mode, debounceMs: 20 });
      return { client, source, run };
    }),
  );
  await Promise.all(all.map(({ run }) => run.settled()));
  let startMs = 0;
  let endMs = 0;
  let records = 0;
  let before = 0;
  let cpu = process.cpuUsage();
  const count = () => server.log.filter(({ op }) => op !== 'ping').length;
  await Promise.all(
    all.map(async ({ run }) => {
      for await (const batch of run) {
        if (startMs === 0) {
          startMs = performance.now();
          before = count();
          cpu = process.cpuUsage();
        }
        records += batch.records.length;
        await batch.done();
        endMs = performance.now();
      }
    }),
  );
  const cpuMs = cpuMsSince(cpu);
  const asked = count() - before;
  for (const { run, source, client } of all) {
    await run.close();
    await source.close();
    await client.close();
  }
  return { ms: endMs - startMs, cpuMs, records, asked };
}

// ── skewed ──────────────────────────────────────────────────────────────────────────────────────

const fetchMs = 4;
const batchRecords = 100;

/** A partition in memory, whose every fetch takes as long as one over a network does. */
function pacedSource(recordsOf: (partition: number) => number): RecordSource {
  const open = async ({ topic, partition }: PartitionId, from: unknown) => {
    const total = recordsOf(Number(partition));
    let position = typeof from === 'bigint' ? Number(from) : 0;
    let isClosed = false;
    const close = async () => {
      isClosed = true;
    };
    const reader: PartitionReader = {
      topic,
      partition,
      get position() {
        return BigInt(position);
      },
      highWatermark: BigInt(total),
      isPaused: false,
      [Symbol.asyncIterator]: () => reader,
      async next() {
        if (isClosed || position >= total) return { done: true, value: undefined };
        await new Promise((resolve) => setTimeout(resolve, fetchMs));
        const end = Math.min(total, position + batchRecords);
        const records = Array.from({ length: end - position }, (_, i) => {
          const offset = position + i;
          const timestampMs = Math.floor((offset / total) * periods * periodMs);
          return { offset: BigInt(offset), timestampMs, key: null, value: null };
        });
        position = end;
        const nextOffset = BigInt(end);
        const highWatermark = BigInt(total);
        return { done: false, value: { topic, partition, records, nextOffset, highWatermark } };
      },
      pause() {},
      resume() {},
      seek(offset) {
        position = Number(offset);
      },
      close,
      [Symbol.asyncDispose]: close,
    };
    return reader;
  };
  const close = async () => {};
  return {
    open,
    bounds: async ({ partition }) => ({
      earliest: 0n,
      latest: BigInt(recordsOf(Number(partition))),
    }),
    offsetForTime: async () => 0n,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function benchSkewed({ tries }: BenchOptions) {
  const recordsOf = (partition: number) => (partition === 0 ? 60_000 : 6_000);
  const aligned: number[] = [];
  const slowest: number[] = [];
  for (let i = 0; i <= tries; i++) {
    log(`skewed, try ${i} of ${tries}`);
    const alone = await readFreely(pacedSource((p) => (p === 0 ? recordsOf(0) : 0)));
    const inStep = await readInStep(() => pacedSource(recordsOf), {
      mode: { period: periodMs, lookAhead: 2 },
    });
    if (i === 0) continue;
    slowest.push(alone.ms);
    aligned.push(inStep.ms);
  }
  const ratio = median(aligned) / median(slowest);
  return { alignedMs: median(aligned), slowestMs: median(slowest), ratio };
}

// ── requests ────────────────────────────────────────────────────────────────────────────────────

const memberCounts = [1, 4, 8] as const;

async function benchRequests(directory: string) {
  await write(directory, 2_400, periods);
  const found = [];
  for (const members of memberCounts) {
    log(`requests, ${members} members`);
    const makeSource = () => new NdjsonSource({ directory, follow: false });
    const { asked } = await readInStep(makeSource, { members, mode: { period: periodMs } });
    found.push({ members, asked, perPeriodAndMember: asked / periods / members });
  }
  return found;
}

/** The Java original: one thread a partition, sleeps of 10 ms and 50 ms between looks. */
function replayJava() {
  const random = seeded(1);
  return memberCounts.map((members) => {
    let requests = 0;
    for (let period = 0; period < 1_000; period++) {
      // Each member's work of a period: 200 ms, half as much or half as much again.
      const workMs = Array.from({ length: members }, () => 100 + 200 * random());
      const slowestMs = Math.max(...workMs);
      const reachedMs = Math.ceil((slowestMs - workMs[0]!) / 50) * 50 + workMs[0]!;
      // The leader: a list, and every partition's node, every 50 ms from its own end on.
      const looks = Math.floor((reachedMs - workMs[0]!) / 50) + 1;
      requests += looks * (1 + partitions) + 1;
      for (const ownMs of workMs.slice(1)) requests += Math.ceil((reachedMs - ownMs) / 10);
      requests += 2 * partitions; // each partition's progress: exists, set
    }
    return { members, perPeriodAndMember: requests / 1_000 / members };
  });
}
