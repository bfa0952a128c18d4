/** What the console is handed of the command line's own: how servers are asked, judged and shown. */

import type { ServersSeen, ServerView, WordAnswer } from '../console/index.ts';
import { askAdmin, lastSnapshotMs } from './admin-words.ts';
import type { Target } from './command.ts';
import { findingsOf } from './doctor.ts';
import { CommandError } from './exit-codes.ts';
import { askAll, faultText, isNotWhitelisted, serversOf } from './four-letter.ts';
import { rowFrom, type ServerRow, serverRows } from './server-facts.ts';
import { quorumOf } from './status.ts';
import { hex } from './words.ts';

/** Where the AdminServers listen: the same port on all, or one for each in their order. */
export function adminPortsOf(given: unknown): readonly number[] | undefined {
  if (given === undefined) return undefined;
  const ports = String(given).split(',').map(Number);
  if (ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536)) return ports;
  throw new CommandError('usage', '--admin-port: a port, or one for each server with commas');
}

export function lookAtServers(
  target: Target,
  adminPorts?: readonly number[],
): (signal: AbortSignal) => Promise<ServersSeen> {
  const servers = serversOf(target);
  return async (signal) => {
    const told = await serverRows(servers, { signal, tls: target.client.tls });
    const all = await Promise.all(
      told.map((row, at) => withAdmin(row, portAt(adminPorts, at), signal)),
    );
    const rows = all.map(({ row }) => row);
    return {
      servers: all.map(({ row, snapshotMs }) => serverView(row, snapshotMs)),
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

function portAt(ports: readonly number[] | undefined, at: number): number | undefined {
  return ports?.length === 1 ? ports[0] : ports?.[at];
}

/** What four-letter words left out. Who does not answer there either leaves the gap. */
async function withAdmin(row: ServerRow, port: number | undefined, signal: AbortSignal) {
  if (port === undefined || row.error !== undefined) return { row };
  const { server, answerMs } = row;
  const orNothing = () => undefined;
  const [mntr, snapshotMs] = await Promise.all([
    row.isBrief ? askAdmin(server, port, 'mntr', signal).catch(orNothing) : undefined,
    lastSnapshotMs(server, port, signal).catch(orNothing),
  ]);
  signal.throwIfAborted();
  if (mntr === undefined) return { row, snapshotMs };
  const { isBrief: _, ...rest } = row;
  return { row: { ...rest, ...rowFrom(server, '', mntr, answerMs) }, snapshotMs };
}

export function serverView(row: ServerRow, snapshotMs?: number): ServerView {
  return {
    server: row.server.name,
    error: row.error ?? null,
    role: row.role ?? null,
    version: row.version ?? null,
    zxid: row.zxid === undefined ? null : hex(row.zxid),
    behind: row.behind ?? null,
    connections: row.connections ?? null,
    watches: row.watches ?? null,
    fired: row.fired ?? null,
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
    snapshotMs: snapshotMs ?? null,
  };
}

export function askServers(
  target: Target,
  adminPorts?: readonly number[],
): (word: string, signal: AbortSignal) => Promise<WordAnswer[]> {
  const servers = serversOf(target);
  return async (word, signal) => {
    const answers = await askAll(servers, word, { signal, tls: target.client.tls });
    return Promise.all(
      answers.map(async ({ server, ...answer }, at): Promise<WordAnswer> => {
        const port = portAt(adminPorts, at);
        const isAnswered = 'text' in answer && !isNotWhitelisted(answer.text);
        if (isAnswered || port === undefined) return { server: server.name, ...answer };
        try {
          return { server: server.name, text: await askAdmin(server, port, word, signal) };
        } catch (error) {
          signal.throwIfAborted();
          const why = (error as Error).cause ?? error;
          const first = 'text' in answer ? `${word} is not in its whitelist` : answer.error;
          return { server: server.name, error: `${first}; AdminServer: ${faultText(why)}` };
        }
      }),
    );
  };
}
