/**
 * Numbers of which none is ever given out twice, to anyone, as long as the node is there.
 *
 *   <path>     data: the next number that nobody has, as text
 *
 * A generator takes a block of numbers at a time, by compare-and-set, and gives them out from memory:
 * one write for `blockSize` ids. A block whose reply was lost is left unused and another is taken, so a
 * lost reply costs numbers and never doubles one. They are bigints: unlike the numbers of sequential
 * nodes, which turn negative at 2^31, they do not run out.
 *
 * NOT promised: that none is skipped, or that who asks later gets a higher one than another process.
 * Within one generator they rise.
 */

import { type Acl, ArgumentError, type Client, checkClient } from '../client/index.ts';
import { checkOptions, unlessAborted } from '../support/index.ts';
import { Cell, type UpdateOptions } from './cell.ts';
import { CounterError } from './counter-error.ts';
import { idGeneratorTable, updateTable } from './option-tables.ts';

export interface IdGeneratorOptions {
  /** Ids taken with one write; what is left of them is lost with the process. 100. */
  readonly blockSize?: number;
  /** The first one of all. 1n. */
  readonly first?: bigint;
  /** Tries to take a block before it is given up. 100. */
  readonly triesMax?: number;
  readonly acl?: readonly Acl[];
}

export class IdGenerator {
  readonly path: string;
  readonly #blockSize: bigint;
  readonly #first: bigint;
  readonly #cell: Cell;
  #next = 0n;
  #end = 0n;
  #taking: Promise<void> | undefined;

  constructor(client: Client, path: string, options: IdGeneratorOptions = {}) {
    checkClient('IdGenerator', client);
    checkOptions('IdGenerator', options, idGeneratorTable);
    const { blockSize = 100, first = 1n, triesMax, acl } = options;
    if (!Number.isInteger(blockSize) || blockSize < 1 || blockSize > 1_000_000) {
      throw new ArgumentError('blockSize', `1 to 1,000,000 is wanted, not ${blockSize}`);
    }
    if (typeof first !== 'bigint' || first < 0n) {
      throw new ArgumentError('first', 'a bigint from 0n on is wanted');
    }
    this.path = path;
    this.#blockSize = BigInt(blockSize);
    this.#first = first;
    this.#cell = new Cell(client, path, { seed: Buffer.alloc(0), isExact: false, triesMax, acl });
  }

  async next(options: UpdateOptions = {}): Promise<bigint> {
    checkOptions('next', options, updateTable);
    while (this.#next === this.#end) {
      options.signal?.throwIfAborted();
      // All who find it empty wait for the same block.
      this.#taking ??= this.#take(options).finally(() => {
        this.#taking = undefined;
      });
      await (options.signal ? unlessAborted(this.#taking, options.signal) : this.#taking);
    }
    const id = this.#next;
    this.#next += 1n;
    return id;
  }

  /** Several, which rise, but need not be neighbours. */
  async nextMany(count: number, options: UpdateOptions = {}): Promise<bigint[]> {
    checkOptions('nextMany', options, updateTable);
    if (!Number.isInteger(count) || count < 1 || count > 1_000_000) {
      throw new ArgumentError('count', `1 to 1,000,000 is wanted, not ${count}`);
    }
    const ids: bigint[] = [];
    while (ids.length < count) ids.push(await this.next(options));
    return ids;
  }

  async #take({ triesMax }: UpdateOptions): Promise<void> {
    // Without the caller's signal: others wait for the block as well.
    const { before } = await this.#cell.update(
      (data) => Buffer.from(String(this.#parse(data) + this.#blockSize)),
      triesMax === undefined ? {} : { triesMax },
    );
    this.#next = this.#parse(before);
    this.#end = this.#next + this.#blockSize;
  }

  #parse(data: Buffer): bigint {
    if (data.length === 0) return this.#first;
    const text = data.toString('latin1');
    if (/^\d{1,40}$/.test(text)) return BigInt(text);
    throw new CounterError('CORRUPT', this.path, { detail: JSON.stringify(text.slice(0, 40)) });
  }
}
