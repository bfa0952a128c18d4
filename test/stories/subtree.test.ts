import { expect, test } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import { startZk } from '../zk.ts';

async function fill(
  client: Client,
  root: string,
  branches: number,
  leaves: number,
): Promise<number> {
  await client.create(root);
  for (let b = 0; b < branches; b++) {
    const branch = `${root}/branch-${b}`;
    await client.multi([
      { op: 'create', path: branch },
      ...Array.from(
        { length: leaves },
        (_, i) => ({ op: 'create', path: `${branch}/leaf-${i}` }) as const,
      ),
    ]);
  }
  return 1 + branches * (1 + leaves);
}

test('create with parents makes what is missing, and only the last node is of the mode asked for', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  const made = await client.create('/a/b/c/d', 'x', { parents: true, mode: 'ephemeral' });
  await client.create('/a/b/other', '', { parents: true });

  expect(made.path).toBe('/a/b/c/d');
  expect((await client.exists('/a/b/c'))!.ephemeralOwner).toBe(0n);
  expect((await client.exists('/a/b/c/d'))!.ephemeralOwner).toBe(client.sessionId);
  await expect(client.create('/a/b/other', '', { parents: true })).rejects.toMatchObject({
    code: 'NODE_EXISTS',
  });
});

test('many may make the same parents at once', async () => {
  await using zk = await startZk();
  const clients = [await zk.connect(), await zk.connect(), await zk.connect()];

  const made = await Promise.all(
    clients.flatMap((client) =>
      Array.from({ length: 5 }, () =>
        client.create('/x/y/z/n-', '', { parents: true, mode: 'persistentSequential' }),
      ),
    ),
  );

  expect(new Set(made.map(({ path }) => path)).size).toBe(15);
});

test('a walk visits every node once, parents first, as deep as is asked', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const count = await fill(client, '/t', 3, 70);

  const paths: string[] = [];
  const depths: number[] = [];
  for await (const { path, depth, stat } of client.walk('/t')) {
    paths.push(path);
    depths.push(depth);
    expect(stat.czxid).toBeGreaterThan(0n);
  }
  const shallow: string[] = [];
  for await (const { path } of client.walk('/t', { depthMax: 1 })) shallow.push(path);

  expect(paths).toHaveLength(count);
  expect(new Set(paths).size).toBe(count);
  expect(depths).toEqual([...depths].sort());
  expect(shallow.sort()).toEqual(['/t', '/t/branch-0', '/t/branch-1', '/t/branch-2']);
  await expect(client.walk('/none').next()).rejects.toMatchObject({ code: 'NO_NODE' });
});

test('10,000 nodes are deleted in few requests', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const count = await fill(client, '/t', 100, 99);
  const before = zk.link.stats.frames.toServer;
  const progress: number[] = [];

  const deleted = await client.deleteRecursive('/t', { onProgress: (n) => progress.push(n) });

  expect([count, deleted]).toEqual([10_001, 10_001]);
  expect(progress.at(-1)).toBe(10_001);
  expect(progress.length).toBeLessThan(50);
  expect(await client.exists('/t')).toBeNull();
  // One read for each node, and the deletes in batches.
  expect(zk.link.stats.frames.toServer - before).toBeLessThan(10_100);
});

test('a subtree goes although somebody adds to it meanwhile', async () => {
  await using zk = await startZk();
  const [client, adder] = [await zk.connect(), await zk.witness()];
  await fill(client, '/t', 3, 30);
  let added = 0;

  const adding = (async () => {
    for (; added < 50; added++) {
      await adder.create(`/t/branch-${added % 3}/more-${added}`).catch(() => {});
    }
  })();
  const first = await client.deleteRecursive('/t').catch((error) => error);
  await adding;
  const second = first instanceof Error ? await client.deleteRecursive('/t') : 0;

  expect(await client.exists('/t')).toBeNull();
  expect(first instanceof Error ? second : first).toBeGreaterThan(0);
});

test('deleting what is not there says so, and a leaf counts as one', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/leaf');

  await expect(client.deleteRecursive('/none')).rejects.toMatchObject({
    code: 'NO_NODE',
    path: '/none',
  });
  expect(await client.deleteRecursive('/leaf')).toBe(1);
});

test('below a chroot, a node named zookeeper goes like any other', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/zookeeper/quota/a', '', { parents: true });

  expect(await client.deleteRecursive('/zookeeper/quota')).toBe(2);
  await client.create('/b');
  expect(await client.deleteRecursive('/')).toBe(2);

  expect(await client.children('/')).toEqual([]);
});

test("what stands below the server's own nodes goes when it is named, and these themselves do not", async () => {
  await using zk = await startZk({ since: '3.5', what: '/zookeeper/config' });
  await using client = await connect(zk.link.address);
  const quota = `/zookeeper/quota${zk.address.slice(zk.address.indexOf('/'))}`;
  await client.create(`${quota}/a`, '', { parents: true });

  expect(await client.deleteRecursive(quota)).toBe(2);
  await expect(client.deleteRecursive('/zookeeper/config')).rejects.toMatchObject({
    code: 'BAD_ARGUMENTS',
  });
});

test('long work can be called off', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await fill(client, '/t', 5, 100);
  const abort = new AbortController();

  const work = client.deleteRecursive('/t', {
    signal: abort.signal,
    onProgress: () => abort.abort(new Error('enough')),
  });

  await expect(work).rejects.toThrow('enough');
  expect(await client.exists('/t')).not.toBeNull();
});
