/**
 * A program that may run only as long as something is held: a lock, a lease, a term.
 *
 * In: the program, and a signal that aborts when what is held is in doubt. Out: how it ended. Told to
 * stop, the program and everything it started get SIGTERM, and SIGKILL when the grace is over; nothing
 * of it outlives us, also when we are killed ourselves: a shell of one line stands by, whose input ends
 * with us, and which then does the same.
 *
 * Not covered: what leaves the program's process group (a daemon), and Windows, which has no groups. The
 * program has no terminal of its own: what it reads and writes is ours, but /dev/tty can't be opened.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { onAbort } from '../support/index.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';

export interface ChildOptions {
  /** What is held. When it aborts, the program must not go on. */
  readonly held: AbortSignal;
  /** Ctrl-C and SIGTERM of our own. */
  readonly signal: AbortSignal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** From SIGTERM to SIGKILL. */
  readonly graceMs: number;
  /** For its standard input; ours unless said. */
  readonly input?: Buffer | null;
}

export interface ChildEnd {
  /** As a shell would say it: 128 and the signal's number for one that a signal ended. */
  readonly code: number;
  /** Why it was told to stop, if it was. */
  readonly stopped: 'inDoubt' | 'interrupted' | undefined;
}

const hasGroups = process.platform !== 'win32';
const doNothing = () => {};

export async function runChild(
  [command, ...args]: readonly [string, ...string[]],
  { held, signal, environment, graceMs, input }: ChildOptions,
): Promise<ChildEnd> {
  let stopped: ChildEnd['stopped'];
  if (held.aborted) return { code: 1, stopped: 'inDoubt' };
  signal.throwIfAborted();
  // First, so that from its first moment on the program is known to who stands by.
  const guard = standBy(graceMs);
  // Ctrl-Z would stop us and not the program, which went on while what is held went to others.
  process.on('SIGTSTP', doNothing);
  let child: ChildProcess;
  try {
    // Some of what can be wrong is thrown here, and some comes later.
    child = spawn(command, args, {
      stdio: [input === undefined ? 'inherit' : 'pipe', 'inherit', 'inherit'],
      env: environment as NodeJS.ProcessEnv,
      detached: hasGroups, // a group of its own, so that all of it can be ended
    });
    if (child.pid !== undefined) guard?.stdin?.write(`${child.pid}\n`);
    await once(child, 'spawn');
  } catch (cause) {
    process.off('SIGTSTP', doNothing);
    guard?.kill('SIGKILL');
    const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new CommandError('usage', `${escaped(command)} can't be run (${reason})`, { cause });
  }
  let impatience: NodeJS.Timeout | undefined;
  const stop = (why: NonNullable<ChildEnd['stopped']>) => {
    if (stopped !== undefined && impatience !== undefined) return;
    // Who is told to end gives back what they hold, which then looks like a loss.
    stopped ??= signal.aborted ? 'interrupted' : why;
    signalGroup(child, 'SIGTERM');
    impatience = setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs);
  };
  const stopHearing = [
    onAbort(held, () => stop('inDoubt')),
    onAbort(signal, () => stop('interrupted')),
  ];
  // While it was being started nobody listened.
  if (held.aborted) stop('inDoubt');
  if (signal.aborted) stop('interrupted');
  if (input !== undefined) {
    child.stdin!.on('error', () => {}); // it need not read what it is given
    child.stdin!.end(input ?? undefined);
  }
  try {
    const [code, ended] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    // Those it left behind in its group may not go on either, once it was told to stop.
    if (stopped !== undefined) signalGroup(child, 'SIGKILL');
    return { code: code ?? 128 + constants.signals[ended!], stopped };
  } finally {
    clearTimeout(impatience);
    for (const each of stopHearing) each();
    process.off('SIGTSTP', doNothing);
    guard?.kill('SIGKILL');
  }
}

function signalGroup(child: ChildProcess, name: NodeJS.Signals): void {
  try {
    if (hasGroups) process.kill(-child.pid!, name);
    else child.kill(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Is told the group by a line, and ends it when its input ends, which it does with us. */
function standBy(graceMs: number): ChildProcess | undefined {
  if (!hasGroups) return undefined;
  const end = 'kill -s TERM -- "-$group" && sleep "$1" && kill -s KILL -- "-$group"';
  const script = `read -r group && { read -r _; ${end}; }`;
  const guard = spawn('sh', ['-c', script, 'sh', String(Math.ceil(graceMs / 1_000))], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // a Ctrl-C must not take it away before us
  });
  guard.on('error', () => {}); // no shell: everything but our own sudden end is still covered
  guard.stdin!.on('error', () => {});
  guard.unref();
  (guard.stdin as unknown as { unref(): void }).unref();
  return guard;
}
