/**
 * `drover log dump|verify|history`: a look at transaction logs, Apache's and ours.
 *
 * Nothing is ever changed, and a server may be writing meanwhile: where a log seems broken at its end,
 * a second look tells whether that end has only moved on. Exit codes: 0 is fine, 1 says that damage was
 * found, 2 that there was nothing to look at, or no right to.
 */

import { basename, dirname } from 'node:path';
import { ProtocolError } from '../jute/index.ts';
import { errorCodeOf, openAcl, pathFault, type TxnBody } from '../protocol/index.ts';
import {
  type DescribedTxn,
  type DirectoryReport,
  describeEntry,
  type FileReport,
  type FileSystem,
  type LogFile,
  LogReader,
  type LogSummary,
  listLogs,
  listSnapshots,
  type NodeState,
  type PathChange,
  parseLogName,
  pathHistory,
  readMark,
  verifyDirectory,
} from '../storage/index.ts';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { type Action, filesOf, runAction } from './file-actions.ts';
import {
  aclJson,
  aclText,
  dataJson,
  dataText,
  escaped,
  foundCode,
  hex,
  type Output,
  timeText,
} from './output.ts';
import { folderOf, isFolder, looksMax, snapshotFault, unreadable } from './snapshot.ts';

const actions = {
  dump: { usage: 'dump FILE|DIR', argsWanted: 1, options: ['full'], run: dump },
  verify: {
    usage: 'verify DIR [--data-log DIR]',
    argsWanted: 1,
    options: ['dataLog'],
    run: verify,
  },
  history: {
    usage: 'history PATH --data DIR [--data-log DIR]',
    argsWanted: 1,
    options: ['full', 'data', 'dataLog'],
    run: history,
  },
} satisfies Record<string, Action>;

export async function log(
  context: Context,
  args: readonly string[],
  options: OptionValues,
): Promise<number> {
  return runAction('log', actions, context, args, options);
}

// ── reading a log ─────────────────────────────────────────────────────────────────────────────────

/** How a log ended: `moving` is a log whose end was being written while it was read. */
interface ReadLog extends Omit<LogSummary, 'end'> {
  readonly end: LogSummary['end']['kind'] | 'moving';
  readonly offset: number;
  /** One sentence, where there is something to say. */
  readonly remark: string | null;
}

class UnknownTxn extends Error {
  readonly offset: number;
  readonly zxid: bigint;

  constructor(offset: number, zxid: bigint, cause: ProtocolError) {
    super(cause.message, { cause });
    this.offset = offset;
    this.zxid = zxid;
  }
}

/** Reads one log to its end. What is behind the durable mark is judged by it only in the newest log. */
async function readLog(
  fs: FileSystem,
  file: LogFile,
  isNewest: boolean,
  onTxn?: (txn: DescribedTxn) => void,
): Promise<ReadLog> {
  try {
    const first = await readOnce(fs, file, isNewest, onTxn);
    if (first.end.kind !== 'damaged' || !isNewest) return judged(first);
    // Bytes that were zeros a moment ago and are an entry now look like damage.
    const second = await readOnce(fs, file, isNewest);
    if (second.end.offset === first.end.offset) return judged(first);
    const remark = `${escaped(file.path)} is being written; it was read up to zxid ${zxidOrNone(first.lastZxid)}, run it again for what came since`;
    return { ...first, end: 'moving', offset: first.end.offset, remark };
  } catch (error) {
    if (!(error instanceof UnknownTxn)) throw unreadable(error, file.path);
    const { offset, zxid, message } = error;
    const remark = `${escaped(file.path)} holds at offset ${offset}, zxid ${hex(zxid)}, what is no transaction although its checksum is right: ${escaped(message)}; whoever wrote it was newer, or wrong: restore a backup, or read it with what wrote it`;
    return {
      ...{ file, entries: 0, firstZxid: null, lastZxid: null },
      ...{ end: 'damaged', offset, remark },
    };
  }
}

async function readOnce(
  fs: FileSystem,
  file: LogFile,
  isNewest: boolean,
  onTxn?: (txn: DescribedTxn) => void,
): Promise<LogSummary> {
  const mark = isNewest ? await readMark(fs, dirname(file.path)) : null;
  const reader = await LogReader.open(fs, file, mark);
  try {
    return await reader.read((entry) => {
      if (onTxn === undefined) return;
      let txn: DescribedTxn;
      try {
        txn = describeEntry(entry);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        throw new UnknownTxn(entry.offset, entry.zxid, error);
      }
      onTxn(txn);
    });
  } finally {
    await reader.close();
  }
}

function judged(summary: LogSummary): ReadLog {
  const { end, file, lastZxid } = summary;
  const at = `${escaped(file.path)}, behind zxid ${zxidOrNone(lastZxid)}, at offset ${end.offset}`;
  const remarks: Record<typeof end.kind, string | null> = {
    clean: null,
    empty: `${escaped(file.path)} is empty: a log that was just being made`,
    torn: `${at}: ${'what' in end ? end.what : ''}: a batch that was never acknowledged, or is being written right now; nothing is lost`,
    damaged: `${at}, is damaged: ${'what' in end ? end.what : ''}${lostText(end)}`,
  };
  return { ...summary, end: end.kind, offset: end.offset, remark: remarks[end.kind] };
}

function lostText(end: LogSummary['end']): string {
  if (end.kind !== 'damaged') return '';
  const { behind } = end;
  const advice = 'restore the file from a backup, or see docs/files.md on salvage';
  if (behind === null) return `; ${advice}`;
  const { zxid, lastZxid, offset } = behind;
  return `, and whole transactions, ${hex(zxid)} to ${hex(lastZxid)}, stand behind it from offset ${offset}; ${advice}`;
}

function zxidOrNone(zxid: bigint | null): string {
  return zxid === null ? 'none' : hex(zxid);
}

// ── dump ──────────────────────────────────────────────────────────────────────────────────────────

async function dump(output: Output, [target = '']: readonly string[]): Promise<number> {
  const { files, newest } = await logFiles(filesOf(output), target);
  const columns = output.isJson
    ? undefined
    : new Columns(output, 'ZXID', 'TIME', 'SESSION', 'CXID', 'TYPE', 'PATH', 'DETAIL');
  let isDamaged = false;
  const remarks: string[] = [];
  for (const file of files) {
    const isNewest = file.name === newest;
    const read = await readLog(filesOf(output), file, isNewest, (txn) =>
      columns === undefined ? output.record(txnJson(txn)) : rows(columns, txn, output.shownBytes),
    );
    const { entries, firstZxid, lastZxid, end, offset, remark } = read;
    isDamaged ||= end === 'damaged';
    if (columns === undefined) {
      const span = { transactions: entries, firstZxid, lastZxid };
      output.record({ record: 'end', file: file.path, ...span, end, offset, remark });
    } else if (remark === null) {
      const span = entries === 0 ? '' : `, ${zxidOrNone(firstZxid)} to ${zxidOrNone(lastZxid)}`;
      remarks.push(`${escaped(file.path)}: ${entries} transactions${span}`);
    }
    if (remark !== null) remarks.push(remark);
  }
  columns?.end();
  await output.drained();
  for (const remark of remarks) output.tell(remark);
  return isDamaged ? foundCode : exitCodes.ok;
}

async function logFiles(
  fs: FileSystem,
  target: string,
): Promise<{ files: readonly LogFile[]; newest: string | undefined }> {
  if (await isFolder(target)) {
    const folder = await folderOf(target);
    const files = await listOrFail(fs, folder);
    if (files.length > 0) return { files, newest: files.at(-1)!.name };
    throw new CommandError('usage', `no log is in ${escaped(folder)}; name its dataLogDir`);
  }
  const file = parseLogName(dirname(target), basename(target));
  if (file === null) {
    const message = `${escaped(target)} is not named as a log is: log.<its first zxid in hex>`;
    throw new CommandError('usage', message);
  }
  return { files: [file], newest: (await listOrFail(fs, dirname(target))).at(-1)?.name };
}

async function listOrFail(fs: FileSystem, folder: string): Promise<LogFile[]> {
  try {
    return await listLogs(fs, folder);
  } catch (error) {
    throw unreadable(error, folder);
  }
}

/** A multi has a row of its own and one for each thing it does. */
function rows(columns: Columns, txn: DescribedTxn, shownBytes: number): void {
  const { zxid, timeMs, sessionId, cxid, body, parts } = txn;
  const head = [hex(zxid), timeText(timeMs), hex(sessionId), String(cxid)];
  columns.row(...head, body.type, pathText(body), detail(body, shownBytes));
  for (const part of parts) {
    columns.row(...head, `multi.${part.type}`, pathText(part), detail(part, shownBytes));
  }
}

function pathText({ txn }: TxnBody): string {
  return 'path' in txn ? escaped(txn.path) : '-';
}

const namedPathsMax = 5;

function detail({ type, txn }: TxnBody, shownBytes: number): string {
  switch (type) {
    case 'create':
    case 'create2':
    case 'createContainer':
    case 'createTTL': {
      const acl = aclText(txn.acl);
      return [
        'ephemeral' in txn && txn.ephemeral ? 'ephemeral ' : '',
        'ttl' in txn ? `ttl ${txn.ttl} ms ` : '',
        acl === aclText(openAcl) ? '' : `acl ${acl} `,
        `data ${dataText(txn.data, shownBytes)}`,
      ].join('');
    }
    case 'setData':
    case 'reconfig':
      return `version ${txn.version} data ${dataText(txn.data, shownBytes)}`;
    case 'setACL':
      return `version ${txn.version} acl ${aclText(txn.acl)}`;
    case 'check':
      return `version ${txn.version}`;
    case 'multi':
      return `${txn.txns.length} parts`;
    case 'error':
      return errorCodeOf(txn.err);
    case 'createSession':
      return `timeout ${txn.timeOut} ms`;
    case 'closeSession': {
      const paths = txn.paths2Delete;
      if (paths.length === 0) return '-';
      const named = shownBytes === Number.POSITIVE_INFINITY ? paths : paths.slice(0, namedPathsMax);
      const more = paths.length - named.length;
      return `deletes ${named.map(escaped).join(' ')}${more > 0 ? ` and ${more} more` : ''}`;
    }
    default:
      return '-';
  }
}

function txnJson(described: DescribedTxn): object {
  const { zxid, timeMs, sessionId, cxid, body, parts, digest, file, offset } = described;
  return {
    ...{ record: 'txn', zxid, time: timeText(timeMs), sessionId, cxid },
    ...bodyJson(body),
    ...(body.type === 'multi' ? { parts: parts.map(bodyJson) } : {}),
    ...{ digest, file, offset },
  };
}

function bodyJson({ type, txn }: TxnBody): object {
  return {
    type,
    ...('path' in txn ? { path: txn.path } : {}),
    ...('data' in txn ? { data: dataJson(txn.data) } : {}),
    ...('acl' in txn ? { acl: aclJson(txn.acl) } : {}),
    ...('version' in txn ? { version: txn.version } : {}),
    ...('ephemeral' in txn ? { ephemeral: txn.ephemeral } : {}),
    ...('ttl' in txn ? { ttlMs: Number(txn.ttl) } : {}),
    ...('timeOut' in txn ? { timeoutMs: txn.timeOut } : {}),
    ...('paths2Delete' in txn ? { deletes: txn.paths2Delete } : {}),
    ...('err' in txn ? { error: errorCodeOf(txn.err) } : {}),
  };
}

// ── verify ────────────────────────────────────────────────────────────────────────────────────────

interface Fault {
  /** None for what is wrong with all of them together. */
  readonly file: string | null;
  readonly offset: number | null;
  readonly sentence: string;
}

async function verify(
  output: Output,
  [target = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  const folder = await folderOf(target);
  const logFolder = await logFolderOf(folder, options);
  const before = await newestChange(filesOf(output), logFolder);
  const { report, damage, moving } = await lookUntilSettled(output, folder, logFolder);
  const { snapshots, logs } = report;
  if (snapshots.length + logs.length === 0) {
    const where = [...new Set([folder, logFolder])].map(escaped).join(' and ');
    throw new CommandError('usage', `neither logs nor snapshots are in ${where}; name a dataDir`);
  }
  const isDamaged = damage.length > 0;
  const isInUse = moving.length > 0 || before !== (await newestChange(filesOf(output), logFolder));
  if (output.isJson) verdictJson(output, report, damage, moving, isInUse);
  else verdictColumns(output, report, damage, moving);
  await output.drained();
  for (const { sentence } of damage) output.tell(sentence);
  if (isInUse) {
    output.tell(
      `a server is writing to ${escaped(logFolder)}: it was judged as it stood a moment ago`,
    );
  }
  if (logs.length === 0) {
    output.tell(
      `no log is in ${escaped(logFolder)}; if they have a folder of their own, name it with --data-log`,
    );
  }
  for (const { file, message } of report.recovered?.notices ?? []) {
    if (damage.every((fault) => fault.file !== file)) {
      output.tell(`${escaped(file)}: ${escaped(message)}`);
    }
  }
  if (isDamaged && report.recovered !== null) {
    output.tell(
      `what a server needs is whole, up to zxid ${hex(report.recovered.lastZxid)}; make a backup now, and keep what is damaged until then`,
    );
  }
  return isDamaged ? foundCode : exitCodes.ok;
}

async function logFolderOf(folder: string, { dataLog }: OptionValues): Promise<string> {
  return dataLog === undefined ? folder : folderOf(String(dataLog));
}

/** A server that writes changes this. */
async function newestChange(fs: FileSystem, logFolder: string): Promise<string> {
  const newest = (await listOrFail(fs, logFolder)).at(-1);
  const status = newest && (await fs.status(newest.path));
  return `${newest?.name} ${status?.modifiedMs} ${status?.bytes}`;
}

interface Settled {
  readonly report: DirectoryReport;
  readonly damage: readonly Fault[];
  readonly moving: readonly Fault[];
}

/** A fault that is found in the same place twice is damage; one that moves is a file being written. */
async function lookUntilSettled(
  output: Output,
  folder: string,
  logFolder: string,
): Promise<Settled> {
  let known = new Set<string>();
  for (let look = 1; ; look++) {
    const report = await lookOnce(output, folder, logFolder);
    const faults = await faultsOf(filesOf(output), report);
    const damage = faults.filter(({ sentence }) => known.has(sentence));
    const moving = faults.filter(({ sentence }) => !known.has(sentence));
    if (moving.length === 0 || look === looksMax) return { report, damage, moving };
    known = new Set(faults.map(({ sentence }) => sentence));
  }
}

async function lookOnce(output: Output, folder: string, logFolder: string) {
  try {
    const report = await verifyDirectory(folder, logFolder, filesOf(output));
    if (output.isGone) throw new Error('nobody reads the output any more');
    return report;
  } catch (error) {
    throw unreadable(error, folder);
  }
}

async function faultsOf(fs: FileSystem, report: DirectoryReport): Promise<Fault[]> {
  const faults: Fault[] = [];
  for (const { path, fault } of report.snapshots) {
    const found = fault === null ? null : await snapshotFault(fs, path);
    if (found !== null) faults.push({ file: path, ...found });
  }
  for (const each of report.logs) {
    const { remark, end, offset } = await judgedReport(fs, each);
    if (end === 'damaged') faults.push({ file: each.path, offset, sentence: remark! });
  }
  const { refusal } = report;
  if (refusal !== null) {
    const advice = 'restore a backup, or go on without what is lost by drover serve --salvage';
    const sentence = `a server would refuse to start: ${escaped(refusal.message)}; ${advice}`;
    faults.push({ file: null, offset: refusal.offset ?? null, sentence });
  }
  return faults;
}

/** Of a log that could not be read to its end the report has only words: look where it was. */
function judgedReport(fs: FileSystem, { path, summary }: FileReport): Promise<ReadLog> | ReadLog {
  if (summary !== null) return judged(summary as LogSummary);
  return readLog(fs, parseLogName(dirname(path), basename(path))!, false, () => {});
}

function stateOf({ path, summary }: FileReport, { damage, moving }: Omit<Settled, 'report'>) {
  if (damage.some(({ file }) => file === path)) return 'damaged';
  if (moving.some(({ file }) => file === path)) return 'moving';
  const kind = summary !== null && 'end' in summary ? summary.end.kind : 'clean';
  return kind === 'clean' ? 'sound' : kind;
}

function verdictColumns(
  output: Output,
  { snapshots, logs, recovered }: DirectoryReport,
  damage: readonly Fault[],
  moving: readonly Fault[],
): void {
  const columns = new Columns(output, 'FILE', 'STATE', 'FROM', 'TO', 'HOLDS', 'DETAIL');
  for (const report of [...snapshots, ...logs]) {
    const { path, summary, fault } = report;
    const state = stateOf(report, { damage, moving });
    const cells =
      summary === null
        ? ['-', '-', '-']
        : 'end' in summary
          ? [zxidOrNone(summary.firstZxid), zxidOrNone(summary.lastZxid), `${summary.entries} txns`]
          : ['-', hex(summary.lastZxid ?? summary.file.zxid), `${summary.nodes} nodes`];
    columns.row(escaped(path), state, ...cells, fault === null ? '-' : escaped(fault));
  }
  columns.end();
  if (recovered === null) return;
  const { lastZxid, snapshot, txns } = recovered;
  const from = snapshot === null ? 'no snapshot' : escaped(basename(snapshot.file.path));
  output.write(`a server would start at zxid ${hex(lastZxid)}: ${from} and ${txns} transactions\n`);
}

function verdictJson(
  output: Output,
  { snapshots, logs, recovered, refusal }: DirectoryReport,
  damage: readonly Fault[],
  moving: readonly Fault[],
  isInUse: boolean,
): void {
  for (const report of snapshots) {
    const { path, fault } = report;
    const summary = report.summary as Exclude<FileReport['summary'], LogSummary>;
    const { nodes, sessions, lastZxid, digest } = summary ?? {};
    const state = stateOf(report, { damage, moving });
    const content = { nodes, sessions, lastZxid, digest };
    output.record({ record: 'snapshot', file: path, state, fault, ...content });
  }
  for (const report of logs) {
    const { path, fault } = report;
    const { entries, firstZxid, lastZxid, end } = (report.summary as LogSummary | null) ?? {};
    const state = stateOf(report, { damage, moving });
    const content = { transactions: entries, firstZxid, lastZxid, offset: end?.offset };
    output.record({ record: 'log', file: path, state, fault, ...content });
  }
  output.record({
    record: 'verdict',
    isSound: damage.length === 0,
    isInUse,
    startsAtZxid: recovered?.lastZxid ?? null,
    snapshot: recovered?.snapshot?.file.path ?? null,
    transactions: recovered?.txns ?? null,
    damage,
    notices: recovered?.notices ?? [],
    refusal: refusal && {
      code: refusal.code,
      file: refusal.file,
      offset: refusal.offset,
      zxids: refusal.zxids,
    },
  });
}

// ── history ───────────────────────────────────────────────────────────────────────────────────────

const kindTexts: Record<PathChange['kind'], string> = {
  created: 'created',
  dataSet: 'data set',
  aclSet: 'acl set',
  deleted: 'deleted',
  deletedWithSession: 'deleted with its session',
};

async function history(
  output: Output,
  [path = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  const fault = pathFault(path);
  if (fault !== null) throw new CommandError('usage', `${escaped(path)} is no path: ${fault}`);
  if (options.data === undefined) {
    throw new CommandError('usage', 'where the logs are must be said: --data DIR');
  }
  const folder = await folderOf(String(options.data));
  const logFolder = await logFolderOf(folder, options);
  if ((await listOrFail(filesOf(output), logFolder)).length === 0) {
    const message = `no log is in ${escaped(logFolder)}; if they have a folder of their own, name it with --data-log`;
    throw new CommandError('usage', message);
  }
  const columns = output.isJson
    ? undefined
    : new Columns(output, 'ZXID', 'TIME', 'SESSION', 'CHANGE', 'VERSION', 'BEFORE', 'AFTER');
  let changes = 0;
  const known = new Knowledge();
  try {
    await pathHistory(
      folder,
      logFolder,
      path,
      (change) => {
        changes += 1;
        const { before, after } = known.of(change);
        if (columns === undefined) return output.record(changeJson(path, change, before, after));
        const show = (state: KnownState) => stateText(state, change.kind, output.shownBytes);
        columns.row(
          ...[hex(change.zxid), timeText(change.timeMs), hex(change.sessionId), kindText(change)],
          ...[String(after?.version ?? '-'), show(before), show(after)],
        );
      },
      filesOf(output),
    );
  } catch (error) {
    // The place is found below, and told.
    if (!(error instanceof ProtocolError)) throw unreadable(error, logFolder);
  }
  columns?.end();
  const { gaps, isDamaged } = await gapsOf(output, folder, logFolder);
  if (columns === undefined) output.record({ record: 'end', path, changes, gaps });
  else if (changes === 0) output.tell(`no log that is left tells of ${escaped(path)}`);
  await output.drained();
  for (const gap of gaps) output.tell(gap);
  return isDamaged ? foundCode : exitCodes.ok;
}

/** What is known of a node: a field that no file tells is not there, and undefined is nothing at all. */
type KnownState = Partial<NodeState> | null | undefined;

/**
 * Where the first that is told of a node is not its creation, the log has one field of it and the rest
 * stays unknown until it is told too.
 */
class Knowledge {
  #fields: readonly (keyof NodeState)[] | undefined;

  of({ kind, before, after }: PathChange): { before: KnownState; after: KnownState } {
    const knownBefore = this.#only(before);
    if (after === null || kind === 'created') this.#fields = undefined;
    else if (before === undefined) this.#fields = kind === 'aclSet' ? ['acl'] : ['data', 'version'];
    else if (this.#fields !== undefined) {
      const told = kind === 'aclSet' ? (['acl'] as const) : (['data', 'version'] as const);
      this.#fields = [...new Set([...this.#fields, ...told])];
    }
    return { before: knownBefore, after: this.#only(after) };
  }

  #only(state: NodeState | null | undefined): KnownState {
    if (!state || this.#fields === undefined) return state;
    return Object.fromEntries(this.#fields.map((field) => [field, state[field]]));
  }
}

function kindText({ kind, part, after }: PathChange): string {
  const owned = kind === 'created' && after !== null && after.ephemeralOwner !== 0n;
  const how = owned ? ' ephemeral' : '';
  return `${kindTexts[kind]}${how}${part === null ? '' : `, part ${part} of a multi`}`;
}

function stateText(state: KnownState, kind: PathChange['kind'], shownBytes: number): string {
  if (state === null) return 'none';
  if (kind === 'aclSet') return state && 'acl' in state ? aclText(state.acl ?? openAcl) : '?';
  return state && 'data' in state ? dataText(state.data ?? null, shownBytes) : '?';
}

function changeJson(
  path: string,
  { zxid, timeMs, sessionId, cxid, kind, part, file, offset }: PathChange,
  before: KnownState,
  after: KnownState,
): object {
  return {
    ...{ record: 'change', path, zxid, time: timeText(timeMs), sessionId, cxid, kind, part },
    ...{ isBeforeKnown: before !== undefined, before: stateJson(before), after: stateJson(after) },
    ...{ file, offset },
  };
}

function stateJson(state: KnownState): object | null {
  if (!state) return null;
  return {
    ...('data' in state ? { data: dataJson(state.data ?? null) } : {}),
    ...('acl' in state ? { acl: aclJson(state.acl ?? openAcl) } : {}),
    ...('version' in state ? { version: state.version } : {}),
    ...('ephemeralOwner' in state ? { ephemeralOwner: state.ephemeralOwner } : {}),
  };
}

/** What the life of a node may lack: stretches of zxids that no log holds, or that can't be read. */
async function gapsOf(
  output: Output,
  folder: string,
  logFolder: string,
): Promise<{ gaps: string[]; isDamaged: boolean }> {
  const fs = filesOf(output);
  const gaps: string[] = [];
  let isDamaged = false;
  const files = await listOrFail(fs, logFolder);
  const older = (await listSnapshots(fs, folder)).find(({ zxid }) => zxid < files[0]!.zxid);
  let last = files[0]!.zxid === 1n ? 0n : older?.zxid;
  if (last === undefined) {
    gaps.push(
      `what was before zxid ${hex(files[0]!.zxid)} is in no file, so a first change may lack what was before it`,
    );
  }
  for (const file of files) {
    const read = await readLog(fs, file, file === files.at(-1), () => {});
    if (read.end === 'damaged') {
      isDamaged = true;
      gaps.push(read.remark!);
    } else if (read.end === 'moving') output.tell(read.remark!);
    if (read.firstZxid === null) continue;
    if (last !== undefined && isGap(last, read.firstZxid)) {
      gaps.push(
        `zxids ${hex(last + 1n)} to ${hex(read.firstZxid - 1n)} are in no log, and what happened then is not told`,
      );
    }
    last = read.lastZxid!;
  }
  return { gaps, isDamaged };
}

const epochBits = 32n;

/** A new leader's zxids begin anew in the next epoch: only within one must they be consecutive. */
function isGap(last: bigint, next: bigint): boolean {
  return next > last + 1n && next >> epochBits === last >> epochBits;
}
