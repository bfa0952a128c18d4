/**
 * Consumer groups in a simulated world: the same code as everywhere, on a model of a server, with time
 * and network from a seed. `npx tsx test/kafka-simulation.ts` runs it a hundred times longer.
 */

import { expect, test } from 'vitest';
import {
  Consumer,
  type ConsumerBatch,
  fixedTopics,
  type PartitionReader,
  type RecordBatch,
  type RecordSource,
} from '../src/kafka/index.ts';
import { Campaign, type CampaignOptions, Violation } from './kafka-simulation/campaign.ts';
import { ModelClient } from './kafka-simulation/client.ts';
import { ModelServer } from './kafka-simulation/server.ts';
import { Process, World } from './kafka-simulation/world.ts';

type Kind = Pick<CampaignOptions, 'mode' | 'assignor'>;

const kinds: [string, Kind][] = [
  ['range', { mode: 'classic' }],
  ['roundrobin', { mode: 'classic', assignor: 'roundrobin' }],
  ['ceil', { mode: 'classic', assignor: 'ceil' }],
  ['sticky', { mode: 'classic', assignor: 'sticky' }],
  ['planned', { mode: 'planned' }],
];

test.for(kinds)(
  '%s: through 200 joins, leaves, crashes, pauses and cuts, one owner at a time, and none goes without',
  { timeout: 120_000 },
  async ([, kind]) => {
    const campaign = new Campaign({
      seed: 20_240_601,
      events: 200,
      membersMax: 12,
      partitions: 60,
      ...kind,
    });

    const report = await campaign.run();

    expect(report.events).toBe(200);
    expect(report.claims).toBeGreaterThan(100);
    expect(report.commits).toBeGreaterThan(500);
    // Zombies did try.
    expect(report.refused).toBeGreaterThan(0);
  },
);

test('the same seed gives the same run, to the last event', async () => {
  const run = () =>
    new Campaign({ seed: 7, events: 40, membersMax: 6, partitions: 20, mode: 'planned' }).run();

  const [first, second] = [await run(), await run()];

  expect(second).toEqual(first);
});

test('the simulation would notice: two owners, a commit that goes back, a partition without an owner', async () => {
  const options = { seed: 3, events: 0, membersMax: 4, partitions: 8, mode: 'classic' } as const;
  const start = async () => {
    const campaign = new Campaign(options);
    campaign.join();
    await campaign.quiet();
    const path = [...campaign.server.nodes.keys()].find((one) => /owners\/t0\/0$/.test(one))!;
    return { campaign, path };
  };
  const back = await start();
  const goBack = () =>
    back.campaign.server.onChange(
      '/consumers/g/offsets/t0/0',
      { data: Buffer.from('5') } as never,
      '4',
      back.campaign.server.nodes.get(back.path)!.stat.ephemeralOwner,
    );
  goBack();
  await expect(back.campaign.quiet()).rejects.toThrow(/went back from 5 to 4/);

  const stranger = await start();
  stranger.campaign.server.onChange('/consumers/g/offsets/t0/0', undefined, '4', 99n);
  await expect(stranger.campaign.quiet()).rejects.toThrow(/does not own/);

  const stolen = await start();
  stolen.campaign.server.open(1e9);
  const [thief] = [...stolen.campaign.server.sessions.values()].slice(-1);
  stolen.campaign.server.apply([{ op: 'delete', path: stolen.path }], thief!.id);
  stolen.campaign.server.apply(
    [{ op: 'create', path: stolen.path, mode: 'ephemeral', data: 'x' }],
    thief!.id,
  );
  await stolen.campaign.world.run(stolen.campaign.world.nowMs + 1_000);
  await expect(stolen.campaign.quiet()).rejects.toThrow(Violation);
});

// ── what one member costs ───────────────────────────────────────────────────────────────────────

async function costOfOneMore(kind: Kind, members: number, partitions: number) {
  const campaign = new Campaign({ seed: 1, events: 0, membersMax: members, partitions, ...kind });
  for (let i = 0; i < members; i++) campaign.join({ commits: false });
  await campaign.quiet();
  const before = campaign.server.requests;
  const claims = campaign.report().claims;
  campaign.join({ commits: false });
  await campaign.quiet();
  return {
    requests: campaign.server.requests - before,
    moved: campaign.report().claims - claims,
  };
}

test('planned: one more member costs what moves, however many members there are', {
  timeout: 60_000,
}, async () => {
  const few = await costOfOneMore({ mode: 'planned' }, 10, 100);
  const many = await costOfOneMore({ mode: 'planned' }, 40, 400);

  expect(few.moved).toBeLessThanOrEqual(10);
  expect(many.moved).toBeLessThanOrEqual(10);
  // Nine requests for each partition that moves, and a dozen for the change itself.
  expect(few.requests).toBeLessThan(9 * few.moved + 2 * few.moved + 15);
  expect(many.requests).toBeLessThan(9 * many.moved + 2 * many.moved + 15);
});

test('classic with sticky: one more member costs each of the others two reads, and what moves', async () => {
  const { requests, moved } = await costOfOneMore({ mode: 'classic', assignor: 'sticky' }, 20, 200);

  expect(moved).toBeLessThanOrEqual(12);
  expect(requests).toBeLessThan(20 * 2 + 14 * moved + 40);
});

// ── in doubt ────────────────────────────────────────────────────────────────────────────────────

/** A partition without an end, whose every batch has one record. */
function endless(): RecordSource {
  const open = async (id: { topic: string; partition: string }): Promise<PartitionReader> => {
    let position = 0n;
    const close = async () => {};
    const reader: PartitionReader = {
      topic: id.topic,
      partition: id.partition,
      get position() {
        return position;
      },
      highWatermark: null,
      isPaused: false,
      [Symbol.asyncIterator]: () => reader,
      async next() {
        const record = { offset: position, timestampMs: null, key: null, value: null };
        position += 1n;
        const value: RecordBatch = {
          ...id,
          records: [record],
          nextOffset: position,
          highWatermark: position,
        };
        return { done: false, value };
      },
      pause() {},
      resume() {},
      seek(offset) {
        position = offset;
      },
      close,
      [Symbol.asyncDispose]: close,
    };
    return reader;
  };
  const close = async () => {};
  return {
    open,
    bounds: async () => ({ earliest: 0n, latest: 0n }),
    offsetForTime: async () => 0n,
    close,
    [Symbol.asyncDispose]: close,
  };
}

test('nothing is handed out once no server has answered for two thirds of the session, nor after its end', async () => {
  const world = new World(1);
  const server = new ModelServer(world);
  const process = new Process(world);
  const network = { latencyMs: () => 1, sessionTimeoutMs: 9_000 };
  const client = new ModelClient(world, server, process, network);
  const consumer = new Consumer(client.asGroupClient, {
    group: 'g',
    subscribe: { topics: ['t'] },
    topics: fixedTopics({ t: 1 }),
    source: endless(),
    clock: process.clock,
  });
  const handed: { atMs: number; batch: ConsumerBatch }[] = [];
  const loop = (async () => {
    for await (const batch of consumer) {
      handed.push({ atMs: world.nowMs, batch });
      await new Promise<void>((resolve) => {
        process.clock.after(50, resolve);
      });
    }
  })();
  const last = () => handed.at(-1)!;

  await world.run(3_100);
  expect(handed.length).toBeGreaterThan(50);
  client.cut(7_500); // a ping was answered at 3 s: the session is in doubt from 9 s on, and over at 12 s
  await world.run(10_500);
  const lastInTime = last();
  expect(lastInTime.atMs).toBeGreaterThan(8_900);
  expect(lastInTime.atMs).toBeLessThanOrEqual(9_000);
  expect(lastInTime.batch.signal.aborted).toBe(false);
  expect(consumer.status().isInDoubt).toBe(true);

  // The same session has come back: it goes on where it was.
  await world.run(11_000);
  expect(last().batch.records[0]!.offset).toBeGreaterThan(lastInTime.batch.records[0]!.offset);
  expect(last().batch.epoch).toBe(lastInTime.batch.epoch);

  // Stopped for longer than the session: on waking, its first look at anything shows that it is over.
  process.pause();
  const held = last();
  const count = handed.length;
  await world.run(world.nowMs + 20_000);
  process.resume();
  expect(held.batch.signal.aborted).toBe(true);
  await world.run(world.nowMs + 5_000);
  expect(handed.slice(count).every(({ batch }) => batch.epoch > held.batch.epoch)).toBe(true);
  expect(handed.length).toBeGreaterThan(count);

  const closing = consumer.close();
  await world.run(world.nowMs + 15_000);
  await Promise.all([closing, loop]);
});
