/**
 * Links that have something to say, and when it leaves.
 *
 * After each chunk, where one link speaks at a time. Where several do, their chunks are read first and
 * then all of them are answered: each send wakes the other side, and a peer that finds more than one reply
 * does not go back to sleep in between. A turn of the event loop that read a single chunk says that
 * no others speak; whether that has changed is looked at again every so many chunks.
 */

import { setImmediate } from 'node:timers';
import { wakefulness } from '../support/index.ts';
import type { Connection } from './connection.ts';

/** How long the next request is looked for: what a client takes that was woken and works for a moment. */
const awakeMs = 0.2;
/** So many chunks are answered one by one before it is looked whether there is more than one in a turn. */
const alone = 64;
/** A turn that takes longer than this answers what it has read so far, and goes on reading for as long again. */
const turnMaxMs = 1.5;

export interface OutboxEnds {
  /** What had to wait until some of the replies before it were gone may follow. */
  flushed(connection: Connection): void;
  /** We are wrong: nothing of a link makes this throw. */
  failed(error: Error): void;
}

export class Outbox {
  readonly #ends: OutboxEnds;
  #dirty: Connection[] = [];
  /** Chunks until the next turn whose answers leave at its end. */
  #untilTurn = 0;
  /** Chunks of the turn at hand; 0 where each is answered at once. */
  #chunks = 0;
  #turnFromMs = 0;
  /** The turn at hand has answered what it had, and time runs anew from the next chunk. */
  #isCut = false;

  constructor(ends: OutboxEnds) {
    this.#ends = ends;
  }

  /** Those that have something to say. */
  get links(): readonly Connection[] {
    return this.#dirty;
  }

  add(connection: Connection): void {
    this.#dirty.push(connection);
  }

  chunkBegun(nowMs: number): void {
    if (this.#chunks === 0) return;
    if (this.#isCut) {
      this.#isCut = false;
      this.#turnFromMs = nowMs;
    } else if (nowMs - this.#turnFromMs > turnMaxMs) {
      this.#isCut = true;
      this.flush();
    }
  }

  chunkDone(nowMs: number): void {
    if (this.#untilTurn > 0) {
      this.#untilTurn -= 1;
      this.flush();
      return;
    }
    if (this.#chunks === 0) {
      this.#turnFromMs = nowMs;
      this.#isCut = false;
      setImmediate(this.#turned);
    }
    this.#chunks += 1;
  }

  flush(): void {
    if (this.#dirty.length === 0) return;
    wakefulness.touch(awakeMs);
    while (this.#dirty.length > 0) {
      const dirty = this.#dirty;
      this.#dirty = [];
      // The last first: who began to watch last was closest to being next, and whose call it was knows already.
      for (let at = dirty.length - 1; at >= 0; at -= 1) {
        const connection = dirty[at]!;
        connection.flush();
        if (connection.inFlight > 0) this.#ends.flushed(connection);
      }
    }
  }

  readonly #turned = (): void => {
    if (this.#chunks === 1) this.#untilTurn = alone;
    this.#chunks = 0;
    try {
      this.flush();
    } catch (error) {
      this.#ends.failed(error instanceof Error ? error : new Error(String(error)));
    }
  };
}
