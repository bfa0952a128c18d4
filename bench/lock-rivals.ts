/**
 * What locks are measured on: a server, and the process that puts load on it.
 *
 *   drover           ours on `drover serve`, as built
 *   drover/apache    ours on Apache ZooKeeper            curator/apache   Curator on the same server
 *   redlock/durable  redlock on Redis that syncs every write, as ZooKeeper does
 *   redlock/memory   redlock on Redis that writes nothing        etcd3   etcd3 on a single etcd
 *
 * In: what is on this machine. Out: what could be started, and for all else a sentence why not.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { findCurator } from '../test/peers/curator/fetch.ts';
import { freePort, startApache } from '../test/peers/zookeeper.ts';
import { aptInstall, runs } from '../test/peers/zookeeper-fetch.ts';
import { apacheJvm, firstApache } from './apache.ts';
import { type BenchOptions, log } from './options.ts';
import { lockerPackages, ownPackage } from './peers.ts';
import { store } from './programs.ts';
import { startRival } from './rivals.ts';

export interface LockTask {
  readonly contenders: number;
  readonly warmSeconds: number;
  readonly seconds: number;
}

export interface LockResult {
  readonly ops: number;
  readonly seconds: number;
  readonly cpuUs: number;
  readonly failed: number;
  readonly waitsUs: readonly [p50: number, p99: number, max: number];
  /** For each contender. */
  readonly grants: readonly number[];
}

export interface LockRival {
  readonly name: string;
  readonly serverPid: number;
  readonly load: LockLoad;
}

interface Started {
  readonly rivals: LockRival[];
  readonly missing: string[];
  end(): Promise<void>;
}

const readyTimeoutMs = 30_000;
const answerTimeoutMs = 60_000;

/** A process that takes tasks as lines and answers each with one. */
export class LockLoad {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(command: string, args: readonly string[]) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin!.on('error', () => {}); // its end is seen where its answer is missed
    this.pid = this.#child.pid ?? 0;
    this.#lines = createInterface(this.#child.stdout!)[Symbol.asyncIterator]();
  }

  async run(task: LockTask): Promise<LockResult> {
    this.#child.stdin!.write(`${JSON.stringify(task)}\n`);
    const limitMs = (task.warmSeconds + task.seconds) * 1e3 + answerTimeoutMs;
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), limitMs);
    const { value } = await this.#lines.next();
    clearTimeout(timer);
    if (value === undefined) throw new Error('the load ended without an answer');
    return JSON.parse(value);
  }

  stop(): Promise<void> {
    return ended(this.#child);
  }
}

export async function startLockRivals(options: BenchOptions): Promise<Started> {
  const rivals: LockRival[] = [];
  const missing: string[] = [];
  const ends: (() => Promise<unknown>)[] = [];
  const add = (name: string, serverPid: number, load: LockLoad) => {
    ends.unshift(() => load.stop());
    rivals.push({ name, serverPid, load });
  };
  const program = `${store}js/bench/programs/lock-load.js`;
  const node = (side: string, address: string, modules: readonly string[]) =>
    new LockLoad(process.execPath, [program, side, address, ...modules]);

  const own = ownPackage(options.dist);
  if (own.module === undefined) throw new Error(own.why);
  const ownModules = [own.module, own.module.replace('/client/', '/recipes/')];
  const serve = await startRival('drover', undefined, options);
  ends.unshift(() => serve.end());
  add('drover', serve.pid, node('drover', `127.0.0.1:${serve.port}`, ownModules));

  const peer = await firstApache(options);
  if (peer !== undefined) {
    const apache = await startApache(peer, { jvm: apacheJvm });
    ends.unshift(() => apache[Symbol.asyncDispose]());
    add('drover/apache', apache.pid, node('drover', apache.address, ownModules));
    const curator = await findCurator(log);
    if (typeof curator === 'string') missing.push(curator);
    else {
      const quiet = '-Dorg.slf4j.simpleLogger.defaultLogLevel=error';
      const args = [quiet, '-cp', curator.classPath, 'LockLoad', apache.address];
      add('curator/apache', apache.pid, new LockLoad('java', args));
    }
  }

  const packages = new Map(lockerPackages(log).map((one) => [one.name, one]));
  const modulesOf = (...names: string[]) => names.map((name) => packages.get(name)!.module);
  for (const { name, version, why } of packages.values()) {
    if (why !== undefined) missing.push(`${name} ${version} is missing: ${why}`);
  }
  for (const { name, side, command, debian, modules, args } of others) {
    const files = modulesOf(...modules).filter((file) => file !== undefined);
    if (files.length < modules.length) continue;
    if (!(await isHere(command, debian))) {
      missing.push(`${name}: ${command} is not here; Debian's ${debian} has it`);
      continue;
    }
    const server = await startProcess(command, args);
    ends.unshift(() => server.end());
    add(name, server.pid, node(side, server.address, files));
  }
  return {
    rivals,
    missing,
    async end() {
      for (const end of ends) await end();
    },
  };
}

const others = [
  ...(['always', 'never'] as const).map((sync) => ({
    name: sync === 'always' ? 'redlock/durable' : 'redlock/memory',
    side: 'redlock',
    command: 'redis-server',
    debian: 'redis-server',
    modules: ['redlock', 'ioredis'],
    args: (port: number, dir: string) => [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''],
      ...(sync === 'always' ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []),
    ],
  })),
  {
    name: 'etcd3',
    side: 'etcd3',
    command: 'etcd',
    debian: 'etcd-server',
    modules: ['etcd3'],
    args: (port: number, dir: string, other: number) => [
      ...['--data-dir', dir, '--log-level', 'error'],
      ...['--listen-client-urls', `http://127.0.0.1:${port}`],
      ...['--advertise-client-urls', `http://127.0.0.1:${port}`],
      ...['--listen-peer-urls', `http://127.0.0.1:${other}`],
      ...['--initial-advertise-peer-urls', `http://127.0.0.1:${other}`],
      ...['--initial-cluster', `default=http://127.0.0.1:${other}`],
    ],
  },
];

async function isHere(command: string, debian: string): Promise<boolean> {
  if (await runs(command, '--version')) return true;
  process.env.RUNLEVEL = '1'; // the package must not start a service of its own
  await aptInstall([debian], log).catch((error) => log((error as Error).message.split('\n')[0]!));
  return runs(command, '--version');
}

async function startProcess(
  command: string,
  args: (port: number, dir: string, other: number) => readonly string[],
) {
  const dir = mkdtempSync(join(tmpdir(), 'drover-bench-'));
  const port = await freePort();
  const child = spawn(command, args(port, dir, await freePort()), { stdio: 'ignore' });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const deadlineMs = performance.now() + readyTimeoutMs;
  while (!(await listens(port))) {
    if (performance.now() > deadlineMs) throw new Error(`${command} does not listen on ${port}`);
    await delay(20);
  }
  return {
    address: `127.0.0.1:${port}`,
    pid: child.pid!,
    async end() {
      await ended(child);
      process.off('exit', kill);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const settle = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', () => settle(true)).once('error', () => settle(false));
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
