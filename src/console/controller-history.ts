/**
 * Which broker was the controller when: as the console saw it and, where the transaction logs are ours to
 * read, from before that. The logs are read once, while the page is answered already; bounded.
 */

import { layout08 } from '../kafka/index.ts';
import type { ConsoleSources } from './sources.ts';
import type { HistoryEntry, KafkaView } from './views.ts';

type Step = KafkaView['controllerHistory'][number];

const stepsMax = 50;

export class ControllerHistory {
  readonly #history: ConsoleSources['history'];
  readonly #onMore: () => void;
  #steps: Step[] = [];
  #isAsked = false;

  constructor({
    history,
    onStale = () => {},
  }: {
    readonly history?: ConsoleSources['history'];
    readonly onStale?: () => void;
  }) {
    this.#history = history;
    this.#onMore = onStale;
  }

  get newestFirst(): readonly Step[] {
    return this.#steps.toReversed();
  }

  /** Who it is now. */
  seen({ brokerId, epoch }: KafkaView['controller']): void {
    if (!this.#isAsked) {
      this.#isAsked = true;
      // Logs that can't be read leave what was seen; the history of a node says what is wrong with them.
      void this.#readLogs().catch(() => {});
    }
    this.#add({ brokerId, epoch, atMs: Date.now() });
  }

  #add(step: Step): void {
    const last = this.#steps.at(-1);
    if (last?.brokerId === step.brokerId && last.epoch === step.epoch) return;
    if (last === undefined && step.brokerId === null) return;
    this.#steps.push(step);
    if (this.#steps.length > stepsMax) this.#steps.shift();
  }

  async #readLogs(): Promise<void> {
    if (this.#history === undefined) return;
    const path = layout08.controller.at();
    const holders = (await this.#history(path, stepsMax)).entries.toReversed();
    const epochs = (await this.#history(layout08.controllerEpoch.at(), 2 * stepsMax)).entries;
    const seen = this.#steps;
    this.#steps = [];
    let epoch: number | null = null;
    for (const [at, holder] of holders.entries()) {
      epoch = epochIn(epochs, holder, holders[at + 1]) ?? epoch;
      const isGone = holder.kind.startsWith('deleted');
      const data = holder.after === null ? null : Buffer.from(holder.after, 'base64');
      const found = data === null ? null : layout08.controller.tryParse(data, path, () => {});
      if (found === null && !isGone) continue; // not for everybody to read, or nothing that is known
      this.#add({ brokerId: found?.brokerId ?? null, epoch, atMs: holder.atMs });
    }
    for (const step of seen) this.#add(step);
    if (this.#steps.length > seen.length) this.#onMore();
  }
}

/** Written with the node or right behind it, and in any case before the next one. */
function epochIn(
  epochs: readonly HistoryEntry[],
  from: HistoryEntry,
  until: HistoryEntry | undefined,
): number | null {
  const found = epochs.find(
    ({ zxid }) =>
      BigInt(zxid) >= BigInt(from.zxid) && (!until || BigInt(zxid) < BigInt(until.zxid)),
  );
  const text = found?.after ? Buffer.from(found.after, 'base64').toString('utf8') : '';
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}
