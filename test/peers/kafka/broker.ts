/**
 * A real Apache Kafka broker in ZooKeeper mode, started for a test and gone after it.
 *
 *   const kafka = await findKafka();
 *   await using broker = await startKafka(kafka, { zookeeper: '127.0.0.1:2181/kafka', brokerId: 1 });
 *   … broker.address …; await broker.kill(); await broker.start();
 *
 * In: where ZooKeeper is, an id. Out: a broker on 127.0.0.1 that takes requests, with its data in a folder
 * of its own. Small: a quarter of a gigabyte, few threads, as many partitions of Kafka's own topics as a
 * test needs. It counts as started once it says so itself.
 */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Kafka, logLevel } from 'kafkajs';
import { freePort } from '../free-port.ts';
import { Jvm } from '../jvm.ts';
import { temporaryFolder } from '../zookeeper-server.ts';
import type { KafkaPeer } from './fetch.ts';

export interface KafkaOptions {
  /** `host:port/chroot`. */
  readonly zookeeper: string;
  readonly brokerId: number;
  /** More lines of server.properties, or others in place of ours. */
  readonly config?: Readonly<Record<string, string>>;
}

const startTimeoutMs = 120_000;
/** There may be none, where a test has it so. */
const controllerTimeoutMs = 20_000;
const pollMs = 100;
const tailBytes = 16_384;

export const kafkaJvmFlags = [
  '-Xmx256m',
  '-Xshare:auto',
  '-XX:TieredStopAtLevel=1',
  '-XX:+UseSerialGC',
  '-XX:-UsePerfData',
];

const logging = `log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1} %m%n
`;

export class KafkaBroker {
  readonly id: number;
  readonly port: number;
  /** As clients write it. */
  readonly address: string;
  readonly dir: string;
  readonly #peer: KafkaPeer;
  readonly #config: Readonly<Record<string, string>>;
  #jvm: Jvm | undefined;

  constructor(peer: KafkaPeer, port: number, options: KafkaOptions) {
    this.#peer = peer;
    this.id = options.brokerId;
    this.port = port;
    this.address = `127.0.0.1:${port}`;
    this.dir = temporaryFolder();
    const listener = `PLAINTEXT://${this.address}`;
    this.#config = {
      'broker.id': String(this.id),
      'zookeeper.connect': options.zookeeper,
      'zookeeper.session.timeout.ms': '6000',
      listeners: listener,
      'advertised.listeners': listener,
      'log.dirs': join(this.dir, 'logs'),
      'num.network.threads': '1',
      'num.io.threads': '2',
      'background.threads': '2',
      'log.cleaner.enable': 'false',
      'offsets.topic.num.partitions': '1',
      'offsets.topic.replication.factor': '1',
      'transaction.state.log.num.partitions': '1',
      'transaction.state.log.replication.factor': '1',
      'transaction.state.log.min.isr': '1',
      'group.initial.rebalance.delay.ms': '0',
      'auto.create.topics.enable': 'false',
      'auto.leader.rebalance.enable': 'false',
      'controlled.shutdown.max.retries': '1',
      ...options.config,
    };
  }

  get isRunning(): boolean {
    return this.#jvm?.isRunning ?? false;
  }

  async start(): Promise<void> {
    const before = this.output().length;
    await this.launch();
    const deadlineMs = Date.now() + startTimeoutMs;
    while (!/\] started/.test(this.output().slice(before))) {
      if (!this.isRunning) throw this.#failure('ended while starting');
      if (Date.now() > deadlineMs) throw this.#failure(`was not ready in ${startTimeoutMs} ms`);
      await delay(pollMs);
    }
    // It answers before it has heard who is the controller, and refuses then whatever only that one does.
    const untilMs = Date.now() + controllerTimeoutMs;
    while (Date.now() < untilMs && !(await this.#knowsController())) await delay(pollMs);
  }

  async #knowsController(): Promise<boolean> {
    const retry = { retries: 0 };
    const kafka = new Kafka({ brokers: [this.address], logLevel: logLevel.NOTHING, retry });
    const admin = kafka.admin();
    try {
      await admin.connect();
      return ((await admin.describeCluster()).controller ?? -1) >= 0;
    } catch {
      return false; // asked again
    } finally {
      await admin.disconnect();
    }
  }

  /** Starts the JVM and does not wait for the broker in it. */
  async launch(): Promise<void> {
    mkdirSync(join(this.dir, 'logs'), { recursive: true });
    const properties = join(this.dir, 'server.properties');
    const lines = Object.entries(this.#config).map(([key, value]) => `${key}=${value}\n`);
    writeFileSync(properties, lines.join(''));
    const log4j = join(this.dir, 'log4j.properties');
    writeFileSync(log4j, logging);
    const flags = [...kafkaJvmFlags, `-Dlog4j.configuration=file:${log4j}`];
    this.#jvm = await Jvm.start(
      [...flags, '-cp', this.#peer.classPath, 'kafka.Kafka', properties],
      this.#outputPath,
    );
  }

  /** SIGTERM: hands over what it leads first. */
  async stop(): Promise<void> {
    await this.#jvm?.stop();
  }

  async kill(): Promise<void> {
    await this.#jvm?.kill();
  }

  output(): string {
    try {
      return readFileSync(this.#outputPath, 'utf8');
    } catch {
      return '';
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  get #outputPath(): string {
    return join(this.dir, 'kafka.out');
  }

  #failure(what: string): Error {
    return new Error(`Kafka broker ${this.id} ${what}:\n${this.output().slice(-tailBytes)}`);
  }
}

export async function startKafka(peer: KafkaPeer, options: KafkaOptions): Promise<KafkaBroker> {
  const broker = new KafkaBroker(peer, await freePort(), options);
  try {
    await broker.start();
    return broker;
  } catch (error) {
    await broker[Symbol.asyncDispose]();
    throw error;
  }
}
