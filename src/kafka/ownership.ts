/**
 * Owner nodes: claiming a partition, telling who has it, letting it go.
 *
 *   /consumers/[group]/owners/[topic]/[partition]    ephemeral, holds the thread's id
 *
 * In: a partition and the thread that is to read it. Out: an `OwnedPartition`, or who is in the way; a
 * watch then tells when that may have changed. A claim never waits and never gives up: waiting is the
 * watch's. Nothing is ours unless the node's `ephemeralOwner` is the session that we have now and it
 * names this consumer: another may share the client. A node of an earlier session of our own is deleted,
 * everybody else's is left alone.
 *
 * A claim that finds a committed offset writes it back unchanged in the same multi. That moves the
 * version of the offset's node, and every commit names the version it expects: so a former owner can
 * commit nothing more, even if its claim was deleted by hand under it. Where a claim found no offset it
 * looks again once it owns the partition, and moves what has appeared meanwhile, before anything is read.
 *
 * Replies that were lost are settled by looking: at the owner, and at the czxid that we know.
 */

import { isZkError, type Listener, MultiError, type MultiOp } from '../client/index.ts';
import { dropWatch, ensurePath, type GroupClient } from './group-client.ts';
import type { OnProblem } from './layout.ts';
import { layout08 } from './layout-08.ts';
import { ownerOf } from './layout-consumer.ts';
import { OwnedPartition, type StoredOffset } from './owned-partition.ts';
import { keyOf, type PartitionId } from './partition.ts';

/** Somebody else's node stands where ours should. */
export interface Blocked extends PartitionId {
  /** What is written in it: the thread that has it. */
  readonly holder: string;
  readonly holderSession: bigint;
  /** Calendar time of the node's creation. */
  readonly heldSinceMs: number;
}

export type Claimed = { readonly owned: OwnedPartition } | { readonly blocked: Blocked };

export interface OwnershipOptions {
  readonly group: string;
  readonly wallMs: () => number;
  /** Sessions of this very consumer that are over, or were taken for over. */
  readonly formerSessions: ReadonlySet<bigint>;
  /** The node of a partition that was claimed, or that blocks a claim, has changed or gone. */
  readonly onChange: (partition: PartitionId) => void;
  readonly onProblem: OnProblem;
}

/** How often a claim is tried at once when nodes come and go under it. Later the watch wakes us. */
const claimTriesMax = 5;

export class Ownership {
  readonly #client: GroupClient;
  readonly #options: OwnershipOptions;
  readonly #watches = new Map<string, Listener>();

  constructor(client: GroupClient, options: OwnershipOptions) {
    this.#client = client;
    this.#options = options;
  }

  pathOf({ topic, partition }: PartitionId): string {
    return layout08.owner.at({ group: this.#options.group, topic, partition });
  }

  /** `null`: it changed hands so often that nothing is known; try again later. */
  async claim(id: PartitionId, thread: string): Promise<Claimed | null> {
    for (let tries = 1; tries <= claimTriesMax; tries++) {
      const stored = await this.#stored(id);
      const made = await this.#create(id, thread, stored);
      if (made === 'again') continue;
      const isMoved = made === 'made' && stored !== null;
      const found = await this.look(id, thread, isMoved ? bumped(stored) : undefined);
      if (found !== null) return found;
    }
    return null;
  }

  async #create(
    id: PartitionId,
    thread: string,
    stored: StoredOffset | null,
  ): Promise<'made' | 'perhaps' | 'again'> {
    const path = this.pathOf(id);
    const ops: MultiOp[] = [{ op: 'create', path, data: thread, mode: 'ephemeral' }];
    if (stored !== null) {
      const { offset, version } = stored;
      ops.push({ op: 'set', path: this.#offsetPath(id), data: String(offset), version });
    }
    try {
      await this.#client.multi(ops);
      return 'made';
    } catch (error) {
      if (isZkError(error) && error.outcomeUnknown) return 'perhaps';
      if (!(error instanceof MultiError)) throw error;
      if (error.index === 1) return 'again'; // a commit came in between: read it again
      if (error.code === 'NODE_EXISTS') return 'perhaps';
      if (error.code !== 'NO_NODE') throw error;
      const { group } = this.#options;
      await ensurePath(this.#client, layout08.owners.at({ group, topic: id.topic }));
      return 'again';
    }
  }

  /** Who has it, and a watch on that. Null when nobody has: try again. */
  async look(id: PartitionId, thread: string, stored?: StoredOffset): Promise<Claimed | null> {
    const path = this.pathOf(id);
    const node = await this.#watched(id);
    if (node === null) return null;
    const { data, stat } = node;
    const holder = data?.toString('utf8') ?? '';
    const { sessionId } = this.#client;
    const isOurs = ownerOf(holder).consumerId === ownerOf(thread).consumerId;
    if (isOurs && sessionId !== undefined && stat.ephemeralOwner === sessionId) {
      const known = stored ?? (await this.#moveOffset(id));
      const owned = new OwnedPartition({
        topic: id.topic,
        partition: id.partition,
        path,
        thread: holder,
        epoch: stat.czxid,
        version: stat.version,
        sessionId,
        sinceMs: this.#options.wallMs(),
        stored: known,
        look: () => void this.#client.state,
      });
      return { owned };
    }
    if (this.#options.formerSessions.has(stat.ephemeralOwner)) {
      await this.#deleteLeftOver(path, stat.version);
      return null;
    }
    if (stat.ephemeralOwner === 0n) {
      const why = 'an owner is ephemeral, and this one stays until somebody deletes it';
      this.#options.onProblem({ path, why, content: holder });
    }
    const heldSinceMs = Number(stat.ctime);
    return {
      blocked: { ...id, holder, holderSession: stat.ephemeralOwner, heldSinceMs },
    };
  }

  async #watched(id: PartitionId) {
    const key = keyOf(id);
    // The same one again where a watch is still set: it is one watch, and goes as one.
    const listener: Listener =
      this.#watches.get(key) ??
      (() => {
        if (this.#watches.get(key) !== listener) return;
        this.#watches.delete(key);
        this.#options.onChange(id);
      });
    this.#watches.set(key, listener);
    try {
      return await this.#client.get(this.pathOf(id), { watch: listener });
    } catch (error) {
      if (this.#watches.get(key) === listener) this.#watches.delete(key);
      if (isZkError(error, 'NO_NODE')) return null;
      throw error;
    }
  }

  async #deleteLeftOver(path: string, version: number): Promise<void> {
    try {
      await this.#client.delete(path, { version });
    } catch (error) {
      if (!isZkError(error, 'NO_NODE', 'BAD_VERSION', 'CONNECTION_LOSS')) throw error;
    }
  }

  /** Whether a change of its node will be told. False right after it was. */
  isWatched(id: PartitionId): boolean {
    return this.#watches.has(keyOf(id));
  }

  /** Looks again at what was ours, after its node changed. False when it is not any more. */
  async stillOurs(owned: OwnedPartition): Promise<boolean> {
    const node = await this.#watched(owned);
    if (node === null || node.stat.czxid !== owned.epoch) return false;
    owned.version = node.stat.version;
    return true;
  }

  /** Writes another thread of this consumer into the node: nothing is let go of. */
  async hand(owned: OwnedPartition, thread: string): Promise<void> {
    const stat = await this.#client.set(owned.path, thread, { version: owned.version });
    owned.thread = thread;
    owned.version = stat.version;
  }

  /** Deletes the node, if it is still the one that we made. */
  async release(owned: OwnedPartition): Promise<void> {
    this.#watches.delete(keyOf(owned)); // it fires with the deletion, and nobody needs to hear that
    for (;;) {
      if (this.#client.sessionId !== owned.sessionId) return; // it goes, or went, with its session
      try {
        return await this.#client.delete(owned.path, { version: owned.version });
      } catch (error) {
        if (isZkError(error, 'NO_NODE')) return;
        const isWorthALook =
          isZkError(error, 'BAD_VERSION') || (isZkError(error) && error.outcomeUnknown);
        if (!isWorthALook) throw error;
      }
      // The delete may have happened, and the next owner's node have the same version: look whose it is.
      const stat = await this.#client.exists(owned.path);
      if (stat === null || stat.czxid !== owned.epoch) return;
      owned.version = stat.version;
    }
  }

  /** Takes the watch on a partition away. */
  async forget(id: PartitionId): Promise<void> {
    const key = keyOf(id);
    const listener = this.#watches.get(key);
    if (listener === undefined) return;
    this.#watches.delete(key);
    await dropWatch(this.#client, this.pathOf(id), listener);
  }

  /** The session is over, and its watches with it. */
  forgetAll(): void {
    this.#watches.clear();
  }

  async close(): Promise<void> {
    const all = [...this.#watches];
    this.#watches.clear();
    const { group } = this.#options;
    await Promise.all(
      all.map(([key, listener]) =>
        dropWatch(this.#client, `${layout08.ownerTopics.at({ group })}/${key}`, listener),
      ),
    );
  }

  #offsetPath({ topic, partition }: PartitionId): string {
    return layout08.offset.at({ group: this.#options.group, topic, partition });
  }

  /**
   * Writes back what is there now that the partition is ours. Null when there is no node: a former owner
   * that makes one from now on looks whose the partition is before it commits to it.
   */
  async #moveOffset(id: PartitionId): Promise<StoredOffset | null> {
    const path = this.#offsetPath(id);
    for (let tries = 1; ; tries++) {
      try {
        const { data, stat } = await this.#client.get(path);
        const { version } = await this.#client.set(path, data, { version: stat.version });
        return { offset: offsetIn(data, path, this.#options.onProblem), version };
      } catch (error) {
        if (isZkError(error, 'NO_NODE')) return null;
        // A former owner was quicker, for the last time, or a reply was lost.
        const isWorthALook =
          isZkError(error, 'BAD_VERSION') || (isZkError(error) && error.outcomeUnknown);
        if (!isWorthALook || tries === claimTriesMax) throw error;
      }
    }
  }

  async #stored(id: PartitionId): Promise<StoredOffset | null> {
    return readStored(this.#client, this.#offsetPath(id), this.#options.onProblem);
  }
}

function bumped({ offset, version }: StoredOffset): StoredOffset {
  return { offset, version: version + 1 };
}

/** What stands in an offset's node before the first commit, for a moment: -1 is no offset to Kafka's consumers either. */
export const noOffsetText = '-1';

/** -1 where there is no offset in it. What is neither is reported. */
function offsetIn(data: Uint8Array | null, path: string, onProblem: OnProblem): bigint {
  if (data !== null && Buffer.from(data).toString() === noOffsetText) return -1n;
  return layout08.offset.tryParse(data, path, onProblem) ?? -1n;
}

/** Null when nothing was committed, or nothing that is an offset: then it is reported. */
export async function readStored(
  client: GroupClient,
  path: string,
  onProblem: OnProblem,
): Promise<StoredOffset | null> {
  try {
    const { data, stat } = await client.get(path);
    const offset = offsetIn(data, path, onProblem);
    return offset < 0n ? null : { offset, version: stat.version };
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return null;
    throw error;
  }
}
