/**
 * The one member that plans: it reads who is in the group, computes one assignment, and writes to each
 * member what is new for it. All others read nothing but their own node.
 *
 * What it costs: two lists and one read for each change of the group, one write for each member whose
 * part changed, and nothing for those whose part stays. The second list is of the parts: one that was
 * deleted by another hand is written again. A new planner reads all parts once, and goes on
 * from there, so that a change of planner moves nothing.
 *
 * Every write is one multi with a check of /plan, whose version each new planner moves. A planner of
 * before is refused by that check and stops. Members that registered but follow no plan, as Java's, are
 * given parts like all others and do not heed them: keep a group in one mode.
 */

import { isZkError, type Listener, MultiError, type MultiOp } from '../client/index.ts';
import { frameBytesMax } from '../protocol/index.ts';
import { type Clock, pause, Wakeup } from '../support/index.ts';
import type { Assignor, AssignorInput } from './assignors.ts';
import { dropWatch, ensurePath, type GroupClient } from './group-client.ts';
import { awaitTurn } from './group-election.ts';
import { memberPlanContent, planLayout } from './group-plan-nodes.ts';
import type { GroupView } from './group-view.ts';
import type { OnProblem } from './layout.ts';
import { ownerOf } from './layout-consumer.ts';
import { PartitionSum } from './layout-fields.ts';
import { keyOf, partitionOf } from './partition.ts';

export interface PlannerOptions {
  readonly group: string;
  readonly consumerId: string;
  readonly view: GroupView;
  readonly assignor: Assignor;
  readonly clock: Clock;
  readonly debounceMs: number;
  readonly onProblem: OnProblem;
  /** We plan, since this epoch; null: not any more. */
  readonly onLeading: (epoch: number | null) => void;
}

/** Members in one multi. */
const membersPerMulti = 50;
/** Far below the frame: the part of one member may be of thousands of partitions. */
const multiBytesMax = frameBytesMax / 2;
const readsAtOnce = 64;

/** By consumer: partition keys and threads. */
type Plan = Map<string, ReadonlyMap<string, number>>;

/** What is written of a member's part. */
type PlanOp =
  | { readonly op: 'create' | 'set'; readonly path: string; readonly data: string }
  | { readonly op: 'delete'; readonly path: string };

/** Another planner has begun. */
class Deposed extends Error {}

export class GroupPlanner {
  readonly #client: GroupClient;
  readonly #options: PlannerOptions;
  readonly #wakeup = new Wakeup();
  #isDirty = false;
  #needsLoad = false;
  /** On the list of parts; undefined: none is set, or it has told of a change. */
  #listener: Listener | undefined;

  constructor(client: GroupClient, options: PlannerOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** Members or topics have changed. */
  changed(): void {
    this.#isDirty = true;
    this.#wakeup.ring();
  }

  /** What was planned may not be there any more: it is read again before it is planned anew. */
  reload(): void {
    this.#needsLoad = true;
    this.changed();
  }

  /** Stands for election, plans when it is its turn; until the signal aborts, or the session ends. */
  async run(signal: AbortSignal): Promise<void> {
    const { group, consumerId, onLeading } = this.#options;
    const election = planLayout.election.at({ group });
    while (!signal.aborted) {
      const turn = await awaitTurn(this.#client, election, consumerId, signal);
      try {
        await this.#lead(signal);
      } catch (error) {
        if (!(error instanceof Deposed)) throw error;
      } finally {
        onLeading(null);
        await this.#stopHearing();
        await turn.leave();
      }
    }
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { clock, debounceMs, onLeading } = this.#options;
    const { epoch, version } = await this.#begin();
    onLeading(epoch);
    let plan = await this.#load();
    this.changed();
    for (let isFirst = true; ; isFirst = false) {
      await this.#wakeup.rung(signal);
      if (!isFirst) await pause(clock, debounceMs, signal);
      if (signal.aborted) return;
      try {
        if (this.#listener === undefined && !(await this.#isThere(plan))) this.reload();
        if (!this.#isDirty) continue;
        this.#isDirty = false;
        if (this.#needsLoad) plan = await this.#load();
        const input = await this.#options.view.read();
        plan = await this.#write(plan, this.#compute(input, plan), epoch, version);
      } catch (error) {
        // What was written of it is not known: read it all again, then go on.
        if (!isZkError(error, 'CONNECTION_LOSS', 'NO_NODE', 'NODE_EXISTS')) throw error;
        this.reload();
      }
    }
  }

  /** Moves the version of /plan: from now on every planner of before is refused. */
  async #begin(): Promise<{ epoch: number; version: number }> {
    const path = planLayout.plan.at({ group: this.#options.group });
    await ensurePath(this.#client, planLayout.members.at({ group: this.#options.group }));
    for (;;) {
      const { data, stat } = await this.#client.get(path);
      const epoch = (planLayout.plan.tryParse(data, path, this.#options.onProblem) ?? 0) + 1;
      try {
        const { version } = await this.#client.set(path, String(epoch), { version: stat.version });
        return { epoch, version };
      } catch (error) {
        if (!isZkError(error, 'BAD_VERSION', 'CONNECTION_LOSS')) throw error;
      }
    }
  }

  /** Every part as it was planned last. */
  async #load(): Promise<Plan> {
    const { group, onProblem } = this.#options;
    this.#needsLoad = false;
    const names = await this.#names();
    const plan: Plan = new Map();
    const sum = new PartitionSum();
    const read = async (consumer: string) => {
      const path = planLayout.memberPlan.at({ group, consumer });
      const { data } = await this.#client.get(path);
      const part = planLayout.memberPlan.tryParse(data, path, onProblem);
      const count = part?.partitions.size ?? 0;
      // A part that cannot be held beside the others is planned anew.
      const fits = sum.take(count, path, onProblem) === count;
      plan.set(consumer, fits && part !== null ? part.partitions : new Map());
    };
    for (let i = 0; i < names.length; i += readsAtOnce) {
      await Promise.all(names.slice(i, i + readsAtOnce).map(read));
    }
    return plan;
  }

  /** Whose parts there are. What comes or goes after this rings, also by our own writes. */
  async #names(): Promise<string[]> {
    const listener: Listener =
      this.#listener ??
      (() => {
        if (this.#listener !== listener) return;
        this.#listener = undefined;
        this.#wakeup.ring();
      });
    this.#listener = listener;
    const path = planLayout.members.at({ group: this.#options.group });
    try {
      return await this.#client.children(path, { watch: listener });
    } catch (error) {
      if (this.#listener === listener) this.#listener = undefined;
      throw isZkError(error, 'NO_NODE') ? new Deposed() : error; // the whole plan was deleted: begin anew
    }
  }

  /** Whether the parts that there are are those that we wrote. */
  async #isThere(plan: Plan): Promise<boolean> {
    const names = await this.#names();
    return names.length === plan.size && names.every((name) => plan.has(name));
  }

  async #stopHearing(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    const path = planLayout.members.at({ group: this.#options.group });
    if (listener !== undefined) await dropWatch(this.#client, path, listener);
  }

  #compute(input: AssignorInput, before: Plan): Plan {
    const held = new Map<string, Map<string, string>>();
    for (const [consumer, partitions] of before) {
      if (!input.members.has(consumer)) continue;
      for (const [key, thread] of partitions) {
        const { topic, partition } = partitionOf(key);
        const of = held.get(topic) ?? new Map<string, string>();
        held.set(topic, of);
        of.set(partition, `${consumer}-${thread}`);
      }
    }
    const plan = new Map<string, Map<string, number>>();
    for (const consumer of input.members.keys()) plan.set(consumer, new Map());
    const ids = new Set<string>();
    for (const [topic, partitions] of this.#options.assignor({ ...input, held })) {
      for (const [partition, text] of partitions) {
        const { consumerId, thread } = ownerOf(text, ids);
        plan.get(consumerId)!.set(keyOf({ topic, partition }), thread ?? 0);
      }
    }
    return plan;
  }

  /** Writes what differs, and returns what then stands. */
  async #write(before: Plan, after: Plan, epoch: number, version: number): Promise<Plan> {
    const { group } = this.#options;
    const ops: PlanOp[] = [];
    for (const [consumer, partitions] of after) {
      const old = before.get(consumer);
      if (old !== undefined && isSame(old, partitions)) continue;
      const path = planLayout.memberPlan.at({ group, consumer });
      const data = memberPlanContent.format({ epoch, partitions })!;
      ops.push(old === undefined ? { op: 'create', path, data } : { op: 'set', path, data });
    }
    for (const consumer of before.keys()) {
      if (after.has(consumer)) continue;
      ops.push({ op: 'delete', path: planLayout.memberPlan.at({ group, consumer }) });
    }
    const check: MultiOp = { op: 'check', path: planLayout.plan.at({ group }), version };
    for (const batch of batches(ops)) {
      try {
        await this.#client.multi([check, ...batch]);
      } catch (error) {
        if (error instanceof MultiError && error.index === 0) throw new Deposed();
        throw error;
      }
    }
    return after;
  }
}

/** At most so many, and so many bytes, that a server takes each; one that is larger goes alone. */
function* batches(ops: readonly PlanOp[]): Generator<PlanOp[]> {
  let batch: PlanOp[] = [];
  let bytes = 0;
  for (const op of ops) {
    const size =
      24 + Buffer.byteLength(op.path) + (op.op === 'delete' ? 0 : Buffer.byteLength(op.data));
    if (batch.length > 0 && (batch.length === membersPerMulti || bytes + size > multiBytesMax)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(op);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

function isSame(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, thread] of a) if (b.get(key) !== thread) return false;
  return true;
}
