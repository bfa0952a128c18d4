/**
 * A TCP port on 127.0.0.1 that nobody listens on at this moment.
 *
 * Taken from below the range that the kernel gives to outgoing connections. In that range a client that
 * keeps dialing a stopped server could be given the server's own port as its local one, and so be
 * connected to itself. Between finding a port and binding it another process may come first: whoever
 * binds it has to try again.
 */
import { createServer } from 'node:net';

const first = 20_000;
const count = 12_000;
const attempts = 100;

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port = first + Math.floor(Math.random() * count);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${first} and ${first + count}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
