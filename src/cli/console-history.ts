/**
 * The life of a node out of a server's transaction logs, for the console's page. Only what everybody may
 * read is shown: the logs also hold what ACLs keep from most.
 */

import type { ConsoleOptions, HistoryEntry } from '../console/index.ts';
import { type NodeState, type PathChange, pathHistory } from '../storage/index.ts';
import { hex } from './words.ts';

export interface Folders {
  readonly dataDir: string;
  readonly dataLogDir: string;
}

/** One look through the logs at a time: they may be long. */
export function historyOf({
  dataDir,
  dataLogDir,
}: Folders): NonNullable<ConsoleOptions['history']> {
  let before: Promise<unknown> = Promise.resolve();
  const read = async (path: string, limit: number) => {
    const newest: HistoryEntry[] = [];
    let count = 0;
    await pathHistory(dataDir, dataLogDir, path, (change) => {
      count += 1;
      newest.push(entryOf(change));
      if (newest.length > limit) newest.shift();
    });
    return { entries: newest.reverse(), isCut: count > limit };
  };
  return (path, limit) => {
    const turn = before.then(() => read(path, limit));
    before = turn.catch(() => {});
    return turn;
  };
}

function entryOf({ zxid, timeMs, sessionId, kind, before, after }: PathChange): HistoryEntry {
  return {
    zxid: hex(zxid),
    atMs: timeMs,
    session: hex(sessionId),
    kind,
    version: after?.version ?? null,
    before: dataOf(before),
    after: dataOf(after),
  };
}

const historyBytesMax = 64 * 1024;

/** The logs hold what the ACL keeps from most: only what everybody may read is shown. */
function dataOf(state: NodeState | null | undefined): string | null {
  if (state == null || state.data === null) return null;
  const isOpen =
    state.acl === null ||
    state.acl.some(({ perms, id }) => id.scheme === 'world' && (perms & 1) === 1);
  return isOpen ? state.data.subarray(0, historyBytesMax).toString('base64') : null;
}
