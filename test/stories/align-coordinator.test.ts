/** The plain coordinator: how far may I go, and I am there. */

import { expect, test, vi } from 'vitest';
import { alignPaths, Coordinator, type CoordinatorOptions } from '../../src/align/index.ts';
import type { Client } from '../../src/client/index.ts';
import { loseRequest, opCodes } from '../faults.ts';
import { reached, startZk, type Zk } from '../zk.ts';

const partitions = [0, 1].map((partition) => ({ topic: 't', partition: String(partition) }));
const [zero, one] = partitions as [(typeof partitions)[0], (typeof partitions)[0]];

async function start(zk: Zk, id: string, options: Partial<CoordinatorOptions> = {}) {
  const client = await zk.connect({ renew: true });
  const coordinator = new Coordinator(client, {
    group: 'g',
    partitions,
    mode: { period: 60 },
    id,
    ...options,
  });
  return {
    client,
    coordinator,
    async [Symbol.asyncDispose]() {
      await coordinator.close();
    },
  };
}

test('the limit moves by one period when every partition has reached it, and not before', async () => {
  await using zk = await startZk();
  await using a = await start(zk, 'a');
  await using b = await start(zk, 'b');
  expect(a.coordinator.checkLimit(0)).toBe(false);

  await Promise.all([
    a.coordinator.currentPeriodComplete([zero]),
    b.coordinator.currentPeriodComplete([one]),
  ]);
  expect(a.coordinator.checkLimit(59)).toBe(true);
  expect(a.coordinator.checkLimit(60)).toBe(false);

  let isOver = false;
  const waiting = a.coordinator.currentPeriodComplete([zero]).finally(() => {
    isOver = true;
  });
  const witness = await zk.witness();
  const members = alignPaths('g').members;
  await vi.waitFor(async () => {
    const name = (await witness.children(members)).find((one) => one.startsWith('a@'));
    expect(String((await witness.get(`${members}/${name}`)).data)).toContain('"t":60');
  }, 10_000);
  expect(isOver).toBe(false);

  expect(await b.coordinator.currentPeriodComplete([one])).toBe(120);
  expect(await waiting).toBe(120);
});

test('one that has two partitions need not be done with both at once', async () => {
  await using zk = await startZk();
  await using a = await start(zk, 'a');

  const both = Promise.all([
    a.coordinator.currentPeriodComplete([zero]),
    a.coordinator.currentPeriodComplete([one]),
  ]);

  expect(await both).toEqual([60, 60]);
});

test('a follower whose leader dies while it waits is led by the next, perhaps itself', async () => {
  await using zk = await startZk();
  const a = await start(zk, 'a');
  await vi.waitFor(() => expect(a.coordinator.isLeading).toBe(true), 10_000);
  await using b = await start(zk, 'b');
  const waiting = b.coordinator.currentPeriodComplete([one]);
  await a.coordinator.currentPeriodComplete([zero]);
  await waiting;
  const next = b.coordinator.currentPeriodComplete([one]);

  await crash(zk, a.client);
  await using c = await start(zk, 'c');

  // It knows nothing yet: the first answer is the limit that the group is at.
  expect(await c.coordinator.currentPeriodComplete([zero])).toBe(60);
  expect(await c.coordinator.currentPeriodComplete([zero])).toBe(120);
  expect(await next).toBe(120);
  await a.coordinator.close();
});

test('one that comes again takes the limit that is stored', async () => {
  await using zk = await startZk();
  const first = await start(zk, 'a');
  await first.coordinator.currentPeriodComplete(partitions);
  await first.coordinator.currentPeriodComplete(partitions);
  await first.coordinator.close();

  await using again = await start(zk, 'a');

  await vi.waitFor(() => expect(again.coordinator.limitMs).toBe(120), 10_000);
  expect(await again.coordinator.currentPeriodComplete(partitions)).toBe(180);
});

test('a partition that was released holds nobody back, and a gap is skipped when the next time is told', async () => {
  await using zk = await startZk();
  await using a = await start(zk, 'a');
  a.coordinator.release([one]);

  expect(await a.coordinator.currentPeriodComplete([zero])).toBe(60);
  expect(await a.coordinator.currentPeriodComplete([zero], { nextMs: 1_000_000 })).toBe(1_000_020);
});

test.for(['lost with the link', 'without a link'] as const)(
  'who leaves has no more say, also where its leave is %s',
  async (how) => {
    await using zk = await startZk();
    const witness = await zk.witness();
    const { members } = alignPaths('g');
    await using a = await start(zk, 'a');
    await vi.waitFor(async () => expect(await witness.children(members)).toHaveLength(1), 10_000);
    await using b = await start(zk, 'b');
    await Promise.all([
      a.coordinator.currentPeriodComplete([zero]),
      b.coordinator.currentPeriodComplete([one]),
    ]);

    // Its node is the younger one: while it stands, what others say of that partition does not count.
    if (how === 'lost with the link') loseRequest(zk.link, opCodes.delete, members);
    else {
      zk.link.refuse();
      zk.link.cut();
      await reached(b.client, 'suspended');
    }
    const closing = b.coordinator.close();
    await zk.link.accept();
    await closing;

    expect(await a.coordinator.currentPeriodComplete(partitions)).toBe(120);
  },
);

test('who takes over from one that died need not wait with that until its session is over', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const { members } = alignPaths('g');
  await using a = await start(zk, 'a');
  await vi.waitFor(async () => expect(await witness.children(members)).toHaveLength(1), 10_000);
  const b = await start(zk, 'b');
  await Promise.all([
    a.coordinator.currentPeriodComplete([zero]),
    b.coordinator.currentPeriodComplete([one]),
  ]);

  const waiting = a.coordinator.currentPeriodComplete(partitions);
  await vi.waitFor(async () => {
    const name = (await witness.children(members)).find((one) => one.startsWith('a@'));
    expect(String((await witness.get(`${members}/${name}`)).data)).toContain('"t/1"');
  }, 10_000);
  await b.client.close(); // as its session ends

  expect(await waiting).toBe(120);
});

test('waiting ends with the signal, and with close', async () => {
  await using zk = await startZk();
  await using a = await start(zk, 'a');
  const signal = AbortSignal.abort(new Error('enough'));

  await expect(a.coordinator.currentPeriodComplete([zero], { signal })).rejects.toThrow('enough');
  const waiting = a.coordinator.currentPeriodComplete([zero]);
  await Promise.all([expect(waiting).rejects.toThrow('closed'), a.coordinator.close()]);
  await expect(
    a.coordinator.currentPeriodComplete([{ topic: 'x', partition: '0' }]),
  ).rejects.toThrow(/x\/0 is none/);
});

async function crash(zk: Zk, client: Client): Promise<void> {
  await zk.expire(client);
  await client.close();
}
