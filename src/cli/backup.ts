/**
 * A backup of a tree through a client, from any server, as of one moment where that can be had.
 *
 * The tree is read, and then looked over once more. Where no node has changed from the reading to the
 * look (by its zxids and the version of its ACL), what was read is the tree as it was between the two:
 * every node was read before that moment and still the same after it. What has changed is read again, and
 * looked over again, `roundsMax` times. A tree that never stands still for so long gives a backup that
 * is whole node by node, but not of one moment; it says so.
 *
 * In memory stand names and zxids, a few hundred bytes a node; data goes through a file beside the backup.
 * Ephemeral nodes are in it, marked as such, to be looked at: no restore makes them again.
 */

import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { type Client, isZkError, type StatView } from '../client/index.ts';
import { quotaRoot, statsName } from '../tree/index.ts';
import { nodeLine, TreeFileWriter, unwritable } from './tree-file.ts';
import { isServersOwn } from './tree-node.ts';
import { batchNodes, readNode, refuseMasked } from './tree-zk.ts';

export interface BackupOptions {
  readonly root: string;
  readonly file: string;
  readonly signal: AbortSignal;
  readonly withoutAcl?: boolean;
  /** Called for nodes that may not be read, which are left out then. */
  readonly onUnreadable?: (path: string) => void;
  readonly roundsMax?: number;
  readonly onProgress?: (round: number, nodes: number) => void;
  /** For tests: between the reading and the first look. */
  readonly onRead?: () => Promise<void>;
}

export interface BackupResult {
  readonly nodes: number;
  readonly ephemerals: number;
  /** All of it is as of this zxid. Null where it is not of one moment. */
  readonly zxid: bigint | null;
  /** How often the tree was looked over. */
  readonly rounds: number;
}

/** Numbers alone: there is one for each node. Zxids are exact in them for two million leaders. */
interface Spilled {
  readonly at: number;
  readonly bytes: number;
  readonly czxid: number;
  readonly mzxid: number;
  readonly pzxid: number;
  readonly aversion: number;
  readonly isEphemeral: boolean;
  /** The last look that found it. */
  round: number;
}

export async function backupTree(client: Client, options: BackupOptions): Promise<BackupResult> {
  const spillPath = `${options.file}.${randomBytes(4).toString('hex')}.spill`;
  const spill = await open(spillPath, 'wx+', 0o600);
  try {
    return await new Backup(client, options, spill).run();
  } finally {
    await spill.close();
    await rm(spillPath, { force: true });
  }
}

class Backup {
  readonly #client: Client;
  readonly #options: BackupOptions;
  readonly #spill: FileHandle;
  readonly #index = new Map<string, Spilled>();
  #end = 0;

  constructor(client: Client, options: BackupOptions, spill: FileHandle) {
    this.#client = client;
    this.#options = options;
    this.#spill = spill;
  }

  async run(): Promise<BackupResult> {
    const { roundsMax = 20, signal, root, onRead } = this.#options;
    await this.#client.sync(root, { signal });
    await this.#look(0);
    await onRead?.();
    let zxid: bigint | null = null;
    let rounds = 0;
    while (zxid === null && rounds < roundsMax) {
      rounds += 1;
      const beforeZxid = this.#client.lastZxid;
      if ((await this.#look(rounds)) === 0) zxid = beforeZxid;
    }
    const ephemerals = await this.#write(zxid);
    return { nodes: this.#index.size, ephemerals, zxid, rounds };
  }

  /** Reads what is new or has changed, forgets what is gone. Returns how many that were. */
  async #look(round: number): Promise<number> {
    const { signal, onProgress } = this.#options;
    let seen = 0;
    let changes = 0;
    let batch: string[] = [];
    const flush = async () => {
      const paths = batch;
      batch = [];
      await this.#read(paths, round);
    };
    for await (const { path, stat } of this.#walk()) {
      signal.throwIfAborted();
      seen += 1;
      onProgress?.(round, seen);
      const known = this.#index.get(path);
      if (known !== undefined && isSame(path, known, stat)) {
        known.round = round;
        continue;
      }
      changes += 1;
      batch.push(path);
      if (batch.length >= batchNodes) await flush();
    }
    await flush();
    for (const [path, known] of this.#index) {
      if (known.round === round) continue;
      this.#index.delete(path);
      changes += 1;
    }
    return changes;
  }

  /** The tree, and the quotas that belong to it. */
  async *#walk(): AsyncGenerator<{ readonly path: string; readonly stat: StatView }> {
    const { root, signal, onUnreadable } = this.#options;
    const walking = { signal, ...(onUnreadable && { onUnreadable }) };
    const hasServersOwn = this.#client.chroot === '';
    for await (const node of this.#client.walk(root, walking)) {
      if (!(hasServersOwn && isServersOwn(node.path))) yield node;
    }
    if (!hasServersOwn || root !== '/') return;
    try {
      for await (const node of this.#client.walk(quotaRoot, walking)) {
        if (node.path !== quotaRoot) yield node;
      }
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
    }
  }

  async #read(paths: readonly string[], round: number): Promise<void> {
    const { root, signal, withoutAcl = false, onUnreadable } = this.#options;
    const reading = { signal, withoutAcl, onUnreadable };
    const found = await Promise.all(
      paths.map((path) => readNode(this.#client, root, path, reading)),
    );
    for (const [i, one] of found.entries()) {
      const path = paths[i]!;
      if (one === null) {
        this.#index.delete(path);
        continue;
      }
      refuseMasked(one.node, root);
      const line = Buffer.from(nodeLine(one.node));
      // All of it or an error: a single write on a full disk takes what fits, and says no word.
      await this.#spill.appendFile(line).catch((error) => {
        throw unwritable(this.#options.file, error);
      });
      const isEphemeral = one.node.mode === 'ephemeral';
      // The Stat of the data: it was asked for before the ACL, so it is never newer than that.
      const { aversion } = one.stat;
      const [czxid, mzxid, pzxid] = zxidsOf(one.stat);
      const place = { at: this.#end, bytes: line.length };
      this.#index.set(path, { ...place, czxid, mzxid, pzxid, aversion, isEphemeral, round });
      this.#end += line.length;
    }
  }

  /** In the order of paths, so that two backups of one tree are equal. */
  async #write(zxid: bigint | null): Promise<number> {
    const { root, file, signal } = this.#options;
    const zxidText = zxid === null ? null : `0x${zxid.toString(16)}`;
    const about = { kind: 'backup', root, zxid: zxidText, server: this.#client.server ?? null };
    const writer = await TreeFileWriter.open(file, { ...about, takenAt: new Date().toISOString() });
    let ephemerals = 0;
    try {
      const paths = [...this.#index.keys()].sort();
      for (const path of paths) {
        signal.throwIfAborted();
        const { at, bytes, isEphemeral } = this.#index.get(path)!;
        const line = Buffer.alloc(bytes);
        await this.#spill.read(line, 0, bytes, at);
        await writer.line(line.toString('utf8'));
        if (isEphemeral) ephemerals += 1;
      }
      await writer.commit({ ephemerals });
    } catch (error) {
      await writer.abort();
      throw error;
    }
    return ephemerals;
  }
}

/** Whether all that is in a backup is still as it was. The counters of quotas change all the time. */
function isSame(path: string, known: Spilled, stat: StatView): boolean {
  const [czxid, mzxid, pzxid] = zxidsOf(stat);
  if (czxid !== known.czxid) return false;
  if (path.startsWith(`${quotaRoot}/`) && path.endsWith(`/${statsName}`)) return true;
  return mzxid === known.mzxid && pzxid === known.pzxid && stat.aversion === known.aversion;
}

function zxidsOf({ czxid, mzxid, pzxid }: StatView): [number, number, number] {
  return [Number(czxid), Number(mzxid), Number(pzxid)];
}
