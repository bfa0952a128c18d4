/** The processes of a campaign: TypeScript run by tsx, and servers that can be killed and come back. */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePort } from '../peers/free-port.ts';
import { findZooKeepers, startApache } from '../peers/zookeeper.ts';

export interface FaultServer {
  readonly port: number;
  kill(): Promise<void>;
  /** After a kill: on the same port, with the same data. */
  start(): Promise<void>;
}

export const tickTimeMs = 100;

/** Ours, or the peer of this name, as `apache-3.9.5`. */
export async function startFaultServer(dir: string, peer?: string): Promise<FaultServer> {
  if (peer === undefined) {
    const server = new OwnServer(await freePort(), join(dir, 'data'));
    await server.start();
    return server;
  }
  const { found } = await findZooKeepers();
  const named = found.find(({ name }) => name === peer);
  if (named === undefined) throw new Error(`no peer is called ${peer}`);
  return startApache(named, { dir, tickTimeMs });
}

class OwnServer implements FaultServer {
  readonly port: number;
  readonly #dataDir: string;
  #child: ChildProcess | undefined;

  constructor(port: number, dataDir: string) {
    this.port = port;
    this.#dataDir = dataDir;
  }

  async start(): Promise<void> {
    const program = new URL('../chaos/server.ts', import.meta.url);
    const options = { port: this.port, dataDir: this.#dataDir, tickTimeMs, snapCount: 5_000 };
    const child = spawned(program, [JSON.stringify(options)]);
    this.#child = child;
    const ready = new Promise<void>((resolve) => {
      child.stdout!.on('data', (chunk) => {
        if (String(chunk).startsWith('ready')) resolve();
      });
    });
    const ended = once(child, 'exit').then(() => {
      throw new Error('the server has ended while it started');
    });
    await Promise.race([ready, ended]);
    ended.catch(() => {}); // later its end is a fault of ours
  }

  async kill(): Promise<void> {
    await killed(this.#child);
  }
}

export function spawned(program: URL, args: readonly string[]): ChildProcess {
  const child = fork(program, args, {
    execArgv: ['--import', import.meta.resolve('tsx')],
    serialization: 'advanced',
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const kill = () => child.kill('SIGKILL');
  process.on('exit', kill);
  child.on('exit', () => process.off('exit', kill));
  return child;
}

export async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
