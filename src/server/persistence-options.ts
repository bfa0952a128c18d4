/** What may be said about where and how a server keeps its data. */

import type { FileSystem } from '../storage/index.ts';
import type { Clock, Logger } from '../support/index.ts';
import type { PasswordRule } from './passwords.ts';

export interface PersistenceOptions {
  readonly dataDir: string;
  /** The logs' own directory, on a disk of their own if there is one. */
  readonly dataLogDir?: string | undefined;
  /** TTL nodes in the tree. */
  readonly extendedTypesEnabled?: boolean | undefined;
  /**
   * How the password of a session follows from its id: by a `secret` of the data directory, or by `apache`'s
   * rule, by which every client that may read an ephemeral node can take over the session that owns it.
   * Sessions survive a move of the directory to an Apache server by Apache's rule alone.
   *
   * @default 'secret'
   */
  readonly sessionPasswords?: PasswordRule | undefined;
  /** A digest over the tree is kept, logged and checked. On, unless told otherwise. */
  readonly digestEnabled?: boolean | undefined;
  /**
   * Txns between two snapshots: from half of it to all of it, by chance. Without, 100,000, and no fewer
   * than two thirds of the nodes, and some seconds later than the last.
   */
  readonly snapCount?: number | undefined;
  /** Bytes of the log between two snapshots, in the same way. 4 GiB; 0 is no limit. */
  readonly snapLogBytes?: number | undefined;
  /** Where nobody said after how many: what may at most be there to be replayed, see disk-log.ts. */
  readonly replayedBytesMax?: number | undefined;
  /** How large a snapshot may be beside a log that goes on: what is left on the disk, without what the log needs. */
  readonly snapshotRoomBytes?: (() => Promise<number>) | undefined;
  readonly preallocBytes?: number | undefined;
  readonly snapshotCompression?: 'none' | 'gzip' | undefined;
  /** Acknowledges what a loss of power takes away again. For tests and data that may go. */
  readonly unsafeNoFsync?: boolean | undefined;
  /** Goes on knowingly where files are damaged, from the longest whole prefix. */
  readonly salvage?: boolean | undefined;
  /** How many snapshots to keep, at least 3, and how often to look; 0 never purges. */
  readonly autopurge?: { readonly retain: number; readonly intervalMs: number } | undefined;
  readonly logger?: Logger | undefined;
  readonly clock?: Clock | undefined;
  readonly fs?: FileSystem | undefined;
  readonly random?: (() => number) | undefined;
}
