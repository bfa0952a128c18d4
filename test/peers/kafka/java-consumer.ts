/**
 * A Java member of a consumer group that lives in ZooKeeper: Kafka 1.1's own console consumer.
 *
 * In: where ZooKeeper is, group, topic and a name. Out: the values it has printed. `stop` lets it leave as
 * it does by itself, `kill` leaves its session to expire.
 */

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Jvm } from '../jvm.ts';
import { temporaryFolder } from '../zookeeper-server.ts';
import type { KafkaPeer } from './fetch.ts';

export interface JavaConsumerOptions {
  /** `host:port/chroot`. */
  readonly zookeeper: string;
  readonly group: string;
  readonly topic: string;
  readonly consumerId: string;
  /** Refused by the tool where the group has offsets already. */
  readonly fromStart?: boolean;
  readonly sessionTimeoutMs: number;
}

export class JavaConsumer {
  readonly #dir: string;
  readonly #jvm: Jvm;

  private constructor(dir: string, jvm: Jvm) {
    this.#dir = dir;
    this.#jvm = jvm;
  }

  static async start(peer: KafkaPeer, options: JavaConsumerOptions): Promise<JavaConsumer> {
    const { zookeeper, group, topic, consumerId, sessionTimeoutMs, fromStart = false } = options;
    const dir = temporaryFolder();
    const config = join(dir, 'consumer.properties');
    const lines = [
      `zookeeper.connect=${zookeeper}`,
      `zookeeper.session.timeout.ms=${sessionTimeoutMs}`,
      'zookeeper.connection.timeout.ms=60000',
      `group.id=${group}`,
      `consumer.id=${consumerId}`,
      'auto.commit.interval.ms=500',
      ...(fromStart ? ['auto.offset.reset=smallest'] : []),
    ];
    writeFileSync(config, `${lines.join('\n')}\n`);
    const flags = ['-Xmx128m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-XX:-UsePerfData'];
    const tool = ['-cp', peer.classPath, 'kafka.tools.ConsoleConsumer'];
    const asked = ['--zookeeper', zookeeper, '--topic', topic, '--consumer.config', config];
    return new JavaConsumer(dir, await Jvm.start([...flags, ...tool, ...asked], join(dir, 'out')));
  }

  /** What it has printed, line by line, with what it said of itself. */
  lines(): string[] {
    return readFileSync(join(this.#dir, 'out'), 'utf8').split('\n').slice(0, -1);
  }

  async stop(): Promise<void> {
    await this.#jvm.stop();
  }

  async kill(): Promise<void> {
    await this.#jvm.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
