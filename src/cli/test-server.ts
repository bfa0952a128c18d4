/**
 * `drover test-server -- npm test`: a server in memory for as long as a command runs.
 *
 * The command finds the address in ZK_SERVERS, drover itself in DROVER_SERVER, and its exit code is ours.
 * Without a command the server runs until it is stopped, its address on standard output.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { startPassingServer } from './passing-server.ts';
import { numberIn } from './within.ts';

/** What would end us, and leave the command without its server. */
const heeded = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const;
/** A terminal gives these to all that run at it: passed on they would come twice, and a second Ctrl-C means more. */
const fromTerminal: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

export async function testServer(args: readonly string[], options: OptionValues): Promise<number> {
  const port = options.port === undefined ? 0 : numberIn(options.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new CommandError('usage', `--port ${options.port}: a number up to 65535 is wanted`);
  }
  await using server = await startPassingServer(port);
  const [command, ...rest] = args;
  if (command === undefined) {
    const { address } = server;
    process.stdout.write(options.json ? `${JSON.stringify({ address })}\n` : `${address}\n`);
    await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
    return exitCodes.ok;
  }
  const isAtTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
  let child: ChildProcess | undefined;
  const forward = (signal: NodeJS.Signals) => {
    if (!isAtTerminal || !fromTerminal.has(signal)) child?.kill(signal);
  };
  for (const signal of heeded) process.on(signal, forward);
  try {
    // Some of what can be wrong is thrown here, and some comes later.
    child = spawn(command, rest, {
      stdio: 'inherit',
      env: { ...process.env, ZK_SERVERS: server.address, DROVER_SERVER: server.address },
    });
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + constants.signals[signal!];
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    const name = command === '' ? '""' : escaped(command);
    throw new CommandError('usage', `${name} can't be run (${reason})`, { cause });
  } finally {
    for (const signal of heeded) process.off(signal, forward);
  }
}
