import { expect, test } from 'vitest';
import { type ClientOptions, connect } from '../client/index.ts';
import { systemClock } from '../support/index.ts';
import { Link, MovableClock, startTestServer } from '../testing/index.ts';
import { type Claim, claimNode } from './shard-claim.ts';

const path = '/owners/s';

async function start(options: ClientOptions = {}) {
  const server = await startTestServer();
  const link = await Link.to({ host: '127.0.0.1', port: server.port });
  const client = await connect(link.address, options);
  await client.create('/owners');
  const enough = new AbortController();
  const claim: Claim = { path, data: 'me', signal: enough.signal, clock: systemClock };
  return {
    ...{ server, link, client, enough, claim },
    async [Symbol.asyncDispose]() {
      await client.close();
      await link.close();
      await server.close();
    },
  };
}

test.each(['SESSION_MOVED', 'THROTTLED_OP', 'REQUEST_TIMEOUT'] as const)(
  'a claim that is called off on its way leaves no node, also through %s',
  async (code) => {
    await using world = await start();
    const { server, link, client, enough } = world;
    link.pause('toClient'); // the reply comes after it was called off
    const claimed = claimNode(client, world.claim);
    await expect.poll(() => server.tree()).toHaveProperty(path);

    for (const op of ['exists', 'getData', 'delete'] as const) server.failNext(op, code);
    enough.abort(new Error('enough'));
    link.resume('toClient');

    await expect(claimed).rejects.toThrow('enough');
    expect(server.tree()).not.toHaveProperty(path);
  },
);

test('a claim that was not answered in time knows its own node', async () => {
  const clock = new MovableClock();
  await using world = await start({ clock, requestTimeoutMs: 5_000 });
  const { server, client } = world;
  server.pause(client.sessionId!);
  const claimed = claimNode(client, world.claim);
  await expect.poll(() => client.load.inFlight).toBe(1);

  clock.advance(5_000);
  server.resume(client.sessionId!);
  const grant = await claimed;

  expect(grant.isHeld).toBe(true);
  expect(server.tree()).toHaveProperty(path, 'me');
  await grant.release();
});

test('a claim goes on where the server could not be asked who has the node', async () => {
  await using world = await start();
  const { server, client } = world;
  await using other = await connect(`127.0.0.1:${server.port}`);
  await other.create(path, 'other', { mode: 'ephemeral' });
  for (const op of ['getData', 'create'] as const) server.failNext(op, 'THROTTLED_OP');

  const claimed = claimNode(client, world.claim);
  await expect.poll(() => client.load.watches).toBe(1);
  await other.delete(path);

  await (await claimed).release();
  expect(server.tree()).not.toHaveProperty(path);
});
