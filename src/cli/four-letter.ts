/**
 * Asks servers ZooKeeper's four-letter words, one or all at once, and reads what they answer.
 *
 * In: host, port and word. Out: all the server says before it hangs up. A server that does not answer,
 * or answers without end, is bounded in time and bytes. `mntr` and `srvr` are read into values; what
 * a server leaves out is missing, never guessed.
 */

import { type Socket, connect as tcpConnect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { parseServers, type TlsOptions } from '../client/index.ts';
import { onAbort } from '../support/index.ts';
import type { Target } from './command.ts';

export interface Server {
  readonly host: string;
  readonly port: number;
  /** `host:port`, as it is shown. */
  readonly name: string;
}

export interface AskOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly tls?: TlsOptions | undefined;
  /** A word may be followed by more: `stmk` has a number behind it. */
  readonly rest?: Buffer;
}

export const askTimeoutMs = 5_000;
const answerBytesMax = 16 * 1024 * 1024;

/** Every server that the target names. */
export function serversOf(target: Target): Server[] {
  return parseServers(target.servers).hosts.map(({ name: host, port }) => {
    return { host, port, name: `${host.includes(':') ? `[${host}]` : host}:${port}` };
  });
}

export function ask(server: Server, word: string, options: AskOptions = {}): Promise<string> {
  const { timeoutMs = askTimeoutMs, signal, tls, rest = Buffer.alloc(0) } = options;
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const { host, port } = server;
    const socket: Socket = tls
      ? tlsConnect({ ...tls, host, port, servername: tls.servername ?? sniOf(host) })
      : tcpConnect({ host, port });
    const chunks: Buffer[] = [];
    let bytes = 0;
    const late = () => socket.destroy(new Error(`no answer in ${timeoutMs} ms`));
    const timer = setTimeout(late, timeoutMs);
    const stopHearing =
      signal && onAbort(signal, () => socket.destroy(signal.reason as Error | undefined));
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      socket.write(Buffer.concat([Buffer.from(word, 'latin1'), rest]));
    });
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > answerBytesMax) {
        socket.destroy(new Error(`${server.name} answers ${word} without end`));
      } else chunks.push(chunk);
    });
    let failure: Error | undefined;
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('close', () => {
      clearTimeout(timer);
      stopHearing?.();
      if (signal?.aborted) reject(signal.reason);
      // Some servers reset the link behind their answer: what came before it stands.
      else if (failure !== undefined && bytes === 0) reject(failure);
      else resolve(Buffer.concat(chunks).toString());
    });
  });
}

function sniOf(host: string): string {
  return /^[\d.]+$|:/.test(host) ? '' : host;
}

export type Answer =
  | { readonly server: Server; readonly text: string }
  | { readonly server: Server; readonly error: string };

/** All at once; one that can't be asked says why and holds up nobody. */
export function askAll(
  servers: readonly Server[],
  word: string,
  options: AskOptions = {},
): Promise<Answer[]> {
  return Promise.all(
    servers.map(async (server): Promise<Answer> => {
      try {
        return { server, text: await ask(server, word, options) };
      } catch (error) {
        options.signal?.throwIfAborted();
        return { server, error: faultText(error) };
      }
    }),
  );
}

export function faultText(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'nobody listens there';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'no such host';
  if (code === 'ECONNRESET') return 'it hung up';
  return message || code || String(error);
}

export function isNotWhitelisted(text: string): boolean {
  return /is not executed because it is not in the whitelist/.test(text);
}

/** `key<tab>value` lines of `mntr`, or `Key: value` and `key=value` lines of others. */
export function readValues(text: string): Record<string, string> {
  const values: Record<string, string> = Object.create(null);
  for (const line of text.split('\n')) {
    const match = /^([^\t:=]+)(?:\t|: ?|=)(.*)$/.exec(line);
    if (match !== null) values[match[1]!.trim()] = match[2]!.trim();
  }
  return values;
}

/** Undefined for what is missing or no number. */
export function numberOf(text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === '') return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}
