/**
 * The admin server: Apache's `/commands/<name>` over HTTP, and what supervisors ask for.
 *
 *   GET /commands           links to all commands
 *   GET /commands/stat      JSON; an unknown command is a 200 with an error in it, as Apache has it
 *   GET /healthz            200 while the process is alive
 *   GET /readyz             200 while requests are served, 503 before and after
 *
 *   GET /commands/snapshot  a file, to who may do everything (admin-snapshot.ts)
 *   POST /commands/restore  takes such a file, from who may do everything
 *
 * It listens on loopback by default; nothing but a restore changes data. A page in a browser can't use
 * it: a foreign Host (DNS rebinding) or a cross-site fetch is refused, wherever it listens.
 */

import type { FileHandle } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import {
  checkOptions,
  httpTimeouts,
  isCrossSite,
  isOwnHost,
  limitConnections,
} from '../support/index.ts';
import { adminCommands, findAdminCommand } from './admin-commands.ts';
import { RestoreCommand, SnapshotCommand, type SnapshotOptions } from './admin-snapshot.ts';
import type { ServerFacts } from './facts.ts';
import { javaJson } from './java-json.ts';
import { adminTable } from './option-tables.ts';
import { plainAddress } from './socket-wire.ts';

export interface AdminOptions extends SnapshotOptions {
  /** `admin.serverAddress`. */
  readonly host?: string | undefined;
  /** `admin.serverPort`; 0 takes any that is free. */
  readonly port?: number | undefined;
  /** `admin.commandURL`. */
  readonly commandUrl?: string | undefined;
  /** Names besides `localhost` and IP addresses that a `Host` header may have. */
  readonly allowHosts?: readonly string[] | undefined;
  /** Who takes nothing of an answer for so long does not get the rest. 30 seconds, as Apache's. */
  readonly sendTimeoutMs?: number | undefined;
}

export interface AdminServer {
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

interface Reply {
  readonly status: number;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  /** Sent in place of the body, and closed. */
  readonly file?: { readonly handle: FileHandle; readonly bytes: number };
}

interface Asked {
  readonly facts: ServerFacts;
  readonly request: IncomingMessage;
  readonly commandUrl: string;
  readonly allowHosts: readonly string[];
  readonly snapshot: SnapshotCommand;
  readonly restore: RestoreCommand;
}

/** A snapshot that is uploaded takes longer than any other request. */
const uploadTimeoutMs = 10 * 60_000;
const sendTimeoutDefaultMs = 30_000;
const limits = { connectionsMax: 100, connectionsPerAddressMax: 50 };

export async function startAdminServer(
  facts: ServerFacts,
  options: AdminOptions = {},
): Promise<AdminServer> {
  checkOptions('startAdminServer', options, adminTable);
  const { host = '127.0.0.1', port = 8080, commandUrl = '/commands' } = options;
  const { sendTimeoutMs = sendTimeoutDefaultMs, allowHosts = [] } = options;
  const snapshot = new SnapshotCommand(facts, options);
  const restore = new RestoreCommand(facts, options);
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const reply = await answer({ facts, request, commandUrl, allowHosts, snapshot, restore });
    response.setTimeout(sendTimeoutMs); // until the next request
    send(response, request, reply);
    if (reply.file !== undefined) await sendFile(response, reply.file.handle);
  };
  const timeouts = { ...httpTimeouts, requestTimeout: uploadTimeoutMs };
  const server = createServer(timeouts, (request, response) => {
    serve(request, response).catch((error) => {
      // It can't be told any more, so the end of the link has to say it. Mostly the other side left.
      options.logger?.warn({ err: error }, 'an answer of the admin server was not finished');
      response.destroy();
    });
  });
  limitConnections(server, limits);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, resolve);
  });
  return {
    host,
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(response: ServerResponse, request: IncomingMessage, reply: Reply): void {
  const headers: Record<string, string | number> = {
    'content-length': reply.file?.bytes ?? Buffer.byteLength(reply.body),
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    ...reply.headers,
  };
  if (reply.type !== undefined) headers['content-type'] = reply.type;
  response.writeHead(reply.status, headers);
  request.resume(); // what came along and nobody has read
  if (reply.file === undefined) response.end(request.method === 'HEAD' ? '' : reply.body);
}

async function sendFile(response: ServerResponse, handle: FileHandle): Promise<void> {
  await pipeline(handle.createReadStream(), response); // closes the file, whatever happens
}

const plain = (status: number, body: string): Reply => ({ status, type: 'text/plain', body });

const toRead = 'GET, HEAD, OPTIONS';

function refuseMethod(allow: string): Reply {
  return { ...plain(405, `${allow}\n`), headers: { allow } };
}

async function answer(ask: Asked): Promise<Reply> {
  const { facts, request, commandUrl, allowHosts } = ask;
  if (!isOwnHost(request.headers.host, allowHosts)) {
    return plain(421, 'this server does not answer to that name; add it to drover.allowHosts\n');
  }
  if (isCrossSite(request)) return plain(403, 'not across sites\n');
  const path = request.url ?? '/';
  if (!URL.canParse(path, 'http://admin')) return plain(400, 'not an address\n');
  const url = new URL(path, 'http://admin');
  if (url.pathname === '/healthz') return plain(200, 'ok\n');
  if (url.pathname === '/readyz') {
    return facts.engine.isServing ? plain(200, 'ready\n') : plain(503, 'not serving requests\n');
  }
  const isIndex = url.pathname === commandUrl || url.pathname === `${commandUrl}/`;
  if (!isIndex && !url.pathname.startsWith(`${commandUrl}/`)) return plain(404, 'not found\n');
  const allow = 'GET, HEAD, POST, OPTIONS';
  if (request.method === 'OPTIONS') return { status: 200, headers: { allow }, body: '' };
  if (!['GET', 'HEAD', 'POST'].includes(request.method ?? '')) return refuseMethod(allow);
  if (isIndex) return index(commandUrl);
  const asked = decoded(url.pathname.slice(commandUrl.length + 1));
  return asked === null ? plain(400, 'not an address\n') : command(ask, asked, url.searchParams);
}

/** Null for what is no text. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function index(commandUrl: string): Reply {
  const links = Object.keys(adminCommands)
    .sort()
    .map((name) => `<a href="${commandUrl}/${name}">${name}</a>\n<br/>\n`);
  return { status: 200, type: 'text/html', body: links.join('') };
}

function json(status: number, fields: Parameters<typeof javaJson>[0]): Reply {
  return { status, type: 'application/json', body: javaJson(fields) };
}

async function command(
  { facts, request, snapshot, restore }: Asked,
  asked: string,
  query: URLSearchParams,
): Promise<Reply> {
  const refuse = (status: number, error: string) => json(status, { command: asked, error });
  const found = findAdminCommand(asked);
  if (found === undefined) return refuse(200, `Unknown command: ${asked.slice(0, 100)}`);
  if (!facts.engine.isServing) {
    return refuse(200, 'This ZooKeeper instance is not currently serving requests');
  }
  if (found.command.guarded) {
    const refusal = guard(facts, request);
    if (refusal !== undefined) return refuse(...refusal);
  }
  if (found.command.snapshot === 'in') {
    if (request.method !== 'POST') return refuseMethod('POST, OPTIONS');
    const { status, fields, error = null } = await restore.run(request);
    return json(status, { ...fields, command: found.name, error });
  }
  if (found.command.snapshot === 'out') {
    if (request.method !== 'GET') return refuseMethod('GET, OPTIONS');
    const { status, headers, bytes, file } = await snapshot.run(query);
    if (file === undefined) {
      return { ...json(status, { command: found.name, error: null }), headers };
    }
    const type = 'application/octet-stream';
    return { status, headers, type, body: '', file: { handle: file, bytes } };
  }
  if (request.method === 'POST') return refuseMethod(toRead); // where Apache fails with 500
  const answer = found.command.run(facts, query);
  const { error = null, ...fields } = answer;
  // Apache puts an error first where the command itself has found one.
  return error === null
    ? json(200, { ...fields, command: found.name, error })
    : json(200, { error, ...fields, command: found.name });
}

/** Permissions of the root, all of them: `Authorization: digest user:password`. */
function guard(
  { engine, clock }: ServerFacts,
  request: IncomingMessage,
): [status: number, error: string] | undefined {
  const { authorization } = request.headers;
  if (authorization === undefined) return [401, 'Auth info is missing for the command'];
  const [scheme = '', credentials, ...more] = authorization.split(' ');
  const address = plainAddress(request.socket.remoteAddress);
  const proof = credentials === undefined ? null : Buffer.from(credentials);
  const acl = engine.tree.aclOf(engine.tree.find('/'));
  const isDigest = scheme.toLowerCase() === 'digest';
  const user = isDigest ? engine.auth.guessedAt(proof, acl) : undefined;
  if (engine.authAttempts.isRefused(address, clock.nowMs(), user)) {
    engine.stats.authRefusals += 1;
    return [429, 'Too many failed attempts'];
  }
  const ids = more.length > 0 ? null : engine.auth.prove(scheme.toLowerCase(), proof, address);
  if (ids === null || ids.length === 0) {
    engine.stats.authFailures += 1;
    engine.authAttempts.failed(address, clock.nowMs(), user);
    return [401, 'Not authenticated'];
  }
  const mayAll = [1, 2, 4, 8, 16].every((perm) => engine.auth.permits(acl, perm, ids));
  if (mayAll) return undefined;
  engine.authAttempts.failed(address, clock.nowMs(), user); // a wrong password is an id that may nothing
  return [403, 'Not authorized'];
}
