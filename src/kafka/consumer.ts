/**
 * A consumer in a group: records of the partitions that are its own, batch by batch.
 *
 *   for await (const batch of consumer) { … }
 *
 * In: a group, what to read, a source of records. Out: batches; a partition's next batch comes when the
 * one before is done, which is when the loop asks for more. Several loops may run over one consumer, and
 * `thread(n)` is a loop over what one thread has.
 *
 * At least once: an offset is committed only after the batch before it was done, by `batch.commit()` or
 * by itself every so often, and before a partition is let go of. A batch that a loop left by `break` or
 * an error is not done and comes again. After a crash the next owner begins where was committed last, so
 * records may come twice; none is left out. Not promised: exactly once, and order across partitions.
 *
 * Nothing is handed out while the session is in doubt: when no server has answered for two thirds of the
 * session timeout the loop waits. When the session is over, each batch's `signal` has aborted, and what
 * such a batch commits is refused.
 */

import { EventEmitter } from 'node:events';
import { ArgumentError, checkClient } from '../client/index.ts';
import {
  type Clock,
  checkOptions,
  type Deferred,
  deferred,
  systemClock,
  type Timer,
  whileHeld,
} from '../support/index.ts';
import { PartitionFlow } from './consumer-flow.ts';
import type {
  ConsumerBatch,
  ConsumerEvents,
  ConsumerOptions,
  ConsumerStatus,
  PartitionStatus,
} from './consumer-options.ts';
import type { GroupClient } from './group-client.ts';
import { GroupMember } from './group-member.ts';
import type { MemberState } from './group-status.ts';
import type { LayoutProblem } from './layout.ts';
import { OffsetStore } from './offsets.ts';
import { consumerTable } from './option-tables.ts';
import { NotOwnerError, type OwnedPartition } from './owned-partition.ts';
import { keyOf, type PartitionId } from './partition.ts';
import type { RecordBatch } from './reader.ts';

interface Waiter {
  readonly thread: number | undefined;
  readonly result: Deferred<IteratorResult<ConsumerBatch, undefined>>;
  readonly take: (batch: ConsumerBatch, flow: PartitionFlow, raw: RecordBatch) => void;
}

export class Consumer extends EventEmitter<ConsumerEvents> {
  readonly #client: GroupClient;
  readonly #member: GroupMember;
  readonly #store: OffsetStore;
  readonly #options: ConsumerOptions;
  readonly #clock: Clock;
  readonly #flows = new Map<string, PartitionFlow>();
  readonly #paused = new Set<string>();
  /** Flows with something to hand out, in the order in which they got it. */
  readonly #ready = new Set<PartitionFlow>();
  readonly #waiters = new Set<Waiter>();
  readonly #heardState = () => this.#match();
  #commitTimer: Timer | undefined;
  #doubtTimer: Timer | undefined;
  #end: { readonly error?: unknown } | undefined;
  #closing: Promise<void> | undefined;

  constructor(client: GroupClient, options: ConsumerOptions) {
    checkClient('Consumer', client);
    checkOptions('Consumer', options, consumerTable);
    super();
    const {
      autoCommitMs = 5_000,
      doubtShare = 2 / 3,
      committer,
      source,
      startFrom,
      ...member
    } = options;
    if (autoCommitMs !== false && !(autoCommitMs > 0)) {
      throw new ArgumentError(
        'autoCommitMs',
        `milliseconds or false is wanted, not ${autoCommitMs}`,
      );
    }
    if (!(doubtShare > 0 && doubtShare <= 1)) {
      throw new ArgumentError('doubtShare', `more than 0 and up to 1 is wanted, not ${doubtShare}`);
    }
    this.#client = client;
    this.#options = { ...options, autoCommitMs, doubtShare };
    this.#clock = options.clock ?? systemClock;
    const onProblem = (problem: LayoutProblem) => this.emit('problem', problem);
    this.#store = new OffsetStore(client, { group: member.group, committer, onProblem });
    this.#member = new GroupMember(client, member, {
      assigned: (owned) => this.#assigned(owned),
      releasing: (owned) => this.#releasing(owned),
      changed: (state) => {
        this.emit('state', state);
        this.#match(); // what was ready for one thread may be another's now
      },
      problem: onProblem,
      failed: (error) => this.#finish({ error }),
    });
    client.on('state', this.#heardState);
    this.#member.start();
    this.#scheduleCommit();
  }

  get id(): string {
    return this.#member.id;
  }

  get state(): MemberState {
    return this.#member.state;
  }

  /** Resolves when everything that is due to this consumer is its own. */
  settled(): Promise<void> {
    return this.#member.settled();
  }

  status(): ConsumerStatus {
    const partitions = [...this.#flows.values()].map((flow): PartitionStatus => {
      const { owned, position, highWatermark, isPaused } = flow;
      const { topic, partition, thread, epoch, sinceMs } = owned;
      const at = flow.done ?? owned.offset ?? position;
      const lag = highWatermark === null || at === null ? null : highWatermark - at;
      const committed = owned.offset;
      return {
        topic,
        partition,
        thread,
        epoch,
        sinceMs,
        committed,
        position,
        highWatermark,
        lag,
        isPaused,
      };
    });
    return { ...this.#member.status(), partitions, isInDoubt: this.#isInDoubt };
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  [Symbol.asyncIterator](): AsyncIterableIterator<ConsumerBatch> {
    return this.#loop(undefined);
  }

  /** The batches of one thread alone, by its number. */
  thread(number: number): AsyncIterableIterator<ConsumerBatch> {
    if (!Number.isInteger(number) || number < 0) {
      throw new ArgumentError('number', `the number of a thread is wanted, not ${number}`);
    }
    return this.#loop(number);
  }

  #loop(thread: number | undefined): AsyncIterableIterator<ConsumerBatch> {
    let current: { readonly flow: PartitionFlow; readonly raw: RecordBatch } | undefined;
    let pending: Waiter | undefined;
    const done: IteratorResult<ConsumerBatch, undefined> = { done: true, value: undefined };
    const loop: AsyncIterableIterator<ConsumerBatch> = {
      [Symbol.asyncIterator]: () => loop,
      next: () => {
        current?.flow.finish(current.raw);
        current = undefined;
        if (this.#end !== undefined) {
          const { error } = this.#end;
          return error === undefined ? Promise.resolve(done) : Promise.reject(error);
        }
        const waiter: Waiter = {
          thread,
          result: deferred(),
          take: (_, flow, raw) => {
            current = { flow, raw };
          },
        };
        pending = waiter;
        this.#waiters.add(waiter);
        this.#match();
        return waiter.result.promise.then((result) => {
          // Time may have passed since it was handed out, if the process was stopped or busy meanwhile.
          if (result.done || !result.value.signal.aborted) return result;
          current?.flow.giveBack(current.raw);
          current = undefined;
          return loop.next();
        });
      },
      return: async () => {
        if (pending !== undefined && this.#waiters.delete(pending)) pending.result.resolve(done);
        current?.flow.giveBack(current.raw);
        current = undefined;
        return done;
      },
    };
    return loop;
  }

  #match(): void {
    if (this.#waiters.size === 0 || this.#ready.size === 0) return;
    if (this.#isInDoubt) {
      this.#lookAgain();
      return;
    }
    // Paused or moved since they came here: they come again when they are ready.
    for (const flow of this.#ready) if (!flow.isReady) this.#ready.delete(flow);
    for (const waiter of this.#waiters) {
      const flow = [...this.#ready].find(
        ({ owned }) =>
          waiter.thread === undefined || owned.thread === `${this.id}-${waiter.thread}`,
      );
      if (flow === undefined) continue;
      this.#ready.delete(flow);
      this.#waiters.delete(waiter);
      this.#hand(flow, waiter);
    }
  }

  #hand(flow: PartitionFlow, waiter: Waiter): void {
    try {
      const raw = flow.take();
      const { owned } = flow;
      const batch: ConsumerBatch = {
        ...raw,
        thread: owned.thread,
        epoch: owned.epoch,
        signal: owned.signal,
        leaving: owned.leaving,
        [Symbol.iterator]: () => whileHeld(raw.records, owned.signal),
        commit: async () => {
          await this.#store.commit([{ owned, offset: raw.nextOffset }]);
          flow.finish(raw);
        },
      };
      waiter.take(batch, flow, raw);
      waiter.result.resolve({ done: false, value: batch });
    } catch (error) {
      waiter.result.reject(error);
    }
  }

  /** Whether so much of the session timeout has passed unanswered that it may soon be over. */
  get #isInDoubt(): boolean {
    const { state } = this.#client;
    if (state.name !== 'connected' && state.name !== 'suspended') return true;
    const leftMs = state.deadlineMs - this.#clock.nowMs();
    return leftMs < state.identity.timeoutMs * (1 - this.#options.doubtShare!);
  }

  /** A ping that is answered is no event: look at the clock again, until it is, or the session ends. */
  #lookAgain(): void {
    const { state } = this.#client;
    if (this.#doubtTimer !== undefined || state.name !== 'connected') return;
    this.#doubtTimer = this.#clock.after(state.identity.timeoutMs / 20, () => {
      this.#doubtTimer = undefined;
      this.#match();
    });
  }

  // ── partitions come and go ────────────────────────────────────────────────────────────────────

  #assigned(owned: OwnedPartition): void {
    const key = keyOf(owned);
    const { source, startFrom = 'earliest' } = this.#options;
    const flow = new PartitionFlow(owned, {
      source,
      startFrom,
      start: (one) => this.#store.start(one),
      isPaused: this.#paused.has(key),
      clock: this.#clock,
      onReady: (one) => {
        this.#ready.add(one);
        this.#match();
      },
      onTrouble: (_, error) => this.#trouble(owned, error),
    });
    this.#flows.set(key, flow);
    owned.signal.addEventListener('abort', () => this.#ended(flow), { once: true });
    this.emit('assigned', owned);
  }

  #ended(flow: PartitionFlow): void {
    const { owned } = flow;
    const key = keyOf(owned);
    this.#ready.delete(flow);
    if (this.#flows.get(key) === flow) this.#flows.delete(key);
    flow.stop().catch((error) => this.#trouble(owned, error));
    this.emit('ended', owned, (owned.signal.reason as NotOwnerError).reason);
  }

  /** Hands out nothing more, waits for what is in hand, commits what is done. */
  async #releasing(owned: OwnedPartition): Promise<void> {
    const flow = this.#flows.get(keyOf(owned));
    if (flow === undefined || flow.owned !== owned) return;
    this.#ready.delete(flow);
    await flow.stop();
    await flow.idle;
    if (this.#options.autoCommitMs !== false) await this.#commitFlows([flow]);
  }

  #trouble(owned: OwnedPartition, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    this.emit('problem', { path: owned.path, why, content: null });
  }

  /** Nothing more of it is handed out until `resume`; it stays ours, also over a rebalance. */
  pause(partition: PartitionId): void {
    this.#paused.add(keyOf(partition));
    this.#flows.get(keyOf(partition))?.pause();
  }

  resume(partition: PartitionId): void {
    this.#paused.delete(keyOf(partition));
    this.#flows.get(keyOf(partition))?.resume();
  }

  /** The next batch of it begins here. Commits never go back: see `resetOffsets`. */
  seek(partition: PartitionId, offset: bigint): void {
    const flow = this.#flows.get(keyOf(partition));
    if (flow === undefined) {
      throw new ArgumentError('partition', `${keyOf(partition)} is not this consumer's`);
    }
    flow.seek(offset);
  }

  // ── committing ────────────────────────────────────────────────────────────────────────────────

  /** Commits what is done in all partitions. */
  async commit(): Promise<void> {
    await this.#commitFlows([...this.#flows.values()]);
  }

  async #commitFlows(flows: readonly PartitionFlow[]): Promise<void> {
    const requests = flows.flatMap(({ owned, done }) => {
      const isNew = done !== null && done > (owned.offset ?? -1n) && !owned.signal.aborted;
      return isNew ? [{ owned, offset: done }] : [];
    });
    if (requests.length > 0) await this.#store.commit(requests);
  }

  #scheduleCommit(): void {
    const { autoCommitMs } = this.#options;
    if (autoCommitMs === false || autoCommitMs === undefined || this.#end !== undefined) return;
    this.#commitTimer = this.#clock.after(
      autoCommitMs,
      () => {
        this.commit().then(
          () => this.#scheduleCommit(),
          (error) => {
            // What was lost meanwhile is somebody else's to commit; all else is tried again next time.
            if (!(error instanceof NotOwnerError)) this.#commitFailed(error);
            this.#scheduleCommit();
          },
        );
      },
      true,
    );
  }

  #commitFailed(error: unknown): void {
    const why = `commit failed: ${error instanceof Error ? error.message : String(error)}`;
    this.emit('problem', { path: `/consumers/${this.#options.group}/offsets`, why, content: null });
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  #finish(end: { error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#commitTimer?.cancel();
    this.#doubtTimer?.cancel();
    this.#client.off('state', this.#heardState);
    for (const { result } of this.#waiters) {
      if (end.error === undefined) result.resolve({ done: true, value: undefined });
      else result.reject(end.error);
    }
    this.#waiters.clear();
  }

  /**
   * Leaves the group: waits for the batches in hand, up to `releaseTimeoutMs`, commits what is done,
   * lets go of everything. The source and the client stay open. Call it after the loop, not in it.
   */
  close(): Promise<void> {
    this.#finish({});
    this.#closing ??= this.#member.close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
