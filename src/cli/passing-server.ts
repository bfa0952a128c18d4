/**
 * A server for as long as a command runs: in memory, and open to whatever a program may want to try.
 * What was in it is gone with it.
 */

import { type RunningServer, startServer } from '../server/index.ts';
import { CommandError } from './exit-codes.ts';

export async function startPassingServer(port: number): Promise<RunningServer> {
  try {
    return await startServer({
      port,
      inMemory: true,
      fourLetterWords: '*',
      extendedTypesEnabled: true,
      limits: { connectionsPerAddressMax: 0 },
    });
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (syscall !== 'listen') throw cause;
    const why = code === 'EADDRINUSE' ? 'is taken by another program' : `is not ours (${code})`;
    const message = `127.0.0.1:${port} ${why}; choose another --port, or none for any that is free`;
    throw new CommandError('address', message, { cause });
  }
}
