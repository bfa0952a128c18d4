/**
 * `drover test-server -- npm test`: a server in memory for as long as a command runs.
 *
 * The command finds the address in ZK_SERVERS, and its exit code is ours. Without a command the server
 * runs until it is stopped, its address on standard output.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { startPassingServer } from './passing-server.ts';

export async function testServer(args: readonly string[], options: OptionValues): Promise<number> {
  const port = Number(options.port ?? 0);
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
  const child = spawn(command, rest, {
    stdio: 'inherit',
    env: { ...process.env, ZK_SERVERS: server.address },
  });
  const forward = (signal: NodeJS.Signals) => child.kill(signal);
  process.on('SIGTERM', forward);
  process.on('SIGINT', forward);
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + constants.signals[signal!];
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new CommandError('usage', `${command} can't be run (${reason})`, { cause });
  } finally {
    process.off('SIGTERM', forward);
    process.off('SIGINT', forward);
  }
}
