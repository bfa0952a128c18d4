/** Apache ZooKeeper as it is run in earnest: the tests' servers trade speed for a quick start. */

import { findZooKeepers, type ZooKeeperPeer } from '../test/peers/zookeeper.ts';
import { log } from './options.ts';

/** Later flags win over those that the tests set: both compilers, Java's own collector, more memory. */
export const apacheJvm = [
  '-XX:TieredStopAtLevel=4',
  '-XX:-UseSerialGC',
  '-XX:+UseG1GC',
  '-Xmx1500m',
];

export async function firstApache(): Promise<ZooKeeperPeer | undefined> {
  const { found, missing } = await findZooKeepers(log);
  if (found.length > 0) return found[0];
  for (const { name, how } of missing) log(`${name} is missing: ${how}`);
  return undefined;
}
