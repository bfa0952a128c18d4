/**
 * Runs one command of the table: words in, an exit code out.
 *
 * Whoever calls it, argv, a prompt, a script, a browser, gives streams, a session and a signal; what the
 * command throws becomes a sentence on standard error, or with --json an object, and a code.
 */

import {
  ArgumentError,
  type Client,
  ConnectError,
  isZkError,
  type WatchEvent,
  ZkError,
} from '../client/index.ts';
import { printable } from '../protocol/index.ts';
import type { Command, CommandTable, Context, OptionValues, ShellControl } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { journalFile } from './journal-file.ts';
import { asksForDebug, traceOf, unforeseen } from './last-resort.ts';
import { LineBudget, type LineLimits } from './line-budget.ts';
import { escaped, jsonLine, Output, type OutputStreams } from './output.ts';
import { nameOf, type Parsed, parse } from './parse.ts';
import { resolvePath } from './paths.ts';
import { CliSession } from './session.ts';
import { namesTarget, targetOf } from './target.ts';
import { WriteNotes } from './write-notes.ts';

export interface Surface {
  readonly commands: CommandTable;
  readonly kind: Context['surface'];
  readonly environment: Context['environment'];
  readonly streams: OutputStreams;
  readonly shell: ShellControl | null;
  /** What each line may cost, where others depend on this process. */
  readonly limits?: LineLimits;
  /** What `--json` and the connection options are where a line says nothing: a shell's own. */
  readonly defaults?: OptionValues;
  /** The session that lines share. Without it, each command has its own. */
  readonly session?: CliSession;
  /** Asks the person at the terminal; undefined where there is none. */
  readonly ask?: ((question: string, signal: AbortSignal) => Promise<string>) | undefined;
  /** All of standard input; null where it is not for the command. */
  readonly input: () => Promise<Buffer | null>;
  readonly onEvent?: (event: WatchEvent) => void;
}

export async function runCommand(
  command: Command,
  tokens: readonly string[],
  surface: Surface,
  signal: AbortSignal,
): Promise<number> {
  const gone = new AbortController();
  const streams = { ...surface.streams, onGone: () => gone.abort() };
  let parsed: Parsed;
  const plain = new Output(outputOptions(tokens, surface), streams);
  try {
    parsed = parse(command, tokens, {
      out: (text) => plain.write(text),
      err: (text) => {
        if (!plain.isJson) plain.remark(text); // else `parseEnd` says it
      },
    });
  } catch (error) {
    return parseEnd(error, command, plain);
  } finally {
    await plain.end();
  }
  const options = { ...defaultsOf(surface, parsed.options), ...withoutEmpty(parsed.options) };
  const output = new Output(options, streams);
  const all = AbortSignal.any([signal, gone.signal]);
  const isJournaled = mayJournal(command, surface);
  const isOwn = surface.session === undefined || namesTarget(parsed.options);
  const session = isOwn
    ? new CliSession(() => targetOf(options, surface.environment), {
        onChange: (sentence) => output.tell(sentence),
        areWritesNoted: isJournaled,
      })
    : surface.session!;
  const opened: Client[] = [];
  const context = contextOf(session, output, all, { surface, opened });
  const around = session.notes; // of a line that runs this one, as redo does
  const notes = isJournaled ? new WriteNotes() : undefined;
  session.notes = notes;
  let code: number = exitCodes.refused;
  try {
    checkSurface(command, surface);
    if (command.writes && (await session.target()).readOnly) {
      const { origin } = await session.target();
      throw new CommandError(
        'refused',
        `${nameOf(command)} writes, and ${origin === 'default' ? 'this' : origin} is read-only`,
      );
    }
    code = await command.run(context, parsed.args, options);
    return code;
  } catch (error) {
    if (output.isGone) return exitCodes.ok;
    await output.drained(); // what was found stands before what went wrong
    code = explain(await withChroot(error, { session, opened, signal: all }), output, all);
    return code;
  } finally {
    session.notes = around;
    const taken = output.drained(); // who waits for the answer need not wait for the goodbye
    if (notes !== undefined && notes.count > 0) {
      await journal(command, code, notes, { session, output, surface });
    }
    await Promise.all(opened.map((each) => each.close())); // whatever the command threw meanwhile
    if (isOwn) await session.close();
    await taken;
    await output.end();
  }
}

/** Measurements write for the writing's sake, and a look before each write would be measured too. */
const unnoted: ReadonlySet<string> = new Set(['bench', 'latency']);

/** Lines of the console's page stand in its audit by themselves. */
function mayJournal(command: Command, { kind, environment }: Surface): boolean {
  if (kind === 'console' || command.isLocal || unnoted.has(nameOf(command))) return false;
  return journalFile(environment) !== null;
}

async function journal(
  command: Command,
  exitCode: number,
  notes: WriteNotes,
  {
    session,
    output,
    surface,
  }: {
    readonly session: CliSession;
    readonly output: Output;
    readonly surface: Surface;
  },
): Promise<void> {
  const file = journalFile(surface.environment)!;
  const { servers } = await session.target();
  const { appendJournal } = await import('./journal.ts');
  try {
    await appendJournal(file, { command: nameOf(command), exitCode, servers, notes });
  } catch (error) {
    // What was written is written: the journal is not worth another exit code.
    const why = (error as Error).message;
    output.tell(`${escaped(file)} can't be written (${escaped(why)}); DROVER_JOURNAL= keeps none`);
  }
}

/** A line that says where it goes says it alone: not to the shell's servers as another context's user. */
function defaultsOf({ defaults = {} }: Surface, given: OptionValues): OptionValues {
  if (!namesTarget(given)) return defaults;
  const { server: _, context: __, ...rest } = defaults;
  return rest;
}

/** An option that may be given often is an empty list where it was not given. */
function withoutEmpty(options: OptionValues): OptionValues {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => !(Array.isArray(value) && value.length === 0)),
  );
}

function parseEnd(error: unknown, { usage }: Command, output: Output): number {
  const { code, exitCode, message } = error as Error & { code?: unknown; exitCode?: unknown };
  if (typeof code !== 'string' || !code.startsWith('commander.')) return explain(error, output);
  if (exitCode === 0) return exitCodes.ok;
  if (!output.isJson) return exitCodes.usage;
  const what = message.replace(/^error: /, '');
  return explain(new CommandError('usage', `${what}; it is drover ${usage}`), output);
}

/** A name that is in no table, said as any other trouble is. */
export async function refuseName(
  name: string,
  before: readonly string[],
  rest: readonly string[],
  surface: Surface,
): Promise<number> {
  const { unknownCommand, unknownOption } = await import('./help.ts');
  const output = new Output(outputOptions([...before, ...rest], surface), surface.streams);
  const { commands } = surface;
  const sentence = unknownOption(commands, before) ?? unknownCommand(commands, name);
  const code = explain(new CommandError('usage', sentence), output);
  await output.end();
  return code;
}

function outputOptions(tokens: readonly string[], surface: Surface): OptionValues {
  const debug = surface.defaults?.debug === true || asksForDebug(tokens);
  return { json: asksForJson(tokens, surface), debug };
}

/** For words that could not be read: what stands behind `--` is another program's. */
function asksForJson(tokens: readonly string[], { defaults }: Surface): boolean {
  const end = tokens.indexOf('--');
  return (
    defaults?.json === true || tokens.slice(0, end === -1 ? undefined : end).includes('--json')
  );
}

function checkSurface({ only, usage }: Command, { kind }: Surface): void {
  const isShell = kind === 'shell' || kind === 'script';
  if (only === 'shell' && !isShell) {
    throw new CommandError('usage', `${usage} means something in drover shell alone`);
  }
  if (only === 'argv' && kind !== 'argv') {
    throw new CommandError('usage', `${usage} is run by itself: drover ${usage}`);
  }
}

function contextOf(
  session: CliSession,
  output: Output,
  signal: AbortSignal,
  { surface, opened }: { readonly surface: Surface; readonly opened: Client[] },
): Context {
  const cwd = surface.shell?.cwd ?? '/';
  const kept = async (opening: Promise<Client>): Promise<Client> => {
    const client = await opening;
    opened.push(client);
    return client;
  };
  return {
    commands: surface.commands,
    output,
    signal,
    cwd,
    environment: surface.environment,
    surface: surface.kind,
    ...(surface.limits && { budget: new LineBudget(surface.limits) }),
    shell: surface.shell,
    client: () => connecting(session, output, signal),
    target: () => session.target(),
    connect: (servers, options) => kept(session.connect(signal, servers, options)),
    connectTo: ({ servers, client }) => kept(session.open(servers, { ...client, signal })),
    path: (text, keepsSlash) => resolvePath(cwd, given(text), keepsSlash),
    input: surface.input,
    event: (event) => surface.onEvent?.(event),
    async confirm(question, { yes }) {
      if (yes === true || surface.ask === undefined) return true;
      const answer = await surface.ask(`${question} [y/N] `, signal);
      return /^\s*y(es)?\s*$/i.test(answer);
    },
  };
}

/** An empty word is a variable that nobody set: `deleteall "$node"` must not begin at the root. */
function given(path: string | undefined): string | undefined {
  if (path === '') throw new CommandError('usage', 'a path is empty; / is the root, . is here');
  return path;
}

/** Looking for a server may take seconds, and is said then. */
async function connecting(session: CliSession, output: Output, signal: AbortSignal) {
  const { servers } = await session.target();
  const look = () => output.status(`looking for a server: ${escaped(servers)}`);
  const timer = setInterval(look, 250);
  try {
    return await session.client(signal);
  } finally {
    clearInterval(timer);
  }
}

/** Below a chroot that is not there nothing is found or made, and a path alone does not tell why. */
async function withChroot(
  error: unknown,
  {
    session,
    opened,
    signal,
  }: {
    readonly session: CliSession;
    readonly opened: readonly Client[];
    readonly signal: AbortSignal;
  },
): Promise<unknown> {
  if (!isZkError(error, 'NO_NODE')) return error;
  for (const client of [await session.opened(), ...opened]) {
    const chroot = client?.chroot;
    if (!client || !chroot) continue;
    const found = await client
      .exists('/', { signal, timeoutMs: askTimeoutMs })
      .catch(() => undefined);
    if (found !== null) continue;
    const { op, path } = error;
    const cure = `drover create -p ${printable(chroot)} --server ${client.server ?? 'HOSTS'} makes it`;
    const detail = `the chroot ${printable(chroot)} is not there, and ${cure}`;
    return new ZkError('NO_NODE', { op, path, detail, cause: error });
  }
  return error;
}

/** For a question that only makes an error clearer. */
const askTimeoutMs = 2_000;

interface Explained {
  readonly code: string;
  readonly exitCode: number;
  readonly message: string;
  readonly path?: string | undefined;
}

export function explain(error: unknown, output: Output, signal?: AbortSignal): number {
  const explained = explanationOf(error, signal);
  const { code, exitCode, message, path } = explained ?? {
    ...{ code: 'BUG', exitCode: exitCodes.bug, message: unforeseen(error), path: undefined },
  };
  const trace = explained === null && output.isDebug ? traceOf(error) : undefined;
  if (output.isJson) {
    const more = { ...(path !== undefined && { path }), ...(trace !== undefined && { trace }) };
    output.remark(jsonLine({ error: { code, message, ...more } }));
    return exitCode;
  }
  output.tell(message);
  if (trace !== undefined) output.remark(`${trace}\n`);
  return exitCode;
}

function explanationOf(error: unknown, signal?: AbortSignal): Explained | null {
  if (signal?.aborted && (error === signal.reason || (error as Error)?.name === 'AbortError')) {
    if (signal.reason instanceof CommandError) return explanationOf(signal.reason); // it says why
    return { code: 'INTERRUPTED', exitCode: exitCodes.interrupted, message: 'interrupted' };
  }
  if (error instanceof CommandError) {
    const kinds = Object.entries(exitCodes);
    const kind = kinds.find(([, code]) => code === error.exitCode)?.[0] ?? 'error';
    return { code: kind.toUpperCase(), exitCode: error.exitCode, message: error.message };
  }
  if (isZkError(error)) {
    const isLost = error.outcomeUnknown || error.code === 'CONNECTION_LOSS';
    const isOver = error.code === 'SESSION_EXPIRED' || error.code === 'AUTH_FAILED';
    const exitCode = isLost
      ? exitCodes.unknown
      : isOver
        ? exitCodes.unreachable
        : exitCodes.refused;
    return { code: error.code, exitCode, message: messageOf(error), path: error.path };
  }
  if (error instanceof ConnectError) {
    const message = `${error.message}; is it running, and is --server right?`;
    return { code: error.code, exitCode: exitCodes.unreachable, message };
  }
  if (error instanceof ArgumentError) {
    const message = error.message.replaceAll('\n', '\\n'); // the rest is escaped where it is said
    return { code: 'USAGE', exitCode: exitCodes.usage, message };
  }
  if (isFileError(error)) {
    return { code: error.code, exitCode: exitCodes.data, message: error.message };
  }
  // Errors that somebody foresaw have a name of their own as their code; Node's ERR_… are ours to mend.
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && /^(?!ERR_)[A-Z][A-Z_]+$/.test(code)) {
    return { code, exitCode: exitCodes.refused, message: String(message) };
  }
  return null;
}

/** A session that ended for the same reason is quoted by its calls: once is enough. */
function messageOf({ code, cause, message }: ZkError): string {
  const text = isZkError(cause, code) && message.includes(cause.message) ? cause.message : message;
  return code === 'NO_AUTH'
    ? `${text}; authenticate with --auth, such as --auth digest:user:password`
    : text;
}

const noRoom: ReadonlySet<string> = new Set(['ENOSPC', 'EFBIG', 'EDQUOT']);

/** Said by the file system about a file here: no server has refused anything. */
function isFileError(error: unknown): error is Error & { readonly code: string } {
  if (!(error instanceof Error)) return false;
  const { code, syscall, path } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || typeof syscall !== 'string') return false;
  return typeof path === 'string' || noRoom.has(code); // which is said of a write, without the file
}
