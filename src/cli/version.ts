/** `drover version`. */

import { droverVersion, zooKeeperVersion } from '../server/index.ts';
import type { Context } from './command.ts';
import { exitCodes } from './exit-codes.ts';

export function version({ output }: Context): number {
  const facts = {
    drover: droverVersion(),
    zooKeeper: zooKeeperVersion,
    node: process.versions.node,
  };
  if (output.isJson) output.record(facts);
  else {
    output.line(`drover ${facts.drover}, like ZooKeeper ${facts.zooKeeper}, on Node ${facts.node}`);
  }
  return exitCodes.ok;
}
