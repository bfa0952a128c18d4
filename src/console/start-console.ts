/**
 * The console's HTTP server: a request comes in, its host, site, caller and rights are looked at, in that
 * order, and only then is anything done for it.
 *
 * Listens on loopback unless told otherwise, and elsewhere only with a token. Every answer has the headers
 * that keep a browser from doing more with it than showing it. What fails inside is said to who runs the
 * console, and to the page only that it failed. It closes its server and timers; the session is the
 * caller's.
 */

import type { IncomingMessage, Server } from 'node:http';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { serve } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import {
  type Clock,
  type HttpLimits,
  httpTimeouts,
  limitConnections,
  systemClock,
} from '../support/index.ts';
import { Access, type Asking, type Caller } from './access.ts';
import { ConsoleError, refusalOf } from './console-error.ts';
import { Desks } from './desks.ts';
import { Page, safeHeaders } from './page.ts';
import { onBudget, type RequestLimits } from './request-budget.ts';
import { type Ask, inputOf, type Route, readBody, routes } from './routes.ts';
import type { ConsoleSources, ContextSources } from './sources.ts';
import type { AuditEntry } from './views.ts';

export interface ConsoleOptions extends ConsoleSources {
  /** This machine alone unless said. */
  readonly host?: string;
  /** 0: any that is free. 4180. */
  readonly port?: number;
  /** Changes are possible. */
  readonly write?: boolean;
  readonly token?: string;
  readonly viewToken?: string;
  /** Names that the console answers to besides its own address, with or without a port. */
  readonly allowHosts?: readonly string[];
  /** The built page. */
  readonly pageFolder?: string;
  readonly onAudit?: (entry: AuditEntry, context: string | null) => void;
  /** Other places that the page may look at. */
  readonly contexts?: ContextSources;
  /** What nobody foresaw, and what the page is not told. */
  readonly onBug?: (error: unknown) => void;
  readonly clock?: Clock;
  /** What one request may read. For tests. */
  readonly requestLimits?: RequestLimits;
}

export interface RunningConsole {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly isPageBuilt: boolean;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export const consolePort = 4180;
const tokenCharsMin = 8;
/** How long ZooKeeper may take for what a page asks. */
const requestTimeoutMs = 30_000;
/** A page makes few requests at once. A reverse proxy makes those of all pages from one address. */
const connections: HttpLimits = { connectionsMax: 256, connectionsPerAddressMax: 128 };

export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { host = '127.0.0.1', port = consolePort, write = false, token, viewToken } = options;
  checkTokens(host, [token, viewToken]);
  const clock = options.clock ?? systemClock;
  const access = new Access({ write, token, viewToken }, () => clock.nowMs());
  const desks = new Desks({
    sources: options,
    contexts: options.contexts,
    access,
    clock,
    requestLimits: options.requestLimits,
    onAudit: options.onAudit ?? (() => {}),
  });
  const page = new Page(options.pageFolder);
  const app = appOf(desks, page, options.onBug ?? (() => {}));
  let server: Server;
  try {
    server = await listening(app, host, port);
  } catch (error) {
    await desks.close();
    throw error;
  }
  const { port: bound } = server.address() as { port: number };
  access.listensOn(namesOf(host), bound, options.allowHosts);
  const close = async () => {
    const left = desks.close();
    const closed = new Promise<void>((done) => server.close(() => done()));
    server.closeAllConnections(); // event streams never end by themselves
    await closed;
    await left;
  };
  const name = isIP(host) === 6 ? `[${host}]` : host;
  return {
    url: `http://${isWildcard(host) ? 'localhost' : name}:${bound}/`,
    host,
    port: bound,
    isPageBuilt: page.isBuilt,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function checkTokens(host: string, tokens: readonly (string | undefined)[]): void {
  const given = tokens.filter((token) => token !== undefined);
  if (given.length === 0 && !isLoopback(host)) {
    throw new ConsoleError(
      'BAD_INPUT',
      `${host} is not this machine alone: give the console a token (--token-file, DROVER_CONSOLE_TOKEN)`,
    );
  }
  if (given.every((token) => token.length >= tokenCharsMin)) return;
  throw new ConsoleError('BAD_INPUT', `a token of at least ${tokenCharsMin} characters is wanted`);
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** What a browser may call us by. Addresses cannot be pointed at us by somebody else's name server. */
function namesOf(host: string): string[] {
  if (isLoopback(host))
    return ['localhost', '127.0.0.1', '[::1]', ...(isIP(host) === 4 ? [host] : [])];
  if (!isWildcard(host)) return [isIP(host) === 6 ? `[${host}]` : host];
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const addresses = own.map(({ address, family }) =>
    family === 'IPv6' ? `[${address}]` : address,
  );
  return ['localhost', ...addresses];
}

function listening(app: Hono, host: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const serverOptions = { ...httpTimeouts, requestTimeout: requestTimeoutMs };
    const listen = { fetch: app.fetch, hostname: host, port, serverOptions };
    const server = serve(listen, () => {
      server.off('error', reject);
      resolve(server);
    }) as Server;
    limitConnections(server, connections);
    server.once('error', reject);
  });
}

function appOf(desks: Desks, page: Page, onBug: (error: unknown) => void): Hono {
  const app = new Hono();
  for (const route of routes) {
    app.on(route.method, route.path, (context) => answer(desks, route, context, onBug));
  }
  app.all('*', (context) => {
    try {
      const asking = askingOf(context);
      desks.access.checkHost(asking);
      const { path } = context.req;
      const isRoute = routes.some((route) => route.path === path);
      if (isRoute) throw new ConsoleError('WRONG_METHOD', 'this route has another method');
      if (path.startsWith('/api/') || path === '/api') {
        throw new ConsoleError('NO_ROUTE', 'there is no such route');
      }
      if (!['GET', 'HEAD'].includes(asking.method)) {
        throw new ConsoleError('WRONG_METHOD', 'GET is wanted');
      }
      const acceptsGzip = /\bgzip\b/.test(context.req.header('accept-encoding') ?? '');
      const found = page.answer(decoded(path), acceptsGzip);
      if (found !== null) return found;
      const why = page.isBuilt ? 'there is no such page' : 'the page is not built: npm run build';
      throw new ConsoleError('NO_ROUTE', why);
    } catch (error) {
      return refused(error, onBug);
    }
  });
  return app;
}

async function answer(
  desks: Desks,
  route: Route,
  context: Context,
  onBug: (error: unknown) => void,
): Promise<Response> {
  const gone = context.req.raw.signal;
  const budget = desks.budget();
  const late = AbortSignal.timeout(requestTimeoutMs);
  try {
    const asking = askingOf(context);
    desks.access.checkHost(asking);
    desks.access.checkSite(asking);
    const caller = desks.access.caller(asking);
    desks.access.check(route.needs, asking, caller);
    const { context: place, ...query } = queryOf(context);
    const desk = await desks.of(caller.role === 'nobody' ? undefined : place);
    if (route.needs === 'write') desk.checkWrite();
    const given = route.method === 'GET' ? query : await readBody(context.req.raw.body);
    const headers: Record<string, string> = { ...safeHeaders, 'cache-control': 'no-store' };
    // Who leaves halfway through a change has asked for all of it: it is done, and noted as done.
    const ends = route.needs === 'write' ? [desk.signal, late] : [desk.signal, gone, late];
    const ask: Ask<never> = {
      input: inputOf(route, given) as never,
      caller,
      asking,
      who: whoOf(context, caller),
      call: { signal: AbortSignal.any(ends) },
      other: (name) => desks.of(name ?? undefined),
      contexts: () => desks.contexts(),
      setCookie(cookie) {
        headers['set-cookie'] = cookie;
      },
    };
    // A change is done whole, and has limits of its own.
    const run = async () => route.run(desk, ask);
    const result = await (route.needs === 'write' ? run() : onBudget(budget, run));
    if (result instanceof Response) {
      // Of an answer to HEAD nobody takes the body, nor lets it go.
      if (asking.method === 'HEAD') await result.body?.cancel();
      for (const [name, value] of Object.entries(safeHeaders)) result.headers.set(name, value);
      return result;
    }
    return new Response(JSON.stringify(result), {
      headers: { ...headers, 'content-type': 'application/json' },
    });
  } catch (error) {
    if (late.aborted && error === late.reason) {
      return refused(
        new ConsoleError(
          'NO_LINK',
          'stopped: a request here may take 30 s, and ZooKeeper has not answered by then',
        ),
        onBug,
      );
    }
    return refused(error, onBug);
  } finally {
    budget.end();
  }
}

function refused(error: unknown, onBug: (error: unknown) => void): Response {
  const { status, body, isBug } = refusalOf(error);
  if (isBug) onBug(error);
  return new Response(JSON.stringify(body), {
    status,
    headers: { ...safeHeaders, 'cache-control': 'no-store', 'content-type': 'application/json' },
  });
}

function askingOf(context: Context): Asking & { lastEventId?: string | undefined } {
  const { req } = context;
  return {
    address: addressOf(context),
    method: req.method,
    host: req.header('host'),
    origin: req.header('origin'),
    fetchSite: req.header('sec-fetch-site'),
    contentType: req.header('content-type'),
    cookie: req.header('cookie'),
    authorization: req.header('authorization'),
    changeToken: req.header('x-drover-token'),
    lastEventId: req.header('last-event-id'),
  };
}

/** A name that stands twice means two things to two readers. */
function queryOf({ req }: Context): Record<string, string> {
  const query: Record<string, string> = Object.create(null);
  for (const [name, values] of Object.entries(req.queries())) {
    if (values.length > 1)
      throw new ConsoleError('BAD_INPUT', `${name.slice(0, 100)}: is there twice`);
    query[name] = values[0] ?? '';
  }
  return { ...query };
}

/** The socket's address: whatever headers claim. */
function whoOf(context: Context, { role }: Caller): string {
  return `${role} at ${addressOf(context)}`;
}

function addressOf(context: Context): string {
  const { incoming } = context.env as { incoming?: IncomingMessage };
  return incoming?.socket.remoteAddress ?? 'unknown';
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return '/?.'; // names no file and no view
  }
}
