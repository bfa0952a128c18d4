/**
 * What a member has, and what it should have: releases what moves, claims what is due, and nothing else.
 *
 * In: a target. Either partitions by name, each with the thread that is to read it, or shares: how many
 * of a topic each thread may have, whichever they are. Out: owned partitions, told through `assigned`;
 * before one is let go of, `releasing` is waited for, so that work is finished and committed.
 *
 * A claim that finds somebody else's node waits for that node's end on a watch, for as long as it takes;
 * `blocked` says who holds it. Releases run beside everything else: a slow one delays only its own
 * partition. With shares, members need not agree on who takes what: whoever is short takes what is free.
 */

import { isZkError, type Listener } from '../client/index.ts';
import type { Clock } from '../support/index.ts';
import { dropWatch, type GroupClient } from './group-client.ts';
import { layout08 } from './layout-08.ts';
import type { NotOwnerReason, OwnedPartition } from './owned-partition.ts';
import type { Blocked, Claimed, Ownership } from './ownership.ts';
import { keyOf, type PartitionId, partitionOf } from './partition.ts';

/** Partition keys, and the thread for each. */
export type Wanted = ReadonlyMap<string, string>;

/** By topic: all its partitions, and how many of them each thread of ours may have. */
export type Shares = ReadonlyMap<
  string,
  { readonly partitions: readonly string[]; readonly threads: ReadonlyMap<string, number> }
>;

export type Target = { readonly wanted: Wanted } | { readonly shares: Shares };

export interface HoldingsOptions {
  readonly group: string;
  readonly ownership: Ownership;
  readonly clock: Clock;
  /** How long `releasing` may take before the partition is given up all the same. */
  readonly releaseTimeoutMs: number;
  readonly assigned: (owned: OwnedPartition) => void;
  readonly releasing: (owned: OwnedPartition) => Promise<void>;
  /** Something is worth another look. */
  readonly kick: () => void;
  readonly onError: (error: unknown) => void;
}

export interface Waiting extends Blocked {
  /** Since when we wait, on the calendar. */
  readonly sinceMs: number;
}

/** Claims at once. */
const claimsAtOnce = 32;
const releaseRetryMs = 200;

export class Holdings {
  readonly #client: GroupClient;
  readonly #options: HoldingsOptions;
  /** Those being released too, until their node is gone. */
  readonly #held = new Map<string, OwnedPartition>();
  readonly #blocked = new Map<string, Waiting>();
  /** Ours, but their node has changed: to be looked at. */
  readonly #suspect = new Set<string>();
  /** Claims, with their threads, that failed half way: a node of ours may stand there unknown. */
  readonly #unsure = new Map<string, string>();
  readonly #releases = new Map<string, Promise<void>>();
  readonly #ownersWatches = new Map<string, Listener>();
  #target: Target = { wanted: new Map() };
  #short = 0;

  constructor(client: GroupClient, options: HoldingsOptions) {
    this.#client = client;
    this.#options = options;
  }

  get held(): OwnedPartition[] {
    return [...this.#held.values()].filter(({ state }) => state === 'held');
  }

  get releasing(): OwnedPartition[] {
    return [...this.#held.values()].filter(({ state }) => state === 'releasing');
  }

  get blocked(): Waiting[] {
    return [...this.#blocked.values()];
  }

  /** Partitions that are due to us and free nowhere. */
  get short(): number {
    return this.#short;
  }

  get isSettled(): boolean {
    // What was in the way may be gone since it was last looked for, and not be ours yet.
    const isOwed = 'wanted' in this.#target && this.#isOwed(this.#target.wanted);
    return this.#blocked.size + this.#releases.size + this.#short === 0 && !isOwed;
  }

  owned(id: PartitionId): OwnedPartition | undefined {
    return this.#held.get(keyOf(id));
  }

  set target(target: Target) {
    this.#target = target;
  }

  /** A node that was ours, or in our way, has changed. */
  changed(id: PartitionId): void {
    const key = keyOf(id);
    if (this.#held.get(key)?.state === 'held') this.#suspect.add(key);
    this.#blocked.delete(key);
    this.#options.kick();
  }

  /** One round towards the target. Rejects when the server could not be asked; then ask again. */
  async reconcile(): Promise<void> {
    await this.#lookAtSuspects();
    await this.#lookAtUnsure(async (owned) => this.#take(owned));
    const target = this.#target;
    if ('wanted' in target) await this.#reconcileWanted(target.wanted);
    else await this.#reconcileShares(target.shares);
  }

  // ── by name ───────────────────────────────────────────────────────────────────────────────────

  async #reconcileWanted(wanted: Wanted): Promise<void> {
    this.#short = 0;
    const handed: Promise<void>[] = [];
    for (const [key, owned] of this.#held) {
      const thread = wanted.get(key);
      if (thread === undefined) this.#release(owned);
      else if (owned.state === 'held' && owned.thread !== thread) {
        handed.push(this.#hand(owned, thread));
      }
    }
    for (const key of [...this.#blocked.keys()]) {
      if (!wanted.has(key)) handed.push(this.#unblock(key));
    }
    await all(handed);
    const due = [...wanted].filter(([key]) => !this.#held.has(key) && !this.#blocked.has(key));
    await inTurns(due, claimsAtOnce, ([key, thread]) => this.#claim(partitionOf(key), thread));
  }

  #isOwed(wanted: Wanted): boolean {
    for (const key of wanted.keys()) if (!this.#held.has(key)) return true;
    return false;
  }

  /** Another thread of ours reads it from now on: nothing is let go of. */
  async #hand(owned: OwnedPartition, thread: string): Promise<void> {
    try {
      await this.#options.ownership.hand(owned, thread);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE', 'BAD_VERSION')) throw error;
      this.#suspect.add(keyOf(owned));
      this.#options.kick();
    }
  }

  async #unblock(key: string): Promise<void> {
    this.#blocked.delete(key);
    await this.#options.ownership.forget(partitionOf(key));
  }

  async #claim(id: PartitionId, thread: string): Promise<void> {
    const key = keyOf(id);
    const result = await this.#tryToClaim(id, thread);
    if (result === null) this.#options.kick();
    else if ('owned' in result) this.#take(result.owned);
    else if (this.#options.ownership.isWatched(id)) {
      this.#blocked.set(key, { ...result.blocked, sinceMs: this.#options.clock.wallMs() });
    } else this.#options.kick(); // gone while we were told of it: nothing is left to wait for
  }

  async #tryToClaim(id: PartitionId, thread: string): Promise<Claimed | null> {
    this.#unsure.set(keyOf(id), thread);
    const result = await this.#options.ownership.claim(id, thread);
    this.#unsure.delete(keyOf(id));
    return result;
  }

  /** What is found to be ours is taken: if it is not due any more it is let go of like all else. */
  async #lookAtUnsure(take: (owned: OwnedPartition) => Promise<void>): Promise<void> {
    const { ownership } = this.#options;
    for (const [key, thread] of [...this.#unsure]) {
      const id = partitionOf(key);
      const found = await ownership.look(id, thread);
      if (found !== null && 'owned' in found) await take(found.owned);
      else await ownership.forget(id);
      this.#unsure.delete(key);
    }
  }

  #take(owned: OwnedPartition): void {
    // The session may have ended while the reply was on its way.
    if (owned.sessionId !== this.#client.sessionId) {
      owned.end('sessionOver');
      return;
    }
    const key = keyOf(owned);
    this.#held.set(key, owned);
    this.#options.assigned(owned);
    if (this.#options.ownership.isWatched(owned)) return;
    this.#suspect.add(key); // its node has changed while we were told of it
    this.#options.kick();
  }

  // ── by shares ─────────────────────────────────────────────────────────────────────────────────

  async #reconcileShares(shares: Shares): Promise<void> {
    for (const owned of [...this.#held.values()]) {
      if (!shares.get(owned.topic)?.threads.has(owned.thread)) this.#release(owned);
    }
    let short = 0;
    for (const [topic, { partitions, threads }] of shares) {
      const lack: string[] = [];
      for (const [thread, share] of threads) {
        const mine = this.held.filter((one) => one.topic === topic && one.thread === thread);
        for (const owned of mine.slice(share)) this.#release(owned);
        for (let i = mine.length; i < share; i++) lack.push(thread);
      }
      if (lack.length > 0) short += await this.#takeFree(topic, partitions, lack);
      else await this.#unwatchOwners(topic);
    }
    for (const topic of [...this.#ownersWatches.keys()]) {
      if (!shares.has(topic)) await this.#unwatchOwners(topic);
    }
    this.#short = short;
  }

  /** Returns how many are still lacking. */
  async #takeFree(
    topic: string,
    partitions: readonly string[],
    lack: readonly string[],
  ): Promise<number> {
    const owners = new Set(await this.#ownersOf(topic));
    const free = partitions.filter(
      (partition) => !owners.has(partition) && !this.#held.has(keyOf({ topic, partition })),
    );
    // Each begins elsewhere, so that those who are short do not all reach for the same.
    const start = free.length === 0 ? 0 : spread(lack[0]!) % free.length;
    const order = [...free.slice(start), ...free.slice(0, start)];
    // As many as are lacking, once: where another was quicker the list is old, and its watch has fired.
    const tries = lack
      .slice(0, order.length)
      .map((thread, i) => ({ thread, partition: order[i]! }));
    let taken = 0;
    await inTurns(tries, claimsAtOnce, async ({ thread, partition }) => {
      const result = await this.#tryToClaim({ topic, partition }, thread);
      if (result === null) this.#options.kick();
      else if ('owned' in result) {
        taken += 1;
        this.#take(result.owned);
      } else await this.#options.ownership.forget({ topic, partition });
    });
    // Where there was no list to watch yet, or its watch has fired, nothing else would wake us.
    if (taken < lack.length && !this.#ownersWatches.has(topic)) this.#options.kick();
    return lack.length - taken;
  }

  async #ownersOf(topic: string): Promise<string[]> {
    const path = layout08.owners.at({ group: this.#options.group, topic });
    const listener: Listener =
      this.#ownersWatches.get(topic) ??
      (() => {
        if (this.#ownersWatches.get(topic) !== listener) return;
        this.#ownersWatches.delete(topic);
        this.#options.kick();
      });
    this.#ownersWatches.set(topic, listener);
    try {
      return await this.#client.children(path, { watch: listener });
    } catch (error) {
      this.#ownersWatches.delete(topic);
      if (isZkError(error, 'NO_NODE')) return []; // the first claim makes it
      throw error;
    }
  }

  async #unwatchOwners(topic: string): Promise<void> {
    const listener = this.#ownersWatches.get(topic);
    if (listener === undefined) return;
    this.#ownersWatches.delete(topic);
    const path = layout08.owners.at({ group: this.#options.group, topic });
    await dropWatch(this.#client, path, listener);
  }

  // ── letting go ────────────────────────────────────────────────────────────────────────────────

  #release(owned: OwnedPartition): void {
    if (owned.state !== 'held') return;
    owned.letGo();
    const key = keyOf(owned);
    const done = this.#finish(owned).finally(() => {
      this.#releases.delete(key);
      if (this.#held.get(key) === owned) this.#held.delete(key);
      this.#options.kick();
    });
    this.#releases.set(key, done);
  }

  /** Waits for the work on it, then deletes the node, as often as it takes while the session lasts. */
  async #finish(owned: OwnedPartition): Promise<void> {
    const { clock, releaseTimeoutMs, releasing, ownership, onError } = this.#options;
    await new Promise<void>((resolve) => {
      const timer = clock.after(releaseTimeoutMs, resolve);
      const done = () => {
        timer.cancel();
        resolve();
      };
      releasing(owned).then(done, (error) => {
        onError(error);
        done();
      });
    });
    // From here on nothing more is committed: the node may go at any moment.
    owned.end('released');
    while (this.#client.sessionId === owned.sessionId) {
      try {
        return await ownership.release(owned);
      } catch (error) {
        onError(error);
        await this.#waitToRetry();
      }
    }
  }

  #waitToRetry(): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.after(releaseRetryMs, resolve);
    });
  }

  async #lookAtSuspects(): Promise<void> {
    for (const key of [...this.#suspect]) {
      const owned = this.#held.get(key);
      if (owned?.state === 'held' && !(await this.#options.ownership.stillOurs(owned))) {
        this.#lose(owned, 'nodeDeleted');
      }
      this.#suspect.delete(key);
    }
  }

  #lose(owned: OwnedPartition, reason: NotOwnerReason): void {
    if (this.#held.get(keyOf(owned)) === owned) this.#held.delete(keyOf(owned));
    owned.end(reason);
  }

  /** At once, and without asking anybody: everything may be somebody else's. */
  sessionOver(): void {
    for (const owned of [...this.#held.values()]) this.#lose(owned, 'sessionOver');
    this.#blocked.clear();
    this.#suspect.clear();
    this.#unsure.clear();
    this.#ownersWatches.clear();
    this.#options.ownership.forgetAll();
  }

  /** Lets go of everything, and waits until it is gone. */
  async close(): Promise<void> {
    this.#target = { wanted: new Map() };
    for (const owned of [...this.#held.values()]) this.#release(owned);
    await Promise.all(this.#releases.values());
    // Until it is known, or the session is over and everything forgotten.
    while (this.#unsure.size > 0) {
      try {
        await this.#lookAtUnsure((owned) => this.#options.ownership.release(owned));
      } catch (error) {
        this.#options.onError(error);
        await this.#waitToRetry();
      }
    }
    for (const topic of [...this.#ownersWatches.keys()]) await this.#unwatchOwners(topic);
    this.#blocked.clear();
    await this.#options.ownership.close();
  }
}

/** A number that differs from thread to thread. */
function spread(thread: string): number {
  let hash = 7;
  for (let i = 0; i < thread.length; i++) hash = (Math.imul(hash, 31) + thread.charCodeAt(i)) >>> 0;
  return hash;
}

/** Every promise is seen to its end; then the first error is thrown. */
async function all(work: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(work)) {
    if (result.status === 'rejected') throw result.reason;
  }
}

async function inTurns<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  for (let i = 0; i < items.length; i += atOnce) await all(items.slice(i, i + atOnce).map(work));
}
