/**
 * Deleting topics, as far as it takes: every replica has to be gone before the nodes are.
 *
 * A topic waits in `toDelete` from the marker in /admin/delete_topics on. While it is being moved, or
 * one of its brokers is dead, it is ineligible and waits. Else its partitions go offline, and an order
 * is written that its brokers follow; each says when it has. When all have, the nodes go in Kafka's
 * order: the topic, its configuration, the marker. Order and answers are nodes of ours (see
 * `layout-drover.ts`), where Kafka sends requests.
 */

import type { ControllerContext, Replica } from './controller-context.ts';
import type { PartitionMachine } from './controller-partitions.ts';
import type { ReplicaMachine } from './controller-replicas.ts';
import type { ControllerStore } from './controller-store.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { layoutDrover } from './layout-drover.ts';
import type { OneShotWatches } from './one-shot-watches.ts';

export interface DeletionOptions {
  /** Kafka's delete.topic.enable: without it markers are taken away and nothing is deleted. */
  readonly isEnabled: boolean;
  readonly onProblem: OnProblem;
  /** Somebody may have answered: `answered` is to be called, in the controller's turn. */
  readonly onAnswers: (topic: string) => void;
}

export class TopicDeletion {
  readonly #context: ControllerContext;
  readonly #store: ControllerStore;
  readonly #partitions: PartitionMachine;
  readonly #replicas: ReplicaMachine;
  readonly #watches: OneShotWatches;
  readonly #options: DeletionOptions;

  constructor(
    context: ControllerContext,
    store: ControllerStore,
    machines: { readonly partitions: PartitionMachine; readonly replicas: ReplicaMachine },
    watches: OneShotWatches,
    options: DeletionOptions,
  ) {
    this.#context = context;
    this.#store = store;
    this.#partitions = machines.partitions;
    this.#replicas = machines.replicas;
    this.#watches = watches;
    this.#options = options;
  }

  /** At the start of a term: what is to go, and what of that cannot go yet. Deletes nothing. */
  async load(markers: readonly string[]): Promise<void> {
    const context = this.#context;
    if (!this.#options.isEnabled) return this.#dropMarkers(markers);
    for (const topic of markers) context.toDelete.add(topic);
    for (const topic of context.toDelete) {
      const isMoving = [...context.reassigning.values()].some((at) => at.topic === topic);
      const replicas = context.replicasOf(context.partitionsOf(topic));
      const isDead = replicas.some(({ broker }) => !context.isLive(broker));
      if (isMoving || isDead) context.ineligible.add(topic);
    }
    // An order whose topic is gone was left by a controller that died between the two.
    const orders = await this.#store.children(layoutDrover.deletions.at());
    for (const topic of orders.filter((one) => !context.toDelete.has(one))) {
      await this.#store.removeTree(layoutDrover.deletion.at({ topic }));
    }
  }

  /** New markers. */
  async asked(markers: readonly string[]): Promise<void> {
    const context = this.#context;
    const unknown = markers.filter((topic) => !context.topics.has(topic));
    await this.#dropMarkers(unknown);
    const known = markers.filter((topic) => context.topics.has(topic));
    if (!this.#options.isEnabled) return this.#dropMarkers(known);
    for (const topic of known) {
      context.toDelete.add(topic);
      if ([...context.reassigning.values()].some((at) => at.topic === topic)) {
        context.ineligible.add(topic);
      }
    }
    await this.resume();
  }

  /** Something happened that may let these go on: a broker came back, a move is done. */
  async mayGoOn(topics: Iterable<string>): Promise<void> {
    let any = false;
    for (const topic of topics) {
      if (!this.#context.toDelete.has(topic)) continue;
      this.#context.ineligible.delete(topic);
      any = true;
    }
    if (any) await this.resume();
  }

  /** These replicas cannot answer any more. */
  async failed(replicas: readonly Replica[]): Promise<void> {
    const context = this.#context;
    const concerned = replicas.filter(({ topic }) => context.toDelete.has(topic));
    if (concerned.length === 0) return;
    await this.#replicas.move(
      concerned.filter((replica) => context.mayMoveReplica(replica, 'deletionIneligible')),
      'deletionIneligible',
    );
    for (const { topic } of concerned) context.ineligible.add(topic);
    await this.resume();
  }

  /** Looks who has answered. */
  async answered(topic: string): Promise<void> {
    const context = this.#context;
    if (!context.deletionStarted.has(topic)) return;
    const path = layoutDrover.deletion.at({ topic });
    const listener = this.#watches.on('children', path, () => this.#options.onAnswers(topic));
    const names = await this.#store.children(path, listener);
    const done = new Set<number>();
    await this.#store.inTurn(names, async (broker) => {
      const at = layoutDrover.deleted.at({ topic, broker });
      const node = await this.#store.get(at);
      const epoch = node && layoutDrover.deleted.tryParse(node.data, at, this.#options.onProblem);
      // An answer of an earlier life of that broker says nothing of what it has now.
      if (epoch !== null && context.brokers.get(Number(broker))?.epoch === epoch) {
        done.add(Number(broker));
      }
    });
    const started = context.replicasIn(topic, 'deletionStarted');
    await this.#replicas.move(
      started.filter(({ broker }) => done.has(broker)),
      'deletionSuccessful',
    );
    await this.resume();
  }

  async resume(): Promise<void> {
    if (!this.#options.isEnabled) return;
    const context = this.#context;
    for (const topic of [...context.toDelete]) {
      const all = context.replicasOf(context.partitionsOf(topic));
      const phases = new Set(all.map((replica) => context.replicaPhase(replica)));
      if ([...phases].every((phase) => phase === 'deletionSuccessful')) {
        await this.#complete(topic);
        continue;
      }
      if (phases.has('deletionStarted') || context.ineligible.has(topic)) continue;
      await this.#replicas.move(context.replicasIn(topic, 'deletionIneligible'), 'offline');
      await this.#begin(topic);
    }
  }

  async #begin(topic: string): Promise<void> {
    const context = this.#context;
    if (!context.deletionStarted.has(topic)) {
      const partitions = context.partitionsOf(topic);
      await this.#partitions.move(partitions, 'offline');
      await this.#partitions.move(partitions, 'nonExistent');
      context.deletionStarted.add(topic);
    }
    const all = context.replicasOf(context.partitionsOf(topic));
    const dead = all.filter(({ broker }) => !context.isLive(broker));
    const live = all.filter(
      (replica) =>
        context.isLive(replica.broker) && context.replicaPhase(replica) !== 'deletionSuccessful',
    );
    const isOut = (one: Replica) =>
      ['offline', 'deletionIneligible'].includes(context.replicaPhase(one));
    await this.#replicas.move(
      dead.filter((one) => !isOut(one)),
      'offline',
    );
    await this.#replicas.move(
      dead.filter((one) => context.mayMoveReplica(one, 'deletionIneligible')),
      'deletionIneligible',
    );
    await this.#replicas.move(live, 'offline');
    await this.#replicas.move(live, 'deletionStarted');
    if (dead.length > 0) context.ineligible.add(topic);
    const order = {
      controllerEpoch: this.#store.term.epoch,
      topicId: context.topics.get(topic)?.topicId ?? null,
    };
    await this.#store.create(
      layoutDrover.deletion.at({ topic }),
      layoutDrover.deletion.format(order),
    );
    await this.answered(topic);
  }

  async #complete(topic: string): Promise<void> {
    const context = this.#context;
    await this.#watches.drop('data', layout08.topic.at({ topic }));
    await this.#watches.drop('children', layoutDrover.deletion.at({ topic }));
    await this.#store.removeTree(layout08.topic.at({ topic }));
    await this.#store.remove(layout08.topicConfig.at({ topic }));
    await this.#store.remove(layout08.deleteTopic.at({ topic }));
    await this.#store.removeTree(layoutDrover.deletion.at({ topic }));
    context.removeTopic(topic);
  }

  async #dropMarkers(topics: readonly string[]): Promise<void> {
    for (const topic of topics) await this.#store.remove(layout08.deleteTopic.at({ topic }));
  }
}
