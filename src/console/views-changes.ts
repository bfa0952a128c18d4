/** Answers to changes: what would happen, what happened, and what the audit keeps of it. How values are written: see `views.ts`. */

import type { AclEntry, StatView } from './views-tree.ts';

export interface DeletePreview {
  readonly paths: readonly string[];
  readonly count: number;
  readonly ephemerals: number;
  /** What has to be typed: the last name of the path, or for several the count. */
  readonly confirm: string;
  readonly sample: readonly string[];
  /** There are more than one delete may take. */
  readonly isTooMany: boolean;
}

export interface ChangedView {
  readonly path: string;
  readonly stat: StatView | null;
  /** Of the audit entry, for undo. */
  readonly audit: number;
}

/** POST /api/import, also with dryRun */
export interface ImportView {
  readonly created: number;
  readonly overwritten: number;
  readonly skipped: number;
  readonly same: number;
  readonly conflicts: readonly string[];
  readonly done: boolean;
}

export type CopyStep = 'create' | 'change' | 'acl' | 'skip' | 'ephemeral';
export type CopyCounts = Readonly<Record<CopyStep | 'same', number>>;

/** POST /api/copy/preview and /api/copy, of the context that is copied to */
export interface CopyView {
  readonly counts: CopyCounts;
  /** The first of what is not the same, by the path it has or would have. */
  readonly steps: readonly { readonly step: CopyStep; readonly path: string }[];
  /** What has to be typed, since something would be overwritten; null: nothing. */
  readonly confirm: string | null;
  /** More than one copy may take. */
  readonly isTooMany: boolean;
  readonly done: boolean;
}

export interface AuditState {
  readonly data: string | null;
  readonly version: number | null;
  readonly acl?: readonly AclEntry[];
}

export interface AuditEntry {
  readonly id: number;
  readonly atMs: number;
  /** Address and role: who the console knows nobody by name. */
  readonly who: string;
  readonly action:
    | 'create'
    | 'set'
    | 'acl'
    | 'delete'
    | 'import'
    | 'undo'
    | 'shell'
    | 'cli'
    | 'expire'
    | 'bench'
    | 'demo'
    | 'rule'
    | 'offsets'
    | 'elect'
    | 'copy';
  readonly path: string;
  readonly ok: boolean;
  /** What went wrong, or the line that was run. */
  readonly note: string | null;
  /** Nodes. */
  readonly count: number;
  readonly before: AuditState | null;
  readonly after: AuditState | null;
  readonly undo: 'possible' | 'done' | 'tooLarge' | 'no';
}

/** GET /api/audit?offset&limit&filter, newest first */
export interface AuditView {
  /** Command lines of this user on this machine are in it: a journal of theirs is read. */
  readonly hasCommandLines: boolean;
  readonly entries: readonly AuditEntry[];
  readonly total: number;
}
