/**
 * Who joined and who left a line of nodes (an election's), told from the transaction logs that are still
 * there: for the console's terms of elections.
 *
 * In: the folders of a server's files and the line's parent. Out: the line before the first log, then each
 * child made and deleted, in order and with the server's own times. What a candidate wrote is told only where
 * everybody may read it. Without a sound snapshot older than the first log the line before it counts as empty.
 */

import type { Candidate, LineChange } from '../console/index.ts';
import { type Acl, nameOf, parentOf, type TxnBody } from '../protocol/index.ts';
import {
  type DescribedTxn,
  dumpLog,
  dumpSnapshot,
  isStorageError,
  listLogs,
  listSnapshots,
  realFileSystem,
} from '../storage/index.ts';
import { hex } from './words.ts';

const labelBytes = 120;
const readPermission = 1;

export async function lineHistory(
  dir: string,
  logDir: string,
  line: string,
  onChange: (change: LineChange) => void,
): Promise<void> {
  const logs = await listLogs(realFileSystem, logDir);
  const owners = new Map<string, bigint>();
  const before = await lineBefore(dir, line, logs[0]?.zxid ?? 0n, owners);
  onChange({ kind: 'start', line: before });
  const read = new LineReader(line, owners, onChange);
  for (const { path } of logs) await dumpLog(path, (txn) => read.see(txn));
}

async function lineBefore(
  dir: string,
  line: string,
  zxid: bigint,
  owners: Map<string, bigint>,
): Promise<[string, Candidate][]> {
  const older = (await listSnapshots(realFileSystem, dir)).filter((one) => one.zxid < zxid);
  for (const snapshot of older) {
    const found: [string, Candidate][] = [];
    const acls = new Map<number, Acl[]>();
    try {
      await dumpSnapshot(snapshot.path, {
        session() {},
        acl: (id, acl) => void acls.set(id, acl),
        node({ path, data, acl, stat }) {
          if (path === '' || parentOf(path) !== line) return;
          const isOpen = isOpenTo(acls.get(acl) ?? null);
          owners.set(nameOf(path), stat.ephemeralOwner);
          found.push([
            nameOf(path),
            candidateOf(isOpen ? data : null, stat.ephemeralOwner, stat.czxid),
          ]);
        },
      });
      return found;
    } catch (error) {
      if (!isStorageError(error, 'DAMAGED_SNAPSHOT')) throw error;
      owners.clear();
    }
  }
  return [];
}

class LineReader {
  readonly #line: string;
  readonly #owners: Map<string, bigint>;
  readonly #onChange: (change: LineChange) => void;

  constructor(line: string, owners: Map<string, bigint>, onChange: (change: LineChange) => void) {
    this.#line = line;
    this.#owners = owners;
    this.#onChange = onChange;
  }

  see(txn: DescribedTxn): void {
    if (txn.body.type !== 'multi') this.#apply(txn, txn.body);
    for (const body of txn.parts) this.#apply(txn, body);
  }

  #apply({ zxid, timeMs: atMs, sessionId }: DescribedTxn, { type, txn }: TxnBody): void {
    if (type === 'closeSession') {
      // Before 3.6 the paths were not logged: what it owned is known by its creation.
      const owned = [...this.#owners].filter(([, owner]) => owner === sessionId);
      for (const [name] of owned) this.#left(name, atMs);
      return;
    }
    if (!('path' in txn) || parentOf(txn.path) !== this.#line) return;
    const name = nameOf(txn.path);
    if (type === 'delete' || type === 'deleteContainer') this.#left(name, atMs);
    if (type !== 'create' && type !== 'create2') return;
    const owner = txn.ephemeral ? sessionId : 0n;
    this.#owners.set(name, owner);
    const candidate = candidateOf(isOpenTo(txn.acl) ? txn.data : null, owner, zxid);
    this.#onChange({ kind: 'joined', name, atMs, candidate });
  }

  #left(name: string, atMs: number): void {
    if (this.#owners.delete(name)) this.#onChange({ kind: 'left', name, atMs });
  }
}

/** The log's memory goes with the stretch that was read: what is kept of it is a string. */
function candidateOf(data: Buffer | null, owner: bigint, czxid: bigint): Candidate {
  return {
    id: data?.subarray(0, labelBytes).toString('utf8') ?? null,
    session: owner === 0n ? null : hex(owner),
    epoch: String(czxid),
  };
}

/** Null is the open ACL of a snapshot. */
function isOpenTo(acl: readonly Acl[] | null): boolean {
  if (acl === null) return true;
  return acl.some(({ perms, id }) => id.scheme === 'world' && (perms & readPermission) !== 0);
}
