/**
 * What a command is, and what it is given when it runs.
 *
 * A command knows nothing of argv, the prompt, a script or a browser: it has a `Context`, writes to the
 * context's output and resolves with an exit code. It must not touch `process`.
 */

import type { Client, ClientOptions, WatchEvent } from '../client/index.ts';
import type { LineBudget } from './line-budget.ts';
import type { Output } from './output.ts';

export interface CommandOption {
  /** As commander has it: `-p, --port <number>`, or `-s` alone where zkCli has no long form. */
  readonly flags: string;
  readonly about: string;
  /** May be given more than once. */
  readonly many?: boolean;
  /** What its value is, for completion. */
  readonly value?: ArgKind;
}

/** By the long name in camelCase, or by the letter where there is no long name: `dryRun`, `s`, `R`. */
export type OptionValues = Readonly<
  Record<string, string | boolean | readonly string[] | undefined>
>;

/** What an argument is, so that it can be completed: a kind, or the words that may stand there. */
export type ArgKind = 'path' | 'file' | 'command' | 'context' | 'text' | readonly string[];

// biome-ignore format: a table is read down its columns
export const groups = {
  nodes:    'Nodes',
  trees:    'Whole subtrees',
  watching: 'Watches',
  access:   'Access and quotas',
  recipes:  'For shell scripts',
  kafka:    'Kafka',
  ensemble: 'Servers and ensembles',
  operate:  'Operating',
  files:    'Files on disk',
  shell:    'The shell',
} as const;

export interface Command {
  /** The name, then the arguments as commander has them: `create <path> [data] [acl]`. No flags. */
  readonly usage: string;
  readonly about: string;
  readonly group: keyof typeof groups;
  /** `--json` is added to every command, and where the server is to every command that talks to one. */
  readonly options: readonly CommandOption[];
  /** Other names, such as `rmr` for `deleteall`. */
  readonly aliases?: readonly string[];
  /** The arguments in their order, for completion; the last may repeat. None unless said. */
  readonly args?: readonly ArgKind[];
  /** Changes something on a server: refused where the target is read-only. */
  readonly writes?: boolean;
  /** Talks to no server that `--server` names. */
  readonly isLocal?: boolean;
  /** `argv`: runs for long and owns its process. `shell`: means nothing outside a shell. */
  readonly only?: 'argv' | 'shell';
  /** Everything behind the first word that is no option belongs to another program. */
  readonly passesThrough?: boolean;
  /** Words with one dash, as zkCli has them: `-members LIST` is taken for `--members LIST`. */
  readonly oneDash?: readonly string[];
  /** Takes signals for itself. */
  readonly ownsSignals?: boolean;
  /** Resolves with the exit code. What it throws becomes a sentence and a code. */
  readonly run: (
    context: Context,
    args: readonly string[],
    options: OptionValues,
  ) => Promise<number>;
}

/** What a child process is started with in place of a command, to run the console of a server. */
export const consoleChildWord = ':console';

/** All commands by name. A command that needs the others, as help does, has it from its context. */
export type CommandTable = Readonly<Record<string, Command>>;

/** By name or by alias. */
export function findCommand(table: CommandTable, name: string): Command | undefined {
  if (Object.hasOwn(table, name)) return table[name];
  return Object.values(table).find(({ aliases }) => aliases?.includes(name));
}

export function commandNames(table: CommandTable): string[] {
  return Object.entries(table).flatMap(([name, { aliases }]) => [name, ...(aliases ?? [])]);
}

/** Where commands go: from flags, DROVER_SERVER, the selected context, or nothing at all. */
export interface Target {
  /** `host:port,host:port/chroot`. */
  readonly servers: string;
  /** What said so, for messages: `--server`, `DROVER_SERVER`, `context prod`, `default`. */
  readonly origin: string;
  /** Commands that write are refused. */
  readonly readOnly: boolean;
  /** Authentication, TLS and timeouts. */
  readonly client: ClientOptions;
  /** The longest data that is sent: `jute.maxbuffer` of the servers, less what stands around it. */
  readonly dataBytesMax: number;
}

export interface Context {
  readonly commands: CommandTable;
  readonly output: Output;
  /** Aborts on Ctrl-C, and when whoever reads the output has gone. */
  readonly signal: AbortSignal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What the line may cost, where others depend on this process. */
  readonly budget?: LineBudget;
  /** Who runs it. A `script` is the shell with its input not a terminal. */
  readonly surface: 'argv' | 'shell' | 'script' | 'console';
  /** What paths without a leading slash are relative to. */
  readonly cwd: string;
  /** The session, opened when first asked for. Whoever made the context closes it. */
  client(): Promise<Client>;
  target(): Promise<Target>;
  /** A session of the command's own, closed with the command at the latest: with the same credentials and TLS unless told otherwise. */
  connect(servers?: string, options?: ClientOptions): Promise<Client>;
  /** As `connect`, at another place and as who one is there. */
  connectTo(target: Target): Promise<Client>;
  /** An absolute path of what a person wrote: relative to `cwd`, with `.` and `..`. */
  path(text?: string, keepsSlash?: boolean): string;
  /**
   * Yes or no, from the person at the terminal. True at once after `--yes`, and where there is nobody
   * to ask: a script does what it says.
   */
  confirm(question: string, options: OptionValues): Promise<boolean>;
  /** All of standard input, for `set PATH -`. Null where it is the terminal or the script itself. */
  input(): Promise<Buffer | null>;
  /** Hands a watch event to whoever prints them: a shell prints it between prompts. */
  event(event: WatchEvent): void;
  /** The shell that runs this line, for `cd` and its like. */
  readonly shell: ShellControl | null;
}

/** What only a shell has. */
export interface ShellControl {
  cwd: string;
  previousCwd: string;
  printWatches: boolean;
  /** Lines by their number, as `history` shows and `redo` takes them. */
  readonly lines: readonly string[];
  run(line: string): Promise<number>;
  reconnect(servers?: string): Promise<void>;
  disconnect(): Promise<void>;
  quit(): void;
  /** Lets another program have the terminal for as long as the work takes. */
  suspend<T>(work: () => Promise<T>): Promise<T>;
}
