import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { nameOf } from '../protocol/index.ts';
import { startTestServer } from '../testing/index.ts';
import { GatheringQueue } from './gathering-queue.ts';

/** The longest path at which this many can gather, below a chroot of 1,000 bytes. */
const path = `/${'p'.repeat(1_400)}`;
const chroot = `/${'c'.repeat(999)}`;
const size = 411;

test('a group of the largest size that a long path allows comes together', async () => {
  await using server = await startTestServer();
  await using root = await connect(server.address);
  await root.create(chroot);
  await using client = await connect(server.address + chroot);
  const queue = new GatheringQueue(client, path, { size });
  const create = () =>
    client.createProtected(`${path}/member-`, null, { mode: 'ephemeralSequential' });
  await client.create(path);
  await client.create(`${path}/gathered`);
  const nodes = await Promise.all(Array.from({ length: size }, create));

  const group = await queue.groupOf(nameOf(nodes[size - 1]!.path));

  expect(group).toMatchObject({ position: size - 1 });
});

test('more than a long path allows are refused before anybody waits for them', async () => {
  await using server = await startTestServer();
  await using root = await connect(server.address);
  await root.create(chroot);
  await using client = await connect(server.address + chroot);
  const told = `1 to ${size} is wanted under a path as long as this`;

  expect(() => new GatheringQueue(client, path, { size: size + 1 })).toThrow(told);
  await client.create(path);
  await client.create(`${path}/num`, `${size + 1}`);
  const joined = new GatheringQueue(client, path).join();

  await expect(joined).rejects.toMatchObject({ code: 'NO_SIZE' });
  await expect(joined).rejects.toThrow(told);
  expect(await client.children(path)).toEqual(['num']);
});
