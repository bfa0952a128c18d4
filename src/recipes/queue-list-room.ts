/**
 * Room in a queue whose items all stand in one list, which must fit into a reply.
 *
 * In: how many children the node says that it has, and every list that was read. Out: QueueError
 * LIST_TOO_LONG before a list is asked for or a put is sent that would be too much.
 *
 * Nobody but the list itself tells how long its names are: Curator's DistributedIdQueue has ids in them.
 * So for takers a list counts as too long only when even the shortest names would be, or when it was once
 * asked for and could not be read: who is refused by mistake takes nothing, and the list never gets
 * shorter. Puts go by the names of the last list, which is read again when there are twice as many.
 */

import type { Client } from '../client/index.ts';
import { frameOverheadBytes } from '../protocol/index.ts';
import { QueueError } from './queue-error.ts';
import { isUnreadable } from './unreadable.ts';

/**
 * Items are put up to this part of what a list holds. Others put between a look and the put behind it;
 * what they put must still leave a list that can be taken from.
 */
const putShare = 0.9;
/** Of the room that is left, a put takes so much at most: so many producers may see the same room. */
const roomShare = 1 / 400;
/** Below this part of a list, with the shortest names, its names are nobody's concern. */
const unknownShare = 1 / 8;

export interface ListRoomOptions {
  /** The longest list that every client of the queue takes. */
  readonly listBytesMax: number;
  /** The longest name of an item of ours, and the four bytes of its length. */
  readonly itemBytes: number;
}

export class ListRoom {
  readonly #client: Client;
  readonly #path: string;
  readonly #itemBytes: number;
  readonly #listBytesMax: number;
  /** What the last list had. */
  #last = { count: 0, bytes: 0 };
  /** So many were too many to be read. */
  #unreadable = Number.POSITIVE_INFINITY;

  constructor(client: Client, path: string, { listBytesMax, itemBytes }: ListRoomOptions) {
    this.#client = client;
    this.#path = path;
    this.#listBytesMax = listBytesMax;
    this.#itemBytes = itemBytes;
  }

  get #bytesMax(): number {
    return this.#listBytesMax - frameOverheadBytes;
  }

  /** Reads the list, unless it is known to be too long; whatever `read` gives when there is none. */
  async list<T extends readonly string[] | null>(read: () => Promise<T>): Promise<T> {
    const count = await this.#count();
    const countMax = Math.floor(this.#bytesMax / this.#itemBytes);
    if (count > countMax) {
      const why = `${count} items are more than the ${countMax} that ${this.#listBytesMax} bytes hold`;
      throw this.#tooLong(why);
    }
    if (count >= this.#unreadable) {
      throw this.#tooLong(`${count} items, and a list of ${this.#unreadable} could not be read`);
    }
    try {
      const names = await read();
      this.#unreadable = Number.POSITIVE_INFINITY;
      this.#last = { count: names?.length ?? 0, bytes: bytesOf(names ?? []) };
      return names;
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      this.#unreadable = count;
      throw this.#tooLong((error.cause as Error).message, error);
    }
  }

  /** How many items may be put before the next look, 1 at least. */
  async forPuts(): Promise<number> {
    const count = await this.#count();
    if (this.#isUnknown(count)) await this.list(() => this.#client.children(this.#path));
    const held = Math.floor(this.#bytesMax / this.#bytesEach());
    const countMax = Math.ceil(held * putShare);
    const room = Math.min(countMax, this.#unreadable - 1) - count;
    if (room >= 1) return Math.max(1, Math.floor(room * roomShare));
    throw this.#tooLong(
      `${count + 1} items are more than the ${countMax} up to which items are put; ${this.#listBytesMax} bytes hold ${held}`,
    );
  }

  #isUnknown(count: number): boolean {
    return count * this.#itemBytes > this.#bytesMax * unknownShare && count > 2 * this.#last.count;
  }

  /** What a name takes, by the last list. */
  #bytesEach(): number {
    const { count, bytes } = this.#last;
    return count === 0 ? this.#itemBytes : Math.max(this.#itemBytes, bytes / count);
  }

  async #count(): Promise<number> {
    return (await this.#client.exists(this.#path))?.numChildren ?? 0;
  }

  #tooLong(detail: string, cause?: Error): QueueError {
    return new QueueError('LIST_TOO_LONG', this.#path, { detail, ...(cause && { cause }) });
  }
}

function bytesOf(names: readonly string[]): number {
  return names.reduce((sum, name) => sum + 4 + Buffer.byteLength(name), 0);
}
