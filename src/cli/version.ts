/** `drover version`. */

import { droverVersion, zooKeeperVersion } from '../server/index.ts';
import type { OptionValues } from './commands.ts';
import { exitCodes } from './exit-codes.ts';

export function version({ json }: OptionValues): number {
  const facts = {
    drover: droverVersion(),
    zooKeeper: zooKeeperVersion,
    node: process.versions.node,
  };
  process.stdout.write(
    json
      ? `${JSON.stringify(facts)}\n`
      : `drover ${facts.drover}, like ZooKeeper ${facts.zooKeeper}, on Node ${facts.node}\n`,
  );
  return exitCodes.ok;
}
