/** What a recovery tells: to whom it hands what it reads, and what it found worth saying. */

import type { LogEntry } from './log-entry.ts';
import type { LogSummary } from './log-reader.ts';
import type { SnapshotSink } from './snapshot-format.ts';
import type { SnapshotSummary } from './snapshot-reader.ts';
import type { ZxidRange } from './storage-error.ts';

/** A whole snapshot was handed over. */
export interface Restored {
  readonly snapshot: SnapshotSummary;
  /** As in the result: before, the tree may hold part of what is to come. */
  readonly exactFromZxid: bigint;
}

/** Called in this order: `begin`, the snapshot's content, `restored`, then each txn behind it. */
export interface RecoveryHandlers extends SnapshotSink {
  /**
   * Start from nothing, with the snapshot of this zxid to come; 0 and no file for an empty tree. It is
   * called again, and all that came in between is void, when a snapshot turns out to be damaged.
   */
  begin(from: { readonly zxid: bigint; readonly file: string | null }): void;
  /** All of the snapshot was told, and every seal was right. Not called where there is none. */
  restored?(what: Restored): void;
  /**
   * A txn above the snapshot's zxid, in order and without gaps. While `entry.zxid` is at most
   * `exactFromZxid` of the result the tree may hold part of it already (a fuzzy snapshot of Apache's):
   * a node that is there, or gone, is then no error.
   */
  txn(entry: LogEntry): void;
}

export type NoticeKind =
  | 'snapshotSkipped'
  | 'tornTail'
  | 'emptyLog'
  | 'logEndsBeforeSnapshot'
  | 'leftOver'
  | 'wrongDigest'
  | 'lostAcls'
  | 'salvaged';

/** Nothing that was acknowledged is missing, but for `salvaged`. Worth a line in the server's log. */
export interface Notice {
  readonly kind: NoticeKind;
  readonly file: string;
  readonly message: string;
  /** What was given up, where that is known. */
  readonly zxids?: ZxidRange | undefined;
}

export interface RecoverOptions {
  /** Goes on from the longest whole prefix where it would refuse otherwise; the rest is put aside. */
  readonly salvage?: boolean;
  /** Looks and changes nothing: for tools. The directory is not fit for appending afterwards. */
  readonly readOnly?: boolean;
  readonly onNotice?: (notice: Notice) => void;
}

export interface Recovered {
  /** What the log goes on from. */
  readonly lastZxid: bigint;
  /** Null when there was none that could be used, and the logs told it all from zxid 1. */
  readonly snapshot: SnapshotSummary | null;
  /** From here on the tree is exact, and digests in the log can be compared with it. */
  readonly exactFromZxid: bigint;
  readonly txns: number;
  readonly logs: readonly LogSummary[];
  readonly notices: readonly Notice[];
}
