/**
 * A replicated log on drover/kafka: what a service of one's own looks like.
 *
 * The leader writes a record to its file and to every replica in sync, and only then says that it has
 * it. One that does not answer is taken out of the ISR first, which a leader that is none any more
 * cannot do: so whatever was acknowledged, every member of the ISR has, and leaders come from the ISR.
 *
 * Followers take records of the epoch they know, or a later one: a leader of the past is refused. The
 * record before must be of the same epoch in both logs; where it is not, the leader steps back, and
 * the follower drops what the leader never had.
 */

import { join } from 'node:path';
import type { FollowerRole, LeaderRole, ReplicaService, StoppedReplica } from 'drover/kafka';
import { LogFile, type LogRecord } from './log-file.ts';
import { ask } from './wire.ts';

const answerTimeoutMs = 1_000;
/** Records in one request to a follower. */
const batchMax = 500;

interface Replica {
  readonly log: LogFile;
  role: LeaderRole | FollowerRole;
  /** How many records every member of the ISR has: what may be read. */
  committed: number;
  /** Where each follower's log is known to end like ours. */
  readonly matched: Map<number, number>;
  /** One thing after the other: an append never crosses a change of the ISR. */
  last: Promise<unknown>;
}

export class LogService implements ReplicaService {
  readonly #id: number;
  readonly #directory: string;
  readonly #portOf: (broker: number) => number;
  readonly #replicas = new Map<string, Replica>();

  constructor(id: number, directory: string, portOf: (broker: number) => number) {
    this.#id = id;
    this.#directory = directory;
    this.#portOf = portOf;
  }

  // ── what drover tells ─────────────────────────────────────────────────────────────────────────

  async becomeLeader(role: LeaderRole): Promise<void> {
    const replica = await this.#take(role);
    replica.matched.clear();
    void this.#bringIn(replica, role);
  }

  async becomeFollower(role: FollowerRole): Promise<void> {
    await this.#take(role);
  }

  async stopReplica({ topic, partition, isDeleted }: StoppedReplica): Promise<void> {
    const key = `${topic}-${partition}`;
    const replica = this.#replicas.get(key);
    this.#replicas.delete(key);
    await replica?.last;
    if (isDeleted) await replica?.log.delete();
  }

  async #take(role: LeaderRole | FollowerRole): Promise<Replica> {
    const key = `${role.topic}-${role.partition}`;
    let replica = this.#replicas.get(key);
    if (replica === undefined) {
      const log = await LogFile.open(join(this.#directory, `${key}.log`));
      replica = { log, role, committed: 0, matched: new Map(), last: Promise.resolve() };
      this.#replicas.set(key, replica);
    }
    replica.role = role;
    return replica;
  }

  // ── what clients and other brokers ask ────────────────────────────────────────────────────────

  readonly handle = async (request: Record<string, unknown>): Promise<object> => {
    const replica = this.#replicas.get(String(request.partition));
    if (replica === undefined) throw new Error(`no replica of ${request.partition} here`);
    if (request.op === 'append') return this.#append(replica, String(request.value));
    if (request.op === 'replicate') return this.#follow(replica, request as never);
    if (request.op === 'read') {
      this.#checkLeads(replica);
      return { records: replica.log.records.slice(0, replica.committed).map(({ value }) => value) };
    }
    throw new Error(`no such request: ${request.op}`);
  };

  async #append(replica: Replica, value: string): Promise<object> {
    return inTurn(replica, async () => {
      const role = this.#checkLeads(replica);
      await replica.log.append([{ epoch: role.leaderEpoch, value }]);
      const offset = replica.log.records.length - 1;
      await this.#spread(replica, role);
      return { offset };
    });
  }

  /** Everybody in sync has everything, or is not in sync any more; then all of it is committed. */
  async #spread(replica: Replica, role: LeaderRole): Promise<void> {
    const others = role.isr.filter((id) => id !== this.#id);
    const reached = await Promise.all(others.map((id) => this.#send(replica, role, id)));
    const left = [this.#id, ...others.filter((_, i) => reached[i])];
    if (left.length < role.isr.length) await role.changeIsr(left);
    role.signal.throwIfAborted();
    replica.committed = replica.log.records.length;
  }

  /** Lets those in that are behind, for as long as this role lasts. */
  async #bringIn(replica: Replica, role: LeaderRole): Promise<void> {
    while (!role.signal.aborted) {
      const outside = role.replicas.filter((id) => id !== this.#id && !role.isr.includes(id));
      for (const id of [this.#id, ...outside]) {
        await inTurn(replica, async () => {
          if (role.signal.aborted || replica.role !== role) return;
          if (id !== this.#id && !(await this.#send(replica, role, id))) return;
          if (id !== this.#id) await role.changeIsr([...role.isr, id]);
          await this.#spread(replica, role);
        }).catch(() => {}); // fenced, and so about to be over; or tried again
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Whether the follower has all of our records now. */
  async #send(replica: Replica, role: LeaderRole, follower: number): Promise<boolean> {
    const { records } = replica.log;
    const partition = `${role.topic}-${role.partition}`;
    let from = replica.matched.get(follower) ?? records.length;
    try {
      for (;;) {
        const batch = records.slice(from, from + batchMax);
        const answer = await ask(
          this.#portOf(follower),
          {
            op: 'replicate',
            partition,
            epoch: role.leaderEpoch,
            from,
            before: from === 0 ? -1 : records[from - 1]!.epoch,
            records: batch,
          },
          answerTimeoutMs,
        );
        from = answer.matches ? from + batch.length : Math.min(from - 1, Number(answer.length));
        replica.matched.set(follower, from);
        if (answer.matches && from >= records.length) return true;
      }
    } catch {
      return false; // dead, slow, or of a newer epoch: not in sync, as far as we can know
    }
  }

  async #follow(
    replica: Replica,
    request: { epoch: number; from: number; before: number; records: LogRecord[] },
  ): Promise<object> {
    return inTurn(replica, async () => {
      const { epoch, from, before, records } = request;
      const { log, role } = replica;
      if (epoch < role.leaderEpoch) {
        throw new Error(`epoch ${epoch} is over: ${role.leaderEpoch} has begun`);
      }
      if (role.kind === 'leader' && epoch === role.leaderEpoch) throw new Error('I lead it myself');
      const length = log.records.length;
      if (from > length || (from > 0 && log.records[from - 1]!.epoch !== before)) {
        return { matches: false, length };
      }
      const same = records.findIndex((record, i) => log.records[from + i]?.epoch !== record.epoch);
      const kept = same === -1 ? records.length : same;
      if (kept < records.length || records.length === 0) await log.truncate(from + kept);
      await log.append(records.slice(kept));
      return { matches: true };
    });
  }

  #checkLeads({ role }: Replica): LeaderRole {
    if (role.kind !== 'leader') throw new Error(`broker ${this.#id} does not lead it`);
    role.signal.throwIfAborted();
    return role;
  }
}

function inTurn<T>(replica: Replica, work: () => Promise<T>): Promise<T> {
  const result = replica.last.then(work);
  replica.last = result.catch(() => {});
  return result;
}
