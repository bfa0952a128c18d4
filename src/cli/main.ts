/** The `drover` command: argv in, an exit code out. */

import { isatty } from 'node:tty';
import { consoleChildWord, findCommand } from './command.ts';
import { commands } from './commands.ts';
import { exitCodes } from './exit-codes.ts';
import { dieOf } from './last-resort.ts';
import { longOf, normalised } from './parse.ts';
import type { Surface } from './run.ts';
import { connectionOptions } from './target.ts';

/** Options that may stand before the command and have a value behind them. */
const withValue = new Set(
  connectionOptions.filter(({ flags }) => flags.includes('<')).map(({ flags }) => longOf(flags)),
);

interface Split {
  readonly name: string | undefined;
  /** What stood before the name, and what stood behind it. */
  readonly rest: readonly string[];
  readonly before: readonly string[];
}

function split(argv: readonly string[]): Split {
  const before: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const [token] = normalised([argv[i]!]);
    if (token === undefined) continue;
    if (!token.startsWith('-') || token === '-') {
      return { name: token, before, rest: argv.slice(i + 1) };
    }
    before.push(token === '-r' ? '--allow-read-only' : token);
    if (withValue.has(token) && i + 1 < argv.length) {
      i += 1;
      before.push(argv[i]!);
    }
  }
  return { name: undefined, before, rest: [] };
}

async function run(argv: readonly string[]): Promise<number> {
  const { name, before, rest } = split(argv);
  if (name === undefined) {
    if (before.includes('--version') || before.includes('-V')) return runNamed('version', []);
    // As zkCli: whoever names a server and no command wants a prompt.
    if (before.length > 0 && !before.includes('--help') && !before.includes('-h')) {
      return runNamed('shell', before);
    }
    return runNamed('help', []);
  }
  if (name === '-') return runNamed('shell', [...before, ...rest]); // `… | drover -`
  if (findCommand(commands, name) === undefined) {
    const { refuseName } = await import('./run.ts');
    return refuseName(name, before, rest, surface());
  }
  return runNamed(name, [...before, ...rest]);
}

async function runNamed(name: string, tokens: readonly string[]): Promise<number> {
  const command = findCommand(commands, name)!;
  const { runCommand } = await import('./run.ts');
  const controller = new AbortController();
  if (!command.ownsSignals) listen(controller);
  else errors(); // what lives by itself also speaks by itself
  return runCommand(command, tokens, surface(), controller.signal);
}

/**
 * The first signal asks the command to end, the second does not ask. SIGHUP is a terminal that was closed:
 * what is held is given back then too, and not only when the session is over.
 */
function listen(controller: AbortController): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(exitCodes.interrupted);
      controller.abort();
    });
  }
}

function surface(): Surface {
  const { stdout, env } = process;
  // Node makes a stream of a descriptor when it is first looked at, which takes a millisecond each.
  return {
    commands,
    kind: 'argv',
    environment: env,
    streams: { stdout, stderr: errors, environment: env },
    shell: null,
    ask: isatty(0) && isatty(2) ? askAtTerminal : undefined,
    input: async () => (process.stdin.isTTY ? null : readAll(process.stdin)),
  };
}

let areErrorsHeard = false;

function errors(): NodeJS.WriteStream {
  if (!areErrorsHeard) process.stderr.on('error', () => {}); // there is nobody left to tell
  areErrorsHeard = true;
  return process.stderr;
}

async function askAtTerminal(question: string, signal: AbortSignal): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({
    input: process.stdin,
    output: process.stderr,
    terminal: false, // so that Ctrl-C comes as a signal, as everywhere else
  });
  // Ctrl-D closes it without an answer, and is a no.
  const left = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question, { signal }), left]);
  } finally {
    lines.close();
  }
}

async function readAll(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

// A reader that went away (`drover … | head`) is no fault of ours; a full disk is nobody's, but is said.
let outputFailure: string | undefined;
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED' || outputFailure !== undefined) return;
  outputFailure = code ?? 'unknown error';
  errors().write(`drover: standard output can't be written (${outputFailure})\n`);
  process.exitCode = exitCodes.output;
});

// Without an await at the top: the build makes CommonJS of this, which Node loads sooner.
const argv = process.argv.slice(2);
process.on('uncaughtException', dieOf); // and promises that nobody waits for
if (argv[0] === consoleChildWord && process.send !== undefined) {
  void import('./console-child.ts').then(({ consoleChild }) => consoleChild());
} else {
  void run(argv).then((code) => {
    process.exitCode = outputFailure === undefined ? code : exitCodes.output;
  }, dieOf);
}
