/**
 * Locks: acquire and release, by one and by fifty who contend for the same lock, ours beside Curator on
 * the same Apache ZooKeeper, and beside what a Node program would take instead: Redis with `redlock`
 * and etcd with `etcd3`.
 *
 * They take turns, so that a noisy minute hits all of them alike; the middle of the tries counts. A wait
 * is from asking to having; how many grants the luckiest contender got for each of the unluckiest's is
 * how fair it is. Printed as a table, then the ratios to reach.
 */

import {
  disturbedLegend,
  disturbedMark,
  type Figure,
  figureOf,
  median,
  short,
  type Try,
  tableText,
} from './figures.ts';
import { lockGoals } from './goals.ts';
import { type LockResult, type LockRival, startLockRivals } from './lock-rivals.ts';
import { machineText, watchMachine } from './machine.ts';
import { type BenchOptions, isWanted, log } from './options.ts';
import { compilePrograms } from './programs.ts';

const shapes = [1, 50] as const;
const warmSeconds = 0.5;
/** A JVM compiles what it runs for a long while, and Node does too; what is measured before is the compiler. */
const warmSecondsOf = (name: string) => (name.endsWith('/apache') ? 10 : 4);

interface LockFigure extends Figure {
  readonly maxWaitUs: number;
  /** Of one contender, in the try with the widest range. */
  readonly grants: readonly [min: number, max: number];
  /** Tries that the library left to its user to repeat, for each grant. */
  readonly failedPerOp: number;
}

interface Row {
  readonly name: string;
  readonly figures: Readonly<Record<string, LockFigure>>;
}

export async function benchLocks(options: BenchOptions): Promise<unknown> {
  compilePrograms();
  const { rivals: all, missing, end } = await startLockRivals(options);
  try {
    const rows: Row[] = [];
    const inRow = (name: string) =>
      all.filter((rival) => isWanted(`${name} ${rival.name}`, options));
    for (const { name, load } of all) {
      if (!shapes.some((count) => isWanted(`x${count} ${name}`, options))) continue;
      log(`warming ${name} for ${warmSecondsOf(name)} s`);
      await load.run({ contenders: 10, warmSeconds: 0, seconds: warmSecondsOf(name) });
    }
    for (const contenders of shapes) {
      const name = `x${contenders}`;
      if (inRow(name).length === 0) continue;
      rows.push({ name, figures: await compare(contenders, inRow(name), options) });
    }
    if (!options.json) print(rows, missing, options);
    return { machine: machineText(), missing, rows };
  } finally {
    await end();
  }
}

async function compare(
  contenders: number,
  rivals: readonly LockRival[],
  { seconds, tries }: BenchOptions,
): Promise<Row['figures']> {
  const found = new Map<string, { one: Try; result: LockResult }[]>();
  for (let i = 0; i < tries; i++) {
    for (let turn = 0; turn < rivals.length; turn++) {
      const { name, serverPid, load } = rivals[(turn + i) % rivals.length]!;
      log(`x${contenders} ${name}, try ${i + 1} of ${tries}`);
      const watched = watchMachine([serverPid, load.pid]);
      const result = await load.run({ contenders, warmSeconds, seconds });
      const { others } = watched();
      const one = {
        opsPerSecond: result.ops / result.seconds,
        p50Us: result.waitsUs[0],
        p99Us: result.waitsUs[1],
        cpuUs: result.cpuUs / result.ops,
        others,
      };
      found.set(name, [...(found.get(name) ?? []), { one, result }]);
    }
  }
  return Object.fromEntries(
    [...found].map(([name, all]) => {
      const results = all.map(({ result }) => result);
      const ranges = results.map(
        ({ grants }) => [Math.min(...grants), Math.max(...grants)] as const,
      );
      return [
        name,
        {
          ...figureOf(all.map(({ one }) => one)),
          maxWaitUs: Math.max(...results.map(({ waitsUs }) => waitsUs[2])),
          grants: ranges.sort((a, b) => b[1] - b[0] - (a[1] - a[0]))[0]!,
          failedPerOp: median(results.map(({ failed, ops }) => failed / ops)),
        },
      ];
    }),
  );
}

function print(rows: readonly Row[], missing: readonly string[], options: BenchOptions): void {
  console.log(`\n${machineText()}.`);
  console.log(
    `acquire and release, pairs/s: the middle of ${options.tries} tries of ${options.seconds} s`,
  );
  console.log(disturbedLegend);
  const head = [
    'contenders',
    'on',
    'pairs/s',
    'wait p50 ms',
    'p99',
    'max',
    'CPU us',
    'grants each',
  ];
  const body = rows.flatMap(({ name, figures }) =>
    Object.entries(figures).map(([rival, figure]) => [
      name,
      rival,
      `${figure.isDisturbed ? disturbedMark : ''}${short(figure.opsPerSecond)}`,
      short(figure.p50Us / 1e3),
      short(figure.p99Us / 1e3),
      short(figure.maxWaitUs / 1e3),
      short(figure.cpuUs),
      figure.grants.join('–') +
        (figure.failedPerOp > 0 ? `, ${short(figure.failedPerOp)} failed tries a grant` : ''),
    ]),
  );
  console.log(`\n${tableText([head, ...body])}`);
  for (const line of missing) console.log(`left out: ${line}`);
  const goals = lockGoals.flatMap(({ row, ours, theirs, what, min, max }) => {
    const figures = rows.find(({ name }) => name === row)?.figures;
    const [a, b] = [figures?.[ours], figures?.[theirs]];
    if (a === undefined || b === undefined) return [];
    const ratio = a[what] / b[what];
    const isMet = min !== undefined ? ratio >= min : ratio <= max!;
    const wanted = min !== undefined ? `>= ${min}` : `<= ${max}`;
    const unit = what === 'p99Us' ? 'wait p99' : 'pairs/s';
    return [
      `  ${row} ${unit} of ${ours} to ${theirs}: ${wanted}: ${isMet ? 'met' : 'not met'} (${short(ratio)})`,
    ];
  });
  if (goals.length > 0) console.log(`\nto reach\n${goals.join('\n')}`);
}
