/**
 * kill -9, again and again (D1): clients write, the server dies at a random moment, comes back on the same
 * directory, and everybody goes on. A life is some cycles on one directory; at its end the whole history
 * is checked. Servers die while they serve, while they write a snapshot (snapCount is small) and while
 * they recover.
 *
 * A seed gives the same options, requests and delays again, though not the same interleaving: what the
 * kernel does between two processes has no seed.
 */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyDirectory, versionFolder } from '../../src/storage/index.ts';
import { Random, seedOf } from '../differential/random.ts';
import { checkHistory, type Violation } from './checker.ts';
import { type Build, Child, type ChildOptions, temporaryFolder } from './child.ts';
import { Recorder } from './history.ts';
import { Load, prepare, Recorded, readAll, SessionLost } from './load.ts';
import { readLanded } from './log.ts';

export interface KillReport {
  lives: number;
  kills: number;
  /** Of those, how many came before the server was ready. */
  killsInRecovery: number;
  ops: number;
  acked: number;
  /** Writes without a reply, and how many of them had landed. */
  unknown: number;
  unknownLanded: number;
  txns: number;
  snapshots: number;
  failures: string[];
}

export const emptyReport = (): KillReport => ({
  lives: 0,
  kills: 0,
  killsInRecovery: 0,
  ops: 0,
  acked: 0,
  unknown: 0,
  unknownLanded: 0,
  txns: 0,
  snapshots: 0,
  failures: [],
});

const clientsPerLife = 4;
const sessionTimeoutMs = 60_000;

export interface LifeOptions {
  readonly seed: number;
  readonly cycles: number;
  readonly build: Build;
}

/** One directory, and so many kills on it. Adds to the report. */
export async function live(options: LifeOptions, report: KillReport): Promise<void> {
  const random = new Random(options.seed);
  const dataDir = temporaryFolder('kill');
  const serverOptions = chooseOptions(random, dataDir);
  const recorder = new Recorder();
  try {
    await new Life(random, options, serverOptions, recorder, report).run();
    await judge(dataDir, recorder, options.seed, report);
  } catch (error) {
    const why = error instanceof SessionLost ? error.message : String(error);
    report.failures.push(`seed ${options.seed}: ${why}`);
  } finally {
    report.lives += 1;
    if (report.failures.length === 0) rmSync(dataDir, { recursive: true, force: true });
    else report.failures.push(`seed ${options.seed}: files kept in ${dataDir}`);
  }
}

function chooseOptions(random: Random, dataDir: string): ChildOptions {
  return {
    dataDir,
    tickTimeMs: 3_000,
    snapCount: random.pick([10, 30, 100, 1_000]),
    preallocBytes: random.pick([0, 4_096, 65_536, 1_048_576]),
    snapshotCompression: random.pick(['none', 'none', 'gzip'] as const),
  };
}

class Life {
  readonly #random: Random;
  readonly #options: LifeOptions;
  readonly #serverOptions: ChildOptions;
  readonly #recorder: Recorder;
  readonly #report: KillReport;
  #clients: Recorded[] = [];
  #names = 0;
  #startMs = 200;

  constructor(
    random: Random,
    options: LifeOptions,
    serverOptions: ChildOptions,
    recorder: Recorder,
    report: KillReport,
  ) {
    this.#random = random;
    this.#options = options;
    this.#serverOptions = serverOptions;
    this.#recorder = recorder;
    this.#report = report;
    this.#clients = random.times(clientsPerLife, () => new Recorded(recorder, sessionTimeoutMs));
  }

  async run(): Promise<void> {
    for (let cycle = 0; cycle < this.#options.cycles; cycle++) {
      if (this.#random.chance(0.2)) await this.#killEarly();
      else await this.#killUnderLoad();
    }
    const { child } = await this.#start();
    await readAll(this.#clients[0]!);
    for (const client of this.#clients) client.cut();
    child.process.kill('SIGTERM');
    const { code } = await child.ended;
    if (code !== 0) throw new Error(`SIGTERM ended it with ${code}: ${child.errors}`);
  }

  /** Somewhere between its first instruction and a moment after it is ready. */
  async #killEarly(): Promise<void> {
    const child = new Child(this.#options.build, this.#serverOptions);
    const isReady = child.ready.then((port) => port !== null);
    const from = this.#startMs * 0.5;
    await Promise.race([sleep(from + this.#random.below(this.#startMs * 0.6)), isReady]);
    await child.kill();
    if (!(await isReady)) this.#report.killsInRecovery += 1;
    this.#report.kills += 1;
    if (child.errors !== '') throw new Error(child.errors);
  }

  async #killUnderLoad(): Promise<void> {
    const { child } = await this.#start();
    const first = this.#clients[0]!;
    if (this.#names === 0) await prepare(first);
    await readAll(first);
    const loads = this.#clients.map(
      (client) => new Load(client, this.#random, `c${this.#names++ % 40}`),
    );
    const running = loads.map((load) => load.run(1 + this.#random.below(8)));
    const leaver = this.#random.chance(0.3) ? this.#random.below(clientsPerLife) : -1;
    await this.#someReplies(this.#random.below(400));
    if (leaver !== -1) {
      void this.#clients[leaver]!.ask({ kind: 'closeSession' });
      await this.#someReplies(this.#random.below(40));
    }
    await child.kill();
    await Promise.all(running);
    this.#report.kills += 1;
    if (child.errors !== '') throw new Error(child.errors);
    if (leaver !== -1) this.#clients[leaver] = new Recorded(this.#recorder, sessionTimeoutMs);
  }

  /** By what was done and not by the clock alone, so that a busy machine still gets somewhere. */
  async #someReplies(count: number): Promise<void> {
    const { ops } = this.#recorder;
    const until = ops.length + count;
    const lateMs = performance.now() + 1_000;
    while (ops.length < until && performance.now() < lateMs) await sleep(this.#random.below(4));
  }

  async #start(): Promise<{ child: Child }> {
    const startedMs = performance.now();
    const child = new Child(this.#options.build, this.#serverOptions);
    const port = await child.port();
    this.#startMs = performance.now() - startedMs;
    for (const client of this.#clients) {
      if (!(await client.connect(port)))
        throw new Error(`no link to a server that lives: ${child.errors}`);
    }
    return { child };
  }
}

async function judge(
  dataDir: string,
  { ops }: Recorder,
  seed: number,
  report: KillReport,
): Promise<void> {
  const log = await readLanded(dataDir);
  const failures = checkHistory({ ops, log }).map(
    ({ kind, message }: Violation) => `${kind}: ${message}`,
  );
  const folder = join(dataDir, versionFolder);
  const { snapshots, logs, refusal } = await verifyDirectory(folder, folder);
  if (refusal !== null) failures.push(`the directory is refused: ${refusal.message}`);
  for (const { path, fault } of [...snapshots, ...logs]) {
    if (fault !== null) failures.push(`${path}: ${fault}`);
  }
  const landed = new Set(log.map(({ session, xid }) => `${session}:${xid}`));
  for (const { session, xid, reply, asked } of ops) {
    report.ops += 1;
    if (reply !== undefined) report.acked += 1;
    else if (!('path' in asked) || !asked.kind.startsWith('get')) {
      report.unknown += 1;
      if (landed.has(`${session}:${xid}`)) report.unknownLanded += 1;
    }
  }
  report.txns += log.length;
  report.snapshots += snapshots.length;
  report.failures.push(...failures.map((failure) => `seed ${seed}: ${failure}`));
}

/** So many cycles in lives of at most `perLife`, each with a seed of its own. Stops at the first failure. */
export async function killLoop(options: {
  readonly seed: number;
  readonly cycles: number;
  readonly perLife: number;
  readonly build: Build;
  readonly onLife?: (report: KillReport) => void;
}): Promise<KillReport> {
  const report = emptyReport();
  for (let done = 0; done < options.cycles && report.failures.length === 0; ) {
    const cycles = Math.min(options.perLife, options.cycles - done);
    const seed = seedOf(options.seed, report.lives);
    await live({ seed, cycles, build: options.build }, report);
    done += cycles;
    options.onLife?.(report);
  }
  return report;
}
