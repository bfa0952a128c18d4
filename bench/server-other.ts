/**
 * What there is to a server besides its speed under load: how soon it is there, what it costs when
 * nobody asks, what a million nodes cost, how quickly sessions are made and many watchers told.
 *
 *   ready     from the start of the process to the first session, on a small directory
 *   idle      resident memory then
 *   million   so many nodes of 100 B: memory, creates (10x100), restart, and the longest reply to
 *             sets (10x10) while a snapshot of them is taken: the middle of several, the worst of them,
 *             and the longest sync of a bare loop on the same disk right after, for as long
 *   sessions  opened 40 at a time, on a warm server
 *   fan-out   one change told to a thousand sessions, on a warm server
 */

import { setTimeout as delay } from 'node:timers/promises';
import { median, middleOf, ratioText, short, tableText } from './figures.ts';
import { type OtherGoal, otherGoals } from './goals.ts';
import { longestSyncMs, machineText, residentMbOf, settleDisk } from './machine.ts';
import { type BenchOptions, isWanted, log } from './options.ts';
import type { Result } from './programs/messages.ts';
import { Program } from './programs.ts';
import {
  type Contender,
  launchTimed,
  type Rival,
  type RivalName,
  snapshotsOf,
  titles,
} from './rivals.ts';

/** One figure of each server. */
export interface OtherRow {
  readonly name: string;
  readonly values: Partial<Record<RivalName, number>>;
  /** What they are the middle of, round by round. */
  readonly tries: Partial<Record<RivalName, readonly number[]>>;
}

const parts = [
  { name: 'sessions', isWarm: true },
  { name: 'fan-out', isWarm: true },
  { name: 'ready', isWarm: false },
  { name: 'idle', isWarm: false },
  { name: 'million', isWarm: false },
] as const;

export const otherWanted = (options: BenchOptions) =>
  parts.filter(({ name }) => isWanted(name, options));

type Figures = Record<string, number>;

const sessionCount = 5000;
const sessionsAtOnce = 40;
const watcherCount = 1000;
/** The last in a hundred is then the slowest of some rounds, and not of one. */
const fanOutRounds = 300;
/** Long enough for a server to settle, and for its collector to have looked once. */
const idleMs = 1_000;
const snapshotSeconds = 10;
/** Both servers take one every 50,000 to 100,000 writes, by chance: mostly every load has one. */
const loadsPerTry = 3;

/** Turn by turn, as often as the rows of load. */
export async function measureWarm(
  contenders: readonly Contender[],
  root: string,
  options: BenchOptions,
): Promise<OtherRow[]> {
  const wanted = new Set(otherWanted(options).map(({ name }) => name));
  const found = new Map<RivalName, Figures[]>(contenders.map(({ name }) => [name, []]));
  for (let i = 0; i < options.tries; i++) {
    for (const { name, load } of contenders) {
      const figures: Figures = {};
      settleDisk();
      if (wanted.has('sessions')) {
        log(`sessions of ${titles[name]}`);
        const task = { name: 'sessions', count: sessionCount, atOnce: sessionsAtOnce } as const;
        figures['sessions /s'] = rateOf(await load.run(task));
      }
      if (wanted.has('fan-out')) {
        log(`fan-out of ${titles[name]}`);
        const shape = { path: root, watchers: watcherCount, rounds: fanOutRounds };
        const result = await load.run({ name: 'fanOut', ...shape });
        figures['fan-out events/s'] = rateOf(result);
        figures['fan-out p99 ms'] = (result?.p99Us ?? Number.NaN) / 1e3;
      }
      found.get(name)!.push(figures);
    }
  }
  return rowsOf(found);
}

const rateOf = (result: Result | null) =>
  result === null ? Number.NaN : result.ops / result.seconds;

/** Each with servers of its own, one at a time: a million nodes of three servers is a lot of memory. */
export async function measureOther(
  names: readonly RivalName[],
  start: (name: RivalName) => Promise<Rival>,
  options: BenchOptions,
): Promise<OtherRow[]> {
  const wanted = new Set(otherWanted(options).map(({ name }) => name));
  const found = new Map<RivalName, Figures[]>(names.map((name) => [name, []]));
  for (let i = 0; i < options.tries && (wanted.has('ready') || wanted.has('idle')); i++) {
    for (const name of names) {
      log(`start of ${titles[name]}`);
      found.get(name)!.push(await withRival(start, name, startOf));
    }
  }
  if (wanted.has('million')) {
    for (const name of names) {
      found.get(name)!.push(await withRival(start, name, (rival) => million(rival, options)));
    }
  }
  return rowsOf(found).filter(({ name }) => wanted.has(name.split(' ')[0] as 'ready'));
}

async function withRival(
  start: (name: RivalName) => Promise<Rival>,
  name: RivalName,
  work: (rival: Rival) => Promise<Figures>,
): Promise<Figures> {
  const rival = await start(name);
  try {
    return await work(rival);
  } finally {
    await rival.end();
  }
}

async function startOf(rival: Rival): Promise<Figures> {
  await rival.stop();
  const readyMs = await launchTimed(rival);
  await delay(idleMs);
  return { 'ready ms': readyMs, 'idle MB': residentMbOf(rival.pid) };
}

async function million(rival: Rival, { nodes, tries }: BenchOptions): Promise<Figures> {
  const title = titles[rival.name];
  const load = await Program.start('server-load', [String(rival.port)]);
  try {
    log(`${title}: ${nodes} nodes`);
    const shape = { bytes: 100, connections: 10, depth: 100 };
    const filled = await load.run({ name: 'fill', root: '/many', count: nodes, ...shape });
    await delay(idleMs);
    const mb = residentMbOf(rival.pid);
    log(`${title}: restart`);
    await rival.stop();
    const restartMs = await launchTimed(rival);
    const longest = await longestMs(rival, load, tries);
    return {
      'million MB': mb,
      'million creates/s': rateOf(filled),
      'million restart ms': restartMs,
      'million longest ms': median(longest),
      'million worst ms': Math.max(...longest),
      'million disk ms': longestSyncMs(rival.dataDir, snapshotSeconds * longest.length),
    };
  } finally {
    await load.stop();
  }
}

/** The longest of all replies in each of some stretches of load during which a snapshot was taken. */
async function longestMs(rival: Rival, load: Program, tries: number): Promise<number[]> {
  const root = '/snapped';
  await load.run({ name: 'prepare', root, bytes: 100 });
  const shape = { op: 'set', bytes: 100, connections: 10, depth: 10, warmSeconds: 1 } as const;
  const longest: number[] = [];
  for (let i = 0; i < loadsPerTry * tries && longest.length < tries; i++) {
    log(`${titles[rival.name]}: load until it takes a snapshot`);
    const before = new Set(snapshotsOf(rival));
    const result = await load.run({ name: 'load', root, seconds: snapshotSeconds, ...shape });
    const isTaken = snapshotsOf(rival).some((name) => !before.has(name));
    if (isTaken && result !== null) longest.push(result.maxUs / 1e3);
  }
  return longest;
}

function rowsOf(found: ReadonlyMap<RivalName, readonly Figures[]>): OtherRow[] {
  const names = new Set([...found.values()].flat().flatMap((figures) => Object.keys(figures)));
  return [...names].map((name) => {
    const values: OtherRow['values'] = {};
    const tries: OtherRow['tries'] = {};
    for (const [rival, all] of found) {
      const some = all.flatMap((figures) => figures[name] ?? []);
      if (some.length === 0) continue;
      values[rival] = median(some);
      tries[rival] = some;
    }
    return { name, values, tries };
  });
}

export function printOther(
  names: readonly RivalName[],
  rows: readonly OtherRow[],
  { nodes, tries }: BenchOptions,
): void {
  console.log(`\n${machineText()}.`);
  console.log(
    `the middle of ${tries} tries; of the million, which is one of ${nodes} nodes, for its longest reply alone\n`,
  );
  const head = ['', ...names.map((name) => titles[name]), 'to the better', 'reach'];
  const body = rows.map((row) => [
    row.name,
    ...names.map((one) => short(row.values[one])),
    ...verdict(otherGoals[row.name] ?? {}, row),
  ]);
  console.log(tableText([head, ...body]));
}

function verdict(goal: OtherGoal, { values, tries }: OtherRow): [string, string] {
  const { ofBetterMin, ofBetterMax, max } = goal;
  if (Object.keys(goal).length === 0) return ['', ''];
  const ratio = middleOf(ratiosOf({ values, tries }, ofBetterMin !== undefined));
  const met = (isMet: boolean) => (isMet ? 'met' : 'not met');
  const { drover = Number.NaN } = values;
  if (max !== undefined) return [ratioText(ratio), `<= ${max}: ${met(drover <= max)}`];
  const limit = (ofBetterMin ?? ofBetterMax)!;
  const sign = ofBetterMin === undefined ? '<=' : '>=';
  const isMet = ofBetterMin === undefined ? ratio.middle <= limit : ratio.middle >= limit;
  return [ratioText(ratio), `${sign} ${short(limit)}x: ${met(isMet)}`];
}

/** Round by round to the better, as for the rows of load: where they can't be paired, the middle to the middle. */
function ratiosOf({ values, tries }: Omit<OtherRow, 'name'>, isMoreBetter: boolean): number[] {
  const peers = (['nio', 'netty'] as const).filter((name) => (values[name] ?? 0) > 0);
  const [better] = peers.sort((a, b) => (values[a]! - values[b]!) * (isMoreBetter ? -1 : 1));
  if (better === undefined || values.drover === undefined) return [Number.NaN];
  const [ours, theirs] = [tries.drover!, tries[better]!];
  if (ours.length !== theirs.length) return [values.drover / values[better]!];
  return ours.map((value, i) => value / theirs[i]!);
}
