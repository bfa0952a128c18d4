import { expect, test, vi } from 'vitest';
import { connect } from '../client/index.ts';
import { ManualClock } from '../support/index.ts';
import { startTestServer } from '../testing/index.ts';
import { changeIsr, FencedError, IsrNotifier } from './isr.ts';
import { layout08 } from './layout-08.ts';

const at = (partition: number) => ({ topic: 't', partition });

async function start() {
  const server = await startTestServer();
  const client = await connect(server.address);
  await client.create('/isr_change_notification');
  const told = () =>
    Object.entries(server.tree())
      .filter(([path]) => path.startsWith('/isr_change_notification/'))
      .map(([, data]) => JSON.parse(data!).partitions);
  return {
    server,
    client,
    told,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server.close();
    },
  };
}

test('changes are told together when it has been quiet, and after a minute at the latest', async () => {
  await using zk = await start();
  const clock = new ManualClock();
  const notifier = new IsrNotifier(zk.client, { clock });

  notifier.add(at(0));
  clock.advance(4_999);
  notifier.add(at(1));
  notifier.add(at(0));
  clock.advance(4_999);
  await zk.client.sync('/');
  expect(zk.told()).toEqual([]);
  clock.advance(1);
  await vi.waitFor(() => expect(zk.told()).toEqual([[at(0), at(1)]]));

  for (let s = 0; s < 60; s++) {
    notifier.add(at(2));
    clock.advance(1_000);
  }
  await vi.waitFor(() => expect(zk.told()).toContainEqual([at(2)]));
  await notifier.close();
  expect(clock.pending).toBe(0);
});

test('closing tells what is pending', async () => {
  await using zk = await start();
  const clock = new ManualClock();
  const notifier = new IsrNotifier(zk.client, { clock });
  notifier.add(at(7));

  await notifier.close();

  expect(zk.told()).toEqual([[at(7)]]);
  expect(clock.pending).toBe(0);
});

test('what could not be told is told later, and not for ever', async () => {
  await using zk = await start();
  const clock = new ManualClock();
  let errors = 0;
  const onError = () => {
    errors += 1;
  };
  const notifier = new IsrNotifier(zk.client, { clock, onError });

  zk.server.failNext('create2', 'NO_AUTH');
  notifier.add(at(0));
  clock.advance(5_000);
  await vi.waitFor(() => expect(errors).toBe(1));
  await vi.waitFor(() => expect(clock.pending).toBe(1));
  clock.advance(5_000);
  await vi.waitFor(() => expect(zk.told()).toEqual([[at(0)]]));

  await zk.client.deleteRecursive('/isr_change_notification');
  notifier.add(at(1));
  for (let tries = 1; tries <= 10; tries++) {
    clock.advance(5_000);
    await vi.waitFor(() => expect(errors).toBe(tries + 1));
  }
  expect(clock.pending).toBe(0);
  await notifier.close();
});

test('a change stands on the version it knew, its own lost reply is recognised, another is fenced', async () => {
  await using zk = await start();
  const state = { leader: 1, leaderEpoch: 0, controllerEpoch: 1, isr: [1, 2], isRecovering: true };
  const path = layout08.partitionState.at(at(0));
  const data = layout08.partitionState.format(state)!;
  const { stat } = await zk.client.create(path, data, { parents: true });
  const known = { state, version: stat.version, mzxid: stat.mzxid };

  const shrunk = await changeIsr(zk.client, at(0), known, [1]);
  expect(shrunk).toMatchObject({ version: 1, state: { isr: [1], isRecovering: false } });
  // As if the reply to that had been lost: the same once more is the same.
  expect(await changeIsr(zk.client, at(0), known, [1])).toEqual(shrunk);
  await expect(changeIsr(zk.client, at(0), known, [2, 1])).rejects.toThrow(FencedError);
  await zk.client.deleteRecursive('/brokers');
  await expect(changeIsr(zk.client, at(0), shrunk, [1, 2])).rejects.toThrow(/was deleted/);
});
