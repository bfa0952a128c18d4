/**
 * A server's memory on disk: what it knew when it stopped, and where it writes what it learns.
 *
 * In: a data directory, ours or Apache's. Out: the tree as it was, and a log that acknowledges a txn
 * once it would survive a loss of power. Every `snapCount` txns, more or less, the log goes on in a
 * new file and a snapshot is written behind the back of everybody: the tree changes meanwhile, and
 * the log that is replayed over it mends that.
 *
 * A log that fails is the end: nothing more is acknowledged. A snapshot that fails costs nothing but
 * a longer replay, and is tried again with the next.
 */

import { Writer } from '../jute/index.ts';
import {
  CreateTxn,
  digestVersion,
  type MultiTxn,
  SetDataTxn,
  StatPersisted,
  type TxnBody,
  txns,
} from '../protocol/index.ts';
import {
  beginEntry,
  type DataDirectory,
  type EncodedNode,
  endEntry,
  type FileSystem,
  isStorageError,
  LogWriter,
  type Notice,
  openDirectory,
  purge,
  type Recovered,
  realFileSystem,
  recover,
  type SnapshotWriterOptions,
  StorageError,
  type WrittenSnapshot,
  writeSnapshot,
  type ZxidDigest,
} from '../storage/index.ts';
import {
  type Clock,
  type Logger,
  silentLogger,
  systemClock,
  type Timer,
} from '../support/index.ts';
import { noNode, openAclId, Tree } from '../tree/index.ts';
import { ReplayCheck } from './replay-check.ts';
import { Tally } from './stats.ts';
import type { LoggedTxn, TxnLog } from './txn-log.ts';

export interface PersistenceOptions {
  readonly dataDir: string;
  /** The logs' own directory, on a disk of their own if there is one. */
  readonly dataLogDir?: string | undefined;
  /** TTL nodes in the tree. */
  readonly extendedTypesEnabled?: boolean | undefined;
  /** A digest over the tree is kept, logged and checked. On, unless told otherwise. */
  readonly digestEnabled?: boolean | undefined;
  /**
   * Txns between two snapshots: from half of it to all of it, by chance. Without, 100,000, and no fewer
   * than half of the nodes, and some seconds later than the last.
   */
  readonly snapCount?: number | undefined;
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

export interface TakenSnapshot extends WrittenSnapshot {
  readonly zxid: bigint;
}

/** What took how long, in milliseconds, and how many txns there were at the start. */
export class StorageTallies {
  readonly snapshottime = new Tally();
  readonly startup_snap_load_time = new Tally();
  readonly startup_txns_load_time = new Tally();
  readonly startup_txns_loaded = new Tally();
}

export interface Persistence {
  readonly tree: Tree;
  readonly log: TxnLog;
  readonly recovered: Recovered;
  /** What recovery found worth telling. */
  readonly notices: readonly Notice[];
  /** Digests in the files that were held against the tree, and those of them that were not its own. */
  readonly digests: { readonly compared: number; readonly mismatches: number };
  readonly lastDurableZxid: bigint;
  readonly tallies: StorageTallies;
  /** The last one that is whole: written by us, or read at the start. */
  readonly lastSnapshot: { readonly zxid: number; readonly wallMs: number } | undefined;
  /** Writes one now, or joins the one that is being written. Undefined once the log is closed. */
  snapshot(): Promise<TakenSnapshot | undefined>;
  /** Waits for the one that is being written, and begins another: it holds all there is now. */
  freshSnapshot(): Promise<TakenSnapshot | undefined>;
  /** Before an orderly end: takes one where much would have to be replayed. Never rejects. */
  finalSnapshot(): Promise<void>;
}

/** The largest zxid that the tree can count to. Only an ensemble with two million leaders gets there. */
const zxidMax = BigInt(Number.MAX_SAFE_INTEGER);

export async function openPersistence(options: PersistenceOptions): Promise<Persistence> {
  const { fs = realFileSystem, logger = silentLogger } = options;
  const directory = await openDirectory(
    {
      dataDir: options.dataDir,
      ...(options.dataLogDir === undefined ? {} : { dataLogDir: options.dataLogDir }),
    },
    fs,
  );
  try {
    const tallies = new StorageTallies();
    const { tree, recovered, check } = await readBack(directory, options, fs, tallies);
    for (const { kind, file, message } of recovered.notices) logger.warn({ kind, file }, message);
    const disk = new DiskLog(directory, tree, recovered.lastZxid, options, fs, logger, tallies);
    await disk.start(recovered);
    return {
      tree,
      log: disk,
      recovered,
      notices: recovered.notices,
      digests: { compared: check.compared, mismatches: check.mismatches },
      get lastDurableZxid() {
        return disk.lastDurableZxid;
      },
      tallies,
      get lastSnapshot() {
        return disk.lastSnapshot;
      },
      snapshot: () => disk.snapshot(),
      freshSnapshot: () => disk.freshSnapshot(),
      finalSnapshot: () => disk.finalSnapshot(),
    };
  } catch (error) {
    await directory.release();
    throw error;
  }
}

async function readBack(
  directory: DataDirectory,
  options: PersistenceOptions,
  fs: FileSystem,
  tallies: StorageTallies,
) {
  const { clock = systemClock } = options;
  let beganMs = clock.nowMs();
  const fresh = () =>
    new Tree({
      extendedTypes: options.extendedTypesEnabled ?? false,
      digest: options.digestEnabled ?? true,
    });
  let tree = fresh();
  const persisted = new Writer(StatPersisted.width);
  let check = new ReplayCheck();
  const recovered = await recover(
    directory.snapshotFolder,
    directory.logFolder,
    {
      begin({ file }) {
        tree = fresh();
        check = new ReplayCheck();
        beganMs = clock.nowMs();
        if (file !== null) tree.beginRestore();
      },
      session: (id, timeoutMs) => tree.sessions.set(id, timeoutMs),
      acl: (id, acl) => tree.acls.restore(id, acl),
      encoded: (bytes, parts) => tree.restoreEncoded(bytes, parts),
      node({ path, data, acl, stat }) {
        persisted.truncate(0);
        StatPersisted.write(persisted, stat);
        tree.restoreNode(path === '' ? '/' : path, data, acl, persisted.written());
      },
      restored(what) {
        const nowMs = clock.nowMs();
        tallies.startup_snap_load_time.add(nowMs - beganMs);
        beganMs = nowMs;
        tree.restored(safe(what.snapshot.file.zxid));
        if (tree.digest !== undefined) check.restored(what, tree.digest);
      },
      txn(entry) {
        const { clientId, cxid, time } = entry.header;
        const head = { clientId, cxid, zxid: safe(entry.zxid), timeMs: Number(time) };
        tree.apply(head, entry.body);
        if (tree.digest !== undefined) check.applied(entry, tree.digest);
      },
    },
    { fs, salvage: options.salvage ?? false },
  );
  tallies.startup_txns_load_time.add(clock.nowMs() - beganMs);
  tallies.startup_txns_loaded.add(recovered.txns);
  return { tree, recovered: judged(recovered, check, options), check };
}

/** Nothing is lost with a wrong digest, so that who salvages keeps all there is, and is told. */
function judged(recovered: Recovered, check: ReplayCheck, options: PersistenceOptions): Recovered {
  const error = check.fault ?? check.settled;
  if (error === undefined) return recovered;
  if (check.fault !== undefined && !options.salvage) throw check.fault;
  const kind = check.fault === undefined ? 'wrongDigest' : 'salvaged';
  const { file = '', zxids, message } = error;
  const end = check.fault === undefined ? 'a later digest proves the tree' : 'went on with it';
  const notice: Notice = { kind, file, zxids, message: `${message}; ${end}` };
  return { ...recovered, notices: [...recovered.notices, notice] };
}

function safe(zxid: bigint): number {
  if (zxid > zxidMax || zxid < 0n) {
    throw new StorageError(
      'ZXID_ORDER',
      `zxid 0x${zxid.toString(16)} is beyond what can be counted`,
    );
  }
  return Number(zxid);
}

const half = 2 ** 32;

/** From the end of one snapshot to the next: what is to be replayed meanwhile takes about a second. */
const snapshotPauseMs = 3_000;
const snapCountDefault = 100_000;

class DiskLog implements TxnLog {
  readonly #directory: DataDirectory;
  readonly #tree: Tree;
  readonly #writer: LogWriter;
  readonly #options: PersistenceOptions;
  readonly #fs: FileSystem;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #tallies: StorageTallies;
  readonly #scratch = new Writer(64 * 1024);
  #sinceSnapshot = 0;
  #nextSnapshotAfter: number;
  #snapshotting: Promise<TakenSnapshot> | undefined;
  /** When the last one was done, by the clock that only grows. */
  #snapshotMs = -Infinity;
  #purging: Promise<void> | undefined;
  #purgeTimer: Timer | undefined;
  #isClosed = false;
  /** What was found while nobody asked; the next batch hears of it. */
  #broken: StorageError | undefined;
  lastSnapshot: Persistence['lastSnapshot'];

  constructor(
    directory: DataDirectory,
    tree: Tree,
    lastZxid: bigint,
    options: PersistenceOptions,
    fs: FileSystem,
    logger: Logger,
    tallies: StorageTallies,
  ) {
    this.#tallies = tallies;
    this.#directory = directory;
    this.#tree = tree;
    this.#options = options;
    this.#fs = fs;
    this.#logger = logger;
    this.#clock = options.clock ?? systemClock;
    this.#nextSnapshotAfter = this.#roll();
    this.#writer = new LogWriter({
      folder: directory.logFolder,
      lastZxid,
      fs,
      unsafeNoFsync: options.unsafeNoFsync ?? false,
      ...(options.preallocBytes === undefined ? {} : { preallocBytes: options.preallocBytes }),
    });
  }

  get lastDurableZxid(): bigint {
    return this.#writer.lastDurableZxid;
  }

  /**
   * A directory without a snapshot gets one: Apache refuses to start on logs alone. So does one that
   * was salvaged: from here on what was lost is no longer in the way.
   */
  async start({ snapshot, txns: replayed, notices }: Recovered): Promise<void> {
    this.#sinceSnapshot = replayed;
    if (snapshot !== null) {
      const { path, zxid } = snapshot.file;
      const wallMs = (await this.#fs.status(path))?.modifiedMs ?? 0;
      this.lastSnapshot = { zxid: Number(zxid), wallMs };
    }
    const isSalvaged = notices.some(({ kind }) => kind === 'salvaged');
    if (snapshot === null || isSalvaged) await this.snapshot();
    this.#schedulePurge();
  }

  async append(batch: readonly LoggedTxn[], isQuiet = false): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    const { bytes, ends } = this.#encode(batch);
    // A snapshot keeps the disk busy.
    await this.#writer.appendEntries(bytes, ends, isQuiet && this.#snapshotting === undefined);
    this.#sinceSnapshot += batch.length;
    if (!this.#isSnapshotDue || this.#snapshotting !== undefined) return;
    // After the batch was applied: what is durable and not in the tree yet would only be replayed.
    setImmediate(() => {
      this.snapshot().catch((error) => this.#logger.error({ err: error }, 'snapshot failed'));
    });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#purgeTimer?.cancel();
    await this.#snapshotting?.catch(() => {}); // told in the log already
    await this.#purging;
    try {
      await this.#writer.close();
    } finally {
      await this.#directory.release(); // whoever starts next must find it free, whatever the disk says
    }
  }

  async freshSnapshot(): Promise<TakenSnapshot | undefined> {
    await this.#snapshotting?.catch(() => {}); // whoever asked for that one is told
    return this.snapshot();
  }

  async finalSnapshot(): Promise<void> {
    await this.#snapshotting?.catch(() => {});
    // Half as many as one is taken for anyway: it is quicker than to replay them.
    if (2 * this.#sinceSnapshot < (this.#options.snapCount ?? snapCountDefault)) return;
    try {
      await this.snapshot();
    } catch (error) {
      this.#logger.error({ err: error }, 'no snapshot at the end: the next start takes longer');
    }
  }

  snapshot(): Promise<TakenSnapshot | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    this.#snapshotting ??= this.#writeSnapshot()
      .catch((error) => {
        if (isStorageError(error, 'BROKEN_MEMORY')) this.#broken = error;
        throw error;
      })
      .finally(() => {
        this.#snapshotting = undefined;
      });
    return this.#snapshotting;
  }

  /**
   * Where nobody said after how many: not before half as many txns as there are nodes, and not at once
   * after the last one. What a snapshot costs grows with the tree, and so would the part of the time that
   * goes into them while it is filled; and while one is synced, writes wait longer for the disk.
   */
  get #isSnapshotDue(): boolean {
    if (this.#sinceSnapshot < this.#nextSnapshotAfter) return false;
    if (this.#options.snapCount !== undefined) return true;
    const isLarge = 2 * this.#sinceSnapshot < this.#tree.nodes.count;
    return !isLarge && this.#clock.nowMs() - this.#snapshotMs >= snapshotPauseMs;
  }

  /** Spread over time, so that the servers of one machine don't all write at once. */
  #roll(): number {
    const { snapCount = snapCountDefault, random = Math.random } = this.#options;
    return Math.max(1, Math.ceil(snapCount / 2 + (snapCount / 2) * random()));
  }

  async #writeSnapshot(): Promise<TakenSnapshot> {
    this.#sinceSnapshot = 0;
    this.#nextSnapshotAfter = this.#roll();
    this.#writer.roll();
    const startMs = this.#clock.nowMs();
    const zxid = BigInt(this.#tree.lastZxid);
    const written = await writeTree(this.#tree, {
      folder: this.#directory.snapshotFolder,
      fs: this.#fs,
      compression: this.#options.snapshotCompression ?? 'none',
      unsafeNoFsync: this.#options.unsafeNoFsync ?? false,
    });
    this.#snapshotMs = this.#clock.nowMs();
    const tookMs = Math.round(this.#snapshotMs - startMs);
    this.#tallies.snapshottime.add(tookMs);
    this.lastSnapshot = { zxid: Number(zxid), wallMs: this.#clock.wallMs() };
    this.#logger.info({ ...written, zxid: `0x${zxid.toString(16)}`, tookMs }, 'snapshot written');
    return { ...written, zxid };
  }

  /** All of a batch in one stretch of memory; the log copies what it is given. */
  #encode(batch: readonly LoggedTxn[]): { bytes: Buffer; ends: readonly number[] } {
    const writer = this.#scratch;
    writer.truncate(0);
    const ends: number[] = [];
    for (const { head, body, digest } of batch) {
      beginEntry(writer);
      writer.long(head.clientId);
      writer.int(head.cxid);
      writer.longHalves(Math.floor(head.zxid / half), head.zxid | 0);
      writer.longHalves(Math.floor(head.timeMs / half), head.timeMs | 0);
      writeBody(writer, body);
      if (digest !== undefined) {
        writer.int(digestVersion);
        writer.longHalves(digest.high, digest.low);
      }
      endEntry(writer);
      ends.push(writer.length);
    }
    return { bytes: writer.written(), ends };
  }

  #schedulePurge(): void {
    const { autopurge } = this.#options;
    if (autopurge === undefined || autopurge.intervalMs <= 0) return;
    const again = () => {
      this.#purgeTimer = this.#clock.after(autopurge.intervalMs, run, true);
    };
    const run = () => {
      this.#purging = this.#purge(autopurge.retain).finally(again);
    };
    run();
  }

  async #purge(retain: number): Promise<void> {
    const { snapshotFolder, logFolder } = this.#directory;
    try {
      const { removed, refusal } = await purge(snapshotFolder, logFolder, retain, this.#fs);
      if (refusal !== null) this.#logger.warn({ refusal }, 'nothing was purged');
      else if (removed.length > 0) this.#logger.info({ removed }, 'purged');
    } catch (error) {
      this.#logger.error({ err: error }, 'purge failed');
    }
  }
}

/** Its type and its record. The two that are most of all have a way of their own. */
function writeBody(writer: Writer, body: TxnBody): void {
  if (body.type === 'setData') {
    writer.int(txns.setData.code);
    SetDataTxn.write(writer, body.txn);
  } else if (body.type === 'create') {
    writer.int(txns.create.code);
    CreateTxn.write(writer, body.txn);
  } else {
    const { code, record } = txns[body.type];
    writer.int(code);
    record.write(writer, (body.type === 'multi' ? readableBy38(body.txn) : body.txn) as never);
  }
}

/**
 * Servers before 3.9 log a create2 within a multi as a create, and know no other when they replay one:
 * they would drop the whole multi without a word. To a replay the two are the same.
 */
function readableBy38({ txns: parts }: MultiTxn): MultiTxn {
  const { create, create2 } = txns;
  if (!parts.some(({ type }) => type === create2.code)) return { txns: parts };
  return {
    txns: parts.map((part) => (part.type === create2.code ? { ...part, type: create.code } : part)),
  };
}

/** A snapshot of the tree, which may change meanwhile. */
export function writeTree(tree: Tree, options: SnapshotWriterOptions): Promise<WrittenSnapshot> {
  const acls = new Map(tree.acls.entries());
  return writeSnapshot(
    {
      zxid: BigInt(tree.lastZxid),
      sessions: new Map(tree.sessions),
      acls,
      nodes: snapshotNodes(tree, acls),
      digest: () => digestNow(tree),
      lastZxid: () => BigInt(tree.lastZxid),
    },
    options,
  );
}

function digestNow({ digest, lastZxid }: Tree): ZxidDigest | null {
  if (digest === undefined || lastZxid === 0) return null;
  return { zxid: BigInt(lastZxid), version: digestVersion, value: digest.value };
}

/**
 * Every node, as a snapshot has it; one whose memory went bad is not written over the good one on disk.
 * One that got a new ACL since the list was made stands with the open one: the txn that gave it is in
 * the log behind the snapshot, and is replayed. It is the same object each time.
 */
function* snapshotNodes(
  tree: Tree,
  acls: ReadonlyMap<number, unknown>,
): Generator<EncodedNode, void, void> {
  const { nodes } = tree;
  let node = noNode;
  const encoded: EncodedNode = {
    writeTo(writer) {
      const acl = nodes.aclOf(node);
      nodes.writeSnapshot(writer, node, acl === openAclId || acls.has(acl) ? acl : openAclId);
    },
  };
  for (node of tree.walk()) {
    if (!tree.isIntact(node)) throw new StorageError('BROKEN_MEMORY', nodes.pathOf(node));
    yield encoded;
  }
}
