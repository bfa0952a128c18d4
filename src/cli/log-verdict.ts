/**
 * How `drover log verify` says what it found: as columns for a person, as records for a program.
 *
 * In: the report on a folder and its faults, sorted into damage and what is being written. Out: a row
 * or record for each file, then where a server would start. Nothing is read here and nothing decided.
 */

import { basename } from 'node:path';
import type { DirectoryReport, FileReport, LogSummary } from '../storage/index.ts';
import { Columns } from './columns.ts';
import { zxidOrNone } from './log-read.ts';
import { escaped, hex, type Output } from './output.ts';

export interface Fault {
  /** None for what is wrong with all of them together. */
  readonly file: string | null;
  readonly offset: number | null;
  readonly sentence: string;
}

/** What two looks found: what stayed in its place is damage, what moved is being written. */
export interface Settled {
  readonly report: DirectoryReport;
  readonly damage: readonly Fault[];
  readonly moving: readonly Fault[];
}

function stateOf({ path, summary }: FileReport, { damage, moving }: Omit<Settled, 'report'>) {
  if (damage.some(({ file }) => file === path)) return 'damaged';
  if (moving.some(({ file }) => file === path)) return 'moving';
  const kind = summary !== null && 'end' in summary ? summary.end.kind : 'clean';
  return kind === 'clean' ? 'sound' : kind;
}

export function verdictColumns(
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

export function verdictJson(
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
