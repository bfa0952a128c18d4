/**
 * A directory read as a server would read it, by who wants no tree of it: is all there that a start needs?
 *
 * In: the folders. Out: what recovery found, or its refusal. Also refused is what a server would refuse
 * for its tree's sake: nodes of a fuzzy snapshot that tell of txns behind those that the logs have.
 */

import type { FileSystem } from './file-system.ts';
import type { LogEntry } from './log-entry.ts';
import { recover } from './recover.ts';
import type { Recovered, RecoverOptions } from './recovery-report.ts';
import type { SnapshotNode } from './snapshot-format.ts';
import type { SnapshotSummary } from './snapshot-reader.ts';
import { StorageError } from './storage-error.ts';

export async function readThrough(
  dir: string,
  logDir: string,
  options: RecoverOptions & { readonly fs?: FileSystem } = {},
): Promise<Recovered> {
  let toldZxid = 0n;
  const handlers = {
    begin() {
      toldZxid = 0n;
    },
    session() {},
    acl() {},
    node({ stat: { czxid, mzxid, pzxid } }: SnapshotNode) {
      for (const zxid of [czxid, mzxid, pzxid]) if (zxid > toldZxid) toldZxid = zxid;
    },
    txn: (entry: LogEntry) => void entry.body,
  };
  const recovered = await recover(dir, logDir, handlers, options);
  const missing = missingBehind(recovered, toldZxid);
  if (missing !== null) throw missing;
  return recovered;
}

/** Null where the logs reach as far as the nodes of the snapshot tell, or as it tells of itself. */
export function missingBehind(
  { snapshot, lastZxid }: Recovered,
  toldZxid: bigint,
): StorageError | null {
  if (snapshot === null || toldZxid <= lastZxid || isProven(snapshot, lastZxid)) return null;
  return new StorageError('MISSING_TXNS', 'a node in the snapshot tells of it', {
    file: snapshot.file.path,
    zxids: { from: lastZxid + 1n, to: toldZxid },
  });
}

/** Then no node has to be asked. */
export function isProven(snapshot: SnapshotSummary, lastZxid: bigint): boolean {
  return snapshot.lastZxid !== null && snapshot.lastZxid <= lastZxid;
}
