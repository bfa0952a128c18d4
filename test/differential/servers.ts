/** The two servers that are compared, told the same. */

import { Sasl } from '../../src/server/index.ts';
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '../../src/testing/index.ts';
import {
  type ApacheOptions,
  type ApacheServer,
  startApache,
  type ZooKeeperPeer,
} from '../peers/zookeeper.ts';
import { type Comparison, compare } from './compare.ts';
import { Player } from './play.ts';
import type { Script } from './script.ts';

const saslUsers = new Map([['ann', 'pw']]);

/** What both are told, in the words of each. */
export const profiles = {
  usual: { enforceQuota: false, ours: { extendedTypesEnabled: true }, config: {}, jvm: [] },
  strict: {
    enforceQuota: true,
    ours: { extendedTypesEnabled: true, enforceQuota: true, reconfigEnabled: true },
    config: { enforceQuota: 'true', reconfigEnabled: 'true' },
    jvm: [],
  },
  plain: {
    enforceQuota: false,
    ours: { extendedTypesEnabled: false },
    config: {},
    jvm: ['-Dzookeeper.extendedTypesEnabled=false'],
  },
  /** With schemes that somebody outside of ZooKeeper proves. */
  proved: {
    enforceQuota: false,
    ours: {
      extendedTypesEnabled: true,
      extraSchemes: ['sasl', 'x509'],
      sasl: new Sasl({ passwordOf: (name) => saslUsers.get(name) }),
    },
    config: { 'authProvider.x509': 'org.apache.zookeeper.server.auth.X509AuthenticationProvider' },
    jvm: [],
    sasl: { users: Object.fromEntries(saslUsers) },
  },
} as const satisfies Record<
  string,
  {
    enforceQuota: boolean;
    ours: TestServerOptions;
    config: Record<string, string>;
    jvm: string[];
    sasl?: ApacheOptions['sasl'];
  }
>;

export type ProfileName = keyof typeof profiles;

/** Long enough that no session expires while a script runs. */
const tickTimeMs = 10_000;
/** Never: nothing may be taken away while it is looked at. */
const reapIntervalMs = 2_000_000_000;
const superDigest = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=';

export class Pair {
  readonly #apache: ApacheServer;
  readonly #ours: TestServer;
  readonly #players: readonly [apache: Player, ours: Player];

  private constructor(apache: ApacheServer, ours: TestServer) {
    this.#apache = apache;
    this.#ours = ours;
    this.#players = [new Player(apache.port), new Player(ours.port)];
  }

  static async start(
    peer: ZooKeeperPeer,
    profile: ProfileName,
    more: TestServerOptions = {},
  ): Promise<Pair> {
    const told = profiles[profile];
    const { config, jvm, ours } = told;
    const apache = await startApache(peer, {
      tickTimeMs,
      ...('sasl' in told ? { sasl: told.sasl } : {}),
      config: { ...config, maxClientCnxns: '0', snapCount: '10000000' },
      jvm: [
        // What survives a power cut is not the question here; how fast it answers is.
        '-Dzookeeper.forceSync=no',
        '-XX:TieredStopAtLevel=4',
        `-Dznode.container.checkIntervalMs=${reapIntervalMs}`,
        '-Dorg.slf4j.simpleLogger.defaultLogLevel=off',
        ...jvm,
      ],
    });
    try {
      const server = await startTestServer({
        ...ours,
        ...more,
        tickTimeMs,
        superDigest,
        reapIntervalMs,
        fourLetterWords: '*',
      });
      return new Pair(apache, server);
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
  }
}

/** A server that can't be talked to any more is a difference, too. */
function endOf(result: PromiseSettledResult<unknown>): string {
  return result.status === 'fulfilled' ? 'is well' : `${(result.reason as Error).message}`;
}
