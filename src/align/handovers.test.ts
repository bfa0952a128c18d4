import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import type { OwnedPartition } from '../kafka/index.ts';
import { startTestServer, type TestServer } from '../testing/index.ts';
import { Handovers } from './handovers.ts';
import { alignPaths, type Handover } from './layout.ts';

const paths = alignPaths('g');
const handover: Handover = { epoch: 7n, offset: 5n, positionMs: 60, lastMs: 50, reached: [] };
let server: TestServer;
let client: Client;

beforeEach(async () => {
  server = await startTestServer();
  client = await connect(server.address);
  await client.create('/owners');
});

afterEach(async () => {
  await client.close();
  await server.close();
});

/** As much of an owned partition as a handover looks at. */
async function owned(partition: number): Promise<OwnedPartition> {
  const path = `/owners/${partition}`;
  await client.create(path);
  const { signal } = new AbortController();
  return {
    ...{ topic: 't', partition: String(partition), path, version: 0, signal },
  } as unknown as OwnedPartition;
}

const many = (count: number) =>
  Promise.all(Array.from({ length: count }, (_, partition) => owned(partition)));
const multis = () => server.log.filter(({ op }) => op === 'multi').length;

test('many at once are few transactions, the first time and the second', async () => {
  const all = await many(500);
  const handovers = new Handovers(client, paths);

  await Promise.all(all.map((one) => handovers.write(one, handover)));
  const first = multis();
  await Promise.all(all.map((one) => handovers.write(one, { ...handover, offset: 9n })));

  expect(first).toBeLessThanOrEqual(5);
  expect(multis()).toBeLessThanOrEqual(2 * first);
  expect(await client.children(`${paths.handovers}/t`)).toHaveLength(500);
  expect(await handovers.read(all[499]!)).toEqual({ ...handover, offset: 9n });
});

test('one that is not ours any more is refused, and the others are written all the same', async () => {
  const all = await many(20);
  await client.set('/owners/3', 'somebody else');
  await client.delete('/owners/4');
  const handovers = new Handovers(client, paths);

  const results = await Promise.allSettled(all.map((one) => handovers.write(one, handover)));

  const failed = results.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []));
  expect(failed).toEqual([3, 4]);
  expect(await client.children(`${paths.handovers}/t`)).toHaveLength(18);
  expect(await handovers.read(all[3]!)).toBeNull();
});

test('what somebody else has written before is written over, though we never read it', async () => {
  const all = await many(4);
  await new Handovers(client, paths).write(all[2]!, handover);

  const later = new Handovers(client, paths);
  await Promise.all(all.map((one) => later.write(one, { ...handover, offset: 11n })));

  for (const one of all) expect(await later.read(one)).toMatchObject({ offset: 11n });
});

test('large ones are spread over more transactions', async () => {
  const all = await many(8);
  const reached = Array.from({ length: 4_000 }, (_, i) => ({ end: i * 60_000, offset: BigInt(i) }));
  const handovers = new Handovers(client, paths);

  await Promise.all(all.map((one) => handovers.write(one, { ...handover, reached })));

  expect(multis()).toBeGreaterThan(2);
  expect((await handovers.read(all[7]!))?.reached).toHaveLength(4_000);
});
