/**
 * Whether the real peers themselves start, come back and go away. What they do is not for us to test.
 */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { describe, expect, test } from 'vitest';
import {
  type ApacheServer,
  findZooKeepers,
  fourLetterWord,
  startApache,
  startEnsemble,
} from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

describe.each(found)('$name', { timeout: 120_000 }, (peer) => {
  test('a server of its own says which version it is', async () => {
    await using server = await startApache(peer);

    const answer = await fourLetterWord(server.port, 'srvr');

    expect(answer).toContain(`Zookeeper version: ${peer.version}`);
    expect(answer).toContain('Mode: standalone');
  });

  test('a restarted server is back on its port', async () => {
    await using server = await startApache(peer);
    const { port, pid } = server;

    await server.restart();

    expect(server.port).toBe(port);
    expect(server.pid).not.toBe(pid);
    expect(await fourLetterWord(port, 'ruok')).toBe('imok');
  });

  test('nothing is left of a server that was let go of', async () => {
    let server: ApacheServer;
    {
      await using it = await startApache(peer);
      server = it;
    }

    expect(isAlive(server.pid)).toBe(false);
    expect(existsSync(server.dir)).toBe(false);
  });

  test('a start that fails says why', async () => {
    const config = { 'authProvider.1': 'no.such.Provider', tickTime: 'often' };

    await expect(startApache(peer, { config })).rejects.toThrow(/NumberFormatException/);
  });

  test('a port that was asked for and is taken is an error', async () => {
    await using first = await startApache(peer);

    await expect(startApache(peer, { port: first.port })).rejects.toThrow(/Address already in use/);
  });

  test('the TLS port takes sessions, and shows a certificate that the authority signed', async () => {
    await using server = await startApache(peer, { tls: true });
    const { ca } = server.tls;

    const socket = await openTls(server, { ca });

    expect(socket.authorized).toBe(true);
    expect(await shakeHands(socket)).toHaveLength(37);
    await expect(openTls(server, { ca: server.tls.otherCa })).rejects.toThrow(/certificate/);
  });

  test('mutual TLS takes only those whom the authority signed', async () => {
    const config = { 'ssl.clientAuth': 'need' };
    await using server = await startApache(peer, { tls: true, config });
    const { ca, client, otherClient } = server.tls;

    expect(await shakeHands(await openTls(server, { ca, ...client }))).toHaveLength(37);
    await expect(openTls(server, { ca }).then(shakeHands)).rejects.toThrow();
    await expect(openTls(server, { ca, ...otherClient }).then(shakeHands)).rejects.toThrow();
  });

  test('SASL is answered with a challenge', async () => {
    await using server = await startApache(peer, { sasl: { users: { ann: 'secret' } } });
    const socket = connect(server.port, '127.0.0.1');
    await shakeHands(socket);

    const sasl = await ask(socket, Buffer.from('000000010000006600000000', 'hex'));

    expect(sasl.toString('latin1')).toContain('algorithm=md5-sess');
    socket.destroy();
  });

  test('an ensemble elects another leader when it loses its own', async () => {
    await using ensemble = await startEnsemble(peer);
    const first = await ensemble.leader();

    await ensemble.kill(first);
    const second = await ensemble.leader();
    await ensemble.start(first);

    expect(second).not.toBe(first);
    expect(await ensemble.leader()).toBe(second);
  });
});

async function openTls(server: ApacheServer, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port: server.securePort!, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

/** Asks for a new session and gives what the server says to that. */
async function shakeHands(socket: Socket): Promise<Buffer> {
  const request = Buffer.alloc(45);
  request.writeInt32BE(10_000, 12); // the timeout
  request.writeInt32BE(16, 24); // the length of the password
  return ask(socket, request);
}

async function ask(socket: Socket, payload: Buffer): Promise<Buffer> {
  const length = Buffer.alloc(4);
  length.writeInt32BE(payload.length);
  socket.write(Buffer.concat([length, payload]));
  const isOver = once(socket, 'close').then(() => Promise.reject(new Error('the server hung up')));
  const [frame] = await Promise.race([once(socket, 'data'), isOver]);
  return (frame as Buffer).subarray(4);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
