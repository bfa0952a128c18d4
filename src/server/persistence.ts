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

import { randomBytes } from 'node:crypto';
import { printable } from '../protocol/index.ts';
import {
  type DataDirectory,
  type FileSystem,
  isProven,
  missingBehind,
  type Notice,
  openDirectory,
  type Recovered,
  readSessionSecret,
  realFileSystem,
  recover,
  type SessionSecret,
  StorageError,
  secretBytes,
  writeSessionSecret,
  zxidText,
} from '../storage/index.ts';
import { type Logger, monotonicClock, silentLogger } from '../support/index.ts';
import { ownerKind, Tree, type TreeRestore } from '../tree/index.ts';
import { DiskLog, StorageTallies, type TakenSnapshot } from './disk-log.ts';
import { SessionPasswords } from './passwords.ts';
import type { PersistenceOptions } from './persistence-options.ts';
import { ReplayCheck } from './replay-check.ts';
import type { TxnLog } from './txn-log.ts';

export interface Persistence {
  readonly tree: Tree;
  readonly log: TxnLog;
  readonly passwords: SessionPasswords;
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
    const { snapshotFolder } = directory;
    const secret = await readSessionSecret(fs, snapshotFolder);
    await disk.start(recovered);
    const passwords = await passwordsOf(secret, snapshotFolder, tree, options, fs, logger).catch(
      async (error) => {
        await disk.close();
        throw error;
      },
    );
    return {
      tree,
      log: disk,
      passwords,
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

/** With the secret of the directory, which is made when it is opened first. */
async function passwordsOf(
  found: SessionSecret | 'damaged' | null,
  folder: string,
  tree: Tree,
  { sessionPasswords: rule = 'secret' }: PersistenceOptions,
  fs: FileSystem,
  logger: Logger,
): Promise<SessionPasswords> {
  if (found === 'damaged') {
    logger.warn(
      { folder },
      'the secret of the session passwords is damaged and is made anew; sessions of before the start expire',
    );
  }
  const known = found === 'damaged' ? null : found;
  if (rule === 'apache') {
    if (known !== null && known.apacheSessions !== null) {
      await writeSessionSecret(fs, folder, { ...known, apacheSessions: null });
    }
    return new SessionPasswords(rule, known ?? {});
  }
  if (known !== null && known.apacheSessions !== null) return new SessionPasswords(rule, known);
  const made: SessionSecret = {
    secret: known?.secret ?? randomBytes(secretBytes),
    apacheSessions: new Set(found === 'damaged' ? [] : livingSessions(tree)),
  };
  await writeSessionSecret(fs, folder, made);
  return new SessionPasswords(rule, made);
}

/** Those of which nothing is left but a node are alive, too. */
function* livingSessions(tree: Tree): Generator<bigint> {
  yield* tree.sessions.keys();
  for (const id of tree.owners.keys()) if (ownerKind(id, true) !== 'ttl') yield id;
}

async function readBack(
  directory: DataDirectory,
  options: PersistenceOptions,
  fs: FileSystem,
  tallies: StorageTallies,
) {
  const { clock = monotonicClock } = options;
  let beganMs = clock.nowMs();
  const fresh = () => {
    const made = new Tree({
      extendedTypes: options.extendedTypesEnabled ?? false,
      digest: options.digestEnabled ?? true,
    });
    made.tellsEvents = false; // nobody watches yet
    return made;
  };
  let tree = fresh();
  let restored: TreeRestore | undefined;
  let check = new ReplayCheck();
  let toldZxid = 0;
  const recovered = await recover(
    directory.snapshotFolder,
    directory.logFolder,
    {
      begin({ file }) {
        tree = fresh();
        check = new ReplayCheck();
        toldZxid = 0;
        beganMs = clock.nowMs();
        restored = file === null ? undefined : tree.beginRestore();
      },
      session: (id, timeoutMs) => tree.sessions.set(id, timeoutMs),
      acl: (id, acl) => tree.acls.restore(id, acl),
      encoded: (bytes, parts) => restored!.encoded(bytes, parts),
      node: (node) => restored!.node(node),
      restored(what) {
        const nowMs = clock.nowMs();
        tallies.startup_snap_load_time.add(nowMs - beganMs);
        beganMs = nowMs;
        restored!.done(safe(what.snapshot.file.zxid));
        // Before the replay, which may delete the node that tells. A snapshot that tells itself need not be asked.
        if (what.snapshot.lastZxid === null) toldZxid = restored!.toldZxid;
        if (tree.digest !== undefined) check.restored(what, tree.digest);
      },
      txn(entry) {
        const { clientId, cxid, timeMs } = entry;
        tree.apply({ clientId, cxid, zxid: safe(entry.zxid), timeMs }, entry.body);
        if (tree.digest !== undefined) check.applied(entry, tree.digest);
      },
    },
    { fs, salvage: options.salvage ?? false },
  );
  tallies.startup_txns_load_time.add(clock.nowMs() - beganMs);
  tallies.startup_txns_loaded.add(recovered.txns);
  tree.tellsEvents = true;
  const whole = goneOn(
    judged(recovered, check, options),
    tree,
    () => Math.max(toldZxid, restored?.toldZxid ?? 0),
    options,
  );
  return { tree, recovered: withClosed(whole, restored?.closeUnlisted() ?? []), check };
}

/**
 * Nodes of a fuzzy snapshot may be of txns behind those that the logs have. These are missing, then; and who
 * knowingly goes on without them keeps the nodes, and gives out none of their zxids again.
 */
function goneOn(
  recovered: Recovered,
  tree: Tree,
  told: () => number,
  { salvage }: PersistenceOptions,
): Recovered {
  const { snapshot, lastZxid } = recovered;
  if (snapshot === null || isProven(snapshot, lastZxid)) return recovered;
  const toldZxid = told();
  const missing = missingBehind(recovered, BigInt(toldZxid));
  if (missing === null) return recovered;
  if (!salvage) throw missing;
  tree.goOnFrom(toldZxid);
  const message = `went on from ${zxidText(BigInt(toldZxid))}, with nodes of txns that are in no log`;
  const { file = '', zxids } = missing;
  const notice: Notice = { kind: 'salvaged', file, zxids, message };
  return { ...recovered, lastZxid: BigInt(toldZxid), notices: [...recovered.notices, notice] };
}

/** A node that is open by mistake is worse than one that is closed: the super user can open it again. */
function withClosed(recovered: Recovered, closed: readonly string[]): Recovered {
  if (closed.length === 0) return recovered;
  const some = closed.slice(0, 10).map(printable).join(', ');
  const message = `the ACLs of ${closed.length} nodes are in no file, so that nobody may use them but the super user: ${some}`;
  const file = recovered.snapshot?.file.path ?? '';
  return { ...recovered, notices: [...recovered.notices, { kind: 'lostAcls', file, message }] };
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
