/** Starts the real server that a project's stories run on, for as long as they run. */

import type { TestProject } from 'vitest/node';
import { findZooKeepers, startApache } from './zookeeper.ts';

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { found } = await findZooKeepers();
  const peer = found.find(({ name }) => name === project.name);
  if (peer === undefined) throw new Error(`no peer is called ${project.name}`);
  // Ticks of half a second: sessions may then be as short as one, and stories of expiry are quick.
  const server = await startApache(peer, { config: { tickTime: '500' } });
  project.provide('peer', { name: peer.name, port: server.port, version: peer.version });
  return () => server.stop();
}
