/**
 * Our server beside Apache ZooKeeper with each of its two network layers, under the same load in the
 * same run, all of them as their users run them: with fsync. The ratio counts against the better of
 * the two. What is no load over a while (starting, memory, sessions, …) is in server-other.ts.
 *
 * `CxD` is C connections with D requests in flight on each. The load comes from a process of its own;
 * where that process was busy nearly all the time, a row says what it can do and not what the server
 * can, and is marked with a `<`.
 */

import { firstApache } from './apache.ts';
import {
  disturbedLegend,
  disturbedMark,
  type Figure,
  figureOf,
  isCalm,
  ratioOf,
  ratioText,
  short,
  type Try,
  tableText,
} from './figures.ts';
import { p99OfBetterMax, p999OfBetterMax, serverGoals } from './goals.ts';
import { machineText, settleDisk, watchMachine } from './machine.ts';
import { type BenchOptions, isWanted, log } from './options.ts';
import type { OpName } from './programs/messages.ts';
import { compilePrograms, Program } from './programs.ts';
import { type Contender, type RivalName, rivalNames, startRival, titles } from './rivals.ts';
import {
  measureOther,
  measureWarm,
  type OtherRow,
  otherWanted,
  printOther,
} from './server-other.ts';

interface Cell {
  readonly op: OpName;
  readonly bytes: number;
  readonly connections: number;
  readonly depth: number;
}

interface ServerFigure extends Figure {
  /** The generator had next to no time left. */
  readonly isLimitedByLoad: boolean;
}

interface Row {
  readonly name: string;
  readonly figures: Readonly<Record<string, ServerFigure>>;
}

const shapes = [
  { connections: 1, depth: 1 },
  { connections: 1, depth: 100 },
  { connections: 50, depth: 10 },
  { connections: 200, depth: 1 },
] as const;
const opNames = ['get', 'set', 'create', 'mixed'] as const;
const cells: readonly Cell[] = [
  ...opNames.flatMap((op) => shapes.map((shape) => ({ op, bytes: 100, ...shape }))),
  { op: 'get', bytes: 1024, connections: 50, depth: 10 },
  { op: 'set', bytes: 1024, connections: 50, depth: 10 },
];
const cellName = ({ op, bytes, connections, depth }: Cell) =>
  `${op} ${bytes} ${connections}x${depth}`;
const rootOf = (bytes: number) => `/bench-${bytes}`;

const warmSeconds = 0.3;
const jvmWarmSeconds = 20;
const loadBusyMax = 0.9;

export async function benchServer(options: BenchOptions): Promise<unknown> {
  const wanted = cells.filter((cell) => isWanted(cellName(cell), options));
  const others = otherWanted(options);
  if (wanted.length + others.length === 0) {
    throw new Error(`no row is named ${options.only.map((words) => words.join(' ')).join(', ')}`);
  }
  compilePrograms();
  const peer = await firstApache(options);
  const names = peer === undefined ? (['drover'] as const) : rivalNames;
  const start = (name: RivalName) => startRival(name, peer, options);
  const rows: Row[] = [];
  const otherRows: OtherRow[] = [];
  if (wanted.length > 0 || others.some(({ isWarm }) => isWarm)) {
    await using stack = new AsyncDisposer();
    const contenders: Contender[] = [];
    for (const name of names) {
      const rival = await start(name);
      stack.defer(() => rival.end());
      const load = await Program.start('server-load', [String(rival.port)]);
      stack.defer(() => load.stop());
      contenders.push({ name, rival, load });
    }
    const sizes = [...new Set([100, ...wanted.map(({ bytes }) => bytes)])];
    for (const { name, load } of contenders) {
      for (const bytes of sizes) await load.run({ name: 'prepare', root: rootOf(bytes), bytes });
      if (name !== 'drover') await warm(name, load, sizes[0]!);
    }
    for (const cell of wanted) {
      log(cellName(cell));
      rows.push({ name: cellName(cell), figures: await compare(cell, contenders, options) });
    }
    otherRows.push(...(await measureWarm(contenders, rootOf(100), options)));
  }
  otherRows.push(...(await measureOther(names, start, options)));
  if (!options.json) {
    if (rows.length > 0) print(names, rows, options);
    if (otherRows.length > 0) printOther(names, otherRows, options);
  }
  return { machine: machineText(), rows, other: otherRows };
}

/** What was started, ended in the opposite order. Node 20 has no AsyncDisposableStack. */
class AsyncDisposer {
  readonly #ends: (() => Promise<unknown>)[] = [];

  defer(end: () => Promise<unknown>): void {
    this.#ends.unshift(end);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends) await end();
  }
}

async function warm(name: string, load: Program, bytes: number): Promise<void> {
  log(`warming the JVM of ${name} for ${jvmWarmSeconds} s`);
  for (const op of ['get', 'set'] as const) {
    const shape = { connections: 20, depth: 10, warmSeconds: 0, seconds: jvmWarmSeconds / 2 };
    await load.run({ name: 'load', op, bytes, root: rootOf(bytes), ...shape });
  }
}

/** In the place of rounds in which others took much of the machine there are more, up to so many for each. */
const roundsPerTry = 2;

/** Turn by turn, and another one first each time. */
async function compare(
  cell: Cell,
  contenders: readonly Contender[],
  { seconds, tries }: BenchOptions,
): Promise<Row['figures']> {
  const found = new Map<string, (Try & { busy: number })[]>();
  let calmRounds = 0;
  for (let i = 0; i < tries * roundsPerTry && calmRounds < tries; i++) {
    let isCalmRound = true;
    for (let turn = 0; turn < contenders.length; turn++) {
      const { name, rival, load } = contenders[(turn + i) % contenders.length]!;
      const { pid } = rival;
      settleDisk();
      const watched = watchMachine([pid, load.pid]);
      const root = rootOf(cell.bytes);
      const result = await load.run({ name: 'load', ...cell, root, warmSeconds, seconds });
      const { cpuUs, others } = watched();
      // Or who is faster would be the one with the larger tree, and the longer snapshots, from then on.
      if (cell.op === 'create') await load.run({ name: 'clear', root });
      if (result === null) continue;
      const one = {
        opsPerSecond: result.ops / result.seconds,
        p50Us: result.p50Us,
        p99Us: result.p99Us,
        p999Us: result.p999Us,
        cpuUs: cpuUs.get(pid)! / result.opsInAll,
        others,
        busy: result.cpuUs / 1e6 / result.seconds,
        round: i,
      };
      found.set(name, [...(found.get(name) ?? []), one]);
      isCalmRound &&= isCalm(one);
    }
    if (isCalmRound) calmRounds += 1;
  }
  return Object.fromEntries(
    [...found].map(([name, all]) => {
      const isLimitedByLoad = all.every(({ busy }) => busy > loadBusyMax);
      return [name, { ...figureOf(all), isLimitedByLoad }];
    }),
  );
}

function print(
  names: readonly RivalName[],
  rows: readonly Row[],
  { tries, seconds }: BenchOptions,
): void {
  console.log(`\n${machineText()}.`);
  console.log(
    `ops/s · p99 ms · CPU us per op: the middle of ${tries} to ${roundsPerTry * tries} tries of ${seconds} s`,
  );
  console.log('ratios: try by try to the one of the better right beside it, the middle of them');
  console.log(disturbedLegend);
  console.log('a figure with <: the load generator was the limit\n');
  const head = ['op bytes shape', ...names.map((name) => titles[name]), 'to the better', 'reach'];
  const body = rows.map(({ name, figures }) => [
    name,
    ...names.map((one) => figureText(figures[one])),
    ...ratioTexts(name, figures),
  ]);
  console.log(tableText([head, ...body]));
}

function figureText(figure: ServerFigure | undefined): string {
  if (figure === undefined) return '-';
  const { opsPerSecond, p99Us, cpuUs, isDisturbed, isLimitedByLoad } = figure;
  const mark = `${isDisturbed ? disturbedMark : ''}${isLimitedByLoad ? '<' : ''}`;
  return `${mark}${short(opsPerSecond)} · ${short(p99Us / 1e3)} · ${short(cpuUs)}`;
}

function ratioTexts(name: string, { drover, nio, netty }: Row['figures']): [string, string] {
  const peers = [nio, netty].filter((figure) => figure !== undefined);
  const better = peers.sort((a, b) => b.opsPerSecond - a.opsPerSecond)[0];
  const goal = serverGoals[name];
  const p99Max = name.startsWith('get') ? p99OfBetterMax.get : p99OfBetterMax.other;
  const p999Max = p999OfBetterMax[name];
  const wanted = [
    goal === undefined ? [] : `>= ${goal}x, p99 <= ${p99Max}`,
    p999Max === undefined ? [] : `p99.9 <= ${p999Max}`,
  ]
    .flat()
    .join(', ');
  if (drover === undefined || better === undefined) return ['-', wanted];
  const rate = ratioOf(drover, better, (one) => one.opsPerSecond);
  const p99 = ratioOf(drover, better, (one) => one.p99Us).middle;
  const cpu = ratioOf(drover, better, (one) => one.cpuUs).middle;
  const p999 = ratioOf(drover, better, (one) => one.p999Us ?? Number.NaN).middle;
  const p999Text = p999Max === undefined ? '' : `, p99.9 ${short(p999)}`;
  const ratio = `${ratioText(rate)}, p99 ${short(p99)}${p999Text}, CPU ${short(cpu)}`;
  if (goal === undefined) return [ratio, ''];
  const isMet = rate.middle >= goal && p99 <= p99Max && (p999Max === undefined || p999 <= p999Max);
  return [ratio, `${wanted}: ${isMet ? 'met' : 'not met'}`];
}
