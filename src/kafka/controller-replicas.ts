/**
 * The replica state machine: what becomes of each copy of each partition.
 *
 * Only one step writes: → offline takes the replica out of the ISR, and out of the lead if it has
 * it. An ISR of one is left as it is: it says who has the records. The other steps are memory; the
 * brokers learn what they have to do from the nodes themselves.
 */

import type { ControllerContext, Replica } from './controller-context.ts';
import type { ReplicaPhase } from './controller-states.ts';
import type { ControllerStore } from './controller-store.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { partitionKey } from './layout-admin.ts';
import { noLeader } from './layout-topic.ts';

const conflictsMax = 20;

export class ReplicaMachine {
  readonly #context: ControllerContext;
  readonly #store: ControllerStore;
  readonly #onProblem: OnProblem;

  constructor(context: ControllerContext, store: ControllerStore, onProblem: OnProblem) {
    this.#context = context;
    this.#store = store;
    this.#onProblem = onProblem;
  }

  async start(): Promise<void> {
    const context = this.#context;
    const all = context.replicasOf(context.allPartitions());
    const [live, dead] = [true, false].map((wanted) =>
      all.filter(({ broker }) => context.isLive(broker) === wanted),
    ) as [Replica[], Replica[]];
    for (const replica of live) context.putReplica(replica, 'online');
    // Whether they had been deleted nobody knows now: to be on the safe side, they were not.
    for (const replica of dead) context.putReplica(replica, 'deletionIneligible');
    await this.move(live, 'online');
    await this.move(dead, 'offline');
  }

  async move(replicas: readonly Replica[], to: ReplicaPhase): Promise<void> {
    const context = this.#context;
    const legal = replicas.filter((replica) => {
      if (context.mayMoveReplica(replica, to)) return true;
      const phase = context.replicaPhase(replica);
      this.#tell(
        replica,
        `the replica on broker ${replica.broker} is ${phase} and cannot become ${to}`,
      );
      return false;
    });
    if (to === 'offline') {
      // By broker: two replicas of one partition must not race for its state.
      const brokers = new Set(legal.map(({ broker }) => broker));
      for (const broker of brokers) {
        const mine = legal.filter((replica) => replica.broker === broker);
        await this.#store.inTurn(mine, (replica) => this.#takeOut(replica));
      }
      return;
    }
    for (const replica of legal) {
      context.putReplica(replica, to);
      if (to === 'nonExistent') this.#forget(replica);
    }
  }

  async #takeOut(replica: Replica): Promise<void> {
    const { broker } = replica;
    const key = partitionKey(replica);
    const { term } = this.#store;
    if (this.#context.states.get(key) === undefined) {
      this.#context.putReplica(replica, 'offline');
      return;
    }
    for (let tries = 1; tries <= conflictsMax; tries++) {
      const known = (await this.#store.states([replica])).get(key);
      if (known === undefined) {
        // A topic on its way out may have lost its state already.
        if (!this.#context.toDelete.has(replica.topic)) {
          return this.#tell(replica, 'it has no state that can be read');
        }
        this.#context.putReplica(replica, 'offline');
        return;
      }
      if (known.state.controllerEpoch > term.epoch) {
        return this.#tell(
          replica,
          `controller epoch ${known.state.controllerEpoch} wrote it, which is newer`,
        );
      }
      const { isr, leader, leaderEpoch } = known.state;
      const written = isr.includes(broker)
        ? await this.#store.setState(
            replica,
            {
              ...known.state,
              leader: leader === broker ? noLeader : leader,
              leaderEpoch: leaderEpoch + 1,
              controllerEpoch: term.epoch,
              isr: isr.length === 1 ? isr : isr.filter((id) => id !== broker),
            },
            known.version,
          )
        : known;
      if (written === null) continue;
      this.#context.states.set(key, written);
      this.#context.putReplica(replica, 'offline');
      return;
    }
    this.#tell(replica, `its state changed ${conflictsMax} times while a replica was taken out`);
  }

  #forget({ topic, partition, broker }: Replica): void {
    const partitions = this.#context.topics.get(topic)?.partitions;
    const set = partitions?.get(partition);
    if (set === undefined) return;
    const without = (ids: readonly number[]) => ids.filter((id) => id !== broker);
    partitions!.set(partition, {
      replicas: without(set.replicas),
      adding: without(set.adding),
      removing: without(set.removing),
    });
  }

  #tell(replica: Replica, why: string): void {
    this.#onProblem({ path: layout08.partitionState.at(replica), why, content: null });
  }
}
