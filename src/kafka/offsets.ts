/**
 * How far a group has read: /consumers/[group]/offsets/[topic]/[partition], the next offset to read.
 *
 * In: partitions that are owned, and offsets. Out: what is stored. A commit is one multi that checks
 * the owner's node and names the version of the offset's node that it expects; both are unchanged only
 * if nobody else has owned the partition since it was claimed. So what a paused, cut off or expired
 * owner still wants to commit is refused, as a NotOwnerError, and changes nothing.
 *
 * An offset never goes back by a commit: one that is lower than what is stored is left out, and the
 * result says so. `resetOffsets` may set any, for partitions that nobody owns.
 *
 * With a `committer`, Kafka's own offsets are written first and ZooKeeper's after; reading takes the
 * higher of the two. A failure between them leaves ZooKeeper behind, never ahead.
 */

import { checkClient, isZkError, MultiError, type MultiOp } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { ensurePath, type GroupClient } from './group-client.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { offsetStoreTable } from './option-tables.ts';
import { NotOwnerError, type OwnedPartition } from './owned-partition.ts';
import { noOffsetText, readStored } from './ownership.ts';
import { keyOf, type PartitionId } from './partition.ts';

export interface OffsetEntry extends PartitionId {
  readonly offset: bigint;
}

/** Kafka's own store of offsets, through whatever client there is. */
export interface OffsetCommitter {
  /** The offsets that are stored; partitions without one are left out. */
  fetch(group: string, partitions: readonly PartitionId[]): Promise<readonly OffsetEntry[]>;
  commit(group: string, offsets: readonly OffsetEntry[]): Promise<void>;
}

export interface CommitRequest {
  readonly owned: OwnedPartition;
  readonly offset: bigint;
}

export interface Committed extends PartitionId {
  /** What is stored now. */
  readonly offset: bigint;
  /** `kept`: what is stored is higher than what was to be committed, and stays. */
  readonly outcome: 'committed' | 'unchanged' | 'kept';
}

export interface OffsetStoreOptions {
  readonly group: string;
  readonly committer?: OffsetCommitter | undefined;
  readonly onProblem: OnProblem;
}

/** Partitions in one multi: a few ops each, far below what a frame holds. */
const partitionsPerMulti = 100;
/** How often a commit that met another is tried again. */
const commitTriesMax = 5;

export class OffsetStore {
  readonly #client: GroupClient;
  readonly #options: OffsetStoreOptions;
  /** One commit at a time: two of the same partition would take each other for a stranger's. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: GroupClient, options: OffsetStoreOptions) {
    checkClient('OffsetStore', client);
    checkOptions('OffsetStore', options, offsetStoreTable);
    this.#client = client;
    this.#options = options;
  }

  /** Where to begin: the higher of what ZooKeeper and, where there is one, the committer have. */
  async start(owned: OwnedPartition): Promise<bigint | null> {
    const { committer, group } = this.#options;
    const ours = owned.offset;
    if (committer === undefined) return ours;
    const [theirs] = await committer.fetch(group, [owned]);
    if (theirs === undefined) return ours;
    return ours === null || theirs.offset > ours ? theirs.offset : ours;
  }

  /** In the order asked for. Rejects with a NotOwnerError where any of them is not ours. */
  commit(requests: readonly CommitRequest[]): Promise<Committed[]> {
    const work = this.#last.then(() => this.#commit(requests));
    this.#last = work.catch(() => {}); // told to who asked
    return work;
  }

  async #commit(requests: readonly CommitRequest[]): Promise<Committed[]> {
    const { committer, group } = this.#options;
    for (const { owned } of requests) this.#refuse(owned);
    const news = requests.filter(({ owned, offset }) => offset > (owned.offset ?? -1n));
    if (committer !== undefined && news.length > 0) {
      const entries = news.map(({ owned, offset }) => entryOf(owned, offset));
      await committer.commit(group, entries);
    }
    const results: Committed[] = [];
    for (let i = 0; i < requests.length; i += partitionsPerMulti) {
      results.push(...(await this.#commitSome(requests.slice(i, i + partitionsPerMulti))));
    }
    return results;
  }

  async #commitSome(requests: readonly CommitRequest[]): Promise<Committed[]> {
    const news = requests.filter(({ owned, offset }) => offset > (owned.offset ?? -1n));
    const outcomes = new Map<string, Committed['outcome']>();
    for (const { owned } of news) outcomes.set(keyOf(owned), 'committed');
    if (news.length > 0 && !(await this.#write(news))) {
      for (const one of news) outcomes.set(keyOf(one.owned), await this.#writeAlone(one));
    }
    return requests.map(({ owned, offset }) => {
      const now = owned.offset ?? offset;
      const otherwise = now === offset ? 'unchanged' : 'kept';
      const { topic, partition } = owned;
      return { topic, partition, offset: now, outcome: outcomes.get(keyOf(owned)) ?? otherwise };
    });
  }

  /** All of them in one multi. False when something is not as expected: then none was written. */
  async #write(requests: readonly CommitRequest[]): Promise<boolean> {
    const fresh = requests.map(({ owned }) => owned).filter(({ stored }) => stored === null);
    if (fresh.length > 0 && !(await this.#makeNodes(fresh))) return false;
    const ops = requests.flatMap(({ owned, offset }): MultiOp[] => [
      { op: 'check', path: owned.path, version: owned.version },
      this.#writeOp(owned, offset),
    ]);
    for (const { owned } of requests) this.#refuse(owned);
    try {
      // In the same tick as the look above: the call goes out in the session that was looked at.
      await this.#client.multi(ops);
    } catch (error) {
      return this.#mayTryAgain(
        requests.map(({ owned }) => owned),
        error,
      );
    }
    for (const { owned, offset } of requests) {
      owned.stored = { offset, version: owned.stored!.version + 1 };
    }
    return true;
  }

  #writeOp(owned: OwnedPartition, offset: bigint): MultiOp {
    const path = this.pathOf(owned);
    return { op: 'set', path, data: String(offset), version: owned.stored!.version };
  }

  /**
   * The nodes of the first commits. An owner's node that was deleted by hand may have been made again, with
   * the same name and version, by an heir that found no offset to move. So the nodes are made empty first.
   * A partition that is ours after that is ours for the commit too: a later claim finds the node and moves it.
   */
  async #makeNodes(fresh: readonly OwnedPartition[]): Promise<boolean> {
    const ops = fresh.flatMap((owned): MultiOp[] => [
      { op: 'check', path: owned.path, version: owned.version },
      { op: 'create', path: this.pathOf(owned), data: noOffsetText },
    ]);
    for (const owned of fresh) this.#refuse(owned);
    try {
      await this.#client.multi(ops);
    } catch (error) {
      return this.#mayTryAgain(fresh, error);
    }
    const stats = await Promise.all(fresh.map(({ path }) => this.#client.exists(path)));
    for (const [at, owned] of fresh.entries()) {
      if (stats[at]?.czxid !== owned.epoch) throw new NotOwnerError(owned, 'nodeDeleted');
      owned.stored = { offset: -1n, version: 0 };
    }
    return true;
  }

  /** False: something is not as expected, or not known. Throws what no other try would mend. */
  #mayTryAgain(partitions: readonly OwnedPartition[], error: unknown): false {
    if (error instanceof MultiError) return false;
    if (isZkError(error) && error.outcomeUnknown && error.code !== 'SESSION_EXPIRED') return false;
    for (const owned of partitions) this.#refuse(owned, error);
    throw error;
  }

  /** Looks at what is there, and tries again as long as the partition is ours. */
  async #writeAlone(request: CommitRequest): Promise<Committed['outcome']> {
    const { owned, offset } = request;
    for (let tries = 1; ; tries++) {
      await this.#look(owned);
      if (owned.offset !== null && owned.offset >= offset) {
        return owned.offset === offset ? 'committed' : 'kept';
      }
      if (await this.#write([request])) return 'committed';
      if (tries === commitTriesMax) {
        const why = `${commitTriesMax} commits in a row met another writer; is an old consumer of this group still running?`;
        this.#options.onProblem({ path: this.pathOf(owned), why, content: String(offset) });
        throw new Error(`${this.pathOf(owned)}: ${why}`);
      }
    }
  }

  async #look(owned: OwnedPartition): Promise<void> {
    const path = this.pathOf(owned);
    owned.stored = await readStored(this.#client, path, this.#options.onProblem);
    if (owned.stored === null) {
      const node = await this.#client.exists(path);
      // Something is there that is no offset: it is overwritten.
      if (node !== null) owned.stored = { offset: -1n, version: node.version };
    }
    // Last: the version is then one of our own time, and not that of an heir.
    const stat = await this.#client.exists(owned.path);
    if (stat === null || stat.czxid !== owned.epoch) {
      throw new NotOwnerError(owned, 'nodeDeleted');
    }
    owned.version = stat.version;
    if (owned.stored === null)
      await ensurePath(
        this.#client,
        layout08.offsets.at({ group: this.#options.group, topic: owned.topic }),
      );
  }

  /** Throws unless it is ours as far as this process can know. Looks at the clock, through the client. */
  #refuse(owned: OwnedPartition, cause?: unknown): void {
    owned.signal.throwIfAborted();
    if (this.#client.sessionId === owned.sessionId) return;
    throw new NotOwnerError(owned, 'sessionOver', cause === undefined ? undefined : { cause });
  }

  pathOf({ topic, partition }: PartitionId): string {
    return layout08.offset.at({ group: this.#options.group, topic, partition });
  }
}

function entryOf({ topic, partition }: PartitionId, offset: bigint): OffsetEntry {
  return { topic, partition, offset };
}
