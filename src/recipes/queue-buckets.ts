/**
 * The layout `buckets`: a queue without a limit to its length.
 *
 *   <path>                     data: {"layout":"drover-queue","version":1,"order":"fifo"}
 *   <path>/items               its version grows with every bucket made
 *   <path>/items/b-<seq>       a bucket; version 0: open, 1: sealed, and takes no more
 *   <path>/items/b-…/i-…       an item     (names: see queue-names.ts)
 *   <path>/items/b-…/c-i-…     its claim, ephemeral, in the list beside it
 *   <path>/producers/receipt-… what each producer's last multi was, ephemeral
 *   <path>/takers/…            those who wait for an item, in line
 *   <path>/dead/b-…/i-…        items that were given up, in buckets too
 *
 * A reply must fit into a frame (jute.maxbuffer), and the names of 100,000 items do not. So no list is
 * ever longer than a bucket's, or the list of buckets.
 *
 * Of each key (a priority, a slot of time) at most one bucket is open, as buckets are made one at a
 * time by `items`' version, in the same multi that seals the one before; and a put checks in its multi
 * that its bucket is open. So what was put later never stands before what was put earlier.
 *
 * How full a bucket is cannot be part of a multi. All who have found it open may put once more before one
 * of them finds it full; so the more producers there are, the fewer items each puts at a time.
 */

import {
  type Acl,
  type Client,
  isZkError,
  MultiError,
  type MultiOp,
  type StatView,
} from '../client/index.ts';
import { childOf, frameBytesMax, nameOf } from '../protocol/index.ts';
import type { Watching } from './bounded-wait.ts';
import { withParents } from './parents.ts';
import { QueueError } from './queue-error.ts';
import {
  type BucketName,
  bucketName,
  bucketPrefix,
  byTurn,
  claimedBy,
  claimName,
  type ItemName,
  itemName,
  itemPrefix,
  type QueueOrder,
} from './queue-names.ts';
import type { Commit, Entry, Found, QueueStore, Waiting } from './queue-store.ts';

/** How often the open bucket may change between finding it and putting into it. */
const roundsMax = 100;
/** Empty buckets that are open are left for the next put, unless there are more buckets than this. */
const bucketsKept = 16;
/** Items that a list certainly holds: each with the longest name, and its claim. */
const listItemsMax = Math.floor(frameBytesMax / (4 + 68 + 4 + 70));
/**
 * Of the room beyond `bucketItemsMax`, all producers who are there together take so much. Some may have
 * found the bucket when there were fewer of them, and take more: at worst, where each came alone, all n
 * together 1 + ln n times as much.
 */
const togetherShare = 1 / 4;
/** Places of one process at a time: items that are requeued and buried come one by one, and all at once. */
const placesMax = 16;
/** Open buckets that are remembered; a queue by time has one for every minute. */
const openMax = 1_000;

export interface BucketsOptions {
  readonly order: QueueOrder;
  /** After so many items a bucket is sealed. Its list, claims included, must fit into a frame. */
  readonly bucketItemsMax: number;
  readonly acl?: readonly Acl[] | undefined;
}

interface Open {
  readonly path: string;
  /** How many items each producer may put at a time. */
  readonly share: number;
  isFull: boolean;
}

export class Buckets implements QueueStore {
  readonly takersPath: string;
  readonly receiptsPath: string;
  readonly #client: Client;
  readonly #root: string;
  readonly #items: string;
  readonly #options: BucketsOptions;
  readonly #open = new Map<string, Open>();
  readonly #lanes: Promise<unknown>[] = Array.from({ length: placesMax }, async () => {});
  #laneNext = 0;

  /** `under`: `items` for the queue itself, `dead` for what was given up. */
  constructor(client: Client, root: string, under: string, options: BucketsOptions) {
    this.#client = client;
    this.#root = root;
    this.#items = childOf(root, under);
    this.#options = options;
    this.takersPath = childOf(root, 'takers');
    this.receiptsPath = childOf(root, 'producers');
  }

  async ensure(): Promise<void> {
    for (let round = 0; round < roundsMax; round++) {
      if (await this.#isMade()) return this.#make(this.#items);
    }
    throw new QueueError('CONTENTION', this.#root);
  }

  /** Makes the node that says what queue this is. False: it is not there, or not yet filled. */
  async #isMade(): Promise<boolean> {
    const wanted = { layout: 'drover-queue', version: 1, order: this.#options.order };
    await this.#make(this.#root, JSON.stringify(wanted));
    const root = await this.#client.get(this.#root).catch((error) => {
      ignore(error, 'NO_NODE');
      return null; // its making never arrived, or somebody has deleted it
    });
    if (root === null) return false;
    const { data, stat } = root;
    if (data === null || data.length === 0) {
      // Made by somebody as an empty node: ours to fill, unless another is quicker.
      const version = stat.version;
      await this.#client
        .set(this.#root, JSON.stringify(wanted), { version })
        .catch((error) => ignore(error, 'BAD_VERSION'));
      return false;
    }
    const found = parsed(data);
    if (found?.layout !== wanted.layout || found.version !== 1 || found.order !== wanted.order) {
      const detail = `it says ${data.toString('utf8', 0, 200)}, and this is ${JSON.stringify(wanted)}`;
      throw new QueueError('WRONG_LAYOUT', this.#root, { detail });
    }
    return true;
  }

  async #make(path: string, data?: string): Promise<void> {
    const { acl } = this.#options;
    const options = acl ? { acl } : {};
    await withParents(this.#client, path, acl, () =>
      this.#client.create(path, data, options),
    ).catch((error) => {
      if (isZkError(error) && error.outcomeUnknown) return; // whoever needs it will find out
      ignore(error, 'NODE_EXISTS');
    });
  }

  // ── putting ───────────────────────────────────────────────────────────────────────────────────

  async fitting(entries: readonly Entry[]): Promise<number> {
    return (await this.#openBucket(entries[0]!.key)).share;
  }

  place(entries: readonly Entry[], commit: Commit): Promise<string[]> {
    this.#laneNext = (this.#laneNext + 1) % placesMax;
    const placed = this.#lanes[this.#laneNext]!.then(() => this.#place(entries, commit));
    this.#lanes[this.#laneNext] = placed.catch(() => {});
    return placed;
  }

  async #place(entries: readonly Entry[], commit: Commit): Promise<string[]> {
    const { key } = entries[0]!;
    const { acl, bucketItemsMax } = this.#options;
    for (let round = 0; round < roundsMax; round++) {
      const bucket = await this.#openBucket(key);
      const creates = entries.map(
        ({ id, tries, dueMs, data }): MultiOp => ({
          op: 'create',
          path: childOf(bucket.path, itemPrefix(id, tries, dueMs)),
          data,
          mode: 'persistentSequential',
          ...(acl && { acl }),
        }),
      );
      try {
        const results = await commit([{ op: 'check', path: bucket.path, version: 0 }, ...creates]);
        const last = results?.[creates.length] as { path: string } | undefined;
        const sequence = last && itemName(nameOf(last.path))?.sequence;
        // A reply that was lost would have said how full it is: the next one looks.
        if (sequence === undefined || sequence + 1 >= bucketItemsMax) bucket.isFull = true;
        return entries.map(({ id }) => id);
      } catch (error) {
        const isClosed = error instanceof MultiError && error.index <= creates.length;
        if (!isClosed) throw error;
        if (error.code !== 'NO_NODE' && error.code !== 'BAD_VERSION') throw error;
        this.#open.delete(key); // it was sealed or drained in between
      }
    }
    throw new QueueError('CONTENTION', this.#items);
  }

  async #openBucket(key: string): Promise<Open> {
    for (let round = 0; round < roundsMax; round++) {
      const known = this.#open.get(key);
      if (known !== undefined && !known.isFull) return known;
      const list = await this.#listBuckets();
      if (list === null) continue;
      const newest = list.buckets.filter((one) => one.key === key).at(-1);
      const path = newest && childOf(this.#items, newest.name);
      const [stat, producers] = await Promise.all([
        path === undefined ? null : this.#client.exists(path),
        this.#client.exists(this.receiptsPath),
      ]);
      const share = this.#share(producers?.numChildren ?? 0);
      if (path !== undefined && stat === null) continue; // drained in between
      if (path !== undefined && stat !== null && this.#hasRoom(stat)) {
        return this.#remember(key, path, share);
      }
      const made = await this.#makeBucket(
        key,
        list.version,
        stat?.version === 0 ? path : undefined,
      );
      if (made !== null) return this.#remember(key, made, share);
    }
    throw new QueueError('CONTENTION', this.#items);
  }

  /** What a client sees as cversion is twice the creates less the children that are there. */
  #hasRoom({ version, cversion, numChildren }: StatView): boolean {
    return version === 0 && (cversion + numChildren) / 2 < this.#options.bucketItemsMax;
  }

  #share(producers: number): number {
    const room = (listItemsMax - this.#options.bucketItemsMax) * togetherShare;
    return Math.max(1, Math.floor(room / Math.max(1, producers)));
  }

  #remember(key: string, path: string, share: number): Open {
    if (this.#open.size >= openMax) this.#open.clear();
    const open = { path, share, isFull: false };
    this.#open.set(key, open);
    return open;
  }

  async #listBuckets(): Promise<{ buckets: BucketName[]; version: number } | null> {
    try {
      const { children, stat } = await this.#client.childrenAndStat(this.#items);
      return { buckets: bucketsOf(children), version: stat.version };
    } catch (error) {
      ignore(error, 'NO_NODE');
      await this.#make(this.#items);
      return null;
    }
  }

  /** Null: somebody else was quicker, or nobody knows: look again. */
  async #makeBucket(key: string, version: number, sealed?: string): Promise<string | null> {
    const { acl } = this.#options;
    const seal: MultiOp[] =
      sealed === undefined ? [] : [{ op: 'set', path: sealed, data: 'sealed', version: 0 }];
    const path = childOf(this.#items, bucketPrefix(key));
    try {
      const results = await this.#client.multi([
        { op: 'set', path: this.#items, data: null, version },
        ...seal,
        { op: 'create', path, mode: 'persistentSequential', ...(acl && { acl }) },
      ]);
      return (results.at(-1) as { path: string }).path;
    } catch (error) {
      if (isZkError(error) && (error.outcomeUnknown || error.code === 'BAD_VERSION')) return null;
      ignore(error, 'NO_NODE');
      return null;
    }
  }

  // ── taking ────────────────────────────────────────────────────────────────────────────────────

  async scan(wanted: number, nowMs: number, watching?: Watching): Promise<Found> {
    const names = await this.#list(this.#items, watching);
    if (names === null) {
      await this.#make(this.#items);
      return { ready: [], nextDueMs: nowMs }; // look again at once: it can be watched now
    }
    const buckets = bucketsOf(names);
    const isByTime = this.#options.order === 'delay';
    const ready: Waiting[] = [];
    let nextDueMs: number | null = null;
    for (const [i, { name, key }] of buckets.entries()) {
      const isNewKey = i === 0 || key !== buckets[i - 1]!.key;
      // Buckets of one slot hold the same stretch of time: only all of them together are in order.
      if (ready.length >= wanted && (isNewKey || !isByTime)) break;
      if (isByTime && isNewKey) {
        const startMs = Number.parseInt(key, 16);
        if (startMs > nowMs && (ready.length > 0 || (nextDueMs ?? startMs) < startMs)) break;
      }
      const path = childOf(this.#items, name);
      const children = await this.#list(path, watching);
      if (children === null) continue;
      if (children.length === 0) {
        const isOpen = buckets[i + 1]?.key !== key;
        if (watching === undefined) await this.#drained(path, isOpen, buckets.length);
        continue;
      }
      for (const item of unclaimed(children)) {
        if (item.dueMs <= nowMs) ready.push(this.#waiting(path, key, item));
        else nextDueMs = Math.min(nextDueMs ?? item.dueMs, item.dueMs);
      }
    }
    if (isByTime) ready.sort((a, b) => a.dueMs - b.dueMs);
    return { ready, nextDueMs };
  }

  #waiting(bucket: string, key: string, { id, name, tries, dueMs }: ItemName): Waiting {
    const claimPath = childOf(bucket, claimName(name));
    return { id, path: childOf(bucket, name), claimPath, tries, key, dueMs };
  }

  async #list(path: string, watching?: Watching): Promise<readonly string[] | null> {
    if (watching !== undefined) return watching.children(path);
    try {
      return await this.#client.children(path);
    } catch (error) {
      ignore(error, 'NO_NODE');
      return null;
    }
  }

  /** A bucket may go whenever it is empty: a put that meant it finds that out, and another one. */
  async #drained(path: string, isOpen: boolean, buckets: number): Promise<void> {
    if (isOpen && buckets <= bucketsKept) return;
    await this.#client.delete(path).catch((error) => {
      if (isZkError(error) && error.outcomeUnknown) return; // whoever finds it empty tries again
      ignore(error, 'NO_NODE', 'NOT_EMPTY');
    });
  }

  async has(ids: ReadonlySet<string>): Promise<boolean> {
    for await (const children of this.#contents()) {
      if (children.some((name) => ids.has(itemName(name)?.id ?? ''))) return true;
    }
    return false;
  }

  async count(): Promise<{ waiting: number; claimed: number }> {
    let [waiting, claimed] = [0, 0];
    for await (const children of this.#contents()) {
      const free = unclaimed(children).length;
      waiting += free;
      claimed += children.filter((name) => itemName(name) !== null).length - free;
    }
    return { waiting, claimed };
  }

  /** Every item, a bucket at a time. */
  async *#contents(): AsyncGenerator<readonly string[]> {
    for (const { name } of bucketsOf((await this.#list(this.#items)) ?? [])) {
      yield (await this.#list(childOf(this.#items, name))) ?? [];
    }
  }

  encode(data: Buffer | null): Buffer | null {
    return data;
  }

  decode(data: Buffer | null): readonly (Buffer | null)[] {
    return [data];
  }
}

function bucketsOf(names: readonly string[]): BucketName[] {
  return names
    .map(bucketName)
    .filter((one) => one !== null)
    .sort(byTurn);
}

function unclaimed(children: readonly string[]): ItemName[] {
  const claimed = new Set(children.map(claimedBy));
  return children
    .map(itemName)
    .filter((item) => item !== null)
    .filter(({ name }) => !claimed.has(name))
    .sort(byTurn);
}

function parsed(data: Buffer): Record<string, unknown> | null {
  try {
    return JSON.parse(data.toString());
  } catch {
    return null; // said of it is what it holds, in the error that follows
  }
}

/** Throws what is not one of these. */
function ignore(error: unknown, ...codes: Parameters<typeof isZkError>[1][]): void {
  if (!isZkError(error, ...(codes as never[]))) throw error;
}
