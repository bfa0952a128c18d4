/**
 * `drover doctor`: what is wrong with an ensemble, worst first, and the command that shows more.
 *
 * In: what the servers say of themselves. Out: findings; exit code 0 for none, 1 for warnings and 2 for
 * what needs somebody now, as monitoring wants it. It looks and changes nothing. What no server says
 * is not judged: no finding is not a promise.
 */

import { Columns } from './columns.ts';
import type { Context } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { serversOf } from './four-letter.ts';
import { escaped } from './output.ts';
import { type ServerRow, serverRows } from './server-facts.ts';

export interface Finding {
  readonly severity: 'critical' | 'warning';
  readonly server: string | null;
  readonly what: string;
  /** The command that shows more. */
  readonly more: string;
}

type Check = (rows: readonly ServerRow[]) => Finding[];

// biome-ignore format: a table is read down its columns
const limits = {
  behindTxns:      1_000,
  behindNotice:       100,
  outstanding:        10,
  outstandingMany:   500,
  p99Ms:             100,
  fsyncP99Ms:        100,
  openFilesPercent:   80,
  nodes:       1_000_000,
  dataBytes: 512 * 1024 * 1024,
  watches:   1_000_000,
  answerMs:        1_000,
};

const checks: readonly Check[] = [
  (rows) => {
    const serving = rows.filter(({ role }) => role !== undefined);
    if (serving.length > 0) return [];
    return [critical(null, 'no server takes requests', 'drover 4lw ruok --all')];
  },
  (rows) => {
    const isEnsemble = rows.some(({ role }) => role === 'follower' || role === 'leader');
    const voters = rows.filter(({ role }) => role !== 'observer');
    const serving = voters.filter(({ role }) => role !== undefined && role !== 'read-only').length;
    if (!isEnsemble || serving > voters.length / 2) return [];
    return [
      critical(
        null,
        `${serving} of ${voters.length} servers serve, which is no majority`,
        'drover status',
      ),
    ];
  },
  (rows) => {
    const leaders = rows.filter(({ role }) => role === 'leader');
    if (leaders.length > 1) {
      const names = leaders.map(({ server }) => server.name).join(', ');
      return [
        critical(
          null,
          `more than one says it leads: ${names}; they are not one ensemble, or one is stale`,
          'drover 4lw srvr --all',
        ),
      ];
    }
    const alone = rows.filter(({ role }) => role === 'standalone');
    if (alone.length === 0 || rows.length === 1) return [];
    const names = alone.map(({ server }) => server.name).join(', ');
    return [
      critical(
        null,
        `${names} runs alone, though ${rows.length} servers are named: clients that reach different ones see different data`,
        'drover 4lw conf --all',
      ),
    ];
  },
  each(
    ({ error }) => error !== undefined,
    (row) => ['critical', `can't be reached: ${row.error}`, 'drover 4lw ruok --all'],
  ),
  each(
    ({ error, role }) => error === undefined && role === undefined,
    () => [
      'critical',
      'runs and takes no requests: it has lost its quorum, or it starts',
      'drover 4lw srvr --all',
    ],
  ),
  each(
    ({ role }) => role === 'read-only',
    () => ['critical', 'answers reads alone: it has lost its quorum', 'drover status'],
  ),
  each(
    ({ behind = 0 }) => behind >= limits.behindNotice,
    ({ behind = 0 }) => [
      behind >= limits.behindTxns ? 'critical' : 'warning',
      `is ${behind} transactions behind`,
      'drover top',
    ],
  ),
  each(
    ({ outstanding = 0 }) => outstanding >= limits.outstanding,
    ({ outstanding = 0 }) => [
      outstanding >= limits.outstandingMany ? 'critical' : 'warning',
      `has ${outstanding} requests waiting`,
      'drover top',
    ],
  ),
  each(
    ({ p99Ms = 0 }) => p99Ms >= limits.p99Ms,
    ({ p99Ms }) => [
      'warning',
      `one read in a hundred takes ${p99Ms} ms or longer`,
      'drover latency',
    ],
  ),
  each(
    ({ fsyncP99Ms = 0 }) => fsyncP99Ms >= limits.fsyncP99Ms,
    ({ fsyncP99Ms }) => [
      'warning',
      `its disk takes ${fsyncP99Ms} ms for a sync: give the log (dataLogDir) a disk of its own`,
      'drover 4lw mntr',
    ],
  ),
  each(
    ({ openFiles, openFilesMax }) => share(openFiles, openFilesMax) >= limits.openFilesPercent,
    ({ openFiles, openFilesMax }) => [
      'warning',
      `has ${openFiles} of ${openFilesMax} files open: raise its limit (LimitNOFILE)`,
      'drover 4lw mntr',
    ],
  ),
  each(
    ({ nodes = 0 }) => nodes >= limits.nodes,
    ({ nodes }) => ['warning', `holds ${nodes} nodes, all in memory`, 'drover du /'],
  ),
  each(
    ({ dataBytes = 0 }) => dataBytes >= limits.dataBytes,
    ({ dataBytes = 0 }) => [
      'warning',
      `holds ${Math.round(dataBytes / 1024 / 1024)} MiB of data: ZooKeeper is not made for that`,
      'drover du /',
    ],
  ),
  each(
    ({ watches = 0 }) => watches >= limits.watches,
    ({ watches }) => ['warning', `keeps ${watches} watches`, 'drover 4lw wchs --all'],
  ),
  each(
    ({ error, answerMs }) => error === undefined && answerMs >= limits.answerMs,
    ({ answerMs }) => [
      'warning',
      `took ${Math.round(answerMs)} ms to say how it is`,
      'drover latency',
    ],
  ),
  each(
    ({ followers, followersSynced, role }) =>
      role === 'leader' &&
      followersSynced !== undefined &&
      followers !== undefined &&
      followersSynced < followers,
    ({ followers, followersSynced }) => [
      'warning',
      `${followers! - followersSynced!} of its ${followers} followers are not in sync`,
      'drover status',
    ],
  ),
  (rows) => {
    const versions = [
      ...new Set(rows.map(({ version }) => version).filter((v) => v !== undefined)),
    ];
    if (versions.length < 2) return [];
    return [warning(null, `different versions: ${versions.join(', ')}`, 'drover status')];
  },
  (rows) => {
    const isEnsemble = rows.some(({ role }) => role === 'follower' || role === 'leader');
    const voters = rows.filter(({ role }) => role !== 'observer').length;
    if (!isEnsemble || voters === 1 || voters % 2 === 1) return [];
    return [
      warning(
        null,
        `${voters} voting servers are named: an even number bears no more failures than one less`,
        'drover config',
      ),
    ];
  },
];

function each(
  isWrong: (row: ServerRow) => boolean,
  says: (row: ServerRow) => [Finding['severity'], string, string],
): Check {
  return (rows) =>
    rows.filter(isWrong).map((row) => {
      const [severity, what, more] = says(row);
      return { severity, server: row.server.name, what, more };
    });
}

function critical(server: string | null, what: string, more: string): Finding {
  return { severity: 'critical', server, what, more };
}

function warning(server: string | null, what: string, more: string): Finding {
  return { severity: 'warning', server, what, more };
}

function share(part: number | undefined, whole: number | undefined): number {
  return part === undefined || whole === undefined || whole <= 0 ? 0 : (100 * part) / whole;
}

/** Worst first; within that, in the order of the checks. */
export function findingsOf(rows: readonly ServerRow[]): Finding[] {
  const all = checks.flatMap((check) => check(rows));
  const rank = ({ severity }: Finding) => (severity === 'critical' ? 0 : 1);
  return all.sort((a, b) => rank(a) - rank(b));
}

const warningCode = 1;
const criticalCode = 2;

export async function doctor(context: Context): Promise<number> {
  const { output, signal } = context;
  const target = await context.target();
  const rows = await serverRows(serversOf(target), { signal, tls: target.client.tls });
  const findings = findingsOf(rows);
  if (output.isJson) {
    for (const finding of findings) output.record(finding);
    output.record({ findings: findings.length, servers: rows.length });
  } else if (findings.length === 0) {
    output.line(
      `${rows.length === 1 ? '1 server' : `${rows.length} servers`}: nothing to find fault with`,
    );
  } else {
    const columns = new Columns(output, '', 'SERVER', 'FINDING', 'LOOK AT');
    for (const { severity, server, what, more } of findings) {
      columns.row(
        severity === 'critical' ? '!!' : '!',
        escaped(server ?? 'all'),
        escaped(what),
        more,
      );
    }
    columns.end();
  }
  if (findings.length === 0) return exitCodes.ok;
  return findings.some(({ severity }) => severity === 'critical') ? criticalCode : warningCode;
}
