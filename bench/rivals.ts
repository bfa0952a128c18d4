/**
 * The servers that are measured against each other: each can be stopped and started again on the same
 * port with the same data, and is gone with all it wrote when the bench is done with it.
 *
 * Ours is started by a command, as its users start it. `{port}` and `{dir}` in the command are filled
 * in. It takes the place of its shell, so that the process that is measured is the server: `node …`,
 * and not `npm …`, which starts another.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, startApache, type ZooKeeperPeer } from '../test/peers/zookeeper.ts';
import { apacheJvm } from './apache.ts';
import type { BenchOptions } from './options.ts';
import { RawConnection } from './programs/raw-connection.ts';
import { type Program, root } from './programs.ts';

const startTimeoutMs = 120_000;
const stopTimeoutMs = 20_000;
const pollMs = 5;
const tryTimeoutMs = 500;
const netty = 'org.apache.zookeeper.server.NettyServerCnxnFactory';

export const rivalNames = ['drover', 'nio', 'netty'] as const;
export type RivalName = (typeof rivalNames)[number];
export const titles = { drover: 'drover', nio: 'Apache NIO', netty: 'Apache Netty' } as const;

export interface Rival {
  readonly name: RivalName;
  readonly port: number;
  /** Of the process that runs, or ran last. */
  readonly pid: number;
  /** Where the snapshots are. */
  readonly dataDir: string;
  launch(): Promise<void>;
  stop(): Promise<void>;
  /** Stops it and removes its data. */
  end(): Promise<void>;
}

/** A server, and the process that puts load on it. */
export interface Contender {
  readonly name: RivalName;
  readonly rival: Rival;
  readonly load: Program;
}

/** Milliseconds from the start of its process to its first session. */
export async function launchTimed(rival: Rival): Promise<number> {
  const startMs = performance.now();
  await rival.launch();
  const deadlineMs = startMs + startTimeoutMs;
  let isReady = false;
  // A new try every few milliseconds, whatever became of the last: a starting server may keep it waiting.
  while (!isReady) {
    if (performance.now() > deadlineMs) {
      await rival.end();
      throw new Error(`${titles[rival.name]} does not answer on ${rival.port}`);
    }
    const tried = RawConnection.open(rival.port, tryTimeoutMs).then(
      (connection) => {
        isReady = true;
        connection.destroy();
      },
      () => {}, // not yet
    );
    await Promise.race([tried, delay(pollMs)]);
    if (!isReady) await delay(pollMs);
  }
  return performance.now() - startMs;
}

export function snapshotsOf({ dataDir }: Rival): readonly string[] {
  const folder = join(dataDir, 'version-2');
  return existsSync(folder) ? readdirSync(folder).filter((name) => /^snapshot\./.test(name)) : [];
}

/** Started and ready. */
export async function startRival(
  name: RivalName,
  peer: ZooKeeperPeer | undefined,
  options: BenchOptions,
): Promise<Rival> {
  if (name === 'drover') {
    const own = new OwnServer(commandOf(options), await freePort());
    await launchTimed(own);
    return own;
  }
  const config = name === 'netty' ? { serverCnxnFactory: netty } : {};
  const apache = await startApache(peer!, { jvm: apacheJvm, config });
  return {
    name,
    port: apache.port,
    get pid() {
      return apache.pid;
    },
    dataDir: join(apache.dir, 'data'),
    launch: () => apache.launch(),
    stop: () => apache.stop(),
    end: () => apache[Symbol.asyncDispose](),
  };
}

function commandOf({ serve, dist }: BenchOptions): string {
  if (serve !== undefined) return serve;
  const main = join(dist ?? join(root, 'dist'), 'bin', 'drover.js');
  if (!existsSync(main)) throw new Error(`${main} is missing: npm run build makes it`);
  return `${process.execPath} ${main} serve --port {port} --data {dir} --set maxClientCnxns=0`;
}

class OwnServer implements Rival {
  readonly name = 'drover';
  readonly port: number;
  readonly dataDir: string;
  readonly #folder: string;
  readonly #command: string;
  #child: ChildProcess | undefined;

  constructor(command: string, port: number) {
    this.port = port;
    this.#folder = mkdtempSync(join(tmpdir(), 'drover-bench-'));
    this.dataDir = join(this.#folder, 'data');
    this.#command = command.replaceAll('{port}', String(port)).replaceAll('{dir}', this.dataDir);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async launch(): Promise<void> {
    // Node 20 reads all those certificates at every start, 40 ms that are none of the server's.
    const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
    this.#child = spawn('sh', ['-c', `exec ${this.#command}`], {
      cwd: root,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await once(this.#child, 'spawn');
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    const impatience = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(impatience);
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
