import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { httpTimeouts, isOwnHost, limitConnections } from './http-guard.ts';

let server: Server | undefined;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.closeAllConnections();
  await new Promise((done) => server?.close(done));
});

type Answer = (response: ServerResponse) => void;

async function serving(connectionsMax: number, connectionsPerAddressMax: number, answer: Answer) {
  server = createServer(httpTimeouts, (_, response) => answer(response));
  limitConnections(server, { connectionsMax, connectionsPerAddressMax });
  await new Promise<void>((done) => server!.listen(0, '127.0.0.1', done));
  return (server.address() as AddressInfo).port;
}

async function dialled(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const accepted = once(server!, 'connection');
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  sockets.push(socket);
  await Promise.all([once(socket, 'connect'), accepted]);
  return socket;
}

const ask = async (socket: Socket): Promise<string> => {
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const [bytes] = await Promise.race([
    once(socket, 'data'),
    once(socket, 'close').then(() => ['closed']),
  ]);
  return String(bytes).split('\r\n', 1)[0]!;
};

test('silent connections do not keep anybody out, neither of their own address nor in total', async () => {
  const port = await serving(6, 4, (response) => response.end('ok'));
  const silent: Socket[] = [];
  for (let i = 0; i < 12; i++) silent.push(await dialled(port));
  for (let i = 0; i < 4; i++) silent.push(await dialled(port, '127.0.0.2'));

  expect(await ask(await dialled(port))).toBe('HTTP/1.1 200 OK');
  expect(await ask(await dialled(port, '127.0.0.3'))).toBe('HTTP/1.1 200 OK');
});

test('a connection whose request is being answered is not closed for another', async () => {
  const held: ServerResponse[] = [];
  const port = await serving(2, 2, (response) => {
    held.push(response);
    if (held.length > 2) response.end('ok');
  });
  const first = await dialled(port);
  const second = await dialled(port);
  const answers = [ask(first), ask(second)];
  while (held.length < 2) await once(server!, 'request');

  const third = await dialled(port);
  if (!third.destroyed) await once(third, 'close');
  for (const response of held) response.end('late');

  expect(await Promise.all(answers)).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 200 OK']);
});

test('a connection that has been answered is closed for another only after those that never asked', async () => {
  const port = await serving(2, 2, (response) => response.end('ok'));
  const used = await dialled(port);
  const silent = await dialled(port);
  expect(await ask(used)).toBe('HTTP/1.1 200 OK');

  await dialled(port);
  if (!silent.destroyed) await once(silent, 'close');

  expect(await ask(used)).toBe('HTTP/1.1 200 OK');
});

test.each([
  [undefined, true],
  ['localhost:8080', true],
  ['127.0.0.1:8080', true],
  ['[::1]:8080', true],
  ['10.1.2.3', true],
  ['evil.example', false],
  ['evil.example:8080', false],
  ['ZK1.example:8080', true],
  ['zk1.example.evil.example', false],
  ['', false],
])('a request to the host %j is its own: %s', (host, isOwn) => {
  expect(isOwnHost(host, ['zk1.example'])).toBe(isOwn);
});
