/**
 * `drover console`: the web console for any ZooKeeper, until it is told to stop.
 *
 * It starts also while no server can be reached, and shows that. Read-only unless --write; on this machine
 * alone unless --address, which needs a token. Tokens are never printed.
 */

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client } from '../client/index.ts';
import {
  type AuditEntry,
  ConsoleError,
  type ConsoleOptions,
  type ConsoleSources,
  consolePort,
  type Ends,
  isLoopback,
  type RunningConsole,
  startConsole,
} from '../console/index.ts';
import { droverVersion } from '../server/index.ts';
import { onAbort, readPlainFile } from '../support/index.ts';
import type { CommandTable, Context, OptionValues, Target } from './command.ts';
import { type AskedBrokers, askedBrokers, BrokerEnds } from './console-brokers.ts';
import { contextSources, copyInto, type Offered, offeredContexts } from './console-contexts.ts';
import { ConsoleShell, consoleCommands } from './console-shell.ts';
import { adminPortsOf, askServers, lookAtServers } from './console-sources.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { journalSource } from './journal.ts';
import { requestBytesMaxOf } from './target.ts';
import { within } from './within.ts';
import { escaped, escapedLines } from './words.ts';

/** How long a page waits for ZooKeeper, where it sets no time of its own. */
const requestTimeoutMs = 30_000;

export async function consoleCommand(context: Context, options: OptionValues): Promise<number> {
  const { output, signal, environment } = context;
  const target = await context.target();
  const isWrite = options.write === true;
  if (isWrite && target.readOnly) {
    throw new CommandError('usage', `--write: ${target.origin} is read-only`);
  }
  const token = await tokenOf(options, environment);
  const host = (options.address as string | undefined) ?? '127.0.0.1';
  const running = await openConsole({
    target,
    commands: context.commands,
    environment,
    say: (sentence) => output.tell(sentence),
    contexts: offeredContexts(options.contexts, isLoopback(host)),
    brokers: askedBrokers(options.brokers),
    adminPorts: adminPortsOf(options.adminPort),
    options: {
      port: within(options.port, '--port', 0, 65_535, consolePort),
      host,
      write: isWrite,
      allowHosts: (options.allowHost ?? []) as readonly string[],
      ...(token !== undefined && { token }),
    },
  });
  try {
    const mode = isWrite ? 'can write' : 'read-only; --write lets it change things';
    if (output.isJson) {
      output.record({
        url: running.url,
        port: running.port,
        servers: target.servers,
        write: isWrite,
      });
    } else {
      output.line(`console ${running.url} for ${target.servers} (${mode})`);
      if (token !== undefined) output.line('it asks for its token; Ctrl-C stops');
      else output.line('Ctrl-C stops');
    }
    if (!running.isPageBuilt)
      output.tell('the page is not built (npm run build); /api answers all the same');
    await output.drained();
    if (options.open === true) open(running.url, (sentence) => output.tell(sentence));
    await aborted(signal);
  } finally {
    await running.close();
  }
  return exitCodes.ok;
}

export interface OpenConsole {
  readonly target: Target;
  readonly commands: CommandTable;
  readonly environment: Context['environment'];
  readonly say: (sentence: string) => void;
  /** Contexts that the page may switch to; undefined: none. */
  readonly contexts?: Offered | undefined;
  /** Who is asked for the ends of partitions, for lag; see `BrokerEnds`. */
  readonly brokers?: AskedBrokers | undefined;
  /** Where AdminServers tell what four-letter words do not. */
  readonly adminPorts?: readonly number[] | undefined;
  /** Of a server that keeps nothing: what command lines wrote before went to another. */
  readonly journalSinceMs?: number | undefined;
  /** Of a demo, while it runs: its brokers only play. */
  readonly demoEnds?: () => Ends | undefined;
  /** What chooses its port, for who finds it taken; --port unless said. */
  readonly portFlag?: string;
  readonly options: Partial<ConsoleOptions>;
}

/** A console with a session of its own; both are closed together. */
export async function openConsole(open: OpenConsole): Promise<RunningConsole> {
  const { target, environment, say, options, contexts } = open;
  const own = openSources(open, target, open);
  const folder = pageFolder();
  try {
    const running = await startConsole({
      ...own.sources,
      ...(contexts !== undefined && {
        contexts: contextSources(contexts, environment, async (other) => {
          // Addresses belong to one cluster; a consent to ask those in ZooKeeper is for all.
          const { brokers } = open;
          return openSources(open, other, brokers === 'registered' ? { brokers } : {});
        }),
      }),
      // Paths and messages come from strangers, and a terminal shows them.
      onAudit: (entry, context) => say(escaped(auditLine(entry, context))),
      onBug: (error) => say(escapedLines(`console: ${(error as Error)?.stack ?? String(error)}`)),
      ...(folder !== undefined && { pageFolder: folder }),
      ...options,
    });
    const close = async () => {
      await running.close();
      await own.close();
    };
    return { ...running, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await own.close();
    throw asCommandError(error, open);
  }
}

/** Everything that the console is told of one place. */
function openSources(
  { commands, environment }: OpenConsole,
  target: Target,
  only: Pick<OpenConsole, 'brokers' | 'demoEnds' | 'adminPorts' | 'journalSinceMs'> = {},
): { readonly sources: ConsoleSources; close(): Promise<void> } {
  const { brokers = 'none', demoEnds, adminPorts, journalSinceMs } = only;
  // Who waits for ever for a server that is away would have his change made when it is back, days later.
  const client = new Client(target.servers, { requestTimeoutMs, ...target.client, renew: true });
  const shell = new ConsoleShell(commands, target, environment);
  const ends = new BrokerEnds(client, brokers);
  return {
    sources: {
      client,
      servers: target.servers,
      origin: target.origin,
      version: droverVersion(),
      lookAtServers: lookAtServers(target, adminPorts),
      ask: askServers(target, adminPorts),
      commands: consoleCommands(commands),
      run: (line) => shell.run(line),
      copy: copyInto(client, requestBytesMaxOf(target)),
      offsets: () => demoEnds?.() ?? ends.source,
      whyNoOffsets: () => ends.why,
      journal: journalSource(environment, client, target.servers, journalSinceMs),
    },
    async close() {
      await ends.close();
      await shell.close();
      await client.close();
    },
  };
}

function asCommandError(error: unknown, { portFlag = '--port', options }: OpenConsole): unknown {
  if (error instanceof ConsoleError)
    return new CommandError('usage', error.message, { cause: error });
  const { code } = error as NodeJS.ErrnoException;
  const at = `${options.host ?? '127.0.0.1'}:${options.port ?? consolePort}`;
  if (code === 'EADDRINUSE') {
    const why = `${at} is taken by another program; choose another port for the console with ${portFlag}`;
    return new CommandError('address', why, { cause: error });
  }
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new CommandError('address', `the console can't listen on ${at} (${code})`, {
      cause: error,
    });
  }
  return error;
}

function auditLine(
  { action, path, who, ok, count, note }: AuditEntry,
  context: string | null,
): string {
  const where = context === null ? '' : ` in ${context}`;
  const what = count > 1 ? `${action} ${path} (${count} nodes)` : `${action} ${path}`;
  return `console: ${what}${where}, by ${who}${ok ? '' : `, failed: ${note}`}`;
}

/** A token on the command line is in the list of processes: a file or the variable is better. */
export async function tokenOf(
  options: OptionValues,
  { DROVER_CONSOLE_TOKEN }: Context['environment'],
): Promise<string | undefined> {
  const file = options.tokenFile as string | undefined;
  if (file === undefined) {
    return (options.token as string | undefined) ?? (DROVER_CONSOLE_TOKEN || undefined);
  }
  try {
    return (await readPlainFile(file)).toString('utf8').trim();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandError('usage', `--token-file ${file} can't be read (${code})`, { cause });
  }
}

/** dist/web of the package, from its source and from its build alike. */
function pageFolder(): string | undefined {
  for (const up of ['../..', '../../..']) {
    const folder = fileURLToPath(new URL(`${up}/dist/web`, import.meta.url));
    if (existsSync(folder)) return folder;
  }
  return undefined;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    else onAbort(signal, () => done());
  });
}

// biome-ignore format: a table is read down its columns
const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  win32:  ['explorer.exe'],
};

function open(url: string, tell: (sentence: string) => void): void {
  const [program, ...args] = openers[process.platform] ?? ['xdg-open'];
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  child.on('error', () => tell(`no browser could be opened (${program}); open ${url} yourself`));
  child.unref();
}
