/** The processes of a campaign: TypeScript run by tsx, and servers that can be killed and come back. */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePort } from '../peers/free-port.ts';
import { findZooKeepers, startApache, startEnsemble } from '../peers/zookeeper.ts';

export interface FaultServer {
  readonly ports: readonly number[];
  /** Of an ensemble the one that leads. */
  kill(): Promise<void>;
  /** After a kill: on the same port, with the same data. */
  start(): Promise<void>;
  end(): Promise<void>;
}

const tickTimeMs = 100;
/** Servers of an ensemble that hear nothing of each other for five of these elect anew. */
const ensembleTickTimeMs = 500;

/** Ours, or the peer of this name, as `apache-3.9.5`; an ensemble of so many when there are several. */
export async function startFaultServer(dir: string, peer?: string, size = 1): Promise<FaultServer> {
  if (peer === undefined) {
    if (size > 1) throw new Error('an ensemble is made of real servers: name the peer');
    const server = new OwnServer(await freePort(), join(dir, 'data'));
    await server.start();
    return server;
  }
  const { found } = await findZooKeepers();
  const named = found.find(({ name }) => name === peer);
  if (named === undefined) throw new Error(`no peer is called ${peer}`);
  if (size > 1) {
    const ensemble = await startEnsemble(named, size, { dir, tickTimeMs: ensembleTickTimeMs });
    let killed: number | undefined;
    return {
      ports: ensemble.servers.map(({ port }) => port),
      async kill() {
        killed = await ensemble.leader();
        await ensemble.kill(killed);
        await ensemble.leader(); // the others have elected another one
      },
      start: () => ensemble.start(killed!),
      end: () => ensemble.killAll(),
    };
  }
  const server = await startApache(named, { dir, tickTimeMs });
  return {
    ports: [server.port],
    kill: () => server.kill(),
    start: () => server.start(),
    end: () => server.kill(),
  };
}

class OwnServer implements FaultServer {
  readonly ports: readonly number[];
  readonly #dataDir: string;
  #child: ChildProcess | undefined;

  constructor(port: number, dataDir: string) {
    this.ports = [port];
    this.#dataDir = dataDir;
  }

  async start(): Promise<void> {
    const program = new URL('../chaos/server.ts', import.meta.url);
    const [port] = this.ports;
    const options = { port, dataDir: this.#dataDir, tickTimeMs, snapCount: 5_000 };
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

  end(): Promise<void> {
    return this.kill();
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
