/** Apache ZooKeeper as it is run in earnest: the tests' servers trade speed for a quick start. */

import { findZooKeepers, type ZooKeeperPeer } from '../test/peers/zookeeper.ts';
import { type BenchOptions, log } from './options.ts';

/** Later flags win over those that the tests set: both compilers, Java's own collector, more memory. */
export const apacheJvm = [
  '-XX:TieredStopAtLevel=4',
  '-XX:-UseSerialGC',
  '-XX:+UseG1GC',
  '-Xmx1500m',
];

/** The peer that was asked for by name, as `debian-3.8.0`; the newest otherwise. */
export async function firstApache({ peer }: BenchOptions): Promise<ZooKeeperPeer | undefined> {
  const { found, missing } = await findZooKeepers(log);
  if (peer !== undefined) {
    const named = found.find(({ name }) => name === peer);
    if (named !== undefined) return named;
    const names = found.map(({ name }) => name).join(', ');
    throw new Error(`no peer is named ${peer}; there is ${names}`);
  }
  if (found.length > 0) return found[0];
  for (const { name, how } of missing) log(`${name} is missing: ${how}`);
  return undefined;
}
