/** Requests and answers as lines of JSON over TCP, one at a time on each connection. */

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export type Handler = (request: Record<string, unknown>) => Promise<object>;

export async function serve(port: number, handle: Handler): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    let last: Promise<unknown> = Promise.resolve();
    onLine(socket, (line) => {
      last = last.then(async () => {
        const answer = await handle(JSON.parse(line)).catch((error: Error) => ({
          error: error.message,
        }));
        if (socket.writable) socket.write(`${JSON.stringify(answer)}\n`);
      });
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Asks once. Rejects when there is no answer in time, or the answer is an error. */
export async function ask(
  port: number,
  request: object,
  timeoutMs: number,
): Promise<Record<string, unknown>> {
  const socket = connect(port, '127.0.0.1');
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = new Promise<string>((resolve, reject) => {
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the connection was closed')));
      signal.addEventListener('abort', () => reject(new Error(`no answer in ${timeoutMs} ms`)));
      onLine(socket, resolve);
    });
    socket.write(`${JSON.stringify(request)}\n`);
    const parsed = JSON.parse(await answer);
    if (parsed.error !== undefined) throw new Error(parsed.error);
    return parsed;
  } finally {
    socket.destroy();
  }
}

function onLine(socket: Socket, heard: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    lines.forEach(heard);
  });
}
