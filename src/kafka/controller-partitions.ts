/**
 * The partition state machine: brings partitions from state to state, electing leaders on the way.
 *
 *   → new       known, without a leader yet
 *   → online    from new: the first state is made; from online or offline: an election
 *   → offline   the leader is gone; nothing is written
 *
 * Each election reads the state first and writes it on the condition that it is still that. Who lost
 * against a leader that changed its ISR looks again. A state that a newer controller wrote is left
 * alone. A partition that cannot be moved is told and stays where it was; the others go on.
 */

import type { ControllerContext, KnownState } from './controller-context.ts';
import { type ElectionStrategy, elect, firstState } from './controller-election.ts';
import type { PartitionPhase } from './controller-states.ts';
import type { ControllerStore } from './controller-store.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { partitionKey, type TopicPartition } from './layout-admin.ts';

/** Why no leader came of it, or null when one did. */
export type ElectionResult = { readonly at: TopicPartition; readonly failed: string | null };

/** How often an election starts over because the leader wrote its state in between. */
const conflictsMax = 20;

export interface PartitionMachineOptions {
  readonly onProblem: OnProblem;
  /** Where a topic's own configuration says nothing. */
  readonly uncleanElection: boolean;
}

export class PartitionMachine {
  readonly #context: ControllerContext;
  readonly #store: ControllerStore;
  readonly #options: PartitionMachineOptions;

  constructor(
    context: ControllerContext,
    store: ControllerStore,
    options: PartitionMachineOptions,
  ) {
    this.#context = context;
    this.#store = store;
    this.#options = options;
  }

  async start(): Promise<void> {
    const context = this.#context;
    for (const at of context.allPartitions()) {
      const known = context.state(at);
      const leads = known !== undefined && context.isLive(known.state.leader);
      context.putPartition(at, known === undefined ? 'new' : leads ? 'online' : 'offline');
    }
    await this.#refreshOlderThanTheirLeaders();
    await this.bringOnline();
  }

  /** Tries all that have no leader, but for topics that are to go. */
  async bringOnline(topic?: string): Promise<ElectionResult[]> {
    const waiting = this.#context.partitionsIn(['new', 'offline'], topic);
    const staying = waiting.filter((at) => !this.#context.toDelete.has(at.topic));
    return this.move(staying, 'online', 'offline');
  }

  /** Leaders go back to the first of their replicas, for brokers that lead too few of theirs. */
  async balance(imbalancePercentMax: number): Promise<void> {
    const context = this.#context;
    const { live, leaving } = context;
    for (const { all, elsewhere } of context.preferred().values()) {
      if ((elsewhere.length / all) * 100 <= imbalancePercentMax) continue;
      const able = elsewhere.filter((at) => {
        const { state } = context.state(at)!;
        return elect('preferred', { set: context.set(at)!, state, live, leaving }) !== null;
      });
      await this.move(able, 'online', 'preferred');
    }
  }

  async move(
    partitions: readonly TopicPartition[],
    to: PartitionPhase,
    strategy: ElectionStrategy = 'offline',
  ): Promise<ElectionResult[]> {
    const context = this.#context;
    const legal = partitions.filter((at) => {
      if (context.mayMove(at, to)) return true;
      this.#tell(at, `a partition that is ${context.partitionPhase(at)} cannot become ${to}`);
      return false;
    });
    if (to !== 'online') {
      for (const at of legal) context.putPartition(at, to);
      return legal.map((at) => ({ at, failed: null }));
    }
    const isNew = (at: TopicPartition) => context.partitionPhase(at) === 'new';
    const made = await this.#store.inTurn(legal.filter(isNew), (at) => this.#make(at));
    const old = legal.filter((at) => !made.some((one) => one.at === at));
    const elected = await this.#store.inTurn(old, (at) => this.#elect(at, strategy));
    return [...made, ...elected];
  }

  async #make(at: TopicPartition): Promise<ElectionResult> {
    const first = firstState(this.#context.set(at)!, this.#context.live);
    if (first === null) return this.#failed(at, 'none of its replicas lives');
    const state = { ...first, controllerEpoch: this.#store.term.epoch };
    const known = await this.#store.createState(at, state);
    if (known === null) return this.#failed(at, 'it had a state already that is not ours');
    return this.#won(at, known);
  }

  async #elect(at: TopicPartition, strategy: ElectionStrategy): Promise<ElectionResult> {
    const { term } = this.#store;
    for (let tries = 1; tries <= conflictsMax; tries++) {
      const known = (await this.#store.states([at])).get(partitionKey(at));
      if (known === undefined) return this.#failed(at, 'it has no state that can be read');
      if (known.state.controllerEpoch > term.epoch) {
        return this.#failed(
          at,
          `controller epoch ${known.state.controllerEpoch} wrote it, which is newer`,
        );
      }
      const { live, leaving } = this.#context;
      const situation = { set: this.#context.set(at)!, state: known.state, live, leaving };
      let next = elect(strategy, situation);
      if (next === null && strategy === 'offline' && (await this.#mayBeUnclean(at.topic))) {
        next = elect('unclean', situation);
      }
      if (next === null) {
        this.#context.states.set(partitionKey(at), known);
        const { isr } = known.state;
        return this.#failed(
          at,
          `no leader by strategy ${strategy}: in sync ${isr}, live ${[...live]}`,
        );
      }
      const state = { ...next, controllerEpoch: term.epoch };
      const written = await this.#store.setState(at, state, known.version);
      if (written !== null) return this.#won(at, written);
    }
    return this.#failed(at, `its state changed ${conflictsMax} times while a leader was elected`);
  }

  /**
   * A leader that registered anew after it was elected does not act on that election: it may have
   * lost what it knew. The same leader, with a new epoch, is one that it acts on.
   */
  async #refreshOlderThanTheirLeaders(): Promise<void> {
    const context = this.#context;
    const old = context.partitionsIn(['online']).filter((at) => {
      const { state, mzxid } = context.state(at)!;
      const broker = context.brokers.get(state.leader);
      return broker !== undefined && mzxid < broker.epoch && !context.toDelete.has(at.topic);
    });
    await this.#store.inTurn(old, (at) => this.raiseEpoch(at));
  }

  /** Same leader and ISR, next epoch: all who hold the partition look at it again. */
  async raiseEpoch(at: TopicPartition): Promise<boolean> {
    const { term } = this.#store;
    for (let tries = 1; tries <= conflictsMax; tries++) {
      const known = (await this.#store.states([at])).get(partitionKey(at));
      if (known === undefined || known.state.controllerEpoch > term.epoch) break;
      const leaderEpoch = known.state.leaderEpoch + 1;
      const state = { ...known.state, leaderEpoch, controllerEpoch: term.epoch };
      const written = await this.#store.setState(at, state, known.version);
      if (written === null) continue;
      this.#context.states.set(partitionKey(at), written);
      return true;
    }
    this.#tell(at, 'its epoch could not be raised');
    return false;
  }

  async #mayBeUnclean(topic: string): Promise<boolean> {
    const path = layout08.topicConfig.at({ topic });
    const node = await this.#store.get(path);
    const config = node && layout08.topicConfig.tryParse(node.data, path, this.#options.onProblem);
    const own = config?.['unclean.leader.election.enable'];
    return own === undefined ? this.#options.uncleanElection : own === 'true';
  }

  #won(at: TopicPartition, known: KnownState): ElectionResult {
    this.#context.states.set(partitionKey(at), known);
    this.#context.putPartition(at, 'online');
    return { at, failed: null };
  }

  #failed(at: TopicPartition, why: string): ElectionResult {
    this.#tell(at, why);
    return { at, failed: why };
  }

  #tell(at: TopicPartition, why: string): void {
    this.#options.onProblem({ path: layout08.partitionState.at(at), why, content: null });
  }
}
