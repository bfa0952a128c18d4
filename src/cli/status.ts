/** `drover status`: all servers side by side, and who lags. Exit code 0 with a quorum, 1 without. */

import { Columns } from './columns.ts';
import type { Context } from './command.ts';
import { findingsOf } from './doctor.ts';
import { exitCodes } from './exit-codes.ts';
import { serversOf } from './four-letter.ts';
import { counted, escaped, foundCode, hex } from './output.ts';
import { type ServerRow, serverRows } from './server-facts.ts';

export async function status(context: Context): Promise<number> {
  const { output, signal } = context;
  const target = await context.target();
  const rows = await serverRows(serversOf(target), { signal, tls: target.client.tls });
  const { hasQuorum, sentence } = quorumOf(rows);
  if (output.isJson) {
    for (const row of rows) output.record(rowRecord(row));
    output.record({ quorum: hasQuorum, servers: rows.length });
    return hasQuorum ? exitCodes.ok : foundCode;
  }
  printRows(new Columns(output, ...heads), rows);
  const findings = findingsOf(rows);
  const more =
    findings.length > 0 ? ` · ${counted(findings.length, 'finding')} (drover doctor explains)` : '';
  output.line(`${sentence}${more}`);
  return hasQuorum ? exitCodes.ok : foundCode;
}

export const heads = [
  'SERVER',
  'ROLE',
  'VERSION',
  'ZXID',
  'CONN',
  'WATCHES',
  'P50',
  'P99',
  'OUTST',
  '',
];

export function printRows(columns: Columns, rows: readonly ServerRow[]): void {
  for (const row of rows) columns.row(...cellsOf(row));
  columns.end();
}

export function cellsOf(row: ServerRow): string[] {
  const { server, role, version, zxid, connections, watches, p50Ms, p99Ms, outstanding } = row;
  const count = (value: number | undefined) => (value === undefined ? '-' : thousands(value));
  const ms = (value: number | undefined) => (value === undefined ? '-' : `${round(value)}ms`);
  return [
    escaped(server.name),
    escaped(role ?? (row.error === undefined ? 'not serving' : 'down')),
    escaped(version ?? '-'),
    zxid === undefined ? '-' : hex(zxid),
    count(connections),
    count(watches),
    ms(p50Ms),
    ms(p99Ms),
    count(outstanding),
    remarkOf(row),
  ];
}

function remarkOf({ error, behind, isBrief }: ServerRow): string {
  if (error !== undefined) return `! ${escaped(error)}`;
  if (behind !== undefined && behind > 0) return `! ${thousands(behind)} txns behind`;
  return isBrief ? 'mntr is not on its whitelist' : '';
}

export function quorumOf(rows: readonly ServerRow[]): { hasQuorum: boolean; sentence: string } {
  const voters = rows.filter(({ role }) => role !== 'observer');
  const serving = voters.filter(({ role }) => role !== undefined && role !== 'read-only');
  const leaders = rows.filter(({ role }) => role === 'leader');
  const isAlone = rows.some(({ role }) => role === 'standalone');
  // Only the servers that were named are known: a list of one may stand for an ensemble.
  const hasQuorum =
    serving.length > 0 && (isAlone || leaders.length > 0 || serving.length > voters.length / 2);
  if (!hasQuorum)
    return { hasQuorum, sentence: `no quorum: ${serving.length} of ${voters.length} serve` };
  if (isAlone) return { hasQuorum, sentence: 'standalone' };
  return { hasQuorum, sentence: `quorum ok: ${serving.length} of ${voters.length} serve` };
}

export function rowRecord({ server, values: _, ...row }: ServerRow): object {
  return { server: server.name, ...row, answerMs: round(row.answerMs) };
}

export function thousands(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ' ');
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
