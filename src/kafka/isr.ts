/**
 * In-sync replicas: how a leader changes the list, and how the controller hears of it.
 *
 * The leader writes the partition's state itself, on the condition that it is still as the leader
 * knows it. Whoever was elected since has changed it, so a leader that is none any more is refused:
 * `FencedError`. Leader, epoch and controller epoch stay as they are.
 *
 * The controller is told by /isr_change_notification, many partitions at once: when nothing changed
 * for 5 s, and 60 s after the first change at the latest. These are Kafka's ways below 2.7, and of
 * every version from 0.9 on its controller understands them.
 */

import { type Client, checkClient, isZkError } from '../client/index.ts';
import { type Clock, checkOptions, systemClock, type Timer } from '../support/index.ts';
import type { KnownState } from './controller-context.ts';
import { sameState } from './controller-store.ts';
import { layout08 } from './layout-08.ts';
import { partitionKey, type TopicPartition } from './layout-admin.ts';
import { notifierTable } from './option-tables.ts';

/** What this broker was allowed to do has passed to another: somebody newer decides. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
  readonly code = 'FENCED';
}

const writeTriesMax = 10;

export async function changeIsr(
  client: Client,
  at: TopicPartition,
  known: KnownState,
  isr: readonly number[],
): Promise<KnownState> {
  const path = layout08.partitionState.at(at);
  const state = { ...known.state, isr, isRecovering: false };
  const data = layout08.partitionState.format(state)!;
  for (let tries = 1; ; tries++) {
    try {
      const { version, mzxid } = await client.set(path, data, { version: known.version });
      return { state, version, mzxid };
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) {
        throw new FencedError(`${path} is gone: the topic was deleted`, { cause: error });
      }
      const isUnknown = isZkError(error) && error.outcomeUnknown;
      if (!isUnknown && !isZkError(error, 'BAD_VERSION')) throw error;
      if (tries === writeTriesMax) throw error;
      // Perhaps it was us, and only the reply was lost.
      const node = await client.get(path);
      const now = layout08.partitionState.parse(node.data, path);
      const { version, mzxid } = node.stat;
      if (version === known.version + 1 && sameState(now, state)) return { state, version, mzxid };
      if (version === known.version) continue;
      throw new FencedError(
        `${path} has changed: leader ${now.leader} of epoch ${now.leaderEpoch}, in sync ${now.isr}; ` +
          'look at it again before changing it',
        { cause: error },
      );
    }
  }
}

export interface NotifierOptions {
  readonly quietMs?: number;
  readonly latestMs?: number;
  readonly clock?: Clock;
  /** Told when a notification could not be written; it is tried again a few times. */
  readonly onError?: (error: unknown) => void;
}

/** Collects changes of ISRs, and tells the controller of them together. */
export class IsrNotifier {
  readonly #client: Client;
  readonly #options: NotifierOptions;
  readonly #clock: Clock;
  #changed = new Map<string, TopicPartition>();
  #firstMs = 0;
  #timer: Timer | undefined;
  #failures = 0;
  #isClosed = false;

  constructor(client: Client, options: NotifierOptions = {}) {
    checkClient('IsrNotifier', client);
    checkOptions('IsrNotifier', options, notifierTable);
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  add(at: TopicPartition): void {
    const { latestMs = 60_000 } = this.#options;
    const nowMs = this.#clock.nowMs();
    if (this.#changed.size === 0) this.#firstMs = nowMs;
    this.#changed.set(partitionKey(at), { topic: at.topic, partition: at.partition });
    this.#arm(Math.max(0, this.#firstMs + latestMs - nowMs));
  }

  /** What is pending is told now, as far as it can be. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    if (this.#client.state.name === 'connected') await this.#send();
    this.#changed.clear();
  }

  #arm(atMostMs: number): void {
    const { quietMs = 5_000 } = this.#options;
    this.#timer?.cancel();
    this.#timer = this.#clock.after(Math.min(quietMs, atMostMs), () => void this.#send(), true);
  }

  async #send(): Promise<void> {
    const partitions = [...this.#changed.values()];
    if (partitions.length === 0) return;
    this.#changed = new Map();
    try {
      await this.#client.create(
        layout08.isrChange.at({ seq: '' }),
        layout08.isrChange.format(partitions)!,
        { mode: 'persistentSequential' },
      );
      this.#failures = 0;
    } catch (error) {
      this.#options.onError?.(error);
      this.#failures += 1;
      // A controller that never hears of it still looks before it elects: nothing hangs on it.
      if (this.#failures >= writeTriesMax || this.#isClosed) return;
      // Twice does no harm either.
      for (const at of partitions) this.#changed.set(partitionKey(at), at);
      this.#arm(Number.POSITIVE_INFINITY);
    }
  }
}
