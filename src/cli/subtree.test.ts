import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { startTestServer, type TestServer } from '../testing/index.ts';
import { deleteSubtree, listSubtree, visitSubtree } from './subtree.ts';

let server: TestServer;
let client: Client;
let other: Client;
const { signal } = new AbortController();

beforeAll(async () => {
  server = await startTestServer();
  [client, other] = await Promise.all([connect(server.address), connect(server.address)]);
});

afterAll(async () => {
  await Promise.all([client.close(), other.close()]);
  await server.close();
});

beforeEach(async () => {
  if ((await client.exists('/t')) !== null) await client.deleteRecursive('/t');
  for (const path of ['/t', '/t/a', '/t/a/b', '/t/c', '/t/d']) await client.create(path);
});

const options = { signal, batchMax: 100, onProgress() {} };

/** Somebody else does something just before the first batch is deleted. */
function beforeFirstBatch(work: () => Promise<unknown>): void {
  const multi = client.multi.bind(client);
  vi.spyOn(client, 'multi').mockImplementationOnce(async (ops, how) => {
    await work();
    return multi(ops, how) as never;
  });
}

test('all of a subtree goes, and every node is counted once', async () => {
  const progress: number[] = [];

  const deleted = await deleteSubtree(client, '/t', {
    signal,
    batchMax: 2,
    onProgress: (count) => progress.push(count),
  });

  expect(deleted).toBe(5);
  expect(progress).toEqual([2, 4, 5]);
  expect(await client.exists('/t')).toBeNull();
});

test('a long name does not join a batch that has no room for it', async () => {
  await client.create('/t/d/x');
  for (let i = 0; i < 200; i++) await client.create(`/t/d/x/${String(i).padStart(1_000, 'n')}`);
  await client.create(`/t/d/${'y'.repeat(900_000)}`);

  expect(await deleteSubtree(client, '/t', { ...options, batchMax: 1_000 })).toBe(207);
  expect(await client.exists('/t')).toBeNull();
});

test('a child that somebody adds meanwhile goes in the next round', async () => {
  beforeFirstBatch(() => other.create('/t/c/new'));

  expect(await deleteSubtree(client, '/t', options)).toBe(6);
  expect(await client.exists('/t')).toBeNull();
});

test('a node that somebody else deletes meanwhile is theirs, and is not counted', async () => {
  beforeFirstBatch(() => other.delete('/t/c'));

  expect(await deleteSubtree(client, '/t', options)).toBe(4);
  expect(await client.exists('/t')).toBeNull();
});

test('whoever keeps adding wins in the end, and that is said', async () => {
  let n = 0;
  const children = client.children.bind(client);
  const spy = vi.spyOn(client, 'children').mockImplementation(async (path, how) => {
    const names = await children(path, how);
    if (path === '/t') await other.create(`/t/more-${n++}`);
    return names;
  });

  const failure = deleteSubtree(client, '/t', options);

  await expect(failure).rejects.toMatchObject({ code: 'NOT_EMPTY' });
  await expect(failure).rejects.toThrow(/others keep adding to it; \d+ nodes were deleted/);
  spy.mockRestore();
});

test('the root and the server’s own nodes stay', async () => {
  await deleteSubtree(client, '/', options);

  expect(await client.children('/')).toEqual(['zookeeper']);
});

test('what is not there is NO_NODE, for every walk', async () => {
  await expect(deleteSubtree(client, '/none', options)).rejects.toMatchObject({ code: 'NO_NODE' });
  await expect(listSubtree(client, '/none', { signal }).next()).rejects.toMatchObject({
    code: 'NO_NODE',
  });
  await expect(visitSubtree(client, '/none', { signal }).next()).rejects.toMatchObject({
    code: 'NO_NODE',
  });
});

test('what may not be read is told, or is an error', async () => {
  const nobody = [{ perms: 31, id: { scheme: 'digest', id: 'x:y' } }];
  await client.create('/t/hidden', '', { acl: nobody });
  const refused: string[] = [];
  const paths: string[] = [];

  const onRefused = (path: string) => void refused.push(path);
  for await (const { path } of visitSubtree(client, '/t', { signal, onRefused })) paths.push(path);

  expect(refused).toEqual(['/t/hidden']);
  expect(paths).toEqual(['/t', '/t/a', '/t/a/b', '/t/c', '/t/d']);
  const strict = async () => {
    for await (const _ of visitSubtree(client, '/t', { signal }));
  };
  await expect(strict()).rejects.toMatchObject({ code: 'NO_AUTH' });
});
