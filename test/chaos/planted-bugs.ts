/**
 * Tests of the tests (2.8): servers with a fault built in, each of which the campaigns must find. The
 * faults are in what stands around the server, its disk and its log, and not in its code.
 */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LoggedTxn, TxnLog } from '../../src/server/index.ts';
import {
  SimulatedDisk as Disk,
  type FileSystem,
  type SimulatedDisk,
  type StoredFile,
  versionFolder,
} from '../../src/storage/index.ts';
import { temporaryFolder } from './child.ts';
import { type DiskLifeOptions, diskLife } from './disk-life.ts';

type Plan = Pick<DiskLifeOptions, 'fs' | 'log' | 'meanwhile' | 'dataDir' | 'disk'>;

/** The disk, with files that do some things otherwise. */
function withFiles(
  disk: SimulatedDisk,
  change: (file: StoredFile, path: string) => Partial<StoredFile>,
): FileSystem {
  return {
    ...forwarded(disk),
    async open(path, how) {
      const file = await disk.open(path, how);
      return { ...forwardedFile(file), ...change(file, path) };
    },
  };
}

function forwarded(disk: SimulatedDisk): FileSystem {
  return {
    open: (path, how) => disk.open(path, how),
    rename: (from, to) => disk.rename(from, to),
    remove: (path) => disk.remove(path),
    list: (folder) => disk.list(folder),
    status: (path) => disk.status(path),
    realPath: (path) => disk.realPath(path),
    makeFolder: (path) => disk.makeFolder(path),
    syncFolder: (path) => disk.syncFolder(path),
  };
}

function forwardedFile(file: StoredFile): StoredFile {
  return {
    read: (target, position) => file.read(target, position),
    write: (bytes, position) => file.write(bytes, position),
    allocate: (from, to) => file.allocate(from, to),
    truncate: (bytes) => file.truncate(bytes),
    sync: () => file.sync(),
    size: () => file.size(),
    close: () => file.close(),
  };
}

const isLog = (path: string) => /\/log\.[0-9a-f]+$/.test(path);
const isSnapshot = (path: string) => path.includes('snapshot.');

/** Changes the files while nobody uses them. The mark goes too: it would give the change away. */
function damaged(dataDir: string, change: (files: Map<string, Buffer>) => void) {
  return (disk: SimulatedDisk): SimulatedDisk => {
    const files = disk.contents();
    const folder = join(dataDir, versionFolder);
    files.delete(join(folder, '.drover-mark'));
    change(files);
    return Disk.of(files, [dataDir, folder]);
  };
}

const lastOf = (files: Map<string, Buffer>, wanted: (path: string) => boolean) =>
  [...files.keys()]
    .filter(wanted)
    .sort((a, b) => zxidOf(a) - zxidOf(b))
    .at(-1)!;
const zxidOf = (path: string) => Number.parseInt(path.slice(path.lastIndexOf('.') + 1), 16);

/** Where each entry of a log starts, and behind them where the last one ends. */
function offsetsOf(log: Buffer): number[] {
  const offsets: number[] = [];
  let at = 16;
  while (at + 12 <= log.length && log.readInt32BE(at + 8) > 0) {
    offsets.push(at);
    at += log.readInt32BE(at + 8) + 13;
  }
  return [...offsets, at];
}

/** What is logged otherwise goes without its digest, by which the server itself would find out. */
const wrapped =
  (append: (real: TxnLog, batch: readonly LoggedTxn[]) => Promise<void>) =>
  (real: TxnLog): TxnLog => ({ append: (batch) => append(real, batch), close: () => real.close() });

/** What is wrong, and with what it is brought about. */
export const plantedBugs: Readonly<
  Record<string, (disk: SimulatedDisk, dataDir: string) => Omit<Plan, 'dataDir' | 'disk'>>
> = {
  'acknowledges before the sync': (disk) => ({
    fs: withFiles(disk, (_, path) => (isLog(path) ? { sync: async () => {} } : {})),
  }),
  'acknowledges while the log is still writing': () => ({
    log: wrapped(async (real, batch) => {
      // The log copies what it is given before it returns; when it is done nobody waits to hear.
      setTimeout(() => void real.append(batch).catch(() => {}), 30);
    }),
  }),
  'never syncs the folder': (disk) => ({ fs: { ...forwarded(disk), syncFolder: async () => {} } }),
  'takes no notice of a failed sync': (disk) => {
    let syncs = 0;
    disk.fault = ({ op, path }) => {
      if (op !== 'sync' || !isLog(path) || ++syncs < 8) return undefined;
      throw Object.assign(new Error('EIO'), { code: 'EIO' });
    };
    return { fs: withFiles(disk, (file) => ({ sync: () => file.sync().catch(() => {}) })) };
  },
  'syncs again after a failed sync, and believes it': (disk) => {
    let syncs = 0;
    disk.fault = ({ op, path }) => {
      if (op !== 'sync' || !isLog(path) || ++syncs % 5 !== 0) return undefined;
      throw Object.assign(new Error('EIO'), { code: 'EIO' });
    };
    return {
      fs: withFiles(disk, (file) => ({ sync: () => file.sync().catch(() => file.sync()) })),
    };
  },
  'takes no notice of a full disk': (disk) => {
    let writes = 0;
    disk.fault = ({ op, path }) =>
      op === 'write' && isLog(path) && ++writes > 10 ? 'short' : undefined;
    return {
      fs: withFiles(disk, (file) => ({
        write: (bytes, position) => file.write(bytes, position).catch(() => {}),
      })),
    };
  },
  'writes short, and does not go on': (disk) => ({
    fs: withFiles(disk, (file, path) => ({
      write: (bytes, position) =>
        file.write(isLog(path) && bytes.length > 400 ? bytes.subarray(0, 400) : bytes, position),
    })),
  }),
  'drops the last record when it starts': (_, dataDir) => ({
    meanwhile: damaged(dataDir, (files) => {
      const path = lastOf(files, isLog);
      const log = files.get(path)!;
      const offsets = offsetsOf(log);
      log.fill(0, offsets.at(-2), offsets.at(-1));
    }),
  }),
  'drops a record from the middle when it starts': (_, dataDir) => ({
    meanwhile: damaged(dataDir, (files) => {
      const path = lastOf(files, (name) => isLog(name) && offsetsOf(files.get(name)!).length > 3);
      const log = files.get(path)!;
      const [, second, third] = offsetsOf(log);
      files.set(path, Buffer.concat([log.subarray(0, second), log.subarray(third)]));
    }),
  }),
  'forgets its newest log': (_, dataDir) => ({
    meanwhile: damaged(dataDir, (files) => files.delete(lastOf(files, isLog))),
  }),
  'takes an old snapshot for its newest, and forgets the logs between': (_, dataDir) => ({
    meanwhile: damaged(dataDir, (files) => {
      const newest = lastOf(files, isSnapshot);
      files.delete(newest);
      for (const path of files.keys()) {
        if (isLog(path) && zxidOf(path) > 20 && zxidOf(path) <= zxidOf(newest)) files.delete(path);
      }
    }),
  }),
  'logs half of a multi': () => ({
    log: wrapped((real, batch) =>
      real.append(
        batch.map(({ head, body }) =>
          body.type === 'multi' && body.txn.txns.length > 1
            ? { head, body: { type: 'multi', txn: { txns: body.txn.txns.slice(0, 1) } } }
            : { head, body },
        ) as LoggedTxn[],
      ),
    ),
  }),
  'logs a delete as nothing': () => ({
    log: wrapped((real, batch) =>
      real.append(
        batch.map(({ head, body }) =>
          body.type === 'delete'
            ? { head, body: { type: 'error', txn: { err: -101 } } }
            : { head, body },
        ) as LoggedTxn[],
      ),
    ),
  }),
  'logs every value one byte short': () => ({
    log: wrapped((real, batch) =>
      real.append(
        batch.map(({ head, body }) =>
          body.type === 'setData'
            ? {
                head,
                body: {
                  type: 'setData',
                  txn: { ...body.txn, data: body.txn.data?.subarray(1) ?? null },
                },
              }
            : { head, body },
        ) as LoggedTxn[],
      ),
    ),
  }),
  'logs the time of the restart, not of the write': () => ({
    log: wrapped((real, batch) =>
      real.append(
        batch.map(({ head, body }) => ({ head: { ...head, timeMs: head.timeMs + 5_000 }, body })),
      ),
    ),
  }),
  'logs an ephemeral node as one that stays': () => ({
    log: wrapped((real, batch) =>
      real.append(
        batch.map(({ head, body }) =>
          body.type === 'create' || body.type === 'create2'
            ? { head, body: { ...body, txn: { ...body.txn, ephemeral: false } } }
            : { head, body },
        ) as LoggedTxn[],
      ),
    ),
  }),
};

/** What the checker says of a bug, in a few lives at most; nothing where it was not found. */
const livesMax = 25;

export async function findBug(name: string): Promise<string[]> {
  const dataDir = temporaryFolder('planted');
  try {
    // What a life meets is a matter of time as well as of its seed: a bug may need several.
    for (let seed = 1; seed <= livesMax; seed++) {
      const disk = new Disk();
      const plan = plantedBugs[name]!(disk, dataDir);
      const { failures } = await diskLife({ seed, dataDir, disk, ops: 150, ...plan });
      if (failures.length > 0) return failures;
    }
    return [];
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

export async function findPlanted(): Promise<{
  found: Record<string, string>;
  failures: string[];
}> {
  const found: Record<string, string> = {};
  const failures: string[] = [];
  for (const name of Object.keys(plantedBugs)) {
    const [first] = await findBug(name);
    if (first === undefined) failures.push(`not found: ${name}`);
    else found[name] = first.slice(0, 150);
  }
  return { found, failures };
}
