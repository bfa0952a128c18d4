/**
 * A server for as long as a command runs: in memory, and open to whatever a program may want to try.
 * What was in it is gone with it.
 */

import { type RunningServer, startServer } from '../server/index.ts';

export function startPassingServer(port: number): Promise<RunningServer> {
  return startServer({
    port,
    inMemory: true,
    fourLetterWords: '*',
    extendedTypesEnabled: true,
    limits: { connectionsPerAddressMax: 0 },
  });
}
