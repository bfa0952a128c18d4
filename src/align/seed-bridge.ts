/**
 * A whole group as one member among those who know the document's nodes alone: its leader takes the
 * limit from there in place of its own, and tells there what its partitions have reached.
 *
 *   others ──▶ root/coordinator ──▶ this ──▶ /align/[group]/limit ──▶ members of the group
 *   others ◀── root/progress    ◀── this ◀── /align/[group]/members/…
 *
 * In: which partitions of the group have reached the limit. Out: the next limit, once everybody has.
 * What the group keeps for itself (who reads what, offsets, cuts) stands where it always does.
 */

import { partitionOf } from '../kafka/index.ts';
import type { SharedLimit } from './align-options.ts';
import type { OuterInput, OuterLimit } from './leader-options.ts';
import { SeedCoordinator } from './seed-coordinator.ts';
import type { AlignClient } from './session.ts';

export class SeedBridge implements OuterLimit {
  readonly hasOthers: boolean;
  readonly #coordinator: SeedCoordinator;
  readonly #onProblem: (error: unknown) => void;
  #stepMs: number;

  private constructor(coordinator: SeedCoordinator, hasOthers: boolean, input: OuterInput) {
    this.#coordinator = coordinator;
    this.hasOthers = hasOthers;
    this.#onProblem = input.onProblem;
    this.#stepMs = input.stepMs;
  }

  static async open(
    client: AlignClient,
    { kind, root, startMs, others = {} }: SharedLimit,
    input: OuterInput,
  ): Promise<SeedBridge> {
    const { topics, stepMs, knownMs, signal, onMoved } = input;
    const topicPartitions: Record<string, readonly (number | string)[]> = {};
    for (const [topic, all] of topics) topicPartitions[topic] = all;
    for (const [topic, all] of Object.entries(others)) {
      topicPartitions[topic] = [...(topicPartitions[topic] ?? []), ...all];
    }
    const coordinator = await SeedCoordinator.open(client, {
      layout: kind,
      topicPartitions,
      period: stepMs,
      signal,
      onLimit: onMoved,
      knownMs: Math.floor((knownMs ?? 0) / 1_000) * 1_000,
      ...(root !== undefined && { root }),
      ...(startMs !== undefined && { startMs }),
    });
    coordinator.ended.catch(input.onFailure);
    const hasOthers = Object.values(others).some((all) => all.length > 0);
    return new SeedBridge(coordinator, hasOthers, input);
  }

  get limitMs(): number {
    return this.#coordinator.limitMs;
  }

  report(keys: readonly string[]): void {
    this.#coordinator.reached(keys.map(partitionOf));
  }

  /** Told where the layout cannot say it: then the one before goes on to hold. */
  setPeriod(stepMs: number): void {
    if (stepMs === this.#stepMs) return;
    this.#stepMs = stepMs;
    try {
      this.#coordinator.period = stepMs;
    } catch (error) {
      this.#onProblem(error);
    }
  }

  close(): Promise<void> {
    return this.#coordinator.close();
  }
}
