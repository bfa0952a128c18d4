/**
 * One life of a server on a simulated disk: some clients write, whatever is planned for the disk happens,
 * and what is left of it is started on again, once as after a kill and once as after each of some power
 * cuts. The history must hold in every one of these futures.
 *
 * Used by the I/O errors (D4, D5, D6) and by the planted bugs (2.8), which differ in the disk they bring.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openPersistence, startServer, type TxnLog } from '../../src/server/index.ts';
import {
  type FileSystem,
  isStorageError,
  type SimulatedDisk,
  versionFolder,
} from '../../src/storage/index.ts';
import { Random } from '../differential/random.ts';
import { checkHistory } from './checker.ts';
import { type Op, Recorder } from './history.ts';
import { Load, prepare, Recorded, readAll } from './load.ts';
import { readLanded } from './log.ts';

export interface DiskLifeOptions {
  readonly seed: number;
  /** Exists for the lock's sake, which is a socket and no file; all else is on the simulated disk. */
  readonly dataDir: string;
  readonly disk: SimulatedDisk;
  /** What stands between the server and the disk; the disk itself without. */
  readonly fs?: FileSystem;
  /** What stands between the server and its log. */
  readonly log?: (real: TxnLog) => TxnLog;
  /** What happens to the disk while nobody uses it. */
  readonly meanwhile?: (disk: SimulatedDisk) => SimulatedDisk;
  readonly ops?: number;
}

export interface DiskLifeReport {
  /** Why the server did not start, or stopped, or undefined: it outlived the load. */
  readonly stopped: Error | undefined;
  readonly started: boolean;
  readonly acked: number;
  readonly unknown: number;
  readonly failures: string[];
}

const hangMs = 20_000;
const options = {
  port: 0,
  snapCount: 12,
  preallocBytes: 4_096,
  random: () => 0.5,
  tickTimeMs: 2_000,
};
const silent = { debug() {}, info() {}, warn() {}, error() {} };

export async function diskLife(life: DiskLifeOptions): Promise<DiskLifeReport> {
  mkdirSync(join(life.dataDir, versionFolder), { recursive: true, mode: 0o700 });
  const recorder = new Recorder();
  const failures: string[] = [];
  let stopped: Error | undefined;
  let started = false;
  try {
    stopped = await within(serve(life, recorder), 'the server hangs');
    started = true;
  } catch (error) {
    stopped = error as Error;
    if (!isStorageError(stopped) && !('code' in stopped)) failures.push(`${stopped.stack}`);
    // A server that refuses to start over a dead disk has said all there is to say.
  }
  if (started && stopped !== undefined) failures.push(...lateAcks(stopped, recorder.ops));
  life.disk.fault = () => undefined;
  const choose = chooser(life.seed);
  const futures: [string, SimulatedDisk][] = [
    ['after a power cut that took all', life.disk.afterPowerCut(() => 0)],
    ['after a power cut', life.disk.afterPowerCut(choose)],
    ['after another', life.disk.afterPowerCut(choose)],
    // Last, since it goes on with the very same disk.
    ['after a kill', life.disk.afterKill()],
  ];
  for (const [name, disk] of futures) {
    const found = await future(life, life.meanwhile?.(disk) ?? disk, recorder.ops).catch(
      (error) => [`${error}`],
    );
    failures.push(...found.map((failure) => `${name}: ${failure}`));
  }
  const acked = recorder.ops.filter(({ reply }) => reply !== undefined).length;
  return { stopped, started, acked, unknown: recorder.ops.length - acked, failures };
}

/** The reason why it stopped, or undefined where it did not. Throws what it refused to start with. */
async function serve(life: DiskLifeOptions, recorder: Recorder): Promise<Error | undefined> {
  const random = new Random(life.seed);
  const { dataDir, fs = life.disk } = life;
  const server = await start(dataDir, fs, life.log);
  let stopped: Error | undefined;
  void server.failed.then((error) => {
    stopped = error;
  });
  const clients = random.times(3, () => new Recorded(recorder, 30_000));
  const linked: Recorded[] = [];
  for (const client of clients) if (await client.connect(server.port)) linked.push(client);
  if (linked[0] !== undefined) await prepare(linked[0]);
  const loads = linked.map((client, i) => new Load(client, random, `c${i}`));
  const until = recorder.ops.length + (life.ops ?? 60);
  const running = loads.map((load) => load.run(3));
  const watch = setInterval(() => {
    if (recorder.ops.length >= until) for (const load of loads) load.isStopped = true;
  }, 1);
  try {
    await Promise.all(running);
  } finally {
    clearInterval(watch);
  }
  if (linked.some(({ isLinked }) => !isLinked)) await server.failed;
  // A close that can't cut the padding off its log says so; nobody has lost anything.
  else await server.close().catch(() => {});
  for (const client of linked) client.cut();
  return stopped;
}

async function start(dataDir: string, fs: FileSystem, wrap?: (real: TxnLog) => TxnLog) {
  if (wrap === undefined) return await startServer({ ...options, dataDir, fs });
  const { tree, log } = await openPersistence({ ...options, dataDir, fs, logger: silent as never });
  return await startServer({ ...options, tree, log: wrap(log) });
}

/** Starts on what is left, reads everything, and checks the whole history. */
async function future(
  { dataDir }: DiskLifeOptions,
  disk: SimulatedDisk,
  ops: readonly Op[],
): Promise<string[]> {
  const recorder = new Recorder(ops);
  const server = await startServer({ ...options, dataDir, fs: disk });
  try {
    const client = new Recorded(recorder, 30_000);
    if (!(await client.connect(server.port))) return ['nobody answers'];
    await within(readAll(client), 'reading hangs');
    const path = '/after';
    await client.ask({ kind: 'create2', path, data: 'after', mode: 'persistent' });
    client.cut();
  } finally {
    await server.close();
  }
  const log = await readLanded(dataDir, disk);
  return checkHistory({ ops: recorder.ops, log }).map(({ kind, message }) => `${kind}: ${message}`);
}

/** Whoever stops says how far the log reached, and nobody was told of anything beyond. */
function lateAcks(stopped: Error, ops: readonly Op[]): string[] {
  const durable = /last durable zxid 0x([0-9a-f]+)/.exec(stopped.message)?.[1];
  if (durable === undefined) return [`it does not say how far the log reached: ${stopped.message}`];
  const last = Number.parseInt(durable, 16);
  const late = ops.filter(({ reply }) => (reply?.zxid ?? 0) > last);
  return late.map(({ reply }) => `acknowledged ${reply!.zxid}, while only ${last} was durable`);
}

function chooser(seed: number): (of: number) => number {
  const random = new Random(seed);
  return (of) => random.below(of);
}

async function within<T>(work: Promise<T>, complaint: string): Promise<T> {
  let impatience: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    impatience = setTimeout(() => reject(new Error(complaint)), hangMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(impatience);
  }
}
