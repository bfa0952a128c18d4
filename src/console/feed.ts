/**
 * Everything that happens, numbered, to everybody who listens: the server side of the event stream.
 *
 * The last events are kept, so that a browser that lost its link goes on where it stopped. Where it
 * stopped too long ago, or in another run of the console, it is told to ask for everything again.
 * A listener that does not take what it is sent is let go: it comes back by itself, and costs nothing.
 */

import { randomBytes } from 'node:crypto';
import { limits, type StreamEvents, type StreamKind } from './api.ts';

/** What waits for one listener at most. */
const waitingBytesMax = 4 * 1024 * 1024;

/** What is kept for who comes back, at most: an event may hold many long paths. */
const keptCharsMax = 8 * 1024 * 1024;

/** Shown once and stale at once: not worth telling to who comes back. */
const passing: ReadonlySet<StreamKind> = new Set(['hello', 'beat', 'servers', 'metrics']);

interface Kept {
  readonly number: number;
  readonly text: string;
}

type Listener = (text: string) => void;

export class Feed {
  /** Of this run of the console: numbers begin anew with each. */
  readonly run = randomBytes(6).toString('hex');
  readonly #kept: Kept[] = [];
  /** Each with the address that it listens from. */
  readonly #listeners = new Map<Listener, string>();
  readonly #ends = new Set<() => void>();
  #number = 0;
  #keptChars = 0;

  /** Names the last event that is kept: a stream from there on misses none. */
  get lastId(): string {
    return `${this.run}-${this.#number}`;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  listenersFrom(address: string): number {
    return [...this.#listeners.values()].filter((one) => one === address).length;
  }

  /** Ends all streams. Who comes back finds what is there by then. */
  close(): void {
    for (const end of [...this.#ends]) end();
  }

  send<K extends StreamKind>(kind: K, event: StreamEvents[K]): void {
    if (passing.has(kind)) {
      if (this.#listeners.size > 0) this.#tell(textOf(kind, event));
      return;
    }
    this.#number += 1;
    const text = textOf(kind, event, this.lastId);
    this.#kept.push({ number: this.#number, text });
    this.#keptChars += text.length;
    while (this.#kept.length > limits.eventsKept || this.#keptChars > keptCharsMax) {
      this.#keptChars -= this.#kept.shift()!.text.length;
    }
    this.#tell(text);
  }

  /** A stream for one browser. `lastId` is what it saw last, by its own account. */
  stream(
    lastId: string | undefined,
    first: StreamEvents['hello'],
    address = '',
  ): ReadableStream<Uint8Array> {
    const encoder = new TextEncoder();
    let listener: Listener | undefined;
    let end = () => {};
    const leave = () => {
      this.#ends.delete(end);
      if (listener !== undefined) this.#listeners.delete(listener);
    };
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          const put = (text: string) => controller.enqueue(encoder.encode(text));
          const missed = this.#missed(lastId);
          // Its number is what the browser sends back if nothing else comes before the break. Who missed
          // something keeps the one it has until it is told: the link may break again in between.
          const id = missed.length === 0 ? this.lastId : undefined;
          put(textOf('hello', first, id));
          for (const text of missed) put(text);
          end = () => {
            leave();
            controller.close();
          };
          listener = (text) => {
            if ((controller.desiredSize ?? 0) > -waitingBytesMax) put(text);
            else end();
          };
          this.#ends.add(end);
          this.#listeners.set(listener, address);
        },
        cancel: leave,
      },
      { highWaterMark: 64 * 1024, size: (chunk) => chunk?.byteLength ?? 0 },
    );
  }

  #missed(lastId: string | undefined): string[] {
    if (lastId === undefined) return [];
    const [run, text] = lastId.split('-', 2);
    const last = Number(text);
    const first = this.#kept[0]?.number ?? this.#number + 1;
    if (
      run !== this.run ||
      !Number.isSafeInteger(last) ||
      last < first - 1 ||
      last > this.#number
    ) {
      return [textOf('resync', { why: 'gone' }, this.lastId)];
    }
    return this.#kept.slice(last - first + 1).map((kept) => kept.text);
  }

  #tell(text: string): void {
    for (const listener of [...this.#listeners.keys()]) listener(text);
  }
}

/** JSON has no line ends of its own, so that one line of data is enough. */
function textOf<K extends StreamKind>(kind: K, event: StreamEvents[K], id?: string): string {
  const name = id === undefined ? '' : `id: ${id}\n`;
  return `${name}event: ${kind}\ndata: ${JSON.stringify(event)}\n\n`;
}
