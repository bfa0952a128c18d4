/**
 * A partition that is ours, from the claim to the end.
 *
 *   held ──letGo──▶ releasing ──▶ ended          its owner may still finish and commit
 *    └────────────── lost ───────▶ ended          somebody else may have it already
 *
 * It is as good as the session that owns its node. `epoch` is that node's czxid: it only grows from one
 * owner of a partition to the next, so whatever is written to elsewhere can refuse who was before.
 */

import { HeldSignal } from '../support/index.ts';
import type { PartitionId } from './partition.ts';

export type NotOwnerReason =
  | 'released'
  /** The session is over, or may be: its nodes are somebody else's. */
  | 'sessionOver'
  /** Somebody took the owner's node away by hand. */
  | 'nodeDeleted'
  | 'closed';

const meanings: Readonly<Record<NotOwnerReason, string>> = {
  released: 'it was given to another member; the next owner begins at the offset committed last',
  sessionOver:
    'the session is over, and another member may read it; nothing more is committed for it',
  nodeDeleted: 'its owner node was deleted by somebody; another member may read it',
  closed: 'the consumer was closed',
};

/** The partition is not ours (any more). Nothing was committed. */
export class NotOwnerError extends Error {
  override readonly name = 'NotOwnerError';
  readonly code = 'NOT_OWNER';
  readonly reason: NotOwnerReason;
  readonly topic: string;
  readonly partition: string;

  constructor({ topic, partition }: PartitionId, reason: NotOwnerReason, options?: ErrorOptions) {
    super(`NOT_OWNER: ${topic}/${partition}: ${meanings[reason]}`, options);
    this.topic = topic;
    this.partition = partition;
    this.reason = reason;
  }
}

/** What is stored for a partition, and the version of the node that it stands in. */
export interface StoredOffset {
  /** -1: there is a node, and nothing was ever committed to it. */
  readonly offset: bigint;
  readonly version: number;
}

export interface OwnedInput extends PartitionId {
  readonly path: string;
  readonly thread: string;
  readonly epoch: bigint;
  readonly version: number;
  readonly sessionId: bigint;
  readonly sinceMs: number;
  readonly stored: StoredOffset | null;
  /** Makes the client look at its clock: a session that is over ends here. */
  readonly look: () => void;
}

export class OwnedPartition implements PartitionId {
  readonly topic: string;
  readonly partition: string;
  /** Of the owner node. */
  readonly path: string;
  /** The owner node's czxid: larger than that of every owner before. */
  readonly epoch: bigint;
  readonly sessionId: bigint;
  /** Calendar time of the claim. */
  readonly sinceMs: number;
  readonly #look: () => void;
  readonly #ended: HeldSignal;
  readonly #leaving: HeldSignal;
  #state: 'held' | 'releasing' | 'ended' = 'held';
  /** The thread that reads it, as in the owner node, and that node's version. */
  thread: string;
  version: number;
  /** Null: there is no node, so nothing was ever committed. */
  stored: StoredOffset | null;

  constructor(input: OwnedInput) {
    this.topic = input.topic;
    this.partition = input.partition;
    this.path = input.path;
    this.epoch = input.epoch;
    this.sessionId = input.sessionId;
    this.sinceMs = input.sinceMs;
    this.thread = input.thread;
    this.version = input.version;
    this.stored = input.stored;
    this.#look = input.look;
    this.#ended = new HeldSignal(input.look);
    this.#leaving = new HeldSignal(input.look);
  }

  /** Looks at the clock first, as the signals do. */
  get state(): 'held' | 'releasing' | 'ended' {
    this.#look();
    return this.#state;
  }

  /**
   * Aborts with a NotOwnerError from the moment at which another member may read the partition. `aborted` and
   * `throwIfAborted()` look at the clock first, also in a signal that was kept or passed on.
   */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Aborts when it is asked for elsewhere: finish what is under way, and commit. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  get offset(): bigint | null {
    const offset = this.stored?.offset ?? -1n;
    return offset < 0n ? null : offset;
  }

  letGo(): void {
    if (this.#state !== 'held') return;
    this.#state = 'releasing';
    this.#leaving.abort();
  }

  end(reason: NotOwnerReason, cause?: unknown): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    const error = new NotOwnerError(this, reason, cause === undefined ? undefined : { cause });
    this.#leaving.abort(error);
    this.#ended.abort(error);
  }
}
