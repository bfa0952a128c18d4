import { expect, test } from 'vitest';
import {
  connect,
  creatorAcl,
  digestId,
  openAcl,
  permissions,
  readOnlyAcl,
} from '../../src/client/index.ts';
import { reached, startZk } from '../zk.ts';

const mine = { auth: [{ scheme: 'digest', auth: 'me:secret' }] };

test('an ACL is kept, and its version guards it', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  const acl = [{ perms: permissions.all, id: digestId('me:secret') }, ...readOnlyAcl];

  const before = await client.getAcl('/a');
  const stat = await client.setAcl('/a', acl, { version: 0 });

  expect(before.acl).toEqual(openAcl);
  expect(stat.aversion).toBe(1);
  await expect(client.setAcl('/a', openAcl, { version: 0 })).rejects.toMatchObject({
    code: 'NO_AUTH',
  });
  await client.addAuth('digest', 'me:secret');
  await expect(client.setAcl('/a', openAcl, { version: 0 })).rejects.toMatchObject({
    code: 'BAD_VERSION',
  });
  expect((await client.getAcl('/a')).acl).toEqual(acl);
});

test('what is the creator’s is for the creator alone', async () => {
  await using zk = await startZk();
  const [owner, stranger] = [await zk.connect(mine), await zk.connect()];

  const { path } = await owner.create('/a', 'secret', { acl: creatorAcl });

  expect(String((await owner.get(path)).data)).toBe('secret');
  expect((await owner.getAcl(path)).acl).toEqual([{ perms: 31, id: digestId('me:secret') }]);
  for (const ask of [
    () => stranger.get('/a'),
    () => stranger.set('/a', 'x'),
    () => stranger.children('/a'),
    () => stranger.create('/a/b'),
    () => stranger.setAcl('/a', openAcl),
  ]) {
    await expect(ask()).rejects.toMatchObject({ code: 'NO_AUTH', outcomeUnknown: false });
  }
  expect(zk.link.stats.connections).toBe(2);
  await owner.setAcl('/a', openAcl); // for whoever cleans up
});

test('without a proof there is no creator to give it to', async () => {
  await using zk = await startZk();
  const client = await zk.connect();

  await expect(client.create('/a', '', { acl: creatorAcl })).rejects.toMatchObject({
    code: 'INVALID_ACL',
  });
});

test('a proof is shown again on every new link, before anything else', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.addAuth('digest', 'me:secret');
  await client.create('/a', 'secret', { acl: creatorAcl });
  const { sessionId } = client;

  zk.link.cut();
  const read = await client.get('/a');

  expect(String(read.data)).toBe('secret');
  expect(client.sessionId).toBe(sessionId);
  expect(zk.link.stats.connections).toBe(2);
  await client.setAcl('/a', openAcl);
});

test('a proof given while there is no link is shown when there is one', async () => {
  await using zk = await startZk();
  const [owner, client] = [await zk.witness(mine), await zk.connect()];
  await owner.create('/a', 'secret', { acl: creatorAcl });
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  await client.addAuth('digest', 'me:secret');
  await zk.link.accept();

  expect(String((await client.get('/a')).data)).toBe('secret');
  await client.setAcl('/a', openAcl);
});

test('a proof that is refused ends the session, which says why', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const states: string[] = [];
  client.on('state', ({ name }) => states.push(name));
  const signal = client.sessionSignal;

  await expect(client.addAuth('nonsense', 'x')).rejects.toMatchObject({ code: 'AUTH_FAILED' });

  await expect(client.get('/')).rejects.toMatchObject({ code: 'AUTH_FAILED' });
  expect(client.state.name).toBe('authFailed');
  expect(states).toEqual(['authFailed']);
  expect(signal.aborted).toBe(true);
  await client.close();
});

test('a client that is refused from the start does not connect, and says why', async () => {
  await using zk = await startZk();

  const client = connect(zk.address, { auth: [{ scheme: 'nonsense', auth: 'x' }] });

  // It is connected for the moment until the refusal comes.
  const outcome = await client.then(
    async (it) => {
      await reached(it, 'authFailed');
      const error = await it.get('/').catch((why) => why);
      await it.close();
      return error;
    },
    (error) => error,
  );
  expect(outcome).toMatchObject({ code: 'AUTH_FAILED' });
});
