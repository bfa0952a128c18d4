/** What the servers that are compared are told, in the words of each, and ours as it is told so. */

import { Sasl } from '../../src/server/index.ts';
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from '../../src/testing/index.ts';
import type { ApacheOptions } from '../peers/zookeeper.ts';
import { writeEdges } from './edge-data.ts';

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
  /** Starts from a directory whose nodes have the first and last numbers that a Stat can hold. */
  edges: {
    enforceQuota: false,
    ours: { extendedTypesEnabled: true },
    config: {},
    jvm: [],
    data: writeEdges,
  },
} as const satisfies Record<
  string,
  {
    enforceQuota: boolean;
    ours: TestServerOptions;
    config: Record<string, string>;
    jvm: string[];
    sasl?: ApacheOptions['sasl'];
    data?: (dataDir: string) => Promise<void>;
  }
>;

export type ProfileName = keyof typeof profiles;

/** Those that random scripts are played on. */
export const randomProfiles: readonly ProfileName[] = ['usual', 'strict', 'plain', 'proved'];

/** Long enough that no session expires while a script runs. */
export const tickTimeMs = 10_000;
/** Never: nothing may be taken away while it is looked at. */
export const reapIntervalMs = 2_000_000_000;
const superDigest = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=';

/** Ours, told as `profile` says, and `more` besides. A profile that starts from data has it in `dataDir`. */
export async function startOurs(
  profile: ProfileName,
  dataDir: string,
  more: TestServerOptions = {},
): Promise<TestServer> {
  const told = profiles[profile];
  const options = {
    ...told.ours,
    ...more,
    tickTimeMs,
    superDigest,
    reapIntervalMs,
    fourLetterWords: '*',
  };
  if (!('data' in told)) return startTestServer(options);
  await told.data(dataDir);
  return startTestServer({ ...options, dataDir, unsafeNoFsync: true });
}
