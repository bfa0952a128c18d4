/** The two servers that are compared, told the same. */

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TestServer, TestServerOptions } from '../../src/testing/index.ts';
import { type ApacheServer, startApache, type ZooKeeperPeer } from '../peers/zookeeper.ts';
import { temporaryFolder } from '../peers/zookeeper-server.ts';
import { type Comparison, compare } from './compare.ts';
import { Player } from './play.ts';
import { type ProfileName, profiles, reapIntervalMs, startOurs, tickTimeMs } from './profiles.ts';
import type { Script } from './script.ts';

export class Pair {
  readonly #apache: ApacheServer;
  readonly #ours: TestServer;
  readonly #players: readonly [apache: Player, ours: Player];
  readonly #folder: string;

  private constructor(apache: ApacheServer, ours: TestServer, folder: string) {
    this.#apache = apache;
    this.#ours = ours;
    this.#folder = folder;
    this.#players = [new Player(apache.port), new Player(ours.port)];
  }

  static async start(
    peer: ZooKeeperPeer,
    profile: ProfileName,
    more: TestServerOptions = {},
  ): Promise<Pair> {
    const folder = temporaryFolder();
    const apache = await startTheirs(peer, profile, join(folder, 'apache'));
    try {
      return new Pair(apache, await startOurs(profile, join(folder, 'ours'), more), folder);
    } catch (error) {
      await apache.kill();
      throw error;
    }
  }

  async run(script: Script): Promise<Comparison> {
    const [apache, ours] = await Promise.allSettled(
      this.#players.map((player) => player.play(script)),
    );
    if (apache!.status === 'fulfilled' && ours!.status === 'fulfilled') {
      return compare(script, apache!.value, ours!.value);
    }
    const end = { apache: endOf(apache!), ours: endOf(ours!) };
    return {
      difference: { link: -1, command: -1, ...end },
      lines: 0,
      allowed: new Map(),
      tally: new Map(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const player of this.#players) player.close();
    await Promise.all([this.#apache[Symbol.asyncDispose](), this.#ours.close()]);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Apache's server, told as `profile` says, with all that it writes in `dir`. */
export async function startTheirs(
  peer: ZooKeeperPeer,
  profile: ProfileName,
  dir: string,
): Promise<ApacheServer> {
  const told = profiles[profile];
  mkdirSync(dir, { recursive: true });
  if ('data' in told) await told.data(join(dir, 'data'));
  return startApache(peer, {
    tickTimeMs,
    dir,
    ...('sasl' in told ? { sasl: told.sasl } : {}),
    config: { ...told.config, maxClientCnxns: '0', snapCount: '10000000' },
    jvm: [
      // What survives a power cut is not the question here; how fast it answers is.
      '-Dzookeeper.forceSync=no',
      '-XX:TieredStopAtLevel=4',
      `-Dznode.container.checkIntervalMs=${reapIntervalMs}`,
      '-Dorg.slf4j.simpleLogger.defaultLogLevel=off',
      ...told.jvm,
    ],
  });
}

/** A server that can't be talked to any more is a difference, too. */
function endOf(result: PromiseSettledResult<unknown>): string {
  return result.status === 'fulfilled' ? 'is well' : `${(result.reason as Error).message}`;
}
