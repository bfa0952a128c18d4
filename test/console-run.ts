/**
 * The console in this process, on a server of its own, asked by raw HTTP: a test says every header itself,
 * also those that a browser would never let a page set.
 */

import { request } from 'node:http';
import type { Target } from '../src/cli/command.ts';
import { commands } from '../src/cli/commands.ts';
import { type OpenConsole, openConsole } from '../src/cli/console.ts';
import { startPassingServer } from '../src/cli/passing-server.ts';
import { type Client, connect } from '../src/client/index.ts';
import type { ConsoleOptions, RunningConsole } from '../src/console/index.ts';
import type { RunningServer } from '../src/server/index.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever was answered
  readonly json: any;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  /** Whoever asks is gone. */
  readonly signal?: AbortSignal;
}

export interface ConsoleAsked {
  readonly console: RunningConsole;
  /** What the console said on the terminal. */
  readonly said: string[];
  readonly origin: string;
  /** Exactly this. */
  send(path: string, sent?: Sent): Promise<Answer>;
  get(path: string): Promise<Answer>;
  /** As the page does it: with its token and our own origin. */
  post(path: string, body: unknown, headers?: Sent['headers']): Promise<Answer>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ConsoleInTest extends ConsoleAsked {
  readonly server: RunningServer;
  readonly client: Client;
}

const frameBytesMax = 64 * 1024 * 1024;

/** With a server of its own, in memory. */
export async function startConsoleInTest(
  options: Partial<ConsoleOptions> = {},
  open: Partial<OpenConsole> = {},
): Promise<ConsoleInTest> {
  const server = await startPassingServer(0);
  try {
    const asked = await consoleAt(server.address, options, open);
    const client = await connect(server.address, { frameBytesMax });
    return {
      ...asked,
      server,
      client,
      async [Symbol.asyncDispose]() {
        await asked[Symbol.asyncDispose]();
        await client.close();
        await server.close();
      },
    };
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** On whatever is there. */
export async function consoleAt(
  servers: string,
  options: Partial<ConsoleOptions> = {},
  open: Partial<OpenConsole> = {},
): Promise<ConsoleAsked> {
  const said: string[] = [];
  const target: Target = {
    servers,
    origin: '--server',
    readOnly: false,
    client: { frameBytesMax },
    dataBytesMax: 1_000_000,
  };
  const console = await openConsole({
    target,
    commands,
    environment: {},
    say: (sentence) => said.push(sentence),
    ...open,
    options: { port: 0, write: true, ...options },
  });
  const host = `127.0.0.1:${console.port}`;
  const origin = `http://${host}`;
  const send = (path: string, sent: Sent = {}) => ask(console.port, host, path, sent);
  const post = async (path: string, body: unknown, headers: Sent['headers'] = {}) => {
    const { cookie, authorization } = headers;
    const known = {
      headers: { ...(cookie && { cookie }), ...(authorization && { authorization }) },
    };
    const { json } = await send('/api/session', known);
    return send(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        'sec-fetch-site': 'same-origin',
        'x-drover-token': json.csrf ?? undefined,
        origin,
        ...headers,
      },
    });
  };
  const close = () => console.close();
  return {
    console,
    said,
    origin,
    send,
    post,
    get: (path) => send(path),
    [Symbol.asyncDispose]: close,
  };
}

function ask(port: number, host: string, path: string, sent: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const given = Object.entries({ host, ...sent.headers }).filter(
      ([, value]) => value !== undefined,
    );
    const asking = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method: sent.method ?? 'GET',
        headers: Object.fromEntries(given) as Record<string, string>,
        agent: false,
        ...(sent.signal && { signal: sent.signal }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            get json() {
              return JSON.parse(text);
            },
          });
        });
      },
    );
    asking.on('error', reject);
    asking.end(sent.body);
  });
}

export interface HeardEvent {
  readonly id: string | null;
  readonly kind: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever was sent
  readonly data: any;
}

/** The event stream, event by event. */
export async function* events(
  { origin }: Pick<ConsoleAsked, 'origin'>,
  { signal, lastId }: { readonly signal: AbortSignal; readonly lastId?: string },
): AsyncGenerator<HeardEvent> {
  const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
  const response = await fetch(`${origin}/api/events`, { headers, signal });
  let rest = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    rest += chunk;
    for (let at = rest.indexOf('\n\n'); at !== -1; at = rest.indexOf('\n\n')) {
      const lines = rest.slice(0, at).split('\n');
      rest = rest.slice(at + 2);
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null;
      yield {
        id: field('id'),
        kind: field('event') ?? '',
        data: JSON.parse(field('data') ?? 'null'),
      };
    }
  }
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');
export const textOf = (data: string | null): string => Buffer.from(data ?? '', 'base64').toString();
