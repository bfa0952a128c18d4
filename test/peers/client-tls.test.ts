/** TLS and mutual TLS, on a real server's secure port. */

import { writeFileSync } from 'node:fs';
import { connect as tcpConnect } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { ConnectError, connect } from '../../src/client/index.ts';
import { certificates } from '../certificates/certificates.ts';
import {
  type ApacheOptions,
  type ApacheServer,
  findZooKeepers,
  startApache,
  type ZooKeeperPeer,
} from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

const { ca, client, otherCa, otherClient, expired, wrongName } = certificates;
const once = { connectRoundsMax: 1, connectTimeoutMs: 20_000 };
const secure = (server: ApacheServer, host = '127.0.0.1') => `${host}:${server.securePort}`;

async function start(peer: ZooKeeperPeer, options: ApacheOptions): Promise<ApacheServer> {
  const server = await startApache(peer, options);
  await listening(server);
  return server;
}

/** A server counts as started by its plain port; the other one may come a moment later. */
async function listening(server: ApacheServer): Promise<void> {
  const knock = () =>
    new Promise<void>((resolve, reject) => {
      const socket = tcpConnect(server.securePort!, '127.0.0.1', () => resolve());
      socket.on('error', reject);
      socket.on('connect', () => socket.destroy());
    });
  await vi.waitFor(knock, { timeout: 20_000, interval: 20 });
}

function refusal(work: Promise<unknown>): Promise<ConnectError> {
  return work.then(
    () => {
      throw new Error('it was taken in');
    },
    (error) => error,
  );
}

describe.each(found)('$name', { timeout: 120_000 }, (peer) => {
  test('a server whose certificate is good is taken, by name and by address', async () => {
    await using server = await start(peer, { tls: true });

    for (const host of ['127.0.0.1', 'localhost']) {
      await using it = await connect(secure(server, host), { ...once, tls: { ca } });
      const { path } = await it.create(`/${host}`, 'x'.repeat(500_000));
      expect((await it.get(path)).stat.dataLength).toBe(500_000);
    }
  });

  test('a server that somebody else vouches for is refused, and the error says so', async () => {
    await using server = await start(peer, { tls: true });

    const byOther = await refusal(connect(secure(server), { ...once, tls: { ca: otherCa } }));
    const byNobody = await refusal(connect(secure(server), { ...once, tls: {} }));

    for (const error of [byOther, byNobody]) {
      expect(error).toBeInstanceOf(ConnectError);
      expect(error.message).toMatch(/certificate|unable to verify/i);
      expect(error.message).toContain(secure(server));
    }
  });

  test('a certificate for another name is refused, unless that name was asked for', async () => {
    await using server = await start(peer, { tls: true });
    writeFileSync(`${server.dir}/server.pem`, wrongName.key + wrongName.cert);
    await server.restart();
    await listening(server);

    const error = await refusal(connect(secure(server), { ...once, tls: { ca } }));
    const tls = { ca, servername: 'example.invalid' };
    await using asked = await connect(secure(server, 'localhost'), { ...once, tls });

    expect(error.message).toMatch(/does not match certificate's altnames|IP: 127.0.0.1 is not in/);
    expect(asked.state.name).toBe('connected');
  });

  test('a certificate past its time is refused', async () => {
    await using server = await start(peer, { tls: true });
    writeFileSync(`${server.dir}/server.pem`, expired.key + expired.cert);
    await server.restart();
    await listening(server);

    const error = await refusal(connect(secure(server), { ...once, tls: { ca } }));

    expect(error.message).toMatch(/certificate has expired/);
  });

  test('where the server wants to know its clients, a good certificate is needed', async () => {
    await using server = await start(peer, {
      tls: true,
      config: { 'ssl.clientAuth': 'need' },
    });

    await using known = await connect(secure(server), { ...once, tls: { ca, ...client } });
    const none = await refusal(connect(secure(server), { ...once, tls: { ca } }));
    const other = await refusal(connect(secure(server), { ...once, tls: { ca, ...otherClient } }));

    expect(await known.children('/')).toEqual(['zookeeper']);
    for (const error of [none, other]) {
      expect(error).toBeInstanceOf(ConnectError);
      expect(error.message).toContain(secure(server));
    }
  });

  test('plain text on the TLS port, and TLS on the plain one, fail with a reason', async () => {
    await using server = await start(peer, { tls: true });
    const hurried = { ...once, attemptTimeoutMs: 2_000 };

    const plain = await refusal(connect(secure(server), hurried));
    const encrypted = await refusal(connect(server.address, { ...hurried, tls: { ca } }));

    expect(plain.message).toMatch(/a TLS port|did not answer|a frame of/);
    expect(encrypted.message).toMatch(
      /closed while connecting|disconnected|reset|did not answer|wrong version/i,
    );
  });

  test('a session goes on through a restart of a TLS server', async () => {
    await using server = await start(peer, { tls: true });
    await using it = await connect(secure(server), { tls: { ca }, sessionTimeoutMs: 40_000 });
    await it.create('/mine', '', { mode: 'ephemeral' });
    const { sessionId } = it;

    await server.restart();

    expect((await it.exists('/mine'))!.ephemeralOwner).toBe(sessionId);
  });
});
