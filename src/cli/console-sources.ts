/** What the console is handed of the command line's own: how servers are asked, judged and shown. */

import type { ServersSeen, ServerView, WordAnswer } from '../console/index.ts';
import type { Target } from './command.ts';
import { findingsOf } from './doctor.ts';
import { askAll, serversOf } from './four-letter.ts';
import { type ServerRow, serverRows } from './server-facts.ts';
import { quorumOf } from './status.ts';
import { hex } from './words.ts';

export function lookAtServers(target: Target): (signal: AbortSignal) => Promise<ServersSeen> {
  const servers = serversOf(target);
  return async (signal) => {
    const rows = await serverRows(servers, { signal, tls: target.client.tls });
    return {
      servers: rows.map(serverView),
      findings: findingsOf(rows).map(({ severity, server, what, more }) => ({
        severity,
        server,
        what,
        more,
      })),
      quorum: quorumOf(rows),
    };
  };
}

export function serverView(row: ServerRow): ServerView {
  return {
    server: row.server.name,
    error: row.error ?? null,
    role: row.role ?? null,
    version: row.version ?? null,
    zxid: row.zxid === undefined ? null : hex(row.zxid),
    behind: row.behind ?? null,
    connections: row.connections ?? null,
    watches: row.watches ?? null,
    nodes: row.nodes ?? null,
    ephemerals: row.ephemerals ?? null,
    dataBytes: row.dataBytes ?? null,
    outstanding: row.outstanding ?? null,
    p50Ms: row.p50Ms ?? null,
    p99Ms: row.p99Ms ?? null,
    fsyncP99Ms: row.fsyncP99Ms ?? null,
    latencyAvgMs: row.latencyMs?.avg ?? null,
    latencyMaxMs: row.latencyMs?.max ?? null,
    received: row.received ?? null,
    sent: row.sent ?? null,
    openFiles: row.openFiles ?? null,
    openFilesMax: row.openFilesMax ?? null,
    answerMs: row.answerMs,
    isBrief: row.isBrief === true,
  };
}

export function askServers(
  target: Target,
): (word: string, signal: AbortSignal) => Promise<WordAnswer[]> {
  const servers = serversOf(target);
  return async (word, signal) => {
    const answers = await askAll(servers, word, { signal, tls: target.client.tls });
    return answers.map(({ server, ...answer }) => ({ server: server.name, ...answer }));
  };
}
