/** The look for recipes: whole the first time, and after that only at what changed. */

import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { startTestServer, type TestServer } from '../testing/index.ts';
import { Feed } from './feed.ts';
import { LiveTree } from './live.ts';
import { Recipes } from './recipes.ts';

const lock = (client: Client, path: string) =>
  client.create(`${path}/lock-`, '', { mode: 'ephemeralSequential', parents: true });

async function plant(server: TestServer, client: Client) {
  await lock(client, '/locks/a');
  await client.create('/plain/deep/deeper', '', { parents: true });
  let live: LiveTree | undefined;
  const recipes = new Recipes(client, () => live?.isLive ?? false);
  live = new LiveTree(client, new Feed(), undefined, {
    onChange: (path, type) => recipes.changed(path, type),
    onGap: () => recipes.forget(),
  });
  await expect.poll(() => live.isLive).toBe(true);
  /** Lists of children that one look asked for. */
  const look = async () => {
    const before = server.log.length;
    const view = await recipes.view('/', {});
    const asked = server.log.slice(before).filter(({ op }) => op.startsWith('getChildren'));
    const held = view.recipes.map(({ path, holding, waiting }) => `${path} ${holding} ${waiting}`);
    return { asked: asked.length, held };
  };
  return { look, live };
}

test('a second look asks for nothing, and one after a change for what changed', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  const { look, live } = await plant(server, client);

  const first = await look();
  expect(first.held).toEqual(['/locks/a 1 0']);
  expect(first.asked).toBeGreaterThan(4);
  expect((await look()).asked).toBe(0);
  await lock(client, '/locks/a');
  const second = await look();
  expect(second).toEqual({ asked: 1, held: ['/locks/a 1 1'] });
  await lock(client, '/locks/b');
  expect((await look()).held).toEqual(['/locks/a 1 1', '/locks/b 1 0']);
  await client.deleteRecursive('/locks/a');
  expect((await look()).held).toEqual(['/locks/b 1 0']);
  live.close();
});

test('after a link that was lost everything is looked at anew', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await using other = await connect(server.address);
  const { look, live } = await plant(server, client);
  await look();

  server.drop(client.sessionId!);
  await lock(other, '/locks/b');
  await expect.poll(() => client.state.name).toBe('connected');

  await expect.poll(async () => (await look()).held).toEqual(['/locks/a 1 0', '/locks/b 1 0']);
  live.close();
});

test('without a watch that tells of changes nothing is kept', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await lock(client, '/locks/a');
  const recipes = new Recipes(client);
  await recipes.view('/', {});
  await lock(client, '/locks/b');

  expect((await recipes.view('/', {})).recipes).toHaveLength(2);
});

test('a folder called locks is no semaphore, and a lock may be called so too', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await lock(client, '/locks/a');
  await lock(client, '/app/x/locks');
  await client.create('/app/x/other');
  await lock(client, '/sem/locks');
  await client.create('/sem/leases/lease-0000000001', '', { parents: true });

  const { recipes } = await new Recipes(client).view('/', {});

  expect(recipes.map(({ kind, path }) => `${kind} ${path}`).sort()).toEqual([
    'lock /app/x/locks',
    'lock /locks/a',
    'semaphore /sem',
  ]);
});
