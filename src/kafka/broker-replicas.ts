/**
 * The replicas of one broker: watches the nodes, and tells the service which roles it has.
 *
 * Where Kafka's controller sends requests, ours writes nodes and every broker looks at them. There is
 * no order to lose and none to come late: whatever happened, what stands there now is what counts.
 *
 *   fenced by controller epoch   a controller that is none any more cannot write a state at all
 *   fenced by leader epoch       a role is changed by a state of a higher epoch alone
 *   fenced by broker epoch       a state that is older than this broker's registration makes it no
 *                                leader: it was meant for an earlier life, and the controller writes anew
 *
 * Topics are dealt with side by side, the steps of one topic one after the other. A service that
 * throws is called again, a bounded number of times, and then told of as a problem until the node
 * changes again.
 */

import { type Client, isZkError, type WatchStream } from '../client/index.ts';
import { Backoff, type Clock, deferred, HeldSignal, pause, systemClock } from '../support/index.ts';
import type { FollowerRole, LeaderRole, ReplicaService } from './broker-roles.ts';
import type { KnownState } from './controller-context.ts';
import { changeIsr, FencedError, type IsrNotifier } from './isr.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import type { TopicPartition } from './layout-admin.ts';
import { layoutDrover } from './layout-drover.ts';
import type { PartitionState, ReplicaSet, TopicAssignment } from './layout-topic.ts';

export interface ReplicasOptions {
  readonly id: number;
  readonly service: ReplicaService;
  readonly notifier: IsrNotifier;
  readonly onProblem: OnProblem;
  /** The nodes cannot be watched any more; no roles are held, and none will be. */
  readonly onBlind: (error: unknown) => void;
  readonly clock?: Clock;
}

interface Held {
  role: LeaderRole | FollowerRole;
  readonly end: HeldSignal;
  known: KnownState;
  replicas: readonly number[];
}

/** What of a role is as it is when it is asked for. */
type Late = 'replicas';

const callTriesMax = 5;
/** So many states of a topic are read at a time. */
const statesMax = 64;

export class BrokerReplicas {
  readonly #client: Client;
  readonly #options: ReplicasOptions;
  readonly #clock: Clock;
  readonly #held = new Map<string, Map<number, Held>>();
  /** Topics that are being looked at, and whether they have to be again. */
  readonly #looking = new Map<string, { again: boolean }>();
  /** Topics whose deletion was told to be done, and under which registration. */
  readonly #acknowledged = new Map<string, bigint>();
  readonly #ended = new AbortController();
  #epoch: bigint | undefined;
  #idle = deferred();

  constructor(client: Client, options: ReplicasOptions) {
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#idle.resolve();
  }

  /** What this broker does now. */
  get roles(): readonly (LeaderRole | FollowerRole)[] {
    return [...this.#held.values()].flatMap((all) => [...all.values()].map(({ role }) => role));
  }

  /** Hears from now on. Roles are given only under a registration: `begin`. */
  async start(): Promise<void> {
    const { signal } = this.#ended;
    for (const path of [layout08.topics.at(), layoutDrover.deletions.at()]) {
      const stream = this.#client.watch(path, { recursive: true, signal });
      void this.#follow(stream, path);
      await stream.ready;
    }
  }

  /** The broker is registered, under this epoch. */
  async begin(epoch: bigint): Promise<void> {
    this.#epoch = epoch;
    const topics = await this.#client.children(layout08.topics.at());
    for (const topic of new Set([...topics, ...this.#held.keys()])) this.#look(topic);
  }

  /** In this very tick: every role is over. */
  end(reason: unknown): void {
    this.#epoch = undefined;
    for (const all of this.#held.values()) {
      for (const { end } of all.values()) end.abort(reason);
    }
    this.#held.clear();
  }

  /** Resolves when no topic is being looked at. */
  async settled(): Promise<void> {
    while (this.#looking.size > 0) await this.#idle.promise;
  }

  async close(): Promise<void> {
    const held = [...this.#held].flatMap(([topic, all]) =>
      [...all.values()].map(({ role }) => ({ topic, role })),
    );
    this.end(new Error('the broker was closed'));
    this.#ended.abort();
    await this.settled();
    for (const { topic, role } of held) {
      const { topicId, partition } = role;
      try {
        await this.#options.service.stopReplica({ topic, topicId, partition, isDeleted: false });
      } catch (error) {
        const path = layout08.partition.at({ topic, partition });
        this.#options.onProblem({ path, why: `could not be stopped: ${error}`, content: null });
      }
    }
  }

  // ── hearing ───────────────────────────────────────────────────────────────────────────────────

  async #follow(stream: WatchStream, root: string): Promise<void> {
    try {
      for await (const { path } of stream) {
        const [topic] = path.slice(root.length + 1).split('/');
        if (topic) this.#look(topic);
      }
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      // Blind, it would hold roles that others have been given.
      this.end(error);
      this.#options.onBlind(error);
    }
  }

  #look(topic: string): void {
    if (this.#epoch === undefined) return; // begin() looks at all of them
    const looking = this.#looking.get(topic);
    if (looking) {
      looking.again = true;
      return;
    }
    if (this.#looking.size === 0) this.#idle = deferred();
    this.#looking.set(topic, { again: true });
    void this.#lookOn(topic);
  }

  async #lookOn(topic: string): Promise<void> {
    const looking = this.#looking.get(topic)!;
    const backoff = new Backoff({ firstMs: 50, maxMs: 5_000 });
    for (let failures = 0; looking.again; ) {
      looking.again = false;
      const epoch = this.#epoch;
      if (epoch === undefined) break;
      try {
        await this.#reconcile(topic, epoch);
        failures = 0;
      } catch (error) {
        if (this.#epoch !== epoch) continue; // over, or anew: looked at again by begin()
        failures += 1;
        const why = error instanceof Error ? error.message : String(error);
        this.#options.onProblem({ path: layout08.topic.at({ topic }), why, content: null });
        // A service may be left alone in the end. A server that has no time for us now will have some.
        const isPassing = isZkError(error) && error.retryable;
        if (failures >= callTriesMax && !isPassing) {
          failures = 0;
          continue;
        }
        await pause(this.#clock, backoff.next(), this.#ended.signal);
        looking.again = true;
      }
    }
    this.#looking.delete(topic);
    if (this.#looking.size === 0) this.#idle.resolve();
  }

  // ── what is, and what should be ───────────────────────────────────────────────────────────────

  async #reconcile(topic: string, epoch: bigint): Promise<void> {
    const assignment = await this.#read(layout08.topic, layout08.topic.at({ topic }));
    // What cannot be read says nothing: least of all that records are to be deleted.
    if (assignment === 'unreadable') return;
    const order = await this.#read(layoutDrover.deletion, layoutDrover.deletion.at({ topic }));
    if (order === 'unreadable') return;
    if (order === null) this.#acknowledged.delete(topic);
    else if (assignment !== null && order.value.topicId === assignment.value.topicId) {
      await this.#delete(topic, assignment.value, epoch);
      return;
    }
    const mine = new Map(
      [...(assignment?.value.partitions ?? [])].filter(([, set]) =>
        set.replicas.includes(this.#options.id),
      ),
    );
    // A topic under the same name with another id is another topic: the old one's replicas go first.
    const topicId = assignment?.value.topicId ?? null;
    for (const [partition, { role }] of [...(this.#held.get(topic) ?? [])]) {
      const isOther = role.topicId !== null && role.topicId !== topicId;
      // A node that went without an order was taken by hand, and is no reason to delete records.
      const isDeleted = assignment !== null;
      if (!mine.has(partition) || isOther) await this.#stop(topic, partition, epoch, isDeleted);
    }
    if (assignment === null) return;
    const all = [...mine];
    for (let start = 0; start < all.length; start += statesMax) {
      const some = all.slice(start, start + statesMax);
      const states = await Promise.all(
        some.map(([partition]) =>
          this.#read(layout08.partitionState, layout08.partitionState.at({ topic, partition })),
        ),
      );
      // A state may be younger than the replicas, which were read before it. Then these are read again.
      const now = await this.#client.exists(layout08.topic.at({ topic }));
      if (this.#epoch !== epoch) return;
      if (now?.mzxid !== assignment.stat.mzxid) return this.#look(topic);
      for (const [index, [partition, set]] of some.entries()) {
        const state = states[index]!;
        if (state === null || state === 'unreadable' || this.#epoch !== epoch) continue;
        const { version, mzxid } = state.stat;
        const known = { state: state.value, version, mzxid };
        await this.#take({ topic, partition }, topicId, set, known, epoch);
      }
    }
  }

  async #take(
    at: TopicPartition,
    topicId: string | null,
    set: ReplicaSet,
    known: KnownState,
    epoch: bigint,
  ): Promise<void> {
    const { id, service } = this.#options;
    const held = this.#held.get(at.topic)?.get(at.partition);
    const { state } = known;
    if (held && state.leaderEpoch <= held.known.state.leaderEpoch) {
      if (known.version > held.known.version) held.known = known;
      held.replicas = set.replicas;
      return;
    }
    const leads = state.leader === id;
    if (leads && known.mzxid < epoch) return;
    const leaderBroker = leads ? null : await this.#brokerAt(state.leader);
    if (this.#epoch !== epoch) return;
    held?.end.abort(new FencedError(`epoch ${state.leaderEpoch} has begun`));
    this.#held.get(at.topic)?.delete(at.partition);

    const end = new HeldSignal(() => void this.#client.state);
    const { signal } = end;
    const base = { ...at, topicId, ...epochsOf(state), brokerEpoch: epoch, signal };
    const entry = { known, end, replicas: set.replicas } as Held;
    entry.role = leads
      ? this.#leader({ ...base, kind: 'leader', isRecovering: state.isRecovering }, entry)
      : followerRole({ ...base, kind: 'follower', leader: state.leader, leaderBroker }, entry);
    const all = this.#held.get(at.topic) ?? new Map<number, Held>();
    this.#held.set(at.topic, all.set(at.partition, entry));
    try {
      if (entry.role.kind === 'leader') await service.becomeLeader(entry.role);
      else await service.becomeFollower(entry.role);
    } catch (error) {
      end.abort(error);
      if (this.#held.get(at.topic)?.get(at.partition) === entry) all.delete(at.partition);
      throw error;
    }
  }

  #leader(base: Omit<LeaderRole, 'isr' | 'changeIsr' | Late>, entry: Held): LeaderRole {
    const { notifier } = this.#options;
    const client = this.#client;
    let last: Promise<unknown> = Promise.resolve();
    return {
      ...base,
      get replicas() {
        return entry.replicas;
      },
      get isr() {
        return entry.known.state.isr;
      },
      changeIsr(isr) {
        // One after the other: each stands on the version that the one before left.
        const change = last.then(async () => {
          base.signal.throwIfAborted();
          entry.known = await changeIsr(client, base, entry.known, checkIsr(entry, isr));
          notifier.add(base);
        });
        last = change.catch(() => {}); // its caller has it; the next looks for itself
        return change;
      },
    };
  }

  async #stop(topic: string, partition: number, epoch: bigint, isDeleted: boolean): Promise<void> {
    const held = this.#held.get(topic)?.get(partition);
    if (held === undefined) return;
    held.end.abort(new FencedError(`${topic}/${partition} is not on this broker any more`));
    const { topicId } = held.role;
    await this.#options.service.stopReplica({ topic, topicId, partition, isDeleted });
    if (this.#epoch === epoch) this.#held.get(topic)?.delete(partition);
    if (this.#held.get(topic)?.size === 0) this.#held.delete(topic);
  }

  /** The controller has ordered it: all replicas of the topic go, and then it is told so. */
  async #delete(topic: string, assignment: TopicAssignment, epoch: bigint): Promise<void> {
    const { id, service } = this.#options;
    const path = layoutDrover.deleted.at({ topic, broker: id });
    if (this.#acknowledged.get(topic) === epoch) return;
    const mine = [...assignment.partitions].filter(([, set]) => set.replicas.includes(id));
    for (const [partition] of mine) {
      const { topicId } = assignment;
      if (this.#held.get(topic)?.has(partition)) await this.#stop(topic, partition, epoch, true);
      else await service.stopReplica({ topic, topicId, partition, isDeleted: true });
    }
    if (mine.length === 0 || this.#epoch !== epoch) return;
    if (await this.#say(path, epoch)) this.#acknowledged.set(topic, epoch);
  }

  /** False: nobody wants to know any more. */
  async #say(path: string, epoch: bigint): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#client.create(path, String(epoch), { mode: 'ephemeral' });
        return true;
      } catch (error) {
        if (isZkError(error, 'NO_NODE')) return false; // all had answered
        const mayBeThere =
          isZkError(error, 'NODE_EXISTS') || (isZkError(error) && error.outcomeUnknown);
        if (!mayBeThere || tries === callTriesMax) throw error;
      }
      const there = await this.#client.get(path).catch(ignoreGone);
      if (there === null) continue;
      if (there.stat.ephemeralOwner === this.#client.sessionId) return true;
      // Of an earlier life: it would go with that session, and take the answer with it.
      await this.#client.delete(path).catch(ignoreGone);
    }
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  async #read<T>(
    row: { tryParse(data: Uint8Array | null, path: string, onProblem: OnProblem): T | null },
    path: string,
  ) {
    const node = await this.#client.get(path).catch(ignoreGone);
    if (node === null) return null;
    const value = row.tryParse(node.data, path, this.#options.onProblem);
    return value === null ? 'unreadable' : { value, stat: node.stat };
  }

  async #brokerAt(id: number) {
    if (id < 0) return null;
    const found = await this.#read(layout08.broker, layout08.broker.at({ id }));
    return found === null || found === 'unreadable' ? null : found.value;
  }
}

function followerRole(base: Omit<FollowerRole, Late>, entry: Held): FollowerRole {
  return {
    ...base,
    get replicas() {
      return entry.replicas;
    },
  };
}

function epochsOf({ leaderEpoch, controllerEpoch }: PartitionState) {
  return { leaderEpoch, controllerEpoch };
}

function checkIsr({ replicas }: { replicas: readonly number[] }, isr: readonly number[]) {
  const strangers = isr.filter((id) => !replicas.includes(id));
  if (isr.length > 0 && strangers.length === 0 && new Set(isr).size === isr.length) return isr;
  throw new RangeError(`isr: some of ${replicas}, each once, are wanted, not [${isr}]`);
}

function ignoreGone(error: unknown): null {
  if (isZkError(error, 'NO_NODE')) return null;
  throw error;
}
