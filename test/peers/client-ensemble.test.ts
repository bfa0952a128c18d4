/** Three real servers: a leader that dies under load, membership that changes, a quorum that is lost. */

import { describe, expect, test, vi } from 'vitest';
import { type Client, connect, isZkError } from '../../src/client/index.ts';
import { reached } from '../zk.ts';
import { findZooKeepers, fourLetterWord, startEnsemble } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

/** `super:test` may do everything. */
const superuser =
  '-Dzookeeper.DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=';

async function clientsOf(address: string, count: number, timeoutMs = 20_000): Promise<Client[]> {
  return Promise.all(
    Array.from({ length: count }, () => connect(address, { sessionTimeoutMs: timeoutMs })),
  );
}

describe.each(found)('$name', { timeout: 180_000 }, (peer) => {
  test('a leader that is killed under load loses no acknowledged write and no session', async () => {
    await using ensemble = await startEnsemble(peer, 3, { tickTimeMs: 1_000 });
    const clients = await clientsOf(ensemble.address, 20);
    const [keeper] = clients as [Client];
    await keeper.create('/load');
    const sessions = clients.map(({ sessionId }) => sessionId);
    await Promise.all(
      clients.map((client, i) => client.create(`/holder-${i}`, '', { mode: 'ephemeral' })),
    );
    const counts = { done: 0, unknown: 0, read: 0 };
    const acknowledged: string[] = [];
    const settledTwice: string[] = [];
    let isOver = false;
    const load = async (client: Client, id: number) => {
      for (let i = 0; !isOver; i++) {
        const path = `/load/${id}-${i}`;
        let settled = 0;
        const note = () => {
          settled += 1;
          if (settled > 1) settledTwice.push(path);
        };
        const write = client.create(path).then(
          () => {
            note();
            counts.done += 1;
            acknowledged.push(path);
          },
          (error) => {
            note();
            if (!isZkError(error) || !error.outcomeUnknown) throw error;
            counts.unknown += 1;
          },
        );
        const reads = [client.exists(path), client.get('/load')].map((read) =>
          read.then(() => {
            counts.read += 1;
          }),
        );
        await Promise.all([write, ...reads]);
      }
    };
    const working = clients.map((client, id) => load(client, id));
    await vi.waitFor(() => expect(counts.done).toBeGreaterThan(200), { timeout: 60_000 });

    await ensemble.kill(await ensemble.leader());
    await ensemble.leader();
    const atElection = counts.done;
    await vi.waitFor(() => expect(counts.done).toBeGreaterThan(atElection + 200), {
      timeout: 60_000,
    });
    isOver = true;
    await Promise.all(working);

    // A write, not a sync: to its own clients a leader answers that without looking at what is under way, and
    // its followers may have told theirs of a write before it has applied it itself.
    await keeper.set('/load', 'done');
    const there = new Set(await keeper.children('/load'));
    const lost = acknowledged.filter((path) => !there.has(path.slice('/load/'.length)));
    expect(lost).toEqual([]);
    expect(settledTwice).toEqual([]);
    expect(clients.map(({ sessionId }) => sessionId)).toEqual(sessions);
    const holders = (await keeper.children('/')).filter((name) => name.startsWith('holder-'));
    expect(holders).toHaveLength(20);
    expect(clients.map(({ load: { inFlight, waiting } }) => inFlight + waiting)).toEqual(
      clients.map(() => 0),
    );
    await Promise.all(clients.map((client) => client.close()));
  });

  test('behind a barrier the leader has what a follower told of', async () => {
    await using ensemble = await startEnsemble(peer, 3);
    const leader = await ensemble.leader();
    await using reader = await connect(ensemble.servers[leader]!.address);
    await using writer = await connect(ensemble.servers[(leader + 1) % 3]!.address);

    const missing: string[] = [];
    for (let i = 0; i < 300; i++) {
      const { path } = await writer.create(`/behind-${i}`);
      await reader.barrier();
      if ((await reader.exists(path)) === null) missing.push(path);
    }

    expect(missing).toEqual([]);
  });

  test('the membership can be read, watched and changed', async () => {
    await using ensemble = await startEnsemble(peer, 3, { jvm: [superuser] });
    await using client = await connect(ensemble.address, {
      auth: [{ scheme: 'digest', auth: 'super:test' }],
    });
    await using nobody = await connect(ensemble.address);
    const told = vi.fn();
    const leader = await ensemble.leader();
    const leaving = String(((leader + 1) % 3) + 1);

    const before = await client.getConfig({ watch: told });
    const member = String(before.data)
      .split('\n')
      .find((line) => line.startsWith(`server.${leaving}=`))!;
    await expect(nobody.reconfig({ leaving: [leaving] })).rejects.toMatchObject({
      code: 'NO_AUTH',
    });
    const without = await client.reconfig({ leaving: [leaving] });
    const wrong = await client
      .reconfig({ joining: [member], fromConfig: 1n })
      .catch((error) => error);
    const again = await client.reconfig({ joining: [member] });

    expect(String(before.data).match(/^server\./gm)).toHaveLength(3);
    expect(String(without.data)).not.toContain(`server.${leaving}=`);
    expect(wrong).toMatchObject({ code: 'BAD_VERSION' });
    expect(String(again.data)).toContain(`server.${leaving}=`);
    await vi.waitFor(() => expect(told).toHaveBeenCalledOnce());
    expect(told.mock.calls[0]![0]).toMatchObject({
      type: 'dataChanged',
      path: '/zookeeper/config',
    });
  });

  test('a server without its quorum serves reads to who takes it so, and a real session follows', async () => {
    await using ensemble = await startEnsemble(peer, 3, {
      // Without sessions of its own, such a server could take nobody in.
      config: { localSessionsEnabled: 'true', localSessionsUpgradingEnabled: 'true' },
      jvm: ['-Dreadonlymode.enabled=true'],
      tickTimeMs: 500,
    });
    await using writer = await connect(ensemble.address);
    await writer.create('/a', 'x');
    await Promise.all([ensemble.kill(1), ensemble.kill(2)]);
    const { address: alone, port } = ensemble.servers[0]!;
    // Before it has noticed, it takes sessions as one of three; alone it knows nothing of these: they are over.
    await vi.waitFor(async () => expect(await fourLetterWord(port, 'isro')).toBe('ro'), {
      timeout: 60_000,
    });

    await using reader = await connect(alone, { readOnly: true, connectTimeoutMs: 60_000 });
    const strict = await connect(alone, { connectRoundsMax: 2, connectTimeoutMs: 10_000 }).catch(
      (error) => error,
    );

    expect(reader.state).toMatchObject({ name: 'connected', readOnly: true });
    expect(String((await reader.get('/a')).data)).toBe('x');
    await expect(reader.set('/a', 'y')).rejects.toMatchObject({
      code: 'NOT_READ_ONLY',
      outcomeUnknown: false,
    });
    expect(strict.code).toBe('CONNECT_FAILED');

    await Promise.all([ensemble.start(1), ensemble.start(2)]);
    await vi.waitFor(
      async () => {
        await reached(reader, 'connected');
        expect(reader.state).toMatchObject({ name: 'connected', readOnly: false });
      },
      { timeout: 60_000 },
    );
    await reader.set('/a', 'z');
    expect(String((await reader.get('/a')).data)).toBe('z');
  });
});
