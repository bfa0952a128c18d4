/**
 * What four-letter words would say, asked of a server's AdminServer: for servers whose whitelist lets few
 * words through. It speaks JSON over HTTP, on a port of its own, and is on unless switched off until 3.9.
 *
 * In: a server, its admin port, a word. Out: the text that the word would have given, so that there is one
 * reader for both. Bounded in time and bytes; JSON has whole 64-bit session ids, which are kept whole.
 * Nothing is ever changed by it: the commands that do so are not asked for.
 */

import type { Server } from './four-letter.ts';
import { hex } from './words.ts';

const answerBytesMax = 16 * 1024 * 1024;
const askTimeoutMs = 3_000;

// biome-ignore lint/suspicious/noExplicitAny: a stranger's JSON; every field is looked at before it is used
type Json = any;

/** By word: the admin command, and its answer as the word's text. */
const words: Readonly<Record<string, readonly [command: string, text: (json: Json) => string]>> = {
  mntr: ['monitor', monitorText],
  cons: ['connections', connectionsText],
  dump: ['dump', dumpText],
  wchs: ['watch_summary', summaryText],
  wchc: ['watches', ({ session_id_to_watched_paths: by }) => groupsText(by, sessionText, String)],
  wchp: ['watches_by_path', ({ path_to_session_ids: by }) => groupsText(by, String, sessionText)],
};

/** Rejects with a sentence when it can't be asked, or has no such word. */
export async function askAdmin(
  server: Server,
  port: number,
  word: string,
  signal: AbortSignal,
): Promise<string> {
  const known = Object.hasOwn(words, word) ? words[word] : undefined;
  if (known === undefined) throw new Error(`the AdminServer has no ${word}`);
  const [command, text] = known;
  return text(await commandOf(server, port, command, signal));
}

/** When its last snapshot was taken; undefined: it does not say (before 3.9), or has none. */
export async function lastSnapshotMs(
  server: Server,
  port: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { timestamp } = await commandOf(server, port, 'last_snapshot', signal);
  return Number.isSafeInteger(timestamp) && timestamp > 0 ? timestamp * 1_000 : undefined;
}

async function commandOf(
  server: Server,
  port: number,
  command: string,
  signal: AbortSignal,
): Promise<Json> {
  const host = server.host.includes(':') ? `[${server.host}]` : server.host;
  const until = AbortSignal.any([signal, AbortSignal.timeout(askTimeoutMs)]);
  const answer = await fetch(`http://${host}:${port}/commands/${command}`, {
    signal: until,
    redirect: 'error',
    headers: { accept: 'application/json' },
  });
  if (!answer.ok) throw new Error(`the AdminServer answered ${answer.status}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) throw new Error('the AdminServer answers without end');
    chunks.push(chunk);
  }
  return parsed(Buffer.concat(chunks).toString('utf8'));
}

/** Numbers that a double can't hold stay text. */
export function parsed(text: string): Json {
  const json: Json = JSON.parse(text.replace(/([:[,]\s*)(-?\d{16,})(?=\s*[,\]}])/g, '$1"$2"'));
  if (typeof json !== 'object' || json === null) throw new Error('the AdminServer sent no object');
  if (typeof json.error === 'string') throw new Error(`the AdminServer: ${json.error}`);
  return json;
}

function sessionText(id: unknown): string {
  const text = String(id);
  return /^-?\d{1,20}$/.test(text) ? hex(BigInt.asUintN(64, BigInt(text))) : text;
}

function monitorText(json: Json): string {
  const lines = Object.entries(json)
    .filter(([name, value]) => name !== 'command' && name !== 'error' && typeof value !== 'object')
    .map(([name, value]) => `zk_${name}\t${value}`);
  return `${lines.join('\n')}\n`;
}

// biome-ignore format: a table is read down its columns
const connectionFields: Readonly<Record<string, string>> = {
  queued: 'outstanding_requests', recved: 'packets_received', sent: 'packets_sent',
  lop:    'last_operation',       est:    'established',      to:   'session_timeout',
  lcxid:  'last_cxid',            lzxid:  'last_zxid',        lresp: 'last_response_time',
  llat:   'last_latency',         minlat: 'min_latency',      avglat: 'avg_latency',
  maxlat: 'max_latency',
};

function connectionsText({ connections, secure_connections: secure }: Json): string {
  const all = [...listOf(connections), ...listOf(secure)];
  const lines = all.map((one: Json) => {
    const facts = Object.entries(connectionFields)
      .filter(([, field]) => one?.[field] !== undefined)
      .map(([name, field]) => `${name}=${one[field]}`);
    const sid = one?.session_id === undefined ? [] : [`sid=${sessionText(one.session_id)}`];
    const ops = Number(one?.interest_ops) || 0;
    return ` /${one?.remote_socket_address}[${ops}](${[...facts, ...sid].join(',')})`;
  });
  return `${lines.join('\n')}\n`;
}

function dumpText({ session_id_to_ephemeral_paths: by }: Json): string {
  const count = by && typeof by === 'object' ? Object.keys(by).length : 0;
  const groups = groupsText(by, (id) => `${sessionText(id)}:`, String);
  return `Sessions with Ephemerals (${count}):\n${groups}Connections dump:\n`;
}

function summaryText(json: Json): string {
  const { num_connections: links, num_paths: paths, num_total_watches: total } = json;
  return `${links} connections watching ${paths} paths\nTotal watches:${total}\n`;
}

/** A head, then what belongs to it, each behind a tab. */
function groupsText(
  by: unknown,
  head: (key: string) => string,
  member: (value: unknown) => string,
): string {
  if (typeof by !== 'object' || by === null) return '';
  const groups = Object.entries(by).map(([key, list]) => {
    const members = listOf(list).map((one) => `\t${member(one).replace(/[\n\r]/g, ' ')}\n`);
    return `${head(key).replace(/[\n\r]/g, ' ')}\n${members.join('')}`;
  });
  return groups.join('');
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
