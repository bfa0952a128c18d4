/**
 * Burrow, the lag monitor, on a Kafka cluster that keeps groups in ZooKeeper: asked over its HTTP API.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../free-port.ts';
import { temporaryFolder } from '../zookeeper-server.ts';

export interface BurrowOptions {
  readonly zookeeper: string;
  readonly chroot: string;
  readonly brokers: readonly string[];
}

export interface PartitionSeenByBurrow {
  readonly partition: number;
  readonly offset: number | null;
  readonly lag: number | null;
}

export interface Burrow {
  groups(): Promise<string[]>;
  /** Of each partition, in order, the offset that it saw last. */
  lags(group: string, topic: string): Promise<PartitionSeenByBurrow[]>;
  output(): string;
  [Symbol.asyncDispose](): Promise<void>;
}

const startTimeoutMs = 60_000;

export async function startBurrow(program: string, options: BurrowOptions): Promise<Burrow> {
  const dir = temporaryFolder();
  const port = await freePort();
  mkdirSync(join(dir, 'config'));
  writeFileSync(join(dir, 'config', 'burrow.toml'), configOf(options, port, dir));
  const outputPath = join(dir, 'burrow.out');
  const out = openSync(outputPath, 'a');
  const child = spawn(program, ['--config-dir', join(dir, 'config')], {
    cwd: dir,
    stdio: ['ignore', out, out],
  });
  const kill = () => child.kill('SIGKILL');
  process.on('exit', kill);
  const ended = once(child, 'exit');
  const output = () => readFileSync(outputPath, 'utf8').slice(-8_000);
  // biome-ignore lint/suspicious/noExplicitAny: whatever JSON it answers with
  const ask = async (path: string): Promise<any> => {
    const response = await fetch(`http://127.0.0.1:${port}/v3/kafka/local${path}`);
    return response.json();
  };
  const burrow: Burrow = {
    groups: async () => (await ask('/consumer')).consumers ?? [],
    async lags(group, topic) {
      const { topics = {} } = await ask(`/consumer/${group}`);
      const list = (topics[topic] ?? []) as {
        offsets: ({ offset: number } | null)[];
        'current-lag': number;
      }[];
      return list.map(({ offsets, 'current-lag': lag }, partition) => {
        const last = offsets.filter((one) => one !== null).at(-1);
        return { partition, offset: last?.offset ?? null, lag: lag ?? null };
      });
    },
    output,
    async [Symbol.asyncDispose]() {
      kill();
      await ended;
      process.off('exit', kill);
      rmSync(dir, { recursive: true, force: true });
    },
  };
  const deadlineMs = Date.now() + startTimeoutMs;
  for (;;) {
    try {
      await burrow.groups();
      return burrow;
    } catch (error) {
      const isOver = child.exitCode !== null || Date.now() > deadlineMs;
      if (isOver) {
        const said = output();
        await burrow[Symbol.asyncDispose]();
        throw new Error(`Burrow did not start: ${said}`, { cause: error });
      }
      await delay(200);
    }
  }
}

function configOf(
  { zookeeper, chroot, brokers }: BurrowOptions,
  port: number,
  dir: string,
): string {
  const quoted = brokers.map((address) => `"${address}"`).join(', ');
  return `[general]
pidfile="${join(dir, 'burrow.pid')}"

[logging]
level="info"

[zookeeper]
servers=["${zookeeper}"]
timeout=6
root-path="/burrow"

[client-profile.plain]
client-id="burrow"
kafka-version="2.0.0"

[httpserver.default]
address="127.0.0.1:${port}"

[storage.default]
class-name="inmemory"
intervals=5
min-distance=0

[cluster.local]
class-name="kafka"
servers=[${quoted}]
client-profile="plain"
topic-refresh=5
offset-refresh=1

[consumer.local_zk]
class-name="kafka_zk"
cluster="local"
servers=["${zookeeper}"]
zookeeper-path="${chroot}"
zookeeper-timeout=6
`;
}
