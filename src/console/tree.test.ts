import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { TreeReader } from './tree.ts';

const page = { offset: 0, limit: 10, filter: '', sort: 'name' } as const;

test('the page that a child stands on is found in one go', async () => {
  await using server = await startTestServer();
  await using zk = await connect(server.address);
  await zk.create('/many');
  for (let i = 0; i < 95; i++) await zk.create(`/many/n${String(i).padStart(2, '0')}`);
  const tree = new TreeReader(zk);

  const { offset, rows } = await tree.children('/many', { ...page, around: 'n57' }, {});
  const absent = await tree.children('/many', { ...page, around: 'zzz' }, {});

  expect(offset).toBe(50);
  expect(rows.map(({ name }) => name)).toContain('n57');
  expect(absent.offset).toBe(0);
});

test('lists of names are let go of, the oldest first, when there are too many', async () => {
  await using server = await startTestServer();
  await using zk = await connect(server.address);
  for (let i = 0; i < 12; i++) await zk.create(`/p${i}/child`, '', { parents: true });
  const tree = new TreeReader(zk);
  const asked = () => server.log.filter(({ op }) => op === 'getChildren2').length;

  for (let i = 0; i < 12; i++) await tree.children(`/p${i}`, page, {});
  const first = asked();
  await tree.children('/p11', page, {});
  const kept = asked();
  await tree.children('/p0', page, {});

  expect([first, kept, asked()]).toEqual([12, 12, 13]);
});

test('a search that is called off fails once, and nothing of it is left unheard', async () => {
  const stat = { dataLength: 1, ephemeralOwner: 0n, mtime: 0n };
  const gone = new Error('called off');
  const client = {
    childrenAndStat: async (path: string) => {
      if (path !== '/') throw gone;
      return { children: ['a', 'b', 'c'], stat };
    },
    get: () => Promise.reject(gone),
  } as unknown as Client;
  const unheard: unknown[] = [];
  const listen = (reason: unknown) => unheard.push(reason);
  process.on('unhandledRejection', listen);

  const search = { path: '/', text: 'x', in: 'data', limit: 10 };
  await expect(new TreeReader(client).find(search, {})).rejects.toBe(gone);
  await new Promise((done) => setImmediate(done));

  process.off('unhandledRejection', listen);
  expect(unheard).toEqual([]);
});
