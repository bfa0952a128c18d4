/**
 * What waits to be sent, over all links: replies and events that clients have not taken.
 *
 * Each link has a bound of its own, but there may be thousands of links. Above half of what is allowed in all,
 * large reads wait until others have taken theirs; small replies, events and the replies to writes do not. While
 * reads wait, the largest of the links that take nothing is closed. Above what is allowed, the largest of all is.
 *
 * In: what waits on a link, whenever that changes, and the time. Out: whether large reads wait, and which link is
 * to be closed.
 */

import type { Connection } from './connection.ts';

/** A reply that is longer waits where there is little room. */
export const largeReplyBytes = 16 * 1024;
/** A link that has taken nothing for so long is closed while others wait. */
export const stalledMs = 1_000;
/** How often it is looked while some wait. */
export const lookEveryMs = 250;

interface Queued {
  bytes: number;
  /** When some of it was last seen to be taken. */
  takenMs: number;
}

export class OutputTotal {
  readonly #bytesMax: number;
  readonly #byLink = new Map<Connection, Queued>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isTight(): boolean {
    return this.#bytes > this.#bytesMax / 2;
  }

  get isOver(): boolean {
    return this.#bytes > this.#bytesMax;
  }

  note(link: Connection, bytes: number, nowMs: number): void {
    const known = this.#byLink.get(link);
    this.#bytes += bytes - (known?.bytes ?? 0);
    if (bytes === 0) this.#byLink.delete(link);
    else if (known === undefined) this.#byLink.set(link, { bytes, takenMs: nowMs });
    else {
      if (bytes < known.bytes) known.takenMs = nowMs;
      known.bytes = bytes;
    }
  }

  /** Links tell when all is taken. What part is, has to be looked at. */
  look(nowMs: number): void {
    for (const link of [...this.#byLink.keys()]) this.note(link, link.wire.queuedBytes, nowMs);
  }

  /** Of those that have taken nothing since then, or of all. */
  largest(sinceMs = Infinity): Connection | undefined {
    let found: Connection | undefined;
    let most = 0;
    for (const [link, { bytes, takenMs }] of this.#byLink) {
      if (bytes <= most || takenMs > sinceMs) continue;
      found = link;
      most = bytes;
    }
    return found;
  }
}
