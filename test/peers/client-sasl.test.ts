/** SASL DIGEST-MD5 on a real server with a JAAS file. */

import { describe, expect, test } from 'vitest';
import { connect, digestMd5, openAcl } from '../../src/client/index.ts';
import { Link } from '../../src/testing/index.ts';
import { findZooKeepers, startApache } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

const users = { alice: 'wonder land', bob: 'builder' };
const alice = () => digestMd5({ username: 'alice', password: users.alice });

describe.each(found)('$name', { timeout: 120_000 }, (peer) => {
  test('a user with the right password is who it says, also on the next link', async () => {
    await using server = await startApache(peer, { sasl: { users } });
    await using link = await Link.to({ host: '127.0.0.1', port: server.port });
    await using client = await connect(link.address, { sasl: alice() });
    await using bob = await connect(server.address, {
      sasl: digestMd5({ username: 'bob', password: users.bob }),
    });
    const acl = [{ perms: 31, id: { scheme: 'sasl', id: 'alice' } }];
    const { sessionId } = client;

    await client.create('/hers', 'x', { acl });
    link.cut();
    const read = await client.get('/hers');

    expect(String(read.data)).toBe('x');
    expect(client.sessionId).toBe(sessionId);
    expect(link.stats.connections).toBe(2);
    expect(await client.whoAmI()).toContainEqual({ authScheme: 'sasl', user: 'alice' });
    await expect(bob.get('/hers')).rejects.toMatchObject({ code: 'NO_AUTH' });
    await client.setAcl('/hers', openAcl);
  });

  test.each([
    ['a wrong password', { username: 'alice', password: 'wrong' }],
    ['a user that there is none of', { username: 'mallory', password: 'x' }],
  ])('%s is refused, and the error says so', async (_, credentials) => {
    await using server = await startApache(peer, { sasl: { users } });
    const options = { sasl: digestMd5(credentials), connectRoundsMax: 1, connectTimeoutMs: 10_000 };

    const error = await connect(server.address, options).catch((why) => why);

    expect(error).toBeInstanceOf(Error);
    expect(error.message).toMatch(/AUTH_FAILED|SASL/);
    expect(error.message).not.toContain('wrong');
  });

  test('a server that asks for SASL turns away who brings none', async () => {
    const config = {
      sessionRequireClientSASLAuth: 'true',
      'enforce.auth.enabled': 'true',
      'enforce.auth.schemes': 'sasl',
    };
    await using server = await startApache(peer, { sasl: { users }, config });
    await using proven = await connect(server.address, { sasl: alice() });
    const options = { connectRoundsMax: 2, connectTimeoutMs: 10_000, readRetries: 0 };

    const outcome = await connect(server.address, options)
      .then(async (client) => {
        const error = await client.get('/').catch((why) => why);
        await client.close();
        return error;
      })
      .catch((why) => why);

    expect((await proven.children('/')).includes('zookeeper')).toBe(true);
    expect(outcome).toBeInstanceOf(Error);
  });
});
