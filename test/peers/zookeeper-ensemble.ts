/**
 * An ensemble of real Apache ZooKeeper servers on 127.0.0.1, all of one version.
 *
 * In: a peer and a size. Out: servers that have elected a leader, each of which can be killed and started
 * again on its ports with its data. Reconfiguration is on, for the super user.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import type { ZooKeeperPeer } from './zookeeper-fetch.ts';
import { type ApacheOptions, ApacheServer, plan, temporaryFolder } from './zookeeper-server.ts';

/** Its index in `servers` plus one is its `myid`. */
export type EnsembleServer = ApacheServer;

const electionTimeoutMs = 60_000;
const pollMs = 50;
const portAttempts = 3;

/** `options.port` and `options.tls` are for single servers and are not looked at. */
export async function startEnsemble(
  peer: ZooKeeperPeer,
  size = 3,
  options: ApacheOptions = {},
): Promise<Ensemble> {
  const dir = options.dir ?? temporaryFolder();
  const isTemporary = options.dir === undefined;
  for (let attempt = 1; ; attempt++) {
    const ensemble = await makeEnsemble(peer, size, options, dir, isTemporary);
    try {
      await ensemble.startAll();
      return ensemble;
    } catch (error) {
      const lostItsPort = ensemble.servers.some((server) => server.lostItsPort);
      await ensemble.killAll();
      if (isTemporary || lostItsPort) rmSync(dir, { recursive: true, force: true });
      if (attempt === portAttempts || !lostItsPort) throw error;
    }
  }
}

async function makeEnsemble(
  peer: ZooKeeperPeer,
  size: number,
  options: ApacheOptions,
  dir: string,
  isTemporary: boolean,
): Promise<Ensemble> {
  const ids = Array.from({ length: size }, (_, index) => index + 1);
  const ports = await Promise.all(ids.map(() => freePort()));
  const members: Record<string, string> = {};
  for (const [index, id] of ids.entries()) {
    const quorum = `127.0.0.1:${await freePort()}:${await freePort()}:participant`;
    members[`server.${id}`] = `${quorum};127.0.0.1:${ports[index]}`;
  }
  const config = {
    reconfigEnabled: 'true',
    standaloneEnabled: 'false',
    ...members,
  };
  const servers = ids.map((id, index) => {
    const own = join(dir, `server-${id}`);
    mkdirSync(own, { recursive: true });
    const it = plan({ peer, dir: own, port: ports[index]!, config }, options);
    writeFileSync(join(own, 'data', 'myid'), `${id}\n`);
    return new ApacheServer(it, false);
  });
  return new Ensemble(servers, dir, isTemporary);
}

export class Ensemble {
  readonly servers: readonly EnsembleServer[];
  /** As clients write it: `127.0.0.1:p1,127.0.0.1:p2,127.0.0.1:p3`. */
  readonly address: string;
  readonly dir: string;
  readonly #isTemporary: boolean;

  constructor(servers: EnsembleServer[], dir: string, isTemporary: boolean) {
    this.servers = servers;
    this.address = servers.map((server) => server.address).join(',');
    this.dir = dir;
    this.#isTemporary = isTemporary;
  }

  /** The index of the one that leads, once there is one that more than half of all serve under. */
  async leader(): Promise<number> {
    const deadlineMs = Date.now() + electionTimeoutMs;
    while (Date.now() < deadlineMs) {
      const modes = await Promise.all(this.servers.map((server) => server.mode()));
      const isServed = modes.filter((mode) => mode !== undefined).length > modes.length / 2;
      if (isServed && modes.includes('leader')) return modes.indexOf('leader');
      await delay(pollMs);
    }
    const outputs = this.servers.map((server) => `${server.address}:\n${server.output()}`);
    throw new Error(`no leader in ${electionTimeoutMs} ms\n${outputs.join('\n')}`);
  }

  /** Kills one outright, as a power cut would. */
  async kill(index: number): Promise<void> {
    await this.#at(index).kill();
  }

  /** Starts one that was killed or stopped, and waits until it serves. */
  async start(index: number): Promise<void> {
    await this.#at(index).start();
  }

  async startAll(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.start()));
    await this.leader();
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  async killAll(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killAll();
    if (this.#isTemporary) rmSync(this.dir, { recursive: true, force: true });
  }

  #at(index: number): EnsembleServer {
    const server = this.servers[index];
    if (!server) throw new RangeError(`no server ${index} among ${this.servers.length}`);
    return server;
  }
}
