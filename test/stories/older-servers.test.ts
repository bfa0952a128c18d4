/**
 * Servers that lack ops of newer ones: nothing is lost in finding out, and what can be had without those
 * ops is had. Each story runs on the server as it is, and as a server of 3.4 and of 3.5 would be.
 */

import { expect, test, vi } from 'vitest';
import type { Change, Client, WatchEvent } from '../../src/client/index.ts';
import { isZkError } from '../../src/client/index.ts';
import { Lock, Queue } from '../../src/recipes/index.ts';
import { runInProcess } from '../cli-run.ts';
import { type OlderServer, poseAs } from '../older-server.ts';
import { seeded } from '../random.ts';
import { isBefore, reached, startZk, type Zk } from '../zk.ts';

const releases = ['3.4', '3.5', 'as it is'] as const;

interface Older extends AsyncDisposable {
  readonly zk: Zk;
  readonly posing: OlderServer | undefined;
  /** Whether the server knows the ops of a release. */
  knows(line: string): boolean;
}

async function olderZk(release: (typeof releases)[number]): Promise<Older> {
  const zk = await startZk();
  const isReal = release === 'as it is' || isBefore(zk.version, release);
  const posing = isReal ? undefined : await poseAs(zk, Number(release.split('.')[1]));
  return {
    zk,
    posing,
    knows: (line) => !isBefore(isReal ? zk.version : release, line),
    async [Symbol.asyncDispose]() {
      await zk[Symbol.asyncDispose]();
      await posing?.[Symbol.asyncDispose]();
    },
  };
}

const settledAs = (outcomes: PromiseSettledResult<unknown>[]) =>
  outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'done' : String(outcome.reason)));

test.each(releases)(
  '%s: requests beside the first create of a connection are all answered',
  async (release) => {
    await using older = await olderZk(release);
    const client = await older.zk.connect();

    const outcomes = await Promise.allSettled([
      client.exists('/'),
      client.create('/a', '1'),
      client.set('/a', '2'),
      client.multi([
        { op: 'check', path: '/a' },
        { op: 'create', path: '/b' },
      ]),
      client.create('/s-', '', { mode: 'ephemeralSequential' }),
      client.get('/a'),
      client.barrier(),
    ]);

    expect(settledAs(outcomes)).toEqual(Array(7).fill('done'));
    expect((await client.children('/')).sort()).toEqual(['a', 'b', expect.stringMatching(/^s-/)]);
    expect(older.posing?.refusals ?? 0).toBe(0);
  },
);

const newerOps: Record<string, { since: string; ask: (client: Client) => Promise<unknown> }> = {
  container: { since: '3.5', ask: (client) => client.create('/c', '', { mode: 'container' }) },
  ttl: {
    since: '3.5',
    ask: (client) => client.create('/t', '', { mode: 'persistentTtl', ttlMs: 60_000 }),
  },
  'container in a multi': {
    since: '3.5',
    ask: (client) => client.multi([{ op: 'create', path: '/m', mode: 'container' }]),
  },
  multiRead: { since: '3.6', ask: (client) => client.multiRead([{ op: 'get', path: '/' }]) },
  getEphemerals: { since: '3.6', ask: (client) => client.getEphemerals() },
  whoAmI: { since: '3.7', ask: (client) => client.whoAmI() },
};

test.each(
  releases.flatMap((release) => Object.keys(newerOps).map((name) => [release, name] as const)),
)(
  '%s: %s is done, or fails with the release that it needs, and nothing beside it is lost',
  async (release, name) => {
    await using older = await olderZk(release);
    const { since, ask } = newerOps[name]!;
    const client = await older.zk.connect();

    const [before, first, write, second, after] = await Promise.allSettled([
      client.exists('/'),
      ask(client).catch((error) => error),
      client.create('/w'),
      ask(client).catch((error) => error),
      client.get('/'),
    ]);

    expect(settledAs([before, write, after])).toEqual(['done', 'done', 'done']);
    for (const outcome of [first, second]) {
      const { value } = outcome as { value: unknown };
      const isRefused = isZkError(value, 'UNIMPLEMENTED');
      expect(isRefused).toBe(!older.knows(since));
      if (isRefused) expect(value.message).toContain(`needs ZooKeeper ${since} or newer`);
      if (isRefused) expect(value.outcomeUnknown).toBe(false);
    }
    expect(older.posing?.refusals ?? 0).toBeLessThanOrEqual(1);
  },
);

test.each(releases)(
  '%s: a created node has its Stat, also when it is gone again',
  async (release) => {
    await using older = await olderZk(release);
    const client = await older.zk.connect();
    const witness = await older.zk.witness();

    const { stat } = await client.create('/a', 'four', { mode: 'ephemeral' });
    const found = (await witness.exists('/a'))!.toObject();
    const sequential = await client.create('/s-', '', { mode: 'persistentSequential' });
    const [hasty] = await Promise.all([client.create('/gone', 'four'), client.delete('/gone')]);

    expect(stat.toObject()).toEqual(found);
    expect(sequential.stat.czxid).toBe((await witness.exists(sequential.path))!.czxid);
    expect(hasty.stat).toMatchObject({
      version: 0,
      dataLength: 4,
      numChildren: 0,
      ephemeralOwner: 0n,
    });
    expect(hasty.stat.czxid).toBeGreaterThan(sequential.stat.czxid);
  },
);

test.each(releases)('%s: descendants are counted, and none of a missing node', async (release) => {
  await using older = await olderZk(release);
  const client = await older.zk.connect();
  for (const path of ['/a', '/a/b', '/a/b/c', '/a/d']) await client.create(path);

  expect(await client.countDescendants('/a')).toBe(3);
  expect(await client.countDescendants('/a/d')).toBe(0);
  await expect(client.countDescendants('/none')).rejects.toMatchObject({ code: 'NO_NODE' });
});

test.each(releases)('%s: a watch that is taken away hears nothing more', async (release) => {
  await using older = await olderZk(release);
  const [client, writer] = [await older.zk.connect(), await older.zk.witness()];
  await client.create('/a');
  const heard: string[] = [];
  const listener = ({ type }: WatchEvent) => heard.push(type);
  await client.get('/a', { watch: listener });

  await client.removeWatches('/a', { listener });
  await writer.set('/a', 'x');
  await client.sync('/');
  await client.exists('/');

  expect(heard).toEqual(['dataWatchRemoved']);
  expect(client.load.watches).toBe(0);
});

test.each(releases)(
  '%s: a watch that stays tells of every change, one after the other',
  async (release) => {
    await using older = await olderZk(release);
    // Two clients: before 3.9 a server keeps one mode of watching for a path and a client.
    const [client, other] = [await older.zk.connect(), await older.zk.connect()];
    const writer = await older.zk.witness();
    const one: string[] = [];
    const all: string[] = [];
    await client.addWatch('/a', 'persistent', ({ type, path }) => one.push(`${type} ${path}`));
    await other.addWatch('/a', 'persistentRecursive', ({ type, path }) =>
      all.push(`${type} ${path}`),
    );
    const steps: [() => Promise<unknown>, string[], string[]][] = [
      [() => writer.create('/a'), ['created /a'], ['created /a']],
      [() => writer.create('/a/b'), ['childrenChanged /a'], ['created /a/b']],
      [() => writer.set('/a/b', 'x'), [], ['dataChanged /a/b']],
      [() => writer.set('/a', 'x'), ['dataChanged /a'], ['dataChanged /a']],
      [() => writer.create('/ab'), [], []],
      [() => writer.delete('/a/b'), ['childrenChanged /a'], ['deleted /a/b']],
      [() => writer.delete('/a'), ['deleted /a'], ['deleted /a']],
      [() => writer.create('/a'), ['created /a'], ['created /a']],
    ];

    const [expectedOne, expectedAll]: [string[], string[]] = [[], []];
    for (const [change, toldOne, toldAll] of steps) {
      await change();
      expectedOne.push(...toldOne);
      expectedAll.push(...toldAll);
      await vi.waitFor(() => expect([one, all]).toEqual([expectedOne, expectedAll]));
      for (let trips = 0; trips < 3; trips++) {
        await Promise.all([client.sync('/'), other.sync('/')]);
      } // their watches are set again by then
    }
    await Promise.all([client.removeWatches('/a'), other.removeWatches('/a')]);
    await writer.set('/a', 'y');
    await Promise.all([client.sync('/'), other.sync('/')]);

    expect(one.at(-1)).toBe('persistentWatchRemoved /a');
    expect(all.at(-1)).toBe('persistentWatchRemoved /a');
    expect(client.load.watches + other.load.watches).toBe(0);
  },
);

/** What a reader of the changes takes to be there. Fails on a change that cannot be. */
function follow(tree: Map<string, number>, { type, path }: Change): void {
  const version = tree.get(path);
  if (type === 'created') expect(version, `created ${path}`).toBeUndefined();
  else expect(version, `${type} ${path}`).toBeDefined();
  if (type === 'deleted') tree.delete(path);
  else tree.set(path, (version ?? -1) + 1);
}

test.each(releases)(
  '%s: a stream follows a tree through a storm of changes and cuts, and misses nothing',
  { timeout: 60_000 },
  async (release) => {
    await using older = await olderZk(release);
    const { zk } = older;
    const [client, writer] = [await zk.connect({ readRetries: 1_000 }), await zk.witness()];
    await writer.create('/t');
    const stream = client.watch('/t', { recursive: true });
    await stream.ready;
    const tree = new Map([['/t', 0]]);
    const told = new Set<string>();
    const reading = (async () => {
      for await (const change of stream) {
        follow(tree, change);
        told.add(change.path);
        if (change.path === '/t/end') return;
      }
    })();
    const acts = {
      create: (path: string) => writer.create(path),
      set: (path: string) => writer.set(path, ''),
      delete: (path: string) => writer.delete(path),
      deleteRecursive: (path: string) => writer.deleteRecursive(path),
    };
    const acting = ['create', 'create', 'set', 'set', 'delete', 'deleteRecursive'] as const;
    const random = seeded(7);
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]!;
    const paths = ['/t/a', '/t/b', '/t/a/c', '/t/a/d', '/t/a/c/e', '/t/b/f'];

    for (let i = 0; i < 300; i++) {
      const path = pick(paths);
      const act = pick([...acting, ...acting, 'cut'] as const);
      if (act === 'cut') zk.link.cut();
      else await acts[act](path).catch((error) => expect(isZkError(error)).toBe(true));
      if (i % 5 === 0) await client.sync('/'); // it has a connection again
    }
    await writer.create('/t/end');
    await reading;

    const there: string[] = [];
    for await (const { path } of writer.walk('/t')) there.push(path);
    expect([...tree.keys()].sort()).toEqual(there.sort());
    expect(told.size).toBe(paths.length + 1);
    await vi.waitFor(() => expect(client.load.watches).toBe(0));
  },
);

test.each(releases)('%s: locks and queues work', async (release) => {
  await using older = await olderZk(release);
  const { zk } = older;
  const [a, b] = [await zk.connect(), await zk.connect()];
  const order: string[] = [];

  await new Lock(a, '/lock').hold(async () => {
    const waiting = new Lock(b, '/lock').hold(async () => void order.push('b'));
    await vi.waitFor(async () => expect(await a.children('/lock')).toHaveLength(2));
    order.push('a');
    void waiting;
  });
  await vi.waitFor(() => expect(order).toEqual(['a', 'b']));
  await new Queue(a, '/queue').put('job');
  const item = await new Queue(b, '/queue').take();

  expect(String(item.data)).toBe('job');
});

test.each(releases)(
  '%s: commands do their work, or say which release they need',
  async (release) => {
    await using older = await olderZk(release);
    const { zk } = older;
    const client = await zk.connect();
    for (const path of ['/a', '/a/b', '/c', '/c/d']) await client.create(path);
    const run = (...argv: string[]) => runInProcess(zk.address, argv);
    const anyone = 'world:anyone:cdrwa';

    const acl = await run('setAcl', '-R', '/a', anyone, '--yes');
    const count = await run('getAllChildrenNumber', '/a');
    const deleted = await run('deleteall', '/a', '--yes');
    const removed = await run('rmr', '/c', '--yes');
    const asked = {
      getEphemerals: { since: '3.6', said: await run('getEphemerals') },
      whoami: { since: '3.7', said: await run('whoami') },
    };

    expect([acl.code, count.code, deleted.code, removed.code]).toEqual([0, 0, 0, 0]);
    expect(await client.children('/')).toEqual([]);
    for (const { since, said } of Object.values(asked)) {
      expect(said.code === 0).toBe(older.knows(since));
      if (said.code !== 0) expect(said.err).toContain(`needs ZooKeeper ${since} or newer`);
      expect(said.err).not.toContain('lost');
    }
  },
);

test('a session that moves to an older server keeps its watches, and streams miss nothing', async () => {
  await using zk = await startZk();
  const [client, writer] = [await zk.connect(), await zk.witness()];
  await writer.create('/a');
  const heard: string[] = [];
  await client.addWatch('/a', 'persistent', ({ type }) => heard.push(type));
  await using stream = client.watch('/', { recursive: true });
  await stream.ready;
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');
  await writer.create('/missed');
  await writer.set('/a', 'x');

  await using posing = await poseAs(zk, 5);
  await zk.link.accept();
  const missed = [await stream.next(), await stream.next()].map(({ value }) => value as Change);
  await writer.create('/later');
  const later = (await stream.next()).value as Change;
  await client.sync('/');
  heard.length = 0;
  await writer.set('/a', 'y');

  expect(missed.map(({ type, path }) => `${type} ${path}`).sort()).toEqual([
    'created /missed',
    'dataChanged /a',
  ]);
  expect(missed.every(({ late }) => late)).toBe(true);
  expect(later).toMatchObject({ type: 'created', path: '/later', late: false });
  await vi.waitFor(() => expect(heard).toEqual(['dataChanged']));
  expect(posing.refusals).toBeLessThanOrEqual(1);
});

test('a server that was upgraded is asked for more on the next connection', async () => {
  await using zk = await startZk({ since: '3.5', what: 'containers' });
  await using posing = await poseAs(zk, 4);
  const client = await zk.connect();
  const container = () => client.create('/c', '', { mode: 'container' });
  await expect(container()).rejects.toMatchObject({ code: 'UNIMPLEMENTED' });

  posing.line = 9;
  zk.link.cut();
  await reached(client, 'suspended');

  expect((await container()).path).toBe('/c');
});
