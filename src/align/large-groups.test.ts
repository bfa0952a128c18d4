/** A node holds a megabyte: what a large group has to say is spread over several. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { ensurePath } from '../kafka/index.ts';
import { systemClock } from '../support/index.ts';
import { startTestServer, type TestServer } from '../testing/index.ts';
import { deleteCut, planCut, readCut, writeParts } from './cuts.ts';
import type { PartitionReport } from './group-clock.ts';
import {
  alignPaths,
  formatMember,
  formatPlan,
  memberNode,
  parseCut,
  parseLimit,
  parseMember,
  parsePlan,
} from './layout.ts';
import { Reporter } from './reporter.ts';
import { readAlignment } from './snapshot.ts';

const megabyte = 1_048_575;
/** As long as Kafka lets a topic be called. */
const topic = 't'.repeat(249);
const count = 12_000;
const keys = Array.from({ length: count }, (_, i) => `${topic}/${i}`);
const paths = alignPaths('g');
const report: PartitionReport = {
  epoch: 2n ** 62n,
  state: 'reading',
  positionMs: 1_700_000_040_000,
  offset: 2n ** 62n,
  reached: [{ end: 1_700_000_040_000, offset: 2n ** 62n }],
};

let server: TestServer;
let client: Client;

beforeEach(async () => {
  server = await startTestServer();
  client = await connect(server.address);
});

afterEach(async () => {
  await client.close();
  await server.close();
});

test('a cut of 12,000 partitions is stored, read and taken away whole', async () => {
  const end = 1_700_000_040_000;
  const offsets = new Map(keys.map((key, i) => [key, BigInt(i) * 2n ** 40n]));
  const input = { cut: { end, offsets, isFinal: false }, start: end - 60_000, epoch: 7n };

  const plan = planCut(paths, input);
  await ensurePath(client, paths.cuts);
  await writeParts(client, paths, plan);
  await writeParts(client, paths, plan); // as after a reply that was lost

  expect(plan.ops).toEqual([]);
  expect(Math.max(...plan.parts.map((part) => Buffer.byteLength(part)))).toBeLessThan(megabyte);
  const found = await readCut(client, paths, plan.pointer);
  expect(found).toMatchObject({ start: end - 60_000, end, epoch: 7n, isFinal: false });
  expect([...found!.offsets]).toEqual([...offsets]);
  await deleteCut(client, paths.cut(plan.pointer.node));
  expect(await client.children(paths.cuts)).toEqual([]);
});

test('a plan of 100,000 partitions fits one node, and so do names that are no numbers', () => {
  const many = Array.from({ length: 100_000 }, (_, i) => String(i));
  const plan = new Map([
    ['many', many],
    ['odd', ['0', '2']],
    ['named', ['29-0']],
  ]);

  const text = formatPlan(1n, plan);

  expect(text.length).toBeLessThan(200);
  expect(parsePlan(Buffer.from(text), '/p')).toEqual(plan);
});

test.each([
  ['{"t":300000000}', /topics\.t: a count from 0 to 200000/],
  ['{"t":-1}', /topics\.t/],
  ['{"t":1.5}', /topics\.t/],
  ['{"t":{"length":9}}', /topics\.t/],
  ['{"a":150000,"b":150000}', /topics\.b: 150000 makes more than 200000 partitions in all/],
])('a plan whose counts are too large, %s, is a problem with its path', (topics, why) => {
  const text = `{"version":1,"epoch":"1","topics":${topics}}`;

  expect(() => parsePlan(Buffer.from(text), '/align/g/plan')).toThrow(why);
  expect(() => parsePlan(Buffer.from(text), '/align/g/plan')).toThrow('/align/g/plan');
});

test('numbers of more digits than a jute long has are refused: to read them takes long', () => {
  const text = `{"version":1,"epoch":"${'9'.repeat(500_000)}","end":1,"start":null,"offsets":{}}`;

  expect(() => parseCut(Buffer.from(text), '/p')).toThrow(/epoch must be a decimal number/);
});

test.each([-1, 0.5, 1e9])('a cut in %s parts is a problem with its path', (parts) => {
  const cut = { end: 60_000, start: null, node: '60000-1', parts };
  const limit = {
    ...{ version: 1, epoch: '1', limit: 60_000, cut, moved_ms: 0 },
    rule: { mode: 'off', step_ms: 60_000 },
  };

  expect(() => parseLimit(Buffer.from(JSON.stringify(limit)), '/p')).toThrow(/parts must be/);
});

test('a group of 60,000 partitions that are all at their end is shown at once', async () => {
  const names = Array.from({ length: 60_000 }, (_, i) => `t/${i}`);
  const done = { epoch: 1n, state: 'finished', positionMs: null, offset: 0n, reached: [] } as const;
  const partitions = new Map(names.map((name) => [name, done]));
  await ensurePath(client, paths.members);
  await client.create(paths.plan, '{"version":1,"epoch":"1","topics":{"t":60000}}');
  await client.create(paths.config, '{"version":1,"mode":"off","step_ms":1}');
  const parts = formatMember({ id: 'm', partitions, records: 1, waitingShare: 0 });
  for (const [i, data] of parts.entries())
    await client.create(paths.member(memberNode('m', 1n, i)), data);

  const seen = await readAlignment(client, 'g');

  expect(seen?.partitions).toHaveLength(60_000);
  expect(seen?.slowest).toBeNull();
});

test('a member of 12,000 partitions says so in several nodes, and takes back what it has no more', async () => {
  const partitions = new Map(keys.map((key) => [key, report]));
  await ensurePath(client, paths.members);
  const reporter = new Reporter(client, {
    id: 'm',
    folder: paths.members,
    content: () => formatMember({ id: 'm', partitions, records: 5, waitingShare: 0.5 }),
    clock: systemClock,
    onFailure: (error) => {
      throw error;
    },
    onJoined: () => {},
  });
  const nodes = () => client.children(paths.members);
  const said = async () => {
    const all = new Map<string, PartitionReport>();
    for (const name of await nodes()) {
      const { data } = await client.get(paths.member(name));
      expect(data!.length).toBeLessThan(megabyte);
      for (const [key, one] of parseMember(data, name).partitions) all.set(key, one);
    }
    return all;
  };

  reporter.start();
  await expect.poll(async () => (await said()).size, { timeout: 15_000 }).toBe(count);
  expect(await said()).toEqual(partitions);
  expect((await nodes()).length).toBeGreaterThan(5);
  const seen = await readAlignment(client, 'g');
  expect(seen?.members).toMatchObject([{ id: 'm', records: 5, partitions: count }]);

  for (const key of keys.slice(10)) partitions.delete(key);
  reporter.report();
  await expect.poll(nodes, { timeout: 15_000 }).toHaveLength(1);
  expect(await said()).toEqual(partitions);

  await reporter.close();
  expect(await nodes()).toEqual([]);
});
