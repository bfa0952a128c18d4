/**
 * Real power cuts (D2), root on Linux only: ext4 on a loop file, and the shutdown ioctl, which stops the
 * file system on the spot and throws away what its journal had not written. The server goes on until it
 * notices; then the file system is mounted again, as after a reset, and everybody goes on.
 *
 * What an ioctl can't do is what a disk does below the file system: a write cache that lies, a torn
 * sector. The simulated disk (src/storage/simulated-disk.ts) has those.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random, seedOf } from '../differential/random.ts';
import { checkHistory } from './checker.ts';
import { type Build, Child, temporaryFolder } from './child.ts';
import { Recorder } from './history.ts';
import { Load, prepare, Recorded, readAll } from './load.ts';
import { readLanded } from './log.ts';

export interface CutReport {
  cuts: number;
  lives: number;
  ops: number;
  acked: number;
  txns: number;
  /** Servers that noticed before they were killed, and said how far their log had reached. */
  noticed: number;
  failures: string[];
}

const imageBytes = 64 * 1024 * 1024;
const mountsMax = 50;
/** EXT4_IOC_SHUTDOWN is _IOR('X', 125, __u32); 2 is EXT4_GOING_FLAGS_NOLOGFLUSH. */
const cutProgram = `
import fcntl, os, struct, sys
folder = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(folder, 0x8004587D, struct.pack('I', 2))
`;

const quietly = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** A file system of its own, in a file. */
export class LoopDisk implements Disposable {
  readonly #folder = temporaryFolder('disk');
  readonly mountPoint = join(this.#folder, 'mount');
  readonly #image = join(this.#folder, 'image');
  #isMounted = false;

  constructor() {
    try {
      mkdirSync(this.mountPoint);
      writeFileSync(this.#image, '');
      truncateSync(this.#image, imageBytes);
      quietly('mkfs.ext4', '-q', '-F', '-O', '^metadata_csum_seed', this.#image);
      this.mount();
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** A file system that somebody else still holds, as in a namespace of theirs, comes back as it was cut. */
  mount(): void {
    for (let tries = 1; ; tries++) {
      quietly('mount', '-o', 'loop', this.#image, this.mountPoint);
      this.#isMounted = true;
      try {
        quietly('sync', '-f', this.mountPoint);
        return;
      } catch (error) {
        if (tries === mountsMax) throw error;
        this.unmount();
        quietly('sleep', '0.1');
      }
    }
  }

  cut(): void {
    quietly('python3', '-c', cutProgram, this.mountPoint);
  }

  unmount(): void {
    if (this.#isMounted) quietly('umount', this.mountPoint);
    this.#isMounted = false;
  }

  [Symbol.dispose](): void {
    try {
      this.unmount();
    } finally {
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }
}

/** Why there can be none here, or null where there can. */
export function whyNoPowerCuts(): string | null {
  if (process.platform !== 'linux') return 'not on Linux';
  if (process.getuid?.() !== 0) return 'not root';
  try {
    using disk = new LoopDisk();
    disk.cut();
    disk.unmount();
    disk.mount();
    return null;
  } catch (error) {
    return `no ext4 on a loop file here: ${`${error}`.split('\n')[0]}`;
  }
}

export async function powerCuts(options: {
  readonly seed: number;
  readonly cuts: number;
  readonly perLife: number;
  readonly build: Build;
  readonly onLife?: (report: CutReport) => void;
}): Promise<CutReport> {
  const report: CutReport = {
    cuts: 0,
    lives: 0,
    ops: 0,
    acked: 0,
    txns: 0,
    noticed: 0,
    failures: [],
  };
  while (report.cuts < options.cuts && report.failures.length === 0) {
    const seed = seedOf(options.seed, report.lives);
    const cuts = Math.min(options.perLife, options.cuts - report.cuts);
    try {
      await live(seed, cuts, options.build, report);
    } catch (error) {
      report.failures.push(`seed ${seed}: ${(error as Error).stack}`);
    }
    report.lives += 1;
    options.onLife?.(report);
  }
  return report;
}

async function live(seed: number, cuts: number, build: Build, report: CutReport): Promise<void> {
  const random = new Random(seed);
  using disk = new LoopDisk();
  const dataDir = join(disk.mountPoint, 'data');
  const serverOptions = {
    dataDir,
    tickTimeMs: 3_000,
    limits: { diskFreeBytesMin: 0 }, // the whole disk is smaller
    snapCount: random.pick([10, 40, 200]),
    preallocBytes: random.pick([0, 4_096, 65_536, 1_048_576]),
  };
  const recorder = new Recorder();
  const clients = random.times(3, () => new Recorded(recorder, 60_000));
  for (let cut = 0; cut <= cuts; cut++) {
    const child = new Child(build, serverOptions);
    try {
      const port = await child.port();
      for (const client of clients) {
        if (!(await client.connect(port))) throw new Error(`no link: ${child.errors}`);
      }
      if (cut === 0) await prepare(clients[0]!);
      await readAll(clients[0]!);
      if (cut === cuts) {
        child.process.kill('SIGTERM');
        const { code } = await child.ended;
        if (code !== 0) throw new Error(`SIGTERM ended it with ${code}: ${child.errors}`);
        break;
      }
      const loads = clients.map((client, i) => new Load(client, random, `c${cut % 20}-${i}`));
      const running = Promise.all(loads.map((load) => load.run(1 + random.below(6))));
      const until = recorder.ops.length + random.below(250);
      const lateMs = performance.now() + 1_000;
      while (recorder.ops.length < until && performance.now() < lateMs)
        await sleep(random.below(3));
      disk.cut();
      // Long enough to notice, mostly; a real power cut would not wait.
      if (random.chance(0.5)) await Promise.race([child.ended, sleep(50)]);
      await child.kill();
      if (/last durable zxid/.test(child.errors)) report.noticed += 1;
      await running;
    } finally {
      await child.kill();
      for (const client of clients) client.cut();
    }
    disk.unmount();
    disk.mount();
    report.cuts += 1;
  }
  const log = await readLanded(dataDir);
  const found = checkHistory({ ops: recorder.ops, log });
  report.failures.push(...found.map(({ kind, message }) => `seed ${seed}: ${kind}: ${message}`));
  report.ops += recorder.ops.length;
  report.acked += recorder.ops.filter(({ reply }) => reply !== undefined).length;
  report.txns += log.length;
}
