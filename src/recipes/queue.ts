/**
 * A queue: what is put is handed to one taker at a time, and again to another until one confirms it.
 *
 * Producers put items, persistent nodes, each in a multi that also writes the producer's receipt, so
 * that a lost reply neither loses nor doubles an item. A taker claims the first item that nobody has,
 * does its work, and confirms; if its session ends before, the claim goes with it and the item is there
 * again. After `triesMax` tries an item is moved to the dead letters. Who finds nothing waits in line:
 * only the first of the line watches, so that a put wakes one taker and not all.
 *
 * Orders: `fifo`; `priority`, lowest first, then as they were put; `delay`, not before a time, by the
 * clocks of those who put and take. Layouts: `buckets`, without a limit to the length, and `curator`, as
 * Curator's queues have it (queue-buckets.ts, queue-flat.ts draw them).
 *
 * What is NOT promised: exactly once. An item is handed out at least once; its `id` stays the same.
 * With several takers the order is the one in which items are handed out, not that in which work ends;
 * and an item that comes back stands at its old place, before what was put later.
 */

import { randomUUID } from 'node:crypto';
import {
  type Acl,
  ArgumentError,
  type Client,
  checkClient,
  type DataInput,
} from '../client/index.ts';
import { frameBytesMax } from '../protocol/index.ts';
import { type Clock, checkOptions, systemClock, unlessAborted } from '../support/index.ts';
import { bounded, lookUntil } from './bounded-wait.ts';
import type { WaitOptions } from './deadline.ts';
import { Line, oneAtATime } from './line.ts';
import { putTable, queueTable, waitTable, workTable } from './option-tables.ts';
import { Buckets } from './queue-buckets.ts';
import { Claims } from './queue-claims.ts';
import { DeadLetters } from './queue-dead-letters.ts';
import { QueueError } from './queue-error.ts';
import { Flat } from './queue-flat.ts';
import type { QueueItem } from './queue-item.ts';
import { priorityText, type QueueOrder, slotKey } from './queue-names.ts';
import { Puts } from './queue-puts.ts';
import type { Entry, QueueStore, Waiting } from './queue-store.ts';
import { whileLinked } from './while-linked.ts';

export interface QueueOptions {
  /** `fifo` unless said. All who use a queue must say the same. */
  readonly order?: QueueOrder;
  /** `buckets` unless said; `curator` to share a queue with Java. */
  readonly layout?: 'buckets' | 'curator';
  /** After so many tries that were not confirmed an item becomes a dead letter. 10. */
  readonly triesMax?: number;
  /** Names of items that a taker keeps from its last list. 20; 0 by priority. */
  readonly readAhead?: number;
  /** `buckets`: items in one bucket. 500. */
  readonly bucketItemsMax?: number;
  /** `curator`: where claims stand. The path with `-locks` behind it. */
  readonly lockPath?: string;
  /** Where dead letters stand. `<path>/dead`; for `curator` the path with `-dead` behind it. */
  readonly deadPath?: string;
  /** `curator`: the longest list that every client of the queue takes. 1 MiB less a byte. */
  readonly listBytesMax?: number;
  readonly acl?: readonly Acl[];
  readonly clock?: Clock;
}

export interface PutOptions extends WaitOptions {
  /** In a queue by priority: lowest first. A 32-bit integer; 0 unless said. */
  readonly priority?: number;
  /** In a queue by time: not to be handed out before so long. */
  readonly delayMs?: number;
  /** As `delayMs`, as a time: milliseconds since 1970. */
  readonly dueMs?: number;
}

export interface WorkOptions {
  readonly signal?: AbortSignal;
  /** Items that are worked on at once. 1. */
  readonly concurrency?: number;
  /** Told of what the work threw; the item is requeued. Without it, that ends `work`. */
  readonly onError?: (error: unknown, item: QueueItem) => void;
}

/** Room that paths and headers need beside an item's data when it is claimed. */
const itemBytesMax = frameBytesMax - 8 * 1024;
const takeMax = 1_000;
/** Of a long list, so many wait for their turn at a time. */
const putsAtOnce = 10_000;
/** Times that all items of a list may be gone when we come to them; then we wait for a change. */
const roundsMax = 100;
const slotMs = 60_000;

export class Queue {
  readonly path: string;
  /** What was given up after too many tries. */
  readonly dead: DeadLetters;
  readonly #client: Client;
  readonly #order: QueueOrder;
  readonly #readAhead: number;
  readonly #clock: Clock;
  readonly #store: QueueStore;
  readonly #claims: Claims;
  readonly #puts: Puts;
  readonly #line: Line | null;
  readonly #ended = new AbortController();
  /** Returns of items that nobody waits for any more. */
  readonly #returning = new Set<Promise<void>>();
  #ensured: Promise<void> | undefined;
  #ahead: Waiting[] = [];

  constructor(client: Client, path: string, options: QueueOptions = {}) {
    checkClient('Queue', client);
    checkOptions('Queue', options, queueTable);
    const { order = 'fifo', layout = 'buckets', acl, clock = systemClock } = options;
    if (!['fifo', 'priority', 'delay'].includes(order)) {
      throw new ArgumentError('order', 'fifo, priority or delay is wanted');
    }
    if (layout !== 'buckets' && layout !== 'curator') {
      throw new ArgumentError('layout', 'buckets or curator is wanted');
    }
    this.#client = client;
    this.path = path;
    this.#order = order;
    this.#clock = clock;
    const triesMax = count('triesMax', options.triesMax ?? 10, 1);
    const isPriority = order === 'priority';
    this.#readAhead = count('readAhead', options.readAhead ?? (isPriority ? 0 : 20), 0);
    const bucketItemsMax = count('bucketItemsMax', options.bucketItemsMax ?? 500, 1, 5_000);
    const lockPath = options.lockPath ?? `${path}-locks`;
    const listBytesMax = options.listBytesMax ?? frameBytesMax;
    const isFlat = layout === 'curator';
    this.#store = isFlat
      ? new Flat(client, path, { order, lockPath, listBytesMax, acl })
      : new Buckets(client, path, 'items', { order, bucketItemsMax, acl });
    const deadPath = options.deadPath ?? `${path}${isFlat ? '-dead' : '/dead'}`;
    this.dead = new DeadLetters(client, deadPath, {
      acl,
      store: this.#store,
      place: () => this.#keyOf({}),
    });
    this.#claims = new Claims(client, this.#store, this.dead, {
      triesMax,
      keyOf: (it) => this.#keyOf(it),
    });
    this.#puts = new Puts(client, this.#store, path, (isGone) => this.#ensure(isGone), acl);
    const { takersPath } = this.#store;
    const lineOptions = { prefixes: ['taker-'], ...(acl && { acl }) };
    this.#line = takersPath === null ? null : new Line(client, takersPath, lineOptions);
  }

  // ── putting ───────────────────────────────────────────────────────────────────────────────────

  /** Resolves with the item's id once it is in the queue. */
  async put(data: DataInput, options: PutOptions = {}): Promise<string> {
    checkOptions('put', options, putTable);
    const entry = this.#entry(data, options);
    return bounded(options, this.#setting(), async (signal) => {
      const { done, callOff } = this.#puts.put(entry);
      done.catch(() => {}); // after an abort nobody waits for it
      try {
        return await unlessAborted(done, signal);
      } finally {
        callOff();
      }
    });
  }

  /**
   * Puts a list, in its order, as few multis: each of them as a whole. When one fails, the error's `ids`
   * say which items are in the queue all the same.
   */
  async putMany(list: readonly DataInput[], options: PutOptions = {}): Promise<string[]> {
    checkOptions('putMany', options, putTable);
    const ids: string[] = [];
    await bounded(options, this.#setting(), async (signal) => {
      for (let at = 0; at < list.length; at += putsAtOnce) {
        const entries = list.slice(at, at + putsAtOnce).map((data) => this.#entry(data, options));
        const puts = entries.map((entry) => this.#puts.put(entry));
        const settling = Promise.allSettled(puts.map(({ done }) => done));
        try {
          const settled = await unlessAborted(settling, signal);
          for (const one of settled) if (one.status === 'fulfilled') ids.push(one.value);
          for (const one of settled) if (one.status === 'rejected') throw one.reason;
        } finally {
          for (const { callOff } of puts) callOff();
        }
      }
    }).catch((error) => {
      throw error instanceof Error && ids.length > 0 ? Object.assign(error, { ids }) : error;
    });
    return ids;
  }

  #entry(data: DataInput, options: PutOptions): Entry {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data && Buffer.from(data);
    if (bytes !== null && bytes.length > itemBytesMax) {
      const why = `${bytes.length} bytes are more than the ${itemBytesMax} that fit; put a reference to them`;
      throw new ArgumentError('data', why);
    }
    const id = randomUUID().replaceAll('-', '');
    return { id, tries: 0, data: this.#store.encode(bytes), ...this.#keyOf(options) };
  }

  #keyOf({ priority, delayMs, dueMs }: PutOptions): { key: string; dueMs: number } {
    if (priority !== undefined && (this.#order !== 'priority' || (priority | 0) !== priority)) {
      throw new ArgumentError(
        'priority',
        'a 32-bit integer, in a queue of order priority, is wanted',
      );
    }
    if (this.#order === 'priority') return { key: priorityText(priority ?? 0), dueMs: 0 };
    if (this.#order === 'fifo') {
      if (delayMs === undefined && dueMs === undefined) return { key: '', dueMs: 0 };
      throw new ArgumentError('delayMs', 'only a queue of order delay has times');
    }
    const at = Math.ceil(dueMs ?? this.#clock.wallMs() + (delayMs ?? 0));
    if (!(at > 0 && at < 16 ** 11))
      throw new ArgumentError('dueMs', `${at} is no time to wait for`);
    return { key: slotKey(at, slotMs), dueMs: at };
  }

  // ── taking ────────────────────────────────────────────────────────────────────────────────────

  /** Waits for an item. */
  async take(options: WaitOptions = {}): Promise<QueueItem> {
    checkOptions('take', options, waitTable);
    return (await this.takeMany(1, options))[0]!;
  }

  /** The first item that can be had at once, or null. */
  async tryTake(options: WaitOptions = {}): Promise<QueueItem | null> {
    checkOptions('tryTake', options, waitTable);
    return bounded(options, this.#setting(), async (signal) => {
      return (await this.#takeNow(1, signal))[0] ?? null;
    });
  }

  /** Waits until there is an item, and takes as many as there are, up to `max`. */
  async takeMany(max: number, options: WaitOptions = {}): Promise<QueueItem[]> {
    checkOptions('takeMany', options, waitTable);
    count('max', max, 1, takeMax);
    return bounded(options, this.#setting(), async (signal) => {
      const items = await this.#takeNow(max, signal);
      return items.length > 0 ? items : this.#wait(max, signal);
    });
  }

  /** Takes item after item, until the queue is closed. An item that the loop does not settle stays claimed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<QueueItem, void, undefined> {
    for (;;) {
      try {
        const item = await this.take();
        // A lost item went back with its session, if the process was stopped or busy meanwhile.
        if (item.isHeld) yield item;
      } catch (error) {
        if (error === this.#ended.signal.reason && this.#ended.signal.aborted) return;
        throw error;
      }
    }
  }

  /**
   * Takes, works, confirms, until the signal aborts or the queue is closed; then waits for the work
   * that is under way. An item whose work throws goes to the end of the queue.
   */
  async work(
    handle: (item: QueueItem) => Promise<unknown>,
    options: WorkOptions = {},
  ): Promise<void> {
    checkOptions('work', options, workTable);
    const { concurrency = 1, onError } = options;
    count('concurrency', concurrency, 1, takeMax);
    const stop = new AbortController();
    const signals = [stop.signal, this.#ended.signal, ...(options.signal ? [options.signal] : [])];
    const signal = AbortSignal.any(signals);
    const one = async () => {
      while (!signal.aborted) {
        const item = await this.take({ signal }).catch((error) => {
          if (signal.aborted) return null;
          throw error;
        });
        if (item?.isHeld) await this.#workOn(item, handle, onError);
      }
    };
    const ended = await Promise.allSettled(
      Array.from({ length: concurrency }, () =>
        one().catch((error) => {
          stop.abort();
          throw error;
        }),
      ),
    );
    for (const end of ended) if (end.status === 'rejected') throw end.reason;
  }

  async #workOn(
    item: QueueItem,
    handle: (item: QueueItem) => Promise<unknown>,
    onError: WorkOptions['onError'],
  ): Promise<void> {
    try {
      await handle(item);
      if (item.isHeld) await item.confirm();
    } catch (error) {
      if (item.isHeld) await item.requeue();
      if (onError === undefined) throw error;
      onError(error, item);
    }
  }

  /** How many wait and how many are taken. Reads every list: not for every second. */
  async size(): Promise<{ readonly waiting: number; readonly claimed: number }> {
    await this.#ensure();
    return this.#store.count();
  }

  /** Ends every wait. Items that are held stay with those who hold them. */
  async close(): Promise<void> {
    this.#ended.abort(new QueueError('CLOSED', this.path));
    await this.#puts.close();
    while (this.#returning.size > 0) await Promise.all(this.#returning);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #setting() {
    const timedOut = () => new QueueError('TIMEOUT', this.path);
    return { clock: this.#clock, timedOut, ended: this.#ended.signal };
  }

  #ensure(isGone = false): Promise<void> {
    if (isGone) this.#ensured = undefined;
    this.#ensured ??= this.#store.ensure().catch((error) => {
      this.#ensured = undefined;
      throw error;
    });
    return this.#ensured;
  }

  async #takeNow(max: number, signal: AbortSignal): Promise<QueueItem[]> {
    const taking = this.#ensure().then(() => this.#tryList(max));
    try {
      return await unlessAborted(taking, signal);
    } catch (error) {
      // Not called off on its way: what it takes all the same is given back.
      if (signal.aborted) this.#giveBack(taking);
      throw error;
    }
  }

  async #tryList(max: number): Promise<QueueItem[]> {
    for (let round = 0; round < roundsMax; round++) {
      if (this.#ahead.length < max) {
        // What is left of the last list stands in this one too, unless somebody has it by now.
        const wanted = max + this.#readAhead;
        const { ready } = await this.#store.scan(wanted, this.#clock.wallMs());
        if (ready.length === 0) return [];
        this.#ahead = ready.slice(0, wanted);
      }
      const items = await this.#claims.claim(this.#ahead.splice(0, max));
      if (items.length > 0) return items;
    }
    return [];
  }

  async #wait(max: number, signal: AbortSignal): Promise<QueueItem[]> {
    const place = await this.#line?.join({ signal });
    try {
      await place?.turn(oneAtATime, signal);
      const ends = place ? AbortSignal.any([signal, place.grant.signal]) : signal;
      return await lookUntil(
        this.#client,
        ends,
        async (watching) => {
          const nowMs = this.#clock.wallMs();
          const { ready, nextDueMs } = await this.#store.scan(max, nowMs, watching);
          const items = await this.#claims.claim(ready.slice(0, max));
          if (items.length > 0) return items;
          if (nextDueMs !== null) watching.wakeAfter(nextDueMs - nowMs, this.#clock);
          return undefined;
        },
        (late) => this.#giveBack(Promise.resolve(late)),
      );
    } finally {
      if (place !== undefined) await whileLinked(this.#client, place.leave());
    }
  }

  /** An item that nobody waits for any more is there for others at once, and not with the session's end. */
  #giveBack(taking: Promise<QueueItem[]>): void {
    const returned = taking
      .then((items) => Promise.all(items.map((item) => item.release())))
      .then(
        () => {},
        () => {}, // what could not be given back goes back with the session
      )
      .finally(() => this.#returning.delete(returned));
    this.#returning.add(returned);
  }
}

function count(
  argument: string,
  value: number,
  min: number,
  max = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  if (value === Number.POSITIVE_INFINITY && argument === 'triesMax') return value;
  const upTo = max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`;
  throw new ArgumentError(argument, `a whole number from ${min}${upTo} is wanted, not ${value}`);
}
