/**
 * Which sessions have a link, by asking every server for its connections (the word `cons`).
 *
 * Only servers know it, and each only of its own. So all of an ensemble are asked, and the answer is
 * null, which is "not known", unless every one of them answers: a session that no asked server has may
 * be on the one that did not answer. Servers from 3.5 on refuse the word unless their configuration
 * lets it through (`4lw.commands.whitelist=cons`).
 */

import { connect } from 'node:net';
import { parseServers } from '../client/index.ts';
import { checkOptions } from '../support/index.ts';
import { attachedTable } from './option-tables.ts';

export interface AttachedOptions {
  /** For each server. 2 s. */
  readonly timeoutMs?: number;
}

/** More than any server has links, at 200 bytes a line. */
const answerBytesMax = 64 * 1024 * 1024;

/** `servers` as in a connection string: all of the ensemble. */
export async function attachedSessions(
  servers: string,
  options: AttachedOptions = {},
): Promise<ReadonlySet<bigint> | null> {
  checkOptions('attachedSessions', options, attachedTable);
  const { timeoutMs = 2_000 } = options;
  const { hosts } = parseServers(servers);
  const answers = await Promise.all(
    hosts.map(({ name, port }) => ask(name, port, timeoutMs).catch(() => null)),
  );
  const all = new Set<bigint>();
  for (const answer of answers) {
    const found = answer === null ? null : sessionsOf(answer);
    if (found === null) return null;
    for (const id of found) all.add(id);
  }
  return all;
}

/** `/127.0.0.1:46816[1](queued=0,…)`. Without an expression: one would take quadratic time on a hostile line. */
function isClientLine(line: string): boolean {
  const text = line.trim();
  return text.startsWith('/') && text.endsWith(')') && text.indexOf('(') > 1;
}

/** The session ids in an answer to `cons`; null when it is none, as when the word is not let through. */
export function sessionsOf(answer: string): bigint[] | null {
  const lines = answer.split('\n').filter((line) => line.trim() !== '');
  // At the least there is the link that asked.
  if (lines.length === 0 || !lines.every(isClientLine)) return null;
  return lines.flatMap((line) => {
    const [, id] = /[(,]sid=0x([0-9a-f]{1,16})[,)]/.exec(line) ?? [];
    return id === undefined ? [] : BigInt.asIntN(64, BigInt(`0x${id}`));
  });
}

function ask(host: string, port: number, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host);
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), timeoutMs);
    socket.on('connect', () => socket.write('cons'));
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > answerBytesMax) socket.destroy(new Error('an answer without end'));
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString());
    });
  });
}
