/**
 * Our client beside npm `zookeeper` (native) and `node-zookeeper-client`, on the same server in the
 * same run.
 *
 * Twice: on a stand-in that answers at next to no cost, where the client is what is measured, and on
 * Apache ZooKeeper, where its users stand. The clients take turns, each in a process of its own, so
 * that a noisy minute hits all of them alike. Printed as tables; ratios are ours to theirs.
 *
 * Beside them runs a bare socket: a Node program that writes requests encoded beforehand and counts the
 * replies, without a session to keep, promises, or a look at what came. What it reaches is what the
 * machine and the server leave to any client; a goal beyond it is out of reach on this machine.
 */

import { startApache } from '../test/peers/zookeeper.ts';
import { apacheJvm, firstApache } from './apache.ts';
import {
  disturbedLegend,
  disturbedMark,
  type Figure,
  figureOf,
  short,
  type Try,
  tableText,
} from './figures.ts';
import { type ClientGoal, clientGoals } from './goals.ts';
import { machineText, watchMachine } from './machine.ts';
import { type BenchOptions, isWanted, log } from './options.ts';
import { ownPackage, type Package, peerPackages } from './peers.ts';
import type { OpName } from './programs/messages.ts';
import { compilePrograms, Program } from './programs.ts';

interface Row {
  readonly server: string;
  readonly name: string;
  readonly figures: Readonly<Record<string, Figure>>;
}

/** The contender that is none. */
const bare = 'bare socket';

interface Server {
  readonly name: 'fast' | 'apache';
  readonly title: string;
  readonly address: string;
  readonly port: number;
  readonly pid: number;
}

interface Cell {
  readonly op: OpName;
  readonly bytes: number;
  readonly depth: number;
}

const cells: readonly Cell[] = (['get', 'set', 'create'] as const).flatMap((op) =>
  [1, 100].flatMap((depth) => [100, 1024].map((bytes) => ({ op, bytes, depth }))),
);
const cellName = ({ op, bytes, depth }: Cell) => `${op} ${bytes} x${depth}`;
const warmSeconds = 0.3;
/** A JVM compiles what it runs for a long while; what is measured before that is the compiler. */
const jvmWarmSeconds = 10;

export async function benchClient(options: BenchOptions): Promise<unknown> {
  compilePrograms();
  const packages = [ownPackage(options.dist), ...peerPackages(log)];
  const rows: Row[] = [];
  const missing = packages.filter(({ module }) => module === undefined);
  await onFastServer(async (server) =>
    rows.push(...(await measure(server, packages, options, missing))),
  );
  await onApache(options, async (server) =>
    rows.push(...(await measure(server, packages, options, missing))),
  );
  if (!options.json) {
    for (const { name, version, why } of missing) {
      console.log(`${name} ${version} is missing: ${why}`);
    }
  }
  return { machine: machineText(), missing, rows };
}

async function onFastServer(work: (server: Server) => Promise<unknown>): Promise<void> {
  const program = await Program.start('fast-server', []);
  const port = Number(program.ready.port);
  const server = { address: `127.0.0.1:${port}`, port, pid: program.pid };
  try {
    await work({ name: 'fast', title: 'a stand-in server in memory', ...server });
  } finally {
    await program.stop();
  }
}

async function onApache(
  options: BenchOptions,
  work: (server: Server) => Promise<unknown>,
): Promise<void> {
  const peer = await firstApache(options);
  if (peer === undefined) return;
  await using apache = await startApache(peer, { jvm: apacheJvm });
  const { address, port, pid } = apache;
  await work({ name: 'apache', title: `Apache ZooKeeper, ${peer.name}`, address, port, pid });
}

async function measure(
  server: Server,
  packages: readonly Package[],
  options: BenchOptions,
  missing: Package[],
): Promise<Row[]> {
  const wanted = cells.filter((cell) => isWanted(`${server.name} ${cellName(cell)}`, options));
  if (wanted.length === 0) return [];
  const clients = await startClients(server, packages, missing);
  try {
    const [first] = clients.values();
    if (first === undefined) return [];
    const sizes = [...new Set(wanted.map(({ bytes }) => bytes))];
    for (const bytes of sizes) await first.run({ name: 'prepare', root: rootOf(bytes), bytes });
    if (server.name === 'apache') await warm(first, sizes[0]!);
    const rows: Row[] = [];
    for (const cell of wanted) {
      log(`${server.name} ${cellName(cell)}`);
      const figures = await compare(cell, clients, server, options);
      rows.push({ server: server.name, name: cellName(cell), figures });
      if (cell.op === 'create' && server.name === 'apache') {
        await first.run({ name: 'clear', root: rootOf(cell.bytes) });
      }
    }
    if (!options.json) print(server, [...clients.keys()], packages, rows, options);
    return rows;
  } finally {
    for (const client of clients.values()) await client.stop();
  }
}

async function startClients(
  server: Server,
  packages: readonly Package[],
  missing: Package[],
): Promise<Map<string, Program>> {
  const clients = new Map<string, Program>();
  for (const one of packages) {
    if (one.module === undefined) continue;
    try {
      clients.set(
        one.name,
        await Program.start('client-load', [one.name, one.module, server.address]),
      );
    } catch (error) {
      missing.push({ ...one, why: `on ${server.title}: ${(error as Error).message}` });
    }
  }
  clients.set(bare, await Program.start('server-load', [String(server.port)]));
  return clients;
}

const rootOf = (bytes: number) => `/bench-${bytes}`;

async function warm(client: Program, bytes: number): Promise<void> {
  log(`warming the JVM for ${2 * jvmWarmSeconds} s`);
  for (const op of ['get', 'set'] as const) {
    const root = rootOf(bytes);
    const task = { op, bytes, root, connections: 1, depth: 100, warmSeconds: 0 };
    await client.run({ name: 'load', ...task, seconds: jvmWarmSeconds });
  }
}

/** Turn by turn, and another one first each time. */
async function compare(
  { op, bytes, depth }: Cell,
  clients: ReadonlyMap<string, Program>,
  server: Server,
  { seconds, tries }: BenchOptions,
): Promise<Record<string, Figure>> {
  const found = new Map<string, Try[]>();
  // What it creates nobody clears away, and a create tells nothing that a set does not.
  const names = [...clients.keys()].filter((name) => name !== bare || op !== 'create');
  for (let i = 0; i < tries; i++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(turn + i) % names.length]!;
      const client = clients.get(name)!;
      const watched = watchMachine([client.pid, server.pid]);
      const task = { op, bytes, depth, connections: 1, root: rootOf(bytes), warmSeconds, seconds };
      const result = await client.run({ name: 'load', ...task });
      const { others } = watched();
      if (result === null) continue;
      const { ops, p50Us, p99Us } = result;
      const one = {
        opsPerSecond: ops / result.seconds,
        p50Us,
        p99Us,
        cpuUs: result.cpuUs / ops,
        others,
      };
      found.set(name, [...(found.get(name) ?? []), one]);
    }
  }
  return Object.fromEntries([...found].map(([name, all]) => [name, figureOf(all)]));
}

function print(
  server: Server,
  names: readonly string[],
  packages: readonly Package[],
  rows: readonly Row[],
  options: BenchOptions,
): void {
  const titles = names.map((name) => {
    const version = packages.find((one) => one.name === name)?.version;
    return version === undefined ? name : `${name} ${version}`;
  });
  const peers = names.filter((name) => name !== 'drover' && name !== bare);
  console.log(`\nOn ${server.title}. ${machineText()}.`);
  console.log(
    `ops/s · p99 ms · CPU us per op: the middle of ${options.tries} tries of ${options.seconds} s`,
  );
  console.log(`${disturbedLegend}\n`);
  const head = ['op bytes in flight', ...titles, ...peers.map((name) => `/ ${name}`)];
  const body = rows.map(({ name, figures }) => [
    name,
    ...names.map((one) => figureText(figures[one])),
    ...peers.map((peer) => ratioText(figures.drover, figures[peer])),
  ]);
  console.log(tableText([head, ...body]));
  const goals = rows.flatMap(({ name, figures }) => {
    const goal = clientGoals[`${server.name} ${name}`];
    return goal === undefined ? [] : [`  ${name}: ${goalText(goal, figures)}`];
  });
  if (goals.length > 0) console.log(`\nto reach\n${goals.join('\n')}`);
}

function figureText(figure: Figure | undefined): string {
  if (figure === undefined) return '-';
  const { opsPerSecond, p99Us, cpuUs, isDisturbed } = figure;
  return `${isDisturbed ? disturbedMark : ''}${short(opsPerSecond)} · ${short(p99Us / 1e3)} · ${short(cpuUs)}`;
}

/** Speed as a multiple, CPU as a share. */
function ratioText(ours: Figure | undefined, theirs: Figure | undefined): string {
  if (ours === undefined || theirs === undefined) return '-';
  const { opsPerSecond, cpuUs } = ours;
  return `${short(opsPerSecond / theirs.opsPerSecond)}x, CPU ${short(cpuUs / theirs.cpuUs)}`;
}

function goalText(goal: ClientGoal, figures: Row['figures']): string {
  const { drover: ours, zookeeper: native, 'node-zookeeper-client': node } = figures;
  const floor = figures[bare];
  if (ours === undefined) return '-';
  const peers = [native, node].filter((figure) => figure !== undefined);
  const best = peers.sort((a, b) => b.opsPerSecond - a.opsPerSecond)[0];
  const rate = (peer: Figure | undefined) => (one: Figure) =>
    one.opsPerSecond / (peer?.opsPerSecond ?? Number.NaN);
  const cpuShare = (one: Figure) => one.cpuUs / (best?.cpuUs ?? Number.NaN);
  const parts: [
    goal: number | undefined,
    sign: '>=' | '<=',
    of: (one: Figure) => number,
    string,
  ][] = [
    [goal.ofNode, '>=', rate(node), 'x node-zookeeper-client'],
    [goal.ofNative, '>=', rate(native), 'x zookeeper'],
    [goal.ofBetter, '>=', rate(best), 'x the better'],
    [goal.cpuUsMax, '<=', (one) => one.cpuUs, ' us CPU'],
    [goal.cpuOfBetterMax, '<=', cpuShare, ' of its CPU'],
  ];
  return parts
    .filter(([wanted]) => wanted !== undefined)
    .map(([wanted, sign, of, what]) => {
      const isMet = sign === '>=' ? of(ours) >= wanted! : of(ours) <= wanted!;
      const bound = floor === undefined ? '' : `, the bare socket ${short(of(floor))}`;
      return `${sign} ${wanted}${what}: ${isMet ? 'met' : 'not met'} (${short(of(ours))}${bound})`;
    })
    .join('; ');
}
