/** The server's own log, as far as the checker wants to know it: what landed where. */

import { join } from 'node:path';
import {
  dumpLog,
  type FileSystem,
  listLogs,
  realFileSystem,
  versionFolder,
} from '../../src/storage/index.ts';
import type { Landed } from './history.ts';

/** Every txn of a directory that no server uses now. */
export async function readLanded(
  dataDir: string,
  fs: FileSystem = realFileSystem,
): Promise<Landed[]> {
  const landed: Landed[] = [];
  for (const { path } of await listLogs(fs, join(dataDir, versionFolder))) {
    await dumpLog(
      path,
      ({ zxid, sessionId, cxid, body }) => {
        landed.push({ zxid: Number(zxid), session: `${sessionId}`, xid: cxid, type: body.type });
      },
      fs,
    );
  }
  return landed;
}
