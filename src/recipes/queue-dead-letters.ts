/**
 * Items that were given up: tried too often, unreadable, or buried by a taker. They stand in buckets,
 * as the items of a queue do, and so without a limit to their number, until somebody looks at them.
 *
 *   <path>/b-<seq>/i-<id>-<tries>-0-<seq>      data: as it stood in the queue
 */

import { type Acl, type Client, checkClient, isZkError, type MultiOp } from '../client/index.ts';
import { nameOf, parentOf } from '../protocol/index.ts';
import { checkOptions } from '../support/index.ts';
import { deadLettersTable } from './option-tables.ts';
import { Buckets } from './queue-buckets.ts';
import type { QueueStore, Waiting } from './queue-store.ts';

const bucketItemsMax = 500;
const listMax = 10_000;

export interface DeadLetter {
  readonly id: string;
  readonly data: Buffer | null;
  /** What was put; null where the bytes cannot be read. */
  readonly parts: readonly (Buffer | null)[] | null;
  readonly tries: number;
  readonly path: string;
  /** When it was given up: milliseconds since 1970, by the server. */
  readonly buriedMs: number;
}

export interface DeadLettersOptions {
  readonly acl?: readonly Acl[] | undefined;
  /** The queue that they come from and can go back to. */
  readonly store: QueueStore;
  place(): { key: string; dueMs: number };
}

export class DeadLetters {
  readonly path: string;
  readonly #client: Client;
  readonly #options: DeadLettersOptions;
  readonly #buckets: Buckets;

  constructor(client: Client, path: string, options: DeadLettersOptions) {
    checkClient('DeadLetters', client);
    checkOptions('DeadLetters', options, deadLettersTable);
    this.path = path;
    this.#client = client;
    this.#options = options;
    const { acl } = options;
    const root = parentOf(path) ?? '/';
    this.#buckets = new Buckets(client, root, nameOf(path), { order: 'fifo', bucketItemsMax, acl });
  }

  /** The oldest ones, 100 unless said. */
  async list(max = 100): Promise<DeadLetter[]> {
    const { ready } = await this.#buckets.scan(Math.min(max, listMax), Number.MAX_SAFE_INTEGER);
    const letters = await Promise.all(ready.slice(0, max).map((one) => this.#read(one)));
    return letters.filter((one) => one !== null);
  }

  async size(): Promise<number> {
    return (await this.#buckets.count()).waiting;
  }

  /** Back into the queue, at its end, with its tries forgotten. False: it was gone already. */
  async revive(letter: DeadLetter): Promise<boolean> {
    const entry = { id: letter.id, tries: 0, data: letter.data, ...this.#options.place() };
    await this.#options.store.ensure();
    await this.#options.store.fitting([entry]);
    return this.#gone(() =>
      this.#options.store.place([entry], (ops) =>
        this.#client.multi([...ops, { op: 'delete', path: letter.path }]),
      ),
    );
  }

  /** Deletes it for good. */
  async discard(letter: DeadLetter): Promise<void> {
    await this.#client.discard(letter.path);
  }

  /** Moves one here: `removal` takes it away from where it was, in the same multi. */
  async add(
    { id, data, tries }: Pick<DeadLetter, 'id' | 'data' | 'tries'>,
    removal: MultiOp[],
  ): Promise<void> {
    // An item of the flat layout is named for its node, which says nothing here.
    const name = /^[0-9a-f]{32}$/.test(id) ? id : Buffer.from(id).toString('hex').slice(-32);
    const entry = { id: name.padStart(32, '0'), data, tries, key: '', dueMs: 0 };
    await this.#buckets.place([entry], (ops) => this.#client.multi([...ops, ...removal]));
  }

  async #gone(move: () => Promise<unknown>): Promise<boolean> {
    try {
      await move();
      return true;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return false;
      throw error;
    }
  }

  async #read({ id, path, tries }: Waiting): Promise<DeadLetter | null> {
    try {
      const { data, stat } = await this.#client.get(path);
      const parts = this.#options.store.decode(data);
      return { id, data, parts, tries, path, buriedMs: Number(stat.ctime) };
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }
}
