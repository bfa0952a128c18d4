/**
 * The command line in this process: the same table, runner and shell as a person has, with what they
 * print caught instead of printed. Fast, so that every command can have its story.
 */

import { Writable } from 'node:stream';
import type { CommandTable } from '../src/cli/command.ts';
import { findCommand } from '../src/cli/command.ts';
import { commands } from '../src/cli/commands.ts';
import { runCommand, type Surface } from '../src/cli/run.ts';
import { Shell } from '../src/cli/shell.ts';

export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** Standard output as it was written, byte for byte. */
  readonly bytes: Buffer;
  readonly lines: string[];
  /** With --json: what each line holds. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever was printed
  readonly records: any[];
}

/** What was written, instead of a screen. */
export class Caught extends Writable {
  readonly chunks: Buffer[] = [];
  readonly isTTY: boolean;
  readonly columns = 100;

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  override _write(chunk: Buffer, _: unknown, done: () => void): void {
    this.chunks.push(chunk);
    done();
  }

  take(): Buffer {
    return Buffer.concat(this.chunks.splice(0));
  }
}

export interface RunOptions {
  readonly environment?: Record<string, string>;
  /** Standard output is a terminal. */
  readonly isTty?: boolean;
  /** `drover shell --json`. */
  readonly json?: boolean;
  /** `drover shell --server`. */
  readonly server?: string;
  readonly kind?: Surface['kind'];
  readonly ask?: Surface['ask'];
  readonly input?: Buffer;
  readonly signal?: AbortSignal;
  readonly table?: CommandTable;
  /** Called as soon as something is printed. */
  readonly onOut?: (all: string) => void;
}

function said(code: number, stdout: Caught, stderr: Caught): Said {
  const bytes = stdout.take();
  const out = bytes.toString('utf8');
  return {
    code,
    out,
    bytes,
    err: stderr.take().toString('utf8'),
    lines: out.split('\n').slice(0, -1),
    get records() {
      return this.lines.map((line) => JSON.parse(line));
    },
  };
}

/** `drover …` on a server: `await runInProcess(zk.address, ['ls', '/'])`. */
export async function runInProcess(
  servers: string,
  argv: readonly string[],
  options: RunOptions = {},
): Promise<Said> {
  const stdout = new Caught(options.isTty === true);
  const stderr = new Caught(false);
  const table = options.table ?? commands;
  const [name = '', ...rest] = argv;
  const environment = { DROVER_SERVER: servers, ...options.environment };
  const command = findCommand(table, name);
  if (command === undefined) throw new Error(`no command ${name}`);
  if (options.onOut !== undefined) {
    const { onOut } = options;
    const write = stdout._write.bind(stdout);
    stdout._write = (chunk, encoding, done) => {
      write(chunk, encoding, done);
      onOut(Buffer.concat(stdout.chunks).toString('utf8'));
    };
  }
  const surface: Surface = {
    commands: table,
    kind: options.kind ?? 'argv',
    environment,
    streams: { stdout, stderr, environment },
    shell: null,
    ask: options.ask,
    input: async () => options.input ?? null,
  };
  const signal = options.signal ?? new AbortController().signal;
  return said(await runCommand(command, rest, surface, signal), stdout, stderr);
}

export interface ShellInProcess {
  readonly shell: Shell;
  run(line: string): Promise<Said>;
  /** What was printed since, between lines: watch events. */
  printed(): string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `drover shell`, a line at a time. As a script, unless a terminal is wanted. */
export function shellInProcess(servers: string, options: RunOptions = {}): ShellInProcess {
  const stdout = new Caught(options.isTty === true);
  const stderr = new Caught(false);
  const environment = { DROVER_SERVER: servers, ...options.environment };
  const shell = new Shell({
    commands,
    kind: options.kind === 'shell' ? 'shell' : 'script',
    environment,
    streams: { stdout, stderr, environment },
    defaults: {
      ...(options.json && { json: true }),
      ...(options.server !== undefined && { server: options.server }),
    },
    ask: options.ask,
  });
  return {
    shell,
    run: async (line) => said(await shell.execute(line), stdout, stderr),
    printed: () => Buffer.concat(stdout.chunks).toString('utf8'),
    [Symbol.asyncDispose]: () => shell.close(),
  };
}
