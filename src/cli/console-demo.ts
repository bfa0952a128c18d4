/**
 * Something that lives, for a console on an empty server: a Kafka cluster with two groups, one of them late;
 * locks that change hands, an election, a semaphore; a replay that is read in step.
 *
 * It begins only on a tree with nothing in it, runs until it is closed, and leaves its persistent nodes, as
 * the programs that it plays would. What goes wrong in it is said, and ends nothing else.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { align } from '../align/index.ts';
import { type Client, connect } from '../client/index.ts';
import { ConsoleError, type Ends } from '../console/index.ts';
import { NdjsonSource } from '../kafka/index.ts';
import { Election, Lock, Semaphore } from '../recipes/index.ts';
import { Cast, type MemberPart } from './demo-kafka-cast.ts';

const sessionTimeoutMs = 6_000;

// biome-ignore format: a table is read down its columns
const members: Readonly<Record<string, MemberPart>> = {
  'billing_a':  { group: 'billing', topics: ['orders'],             mode: 'classic', workMs: 5 },
  'billing_b':  { group: 'billing', topics: ['orders'],             mode: 'classic', workMs: 5 },
  'audit_a':    { group: 'audit',   topics: ['orders', 'payments'], mode: 'planned', workMs: 5 },
  'audit_slow': { group: 'audit',   topics: ['orders', 'payments'], mode: 'planned', workMs: 2_000 },
};

const workers = ['ann', 'bob', 'cid'];

const settings: Readonly<Record<string, string>> = {
  '/demo/config/limits': JSON.stringify({ requests: 100, windowMs: 60_000 }),
  '/demo/config/motd': 'everything here is played; look around',
};

export class ConsoleDemo {
  readonly #address: string;
  readonly #say: (sentence: string) => void;
  readonly #ended = new AbortController();
  readonly #clients: Client[] = [];
  readonly #loops: Promise<void>[] = [];
  readonly #sources: NdjsonSource[] = [];
  #cast: Cast | undefined;

  constructor(address: string, say: (sentence: string) => void) {
    this.#address = address;
    this.#say = say;
  }

  /** Ends of the demo's partitions, once there are any. */
  get ends(): Ends | undefined {
    return this.#sources[0];
  }

  async begin(): Promise<void> {
    const first = await this.#connect();
    const names = await first.children('/');
    if (names.some((name) => name !== 'zookeeper')) {
      throw new ConsoleError(
        'CONFLICT',
        'the demo is for an empty server, and this one holds something',
      );
    }
    for (const [path, data] of Object.entries(settings)) {
      await first.create(path, data, { parents: true });
    }
    const cast = await Cast.gather(this.#address, (error) => this.#trouble(error));
    this.#cast = cast;
    for (const id of [1, 2, 3]) await cast.addBroker(id);
    await cast.createTopics();
    await cast.startProducing();
    for (const [id, part] of Object.entries(members)) await cast.addMember(id, part);
    for (const name of workers)
      this.#loop(await this.#connect(), (client) => this.#work(client, name));
    for (const name of workers.slice(1)) {
      this.#loop(await this.#connect(), (client) => this.#replay(client, name, cast.directory));
    }
    this.#sources.unshift(new NdjsonSource({ directory: cast.directory }));
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#loops);
    for (const source of this.#sources) await source.close();
    await this.#cast?.close();
    for (const client of this.#clients) await client.close();
  }

  async #connect(): Promise<Client> {
    const client = await connect(this.#address, { sessionTimeoutMs });
    this.#clients.push(client);
    return client;
  }

  #loop(client: Client, work: (client: Client) => Promise<void>): void {
    this.#loops.push(work(client).catch((error) => this.#trouble(error)));
  }

  #trouble(error: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.#say(`demo: ${error instanceof Error ? error.message : String(error)}`);
  }

  /** Stands for election, and takes turns at a lock and a few slots. */
  async #work(client: Client, name: string): Promise<void> {
    const { signal } = this.#ended;
    const lock = new Lock(client, '/demo/locks/report', { data: name });
    const slots = new Semaphore(client, '/demo/slots', { limit: 2, data: name });
    const election = new Election(client, '/demo/leader', { id: name });
    const leading = this.#lead(election, signal);
    while (!signal.aborted) {
      const grant = await lock.acquire({ signal });
      await delay(2_000, undefined, { signal });
      await grant.release();
      const slot = await slots.acquire({ signal });
      await delay(3_000, undefined, { signal });
      await slot.release();
    }
    await leading;
  }

  async #lead(election: Election, signal: AbortSignal): Promise<void> {
    try {
      // A little while each, so that the page has something to show.
      for await (const _ of election.terms({ signal })) await delay(7_000, undefined, { signal });
    } catch (error) {
      this.#trouble(error);
    }
  }

  /** Reads the orders in step with the others. */
  async #replay(client: Client, name: string, directory: string): Promise<void> {
    const source = new NdjsonSource({ directory, batchRecordsMax: 50 });
    this.#sources.push(source);
    const aligner = align(client, {
      group: 'replay',
      source,
      topics: { orders: 6 },
      mode: { period: '5s' },
      idleAfter: '3s',
      consumerId: name,
      signal: this.#ended.signal,
    });
    for await (const batch of aligner) {
      await delay(name === 'cid' ? 200 : 20, undefined, { signal: this.#ended.signal });
      await batch.done();
    }
  }
}
