/** Starts the older server that a project's stories run on, for as long as they run. */

import type { TestProject } from 'vitest/node';
import { startApache } from '../peers/zookeeper.ts';
import { apacheOf } from '../peers/zookeeper-fetch.ts';

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const peer = await apacheOf(project.name.replace('apache-', ''));
  const server = await startApache(peer, { config: { tickTime: '500' } });
  project.provide('peer', { name: peer.name, port: server.port, version: peer.version });
  return () => server.stop();
}
