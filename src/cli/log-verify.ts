/**
 * `drover log verify DIR`: whether a server could start from these files, and what is wrong with them.
 *
 * In: a dataDir, and the dataLogDir where it is another. Out: a verdict on each file and on all of
 * them together. A fault counts as damage only where a second look finds it in the same place: what
 * moves is being written. That nobody writes afterwards is not promised.
 */

import { basename, dirname } from 'node:path';
import {
  type DirectoryReport,
  type FileReport,
  type FileSystem,
  type LogSummary,
  parseLogName,
  verifyDirectory,
} from '../storage/index.ts';
import type { OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { filesOf } from './file-actions.ts';
import { judged, listOrFail, logFolderOf, type ReadLog, readLog } from './log-read.ts';
import { type Fault, type Settled, verdictColumns, verdictJson } from './log-verdict.ts';
import { escaped, foundCode, hex, type Output } from './output.ts';
import { folderOf, looksMax, snapshotFault, unreadable } from './snapshot.ts';

export async function verify(
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

/** A server that writes changes this. */
async function newestChange(fs: FileSystem, logFolder: string): Promise<string> {
  const newest = (await listOrFail(fs, logFolder)).at(-1);
  const status = newest && (await fs.status(newest.path));
  return `${newest?.name} ${status?.modifiedMs} ${status?.bytes}`;
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
