/**
 * What is said of an error that nobody foresaw: one sentence. The stack trace is for `--debug` alone, since
 * it tells a user nothing and hides the sentence that does.
 */

import { writeSync } from 'node:fs';
import { exitCodes } from './exit-codes.ts';
import { escapedLines } from './words.ts';

export function unforeseen(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const [first = ''] = text.split('\n', 1);
  return `internal error (${first}); this is a bug in drover, and --debug shows where`;
}

export function traceOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? String(error)) : String(error);
}

/** Whether `--debug` stands among the words that are ours: what follows `--` belongs to another program. */
export function asksForDebug(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end === -1 ? undefined : end).includes('--debug');
}

/** For errors that no command is there to explain. Ends the process. */
export function dieOf(error: unknown): never {
  const said = [`drover: ${unforeseen(error)}`];
  if (asksForDebug(process.argv.slice(2))) said.push(traceOf(error));
  try {
    writeSync(2, `${escapedLines(said.join('\n'))}\n`);
  } catch {
    // Standard error is closed: the exit code is all that is left to say.
  }
  process.exit(exitCodes.bug);
}
