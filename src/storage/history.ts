/**
 * The life of one node, told from all logs that are still there: who changed it, when, and from what to
 * what. No server answers this; the files do.
 *
 * What the node was before the first log, and behind a gap in them, is taken from the snapshot at which
 * that log begins, or a later one as long as nothing is told of the node: purged directories begin with
 * the log before their oldest snapshot. Without one, and unless the first log begins with zxid 1, `before`
 * of the next change is not known.
 */

import type { Acl, StatPersisted, TxnBody } from '../protocol/index.ts';
import { listLogs, listSnapshots } from './file-names.ts';
import { type FileSystem, realFileSystem } from './file-system.ts';
import { type DescribedTxn, describeEntry } from './inspect.ts';
import type { LogEntry } from './log-entry.ts';
import { LogReader } from './log-reader.ts';
import { openAclId } from './snapshot-format.ts';
import { readSnapshot } from './snapshot-reader.ts';
import { isStorageError } from './storage-error.ts';
import { mayFollow } from './zxids.ts';

/** A node as far as the files tell. */
export interface NodeState {
  readonly data: Buffer | null;
  /** Null stands for the open ACL of a snapshot. */
  readonly acl: readonly Acl[] | null;
  readonly version: number;
  readonly ephemeralOwner: bigint;
}

export interface PathChange {
  readonly zxid: bigint;
  readonly timeMs: number;
  readonly sessionId: bigint;
  readonly cxid: number;
  readonly kind: 'created' | 'dataSet' | 'aclSet' | 'deleted' | 'deletedWithSession';
  /** Which op of a multi it was, from 0. */
  readonly part: number | null;
  /** Null: it was not there. Undefined: nothing that is left says what it was. */
  readonly before: NodeState | null | undefined;
  readonly after: NodeState | null;
  readonly file: string;
  readonly offset: number;
}

/** Calls `onChange` for each change of `path`, oldest first. A damaged log ends at its damage. */
export async function pathHistory(
  dir: string,
  logDir: string,
  path: string,
  onChange: (change: PathChange) => void,
  fs: FileSystem = realFileSystem,
): Promise<void> {
  const life = new NodeLife(path, onChange);
  for (const file of await listLogs(fs, logDir)) {
    if (life.isGapBefore(file.zxid) || life.isUnknown) {
      life.goOn(file.zxid, await stateBefore(fs, dir, path, file.zxid));
    }
    const reader = await LogReader.open(fs, file);
    try {
      await reader.read((entry) => life.see(entry));
    } finally {
      await reader.close();
    }
  }
}

/** There before the first txn. */
const builtIn = new Set(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']);
const emptyNode: NodeState = { data: Buffer.alloc(0), acl: null, version: 0, ephemeralOwner: 0n };

async function stateBefore(
  fs: FileSystem,
  dir: string,
  path: string,
  zxid: bigint,
): Promise<NodeState | null | undefined> {
  if (zxid === 1n) return builtIn.has(path) ? emptyNode : null;
  const older = (await listSnapshots(fs, dir)).filter((snapshot) => mayFollow(zxid, snapshot.zxid));
  for (const snapshot of older) {
    const acls = new Map<number, Acl[]>();
    let state: NodeState | null = null;
    let stat: StatPersisted | undefined;
    try {
      const { lastZxid, digest } = await readSnapshot(fs, snapshot, {
        session() {},
        acl: (id, acl) => void acls.set(id, acl),
        node({ path: found, data, acl, stat: itsStat }) {
          if ((found === '' ? '/' : found) !== path) return;
          const list = acl === openAclId ? null : (acls.get(acl) ?? null);
          const { version, ephemeralOwner } = itsStat;
          stat = itsStat;
          state = { data: data && Buffer.from(data), acl: list, version, ephemeralOwner };
        },
      });
      const isExact = (lastZxid ?? digest?.zxid) === snapshot.zxid;
      return isExact || isAsOf(stat, snapshot.zxid) ? state : undefined;
    } catch (error) {
      if (!isStorageError(error, 'DAMAGED_SNAPSHOT')) throw error;
    }
  }
  return undefined;
}

/** In a snapshot that was written while the tree changed: no node tells that it was deleted, or when its ACL was set. */
function isAsOf(stat: StatPersisted | undefined, zxid: bigint): boolean {
  return stat !== undefined && stat.mzxid <= zxid && stat.aversion === 0;
}

type Step = { kind: PathChange['kind']; after: NodeState | null };

class NodeLife {
  readonly #path: string;
  readonly #onChange: (change: PathChange) => void;
  #state: NodeState | null | undefined;
  #lastZxid: bigint | undefined;

  constructor(path: string, onChange: (change: PathChange) => void) {
    this.#path = path;
    this.#onChange = onChange;
  }

  /** What happened since the last txn is not all told, so that nothing is known of the node. */
  isGapBefore(zxid: bigint): boolean {
    const last = this.#lastZxid;
    return last === undefined || (zxid > last && !mayFollow(zxid, last));
  }

  get isUnknown(): boolean {
    return this.#state === undefined;
  }

  goOn(zxid: bigint, state: NodeState | null | undefined): void {
    this.#lastZxid = zxid - 1n;
    this.#state = state;
  }

  see(entry: LogEntry): void {
    if (this.isGapBefore(entry.zxid)) this.#state = undefined;
    this.#lastZxid = entry.zxid;
    const txn = describeEntry(entry);
    if (txn.body.type !== 'multi') this.#apply(txn, txn.body, null);
    // What stands before the part that failed is logged as it was asked for, and never was done.
    if (txn.parts.some(({ type }) => type === 'error')) return;
    for (const [part, body] of txn.parts.entries()) this.#apply(txn, body, part);
  }

  #apply(txn: DescribedTxn, body: TxnBody, part: number | null): void {
    const step = this.#step(body, txn.sessionId);
    if (step === null) return;
    const { zxid, timeMs, sessionId, cxid, file, offset } = txn;
    // That it was created shows that it was not there.
    const before = step.kind === 'created' ? (this.#state ?? null) : this.#state;
    this.#state = step.after;
    this.#onChange({ zxid, timeMs, sessionId, cxid, part, before, ...step, file, offset });
  }

  #step(body: TxnBody, sessionId: bigint): Step | null {
    const { type, txn } = body;
    if (type === 'closeSession') {
      const isOwn = this.#state?.ephemeralOwner === sessionId; // before 3.6 the paths were not logged
      const isGone = isOwn || txn.paths2Delete.includes(this.#path);
      return isGone ? { kind: 'deletedWithSession', after: null } : null;
    }
    if (!('path' in txn) || txn.path !== this.#path) return null;
    const was = this.#state ?? { data: null, acl: null, version: 0, ephemeralOwner: 0n };
    switch (type) {
      case 'create':
      case 'create2':
      case 'createContainer':
      case 'createTTL': {
        const ephemeralOwner = 'ephemeral' in txn && txn.ephemeral ? sessionId : 0n;
        const { data, acl } = txn;
        return { kind: 'created', after: { data: copied(data), acl, version: 0, ephemeralOwner } };
      }
      case 'setData':
      case 'reconfig': {
        const { data, version } = txn;
        return { kind: 'dataSet', after: { ...was, data: copied(data), version } };
      }
      case 'setACL':
        return { kind: 'aclSet', after: { ...was, acl: txn.acl } };
      case 'delete':
      case 'deleteContainer':
        return { kind: 'deleted', after: null };
      default:
        return null;
    }
  }
}

/** The log's memory goes with the stretch that was read. */
function copied(data: Buffer | null): Buffer | null {
  return data && Buffer.from(data);
}
