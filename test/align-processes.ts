/**
 * Processes of `drover align run`, with faults: a seeded script of kill -9 and SIGSTOP while the data
 * still grows, and a check of what they wrote against a sort by one process.
 *
 * The data is handed out in rounds. In each a slice is appended to every partition, a fault is made at
 * once, while the slice is being read, and then the group is waited for: its limit has to come to where
 * the slice ends. So nothing depends on how fast the machine is. At the end all are stopped, and one run
 * without `--follow` goes to the end.
 *
 * Who read what is in the parts, by the epoch of the ownership, which is a zxid, as is when each cut was
 * made. So it can be told whether an owner began before a cut that was there before it: then records
 * came twice that had been settled.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { alignPaths, parseCut, parseLimit, readAlignment } from '../src/align/index.ts';
import type { Client } from '../src/client/index.ts';
import { seeded } from './random.ts';

const root = resolve(import.meta.dirname, '..');
const tsx = import.meta.resolve('tsx');

export class AlignProcess {
  readonly name: string;
  readonly child: ChildProcess;
  err = '';
  isStopped = false;

  constructor(name: string, args: readonly string[]) {
    this.name = name;
    const main = join(root, 'src/cli/main.ts');
    const words = ['--import', tsx, main, 'align', 'run', '--name', name, ...args];
    this.child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout!.resume();
    this.child.stderr!.on('data', (text) => {
      this.err = (this.err + text).slice(-20_000);
    });
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  async ended(): Promise<number | null> {
    if (this.isAlive) await once(this.child, 'exit');
    return this.child.exitCode;
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.isAlive) {
      if (this.isStopped) this.child.kill('SIGCONT');
      this.child.kill(signal);
    }
    return this.ended();
  }
}

export interface RoundsOptions {
  readonly address: string;
  /** A client that looks on. */
  readonly client: Client;
  readonly dir: string;
  /** Lines with a `ts`, by topic and partition. */
  readonly lines: ReadonlyMap<string, readonly (readonly string[])[]>;
  readonly periodMs: number;
  readonly processes: number;
  readonly rounds: number;
  readonly seed: number;
  readonly sessionTimeoutMs: number;
  /** Where the data goes, a slice at a time; files unless given. */
  readonly input?: {
    /** Which words tell a process of it. */
    readonly words: readonly string[];
    append(topic: string, partition: number, lines: readonly string[]): Promise<void>;
  };
  /** A fault of the server's, once each round; none unless given. */
  readonly onRound?: (round: number) => Promise<void>;
}

export interface RoundsResult {
  readonly out: string;
  readonly faults: readonly string[];
  /** Owners that began before a cut which was made before them. Should be none. */
  readonly tooEarly: readonly string[];
  /** How many owners came after a cut that is known, and so could be told to be too early. */
  readonly compared: number;
  /** Records that were read more than once. */
  readonly twice: number;
  readonly lastCode: number | null;
  readonly lastErr: string;
}

/** The files that `makeData` made, line by line. */
export async function linesOf(
  dir: string,
  topics: Readonly<Record<string, number>>,
): Promise<Map<string, string[][]>> {
  const lines = new Map<string, string[][]>();
  for (const [topic, count] of Object.entries(topics)) {
    const files = Array.from({ length: count }, (_, i) => join(dir, topic, `${i}.ndjson`));
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    const split = texts.map((text) => text.split('\n').filter((line) => line !== ''));
    lines.set(topic, split);
  }
  return lines;
}

const waitMaxMs = 90_000;

export async function runRounds(options: RoundsOptions): Promise<RoundsResult> {
  const { address, client, dir, lines, periodMs, rounds } = options;
  const chance = seeded(options.seed);
  const out = join(dir, 'out');
  const group = `g${options.seed}`;
  const input = options.input ?? (await filesIn(dir, lines));
  const common = [
    ...['--server', address, '--group', group, '--event-time', 'ts', '--out', out],
    ...['--period', `${periodMs}ms`, '--session-timeout', String(options.sessionTimeoutMs)],
    ...input.words,
  ];
  let count = 0;
  const start = () =>
    new AlignProcess(`p${count++}`, [...common, '--follow', '--idle-after', '500ms']);
  let running = Array.from({ length: options.processes }, start);
  const all = [...running];
  const faults: string[] = [];
  const cuts: { readonly zxid: bigint; readonly offsets: ReadonlyMap<string, bigint> }[] = [];
  const said = () => all.map(({ name, err }) => `${name}: ${err}`).join('\n');
  try {
    for (let round = 0; round < rounds; round++) {
      const reachMs = await appendSlice(input, lines, round, rounds);
      if (round > 0) {
        const cut = await readCut(client, group);
        if (cut !== null) cuts.push(cut);
        const victim = running[Math.floor(chance() * running.length)]!;
        const fault = chance() < 0.5 ? 'SIGKILL' : 'SIGSTOP';
        faults.push(`${fault} ${victim.name}`);
        victim.child.kill(fault);
        if (fault === 'SIGKILL') {
          running = [...running.filter((each) => each !== victim), start()];
          all.push(running.at(-1)!);
        } else victim.isStopped = true;
        await options.onRound?.(round);
      }
      const target = Math.floor(reachMs / periodMs) * periodMs;
      await waitFor(
        async () => ((await readAlignment(client, group))?.limit?.limitMs ?? 0) >= target,
        () => `round ${round}, ${faults.join(', ')}: the limit never came to ${target}\n${said()}`,
      );
      // Who was stopped wakes up only now: the others have gone on without it.
      for (const each of running.filter(({ isStopped }) => isStopped)) {
        each.child.kill('SIGCONT');
        each.isStopped = false;
      }
    }
    await Promise.all(running.map((each) => each.end('SIGTERM')));
    const seen = await lookAtParts(out, cuts);
    const last = new AlignProcess('last', common);
    all.push(last);
    const lastCode = await last.ended();
    return { out, faults, ...seen, lastCode, lastErr: said() };
  } finally {
    await Promise.all(all.map((each) => each.end('SIGKILL')));
  }
}

async function filesIn(
  dir: string,
  lines: RoundsOptions['lines'],
): Promise<NonNullable<RoundsOptions['input']>> {
  for (const [topic, partitions] of lines) {
    await mkdir(join(dir, topic), { recursive: true });
    for (const i of partitions.keys()) await appendFile(join(dir, topic, `${i}.ndjson`), '');
  }
  return {
    words: [...lines.keys()].flatMap((topic) => ['--input', `${topic}=${join(dir, topic)}`]),
    append: (topic, i, more) =>
      appendFile(join(dir, topic, `${i}.ndjson`), more.map((line) => `${line}\n`).join('')),
  };
}

/** Appends a round's share to every partition. Resolves with where the group can come by it. */
async function appendSlice(
  input: NonNullable<RoundsOptions['input']>,
  lines: RoundsOptions['lines'],
  round: number,
  rounds: number,
): Promise<number> {
  const times = [...lines.values()].flat(2).map((line) => JSON.parse(line).ts as number);
  const [firstMs, lastMs] = [Math.min(...times), Math.max(...times)];
  const edge = (at: number) => firstMs + ((lastMs - firstMs + 1) * at) / rounds;
  let reachMs = Number.POSITIVE_INFINITY;
  for (const [topic, partitions] of lines) {
    for (const [i, partition] of partitions.entries()) {
      const slice = partition.filter((line) => {
        const { ts } = JSON.parse(line) as { ts: number };
        return ts >= edge(round) && ts < edge(round + 1);
      });
      await input.append(topic, i, slice);
      const before = partition.filter((line) => JSON.parse(line).ts < edge(round + 1));
      // One that has nothing to read is idle soon, and holds nobody back.
      if (before.length > 0) reachMs = Math.min(reachMs, JSON.parse(before.at(-1)!).ts as number);
    }
  }
  return reachMs;
}

async function readCut(client: Client, group: string) {
  const paths = alignPaths(group);
  const { data, stat } = await client.get(paths.limit);
  const { cut } = parseLimit(data, paths.limit);
  if (cut === null || cut.parts > 0) return null;
  const path = paths.cut(cut.node);
  const { offsets } = parseCut((await client.get(path)).data, path);
  return { zxid: stat.mzxid, offsets };
}

async function lookAtParts(
  out: string,
  cuts: readonly { readonly zxid: bigint; readonly offsets: ReadonlyMap<string, bigint> }[],
): Promise<Pick<RoundsResult, 'tooEarly' | 'compared' | 'twice'>> {
  const hidden = join(out, '.drover');
  /** Offsets by partition and epoch. */
  const read = new Map<string, Map<bigint, bigint[]>>();
  for (const period of (await readdir(hidden)).filter((name) => /^\d+$/.test(name))) {
    for (const name of await readdir(join(hidden, period))) {
      const found = /^(.*)-(\d+)\.(\d+)\.part$/.exec(name);
      if (found === null) continue;
      const [, topic, partition, epoch] = found;
      const key = `${topic}/${partition}`;
      const owners = read.get(key) ?? new Map<bigint, bigint[]>();
      read.set(key, owners);
      const rows = (await readFile(join(hidden, period, name), 'utf8')).split('\n').slice(0, -1);
      const offsets = rows.map((row) => BigInt(row.split(' ', 1)[0]!));
      owners.set(BigInt(epoch!), [...(owners.get(BigInt(epoch!)) ?? []), ...offsets]);
    }
  }
  const tooEarly: string[] = [];
  let [twice, compared] = [0, 0];
  for (const [key, owners] of read) {
    const offsets = [...owners.values()].flat();
    twice += offsets.length - new Set(offsets).size;
    for (const [epoch, own] of owners) {
      const [first] = own.sort((a, b) => (a < b ? -1 : 1)) as [bigint];
      for (const { zxid, offsets: settled } of cuts) {
        if (zxid >= epoch) continue;
        compared += 1;
        if (first >= (settled.get(key) ?? 0n)) continue;
        tooEarly.push(`${key}: owner ${epoch} began at ${first}, cut ${settled.get(key)}`);
      }
    }
  }
  return { tooEarly, compared, twice };
}

async function waitFor(isThere: () => Promise<boolean>, why: () => string): Promise<void> {
  const endMs = Date.now() + waitMaxMs;
  while (!(await isThere())) {
    if (Date.now() > endMs) throw new Error(why());
    await delay(50);
  }
}
