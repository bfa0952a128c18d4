/**
 * What one side tells and another reads: an async iterator with a bounded buffer.
 *
 * In: `push`, at any time, and `end` once. Out: the same values, in their order, to one loop. What
 * was pushed before the end is still read; then an error is thrown once, or the loop is over. A
 * reader that stays behind by more than `bufferMax` gets a WatchOverflowError: nothing is dropped in
 * silence.
 */

import { WatchOverflowError } from '../client/index.ts';
import { type Deferred, deferred } from '../support/index.ts';

export interface FeedOptions {
  /** What the feed is of, for the message of an overflow. */
  readonly of: string;
  /** Values that wait for the reader. 10,000. */
  readonly bufferMax?: number;
  /** The reader has left its loop. */
  readonly onReturn?: () => Promise<void>;
}

export class Feed<T> implements AsyncIterableIterator<T> {
  readonly #options: FeedOptions;
  #waiting: T[] = [];
  #readers: Deferred<IteratorResult<T>>[] = [];
  #end: { readonly error?: unknown } | undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  get isEnded(): boolean {
    return this.#end !== undefined;
  }

  push(value: T): void {
    if (this.#end !== undefined) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader.resolve({ done: false, value });
      return;
    }
    this.#waiting.push(value);
    const { of, bufferMax = 10_000 } = this.#options;
    if (this.#waiting.length > bufferMax) {
      const why = `more than ${bufferMax} changes wait to be read; read faster, or set bufferMax`;
      this.#waiting = [];
      this.end(new WatchOverflowError(`${of}: ${why}`));
    }
  }

  /** With an error the loop throws it, else it is over. Only the first call counts. */
  end(error?: unknown): void {
    if (this.#end !== undefined) return;
    const [first, ...others] = this.#readers.splice(0);
    this.#end = first === undefined && error !== undefined ? { error } : {};
    if (error !== undefined) first?.reject(error);
    else first?.resolve({ done: true, value: undefined });
    for (const reader of others) reader.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T>> {
    const value = this.#waiting.shift();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#end !== undefined) {
      const { error } = this.#end;
      this.#end = {}; // an iterator fails once; then it is done
      return error === undefined
        ? Promise.resolve({ done: true, value: undefined })
        : Promise.reject(error);
    }
    const reader = deferred<IteratorResult<T>>();
    this.#readers.push(reader);
    return reader.promise;
  }

  async return(): Promise<IteratorResult<T>> {
    this.#waiting = [];
    this.end();
    await this.#options.onReturn?.();
    return { done: true, value: undefined };
  }
}
