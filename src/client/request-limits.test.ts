import { once } from 'node:events';
import { expect, test } from 'vitest';
import { frameBytesMax } from '../protocol/index.ts';
import { startTestServer } from '../testing/index.ts';
import { type Client, connect } from './client.ts';

/** What a request to set a watch again has around its path. */
const aroundBytes = 40;
const longest = `/${'w'.repeat(frameBytesMax - aroundBytes - 1)}`;

const settings: Record<string, (client: Client, path: string) => Promise<unknown>> = {
  exists: (client, path) => client.exists(path, { watch: () => {} }),
  get: (client, path) => client.get(path, { watch: () => {} }),
  children: (client, path) => client.children(path, { watch: () => {} }),
  childrenAndStat: (client, path) => client.childrenAndStat(path, { watch: () => {} }),
  addWatch: (client, path) => client.addWatch(path, 'persistent', () => {}),
  watch: (client, path) => client.watch(path).ready,
};

test.for(Object.keys(settings))(
  '%s refuses to watch a path so long that no request could set the watch again',
  async (name) => {
    await using server = await startTestServer();
    await using client = await connect(server.address);

    await expect(settings[name]!(client, `${longest}w`)).rejects.toMatchObject({
      code: 'BAD_ARGUMENTS',
      message: expect.stringContaining('to set the watch again on another link takes'),
    });

    expect(await client.exists(`${longest}w`)).toBeNull();
    expect(client.load.watches).toBe(0);
  },
);

test('a watch on the longest path that can be watched is set again, and told of', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  const told = new Promise((resolve) => {
    void client.exists(longest, { watch: resolve });
  });
  await client.addWatch(longest, 'persistent', () => {});

  await reconnected(client, () => server.drop(client.sessionId!));
  await client.sync('/'); // answered behind what set the watches
  await server.load({ [longest]: 'x' });

  await expect(told).resolves.toMatchObject({ type: 'created', path: longest });
});

test('watches are set again where servers take less than usual, and their client knows', async () => {
  const limit = 20_000;
  await using server = await startTestServer({ limits: { frameBytesMax: limit } });
  await using client = await connect(server.address, { frameBytesMax: limit });
  const paths = Array.from({ length: 400 }, (_, i) => `/${String(i).padStart(100, 'w')}`);
  const told: string[] = [];
  for (const path of paths) {
    await client.exists(path, { watch: (event) => void told.push(event.path) });
  }

  await reconnected(client, () => server.drop(client.sessionId!));
  for (const path of paths) await client.create(path);

  expect(told).toEqual(paths);
});

test('longer replies can be taken than requests are sent', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address, {
    frameBytesMax: 8 * frameBytesMax,
    requestBytesMax: frameBytesMax,
  });
  const name = 'n'.repeat(1_000);
  await Promise.all(Array.from({ length: 1_200 }, (_, i) => client.create(`/${name}${i}`)));

  await expect(client.create('/big', Buffer.alloc(frameBytesMax))).rejects.toMatchObject({
    code: 'BAD_ARGUMENTS',
    message: expect.stringContaining(`servers take ${frameBytesMax} at most`),
  });

  expect(await client.children('/')).toHaveLength(1_201);
});

test('a proof that servers would close the link for is refused, and not sent on every link', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  const links: string[] = [];
  client.on('state', ({ name }) => links.push(name));
  const proof = Buffer.alloc(frameBytesMax - 'digest'.length - 19, 'x');

  await expect(client.addAuth('digest', proof)).rejects.toThrow(
    `auth: it takes ${frameBytesMax + 1} bytes`,
  );
  const auth = [{ scheme: 'digest', auth: proof }];
  await expect(connect(server.address, { auth })).rejects.toThrow('auth: it takes');

  expect(await client.exists('/')).not.toBeNull();
  expect(links).toEqual([]);
});

/** Does what ends the link, and waits for the next. */
async function reconnected(client: Client, cut: () => void): Promise<void> {
  const isSuspended = once(client, 'state');
  cut();
  await isSuspended;
  await client.connected();
}
