/** What stories about brokers and controllers need: a service that writes down what it was told. */

import { vi } from 'vitest';
import type { Client, ClientOptions } from '../src/client/index.ts';
import {
  type Broker,
  type BrokerOptions,
  type FollowerRole,
  type LeaderRole,
  layout08,
  type PartitionState,
  type ReplicaService,
  type StoppedReplica,
  startBroker,
} from '../src/kafka/index.ts';
import type { LinkFrame } from '../src/testing/index.ts';
import type { Zk } from './zk.ts';

export class RecordingService implements ReplicaService {
  readonly told: string[] = [];
  readonly leads = new Map<string, LeaderRole>();
  readonly follows = new Map<string, FollowerRole>();

  becomeLeader(role: LeaderRole): void {
    this.told.push(`lead ${role.topic}/${role.partition} @${role.leaderEpoch}`);
    this.leads.set(`${role.topic}/${role.partition}`, role);
    this.follows.delete(`${role.topic}/${role.partition}`);
  }

  becomeFollower(role: FollowerRole): void {
    this.told.push(`follow ${role.leader} ${role.topic}/${role.partition} @${role.leaderEpoch}`);
    this.follows.set(`${role.topic}/${role.partition}`, role);
    this.leads.delete(`${role.topic}/${role.partition}`);
  }

  stopReplica({ topic, partition, isDeleted }: StoppedReplica): void {
    this.told.push(`${isDeleted ? 'delete' : 'stop'} ${topic}/${partition}`);
    this.leads.delete(`${topic}/${partition}`);
    this.follows.delete(`${topic}/${partition}`);
  }
}

export interface TestBroker {
  readonly broker: Broker;
  readonly client: Client;
  readonly service: RecordingService;
}

export async function addBroker(
  zk: Zk,
  id: number,
  options: Partial<BrokerOptions> & { readonly zk?: ClientOptions } = {},
): Promise<TestBroker> {
  const { zk: clientOptions, ...rest } = options;
  const client = await zk.connect({ renew: true, ...clientOptions });
  const service = new RecordingService();
  const broker = await startBroker(client, {
    id,
    endpoints: [`PLAINTEXT://broker${id}:9092`],
    service,
    isrNotification: { quietMs: 10 },
    ...rest,
  });
  return { broker, client, service };
}

export async function stateOf(
  client: Client,
  topic: string,
  partition: number,
): Promise<PartitionState> {
  const path = layout08.partitionState.at({ topic, partition });
  return layout08.partitionState.parse((await client.get(path)).data, path);
}

/** Waits until something holds; what it threw last is why it never did. */
export function eventually<T>(check: () => Promise<T> | T): Promise<T> {
  return vi.waitFor(check, { timeout: 15_000, interval: 20 });
}

export const multiOp = 14;

/** Cuts the link instead of bringing every n-th reply to this op, a number of times. */
export function loseReplies(zk: Zk, op: number, { times = 1, every = 1 } = {}): { left: number } {
  const lost = { left: times };
  let seen = 0;
  const asked = new Set<string>();
  const key = ({ connection, bytes }: LinkFrame) => `${connection} ${bytes.readInt32BE(0)}`;
  zk.link.onFrame = (frame) => {
    if (frame.index === 0) return 'pass';
    if (frame.direction === 'toServer') {
      if (frame.bytes.readInt32BE(4) === op) asked.add(key(frame));
      return 'pass';
    }
    if (lost.left === 0 || !asked.has(key(frame))) return 'pass';
    seen += 1;
    if (seen % every !== 0) return 'pass';
    lost.left -= 1;
    return 'cut';
  };
  return lost;
}
