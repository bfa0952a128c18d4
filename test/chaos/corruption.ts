/**
 * Every byte of what a server left on its disk, damaged in three ways, one at a time (D7): whoever starts
 * on it has all there was, to the last Stat and session, or is refused and told which file it is.
 *
 * The whole server reads it, digests and all; `storage/sweep.test.ts` does the same with the bare files.
 */

import { mkdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { FileHeader, openAcl } from '../../src/protocol/index.ts';
import { openPersistence, startServer } from '../../src/server/index.ts';
import {
  encodeMark,
  isStorageError,
  markName,
  readMark,
  SimulatedDisk,
  versionFolder,
} from '../../src/storage/index.ts';
import { Random } from '../differential/random.ts';
import { temporaryFolder } from './child.ts';
import { picture } from './fuzz.ts';
import { Recorder } from './history.ts';
import { base, Load, prepare, Recorded } from './load.ts';

export interface CorruptionReport {
  files: Record<string, number>;
  /** Starts on a directory of which one byte was another. */
  runs: number;
  /** All was there; the start was refused. */
  whole: number;
  refused: number;
  failures: string[];
}

export interface CorruptionOptions {
  readonly seed: number;
  /** How much the server has in its logs, more or less, when its disk is taken. */
  readonly bytes: number;
  /** One byte in so many, beginning with one that the seed chooses. */
  readonly stride?: number;
  readonly onFile?: (report: CorruptionReport) => void;
}

const mutations: readonly (readonly [what: string, mutate: (byte: number) => number])[] = [
  ['one bit flipped', (byte) => byte ^ 0x04],
  ['all bits flipped', (byte) => byte ^ 0xff],
  ['zeroed', () => 0],
];

const failuresMax = 20;
const loadMaxMs = 60_000;
const options = {
  port: 0,
  preallocBytes: 4_096,
  extendedTypesEnabled: true,
  digestEnabled: true,
} as const;

export async function corruptionSweep(sweep: CorruptionOptions): Promise<CorruptionReport> {
  const { seed, bytes, onFile } = sweep;
  const report: CorruptionReport = { files: {}, runs: 0, whole: 0, refused: 0, failures: [] };
  const dataDir = temporaryFolder('corruption');
  const folder = join(dataDir, versionFolder);
  mkdirSync(folder, { mode: 0o700 }); // for the lock, which is no file
  const start = (files: ReadonlyMap<string, Buffer>) =>
    pictureOf(dataDir, SimulatedDisk.of(files, [dataDir, folder]));
  try {
    const all = await written(dataDir, bytes, new Random(seed));
    for (const [path, { length }] of all) report.files[basename(path)] = length;
    const expected = await start(all);
    for (const { state, files, damaged } of statesOf(all)) {
      if ((await start(files)) !== expected) report.failures.push(`${state}: another tree`);
      for (const path of damaged) {
        for (const { what, file } of damages(files.get(path)!, sweep)) {
          if (state === staleMark && isCutShort(file, files.get(path)!)) continue;
          report.runs += 1;
          const lost = await outcome(start(new Map(files).set(path, file)), expected, report);
          if (lost !== null) report.failures.push(`${state}: ${basename(path)}, ${what}: ${lost}`);
          if (report.failures.length >= failuresMax) return report;
        }
        onFile?.(report);
      }
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  return report;
}

/** What went wrong, or null. */
async function outcome(
  started: Promise<string>,
  expected: string,
  report: CorruptionReport,
): Promise<string | null> {
  try {
    if ((await started) !== expected) return 'something is lost';
    report.whole += 1;
  } catch (error) {
    if (!isStorageError(error) || error.file === undefined) return `${error}`;
    report.refused += 1;
  }
  return null;
}

interface State {
  readonly state: string;
  readonly files: ReadonlyMap<string, Buffer>;
  /** Those that are damaged, one after the other. */
  readonly damaged: Iterable<string>;
}

const staleMark = 'with the mark of a tenth of a second ago';

/** The directory as it was, and as it might be. */
function statesOf(all: ReadonlyMap<string, Buffer>): State[] {
  const isEarly = (path: string) => !/^snapshot\.(?!0$)/.test(basename(path));
  const withLogs = new Map([...all].filter(([path]) => isEarly(path)));
  const { path, log } = newestLog(all);
  const mark = encodeMark({ log, offset: FileHeader.width });
  const withMark = new Map(all).set(join(dirname(path), markName), mark);
  return [
    { state: 'as it was', files: all, damaged: all.keys() },
    // So that every log is read.
    { state: 'without the later snapshots', files: withLogs, damaged: withLogs.keys() },
    { state: staleMark, files: withMark, damaged: [path] },
  ];
}

/** A write that lacks its last byte looks the same, and nobody would have been told of it. */
function isCutShort(file: Buffer, sound: Buffer): boolean {
  const end = endOf(sound);
  return file[end - 1] === 0 && file.subarray(0, end - 1).equals(sound.subarray(0, end - 1));
}

/** The one that is written to. */
function newestLog(files: ReadonlyMap<string, Buffer>): { path: string; log: bigint } {
  const logs = [...files.keys()].flatMap((path) => {
    const hex = /^log\.([0-9a-f]+)$/.exec(basename(path))?.[1];
    return hex === undefined ? [] : [{ path, log: BigInt(`0x${hex}`) }];
  });
  return logs.reduce((a, b) => (a.log > b.log ? a : b));
}

/** Where what is in it ends: behind it there are zeros. */
function endOf(log: Buffer): number {
  return log.findLastIndex((byte) => byte !== 0) + 1;
}

function* damages(
  sound: Buffer,
  { stride = 1, seed }: CorruptionOptions,
): Generator<{ readonly what: string; readonly file: Buffer }> {
  for (let at = seed % stride; at < sound.length; at += stride) {
    for (const [what, mutate] of mutations) {
      const file = Buffer.from(sound);
      file[at] = mutate(sound[at]!);
      if (file[at] !== sound[at]) yield { what: `${what} at ${at}`, file };
    }
  }
}

/** The files of a server that was killed a moment after its last write; the last log has its padding. */
async function written(
  dataDir: string,
  bytes: number,
  random: Random,
): Promise<Map<string, Buffer>> {
  const disk = new SimulatedDisk();
  const perSnapshot = Math.ceil(bytes / 300); // two or three of them
  const server = await startServer({ ...options, dataDir, fs: disk, snapCount: perSnapshot });
  const logged = () =>
    [...disk.contents()].reduce(
      (sum, [path, { length }]) => sum + (basename(path).startsWith('log.') ? length : 0),
      0,
    );
  const isMarked = async () => {
    const files = disk.contents();
    const { path, log } = newestLog(files);
    const mark = await readMark(disk, dirname(path));
    return mark?.log === log && mark.offset === endOf(files.get(path)!);
  };
  const until = async (isSo: () => boolean | Promise<boolean>) => {
    const lateMs = performance.now() + loadMaxMs;
    while (!(await isSo())) {
      if (performance.now() > lateMs) throw new Error('the load takes too long');
      await setTimeout(5);
    }
  };
  try {
    const clients = random.times(3, () => new Recorded(new Recorder(), 30_000));
    for (const client of clients) await client.connect(server.port);
    await prepare(clients[0]!);
    await allKinds(clients[0]!);
    const loads = clients.map((client, i) => new Load(client, random, `c${i}`));
    const running = Promise.all(loads.map((load) => load.run(3)));
    await until(() => logged() >= bytes);
    for (const load of loads) load.isStopped = true;
    await running;
    await until(isMarked);
    const files = disk.contents();
    for (const client of clients) client.cut();
    return files;
  } finally {
    await server.close();
  }
}

/** What the load does not do: other kinds of nodes, ACLs, data that is null. */
async function allKinds({ raw }: Recorded): Promise<void> {
  const acl = [{ perms: 1, id: { scheme: 'ip', id: '127.0.0.0/8' } }, ...openAcl];
  const made = { data: null, acl };
  let xid = 1_000_000; // those of the load are counted from 1
  await raw.ask('createContainer', { path: `${base}/box`, ...made, flags: 4 }, ++xid);
  await raw.ask('createTTL', { path: `${base}/ttl`, ...made, flags: 5, ttl: 9_999n }, ++xid);
  await raw.ask('setACL', { path: base, acl, version: -1 }, ++xid);
  await raw.ask('setData', { path: base, data: null, version: -1 }, ++xid);
}

async function pictureOf(dataDir: string, fs: SimulatedDisk): Promise<string> {
  const { tree, log } = await openPersistence({ ...options, dataDir, fs });
  try {
    return picture(tree);
  } finally {
    await log.close();
  }
}
