/** SASL GSSAPI on a real server, with tickets of a real KDC. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, kerberos } from '../../src/client/index.ts';
import { Link } from '../../src/testing/index.ts';
import { Kdc, kerberosPackage, missingKerberos, realm } from './kdc.ts';
import { type ApacheServer, findZooKeepers, startApache, type ZooKeeperPeer } from './zookeeper.ts';

const { found } = await findZooKeepers();
const missing = missingKerberos();
if (missing !== undefined) test.skip(`Kerberos is missing: ${missing}`, () => {});

const server = 'zookeeper/localhost';
const env = { ...process.env };
let kdc: Kdc;

beforeAll(async () => {
  if (missing !== undefined) return;
  kdc = await Kdc.start([server, 'app', 'robot']);
  process.env.KRB5_CONFIG = kdc.config;
});

afterAll(async () => {
  for (const name of ['KRB5_CONFIG', 'KRB5CCNAME']) {
    if (env[name] === undefined) delete process.env[name];
    else process.env[name] = env[name];
  }
  await kdc?.[Symbol.asyncDispose]();
});

const start = (peer: ZooKeeperPeer): Promise<ApacheServer> =>
  startApache(peer, {
    config: { 'authProvider.1': 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider' },
    jvm: [
      `-Djava.security.krb5.conf=${kdc.config}`,
      `-Djava.security.auth.login.config=${kdc.jaas(server)}`,
    ],
  });
const as = (options: { service?: string; principal?: string } = {}) =>
  kerberos({ module: kerberosPackage(), host: 'localhost', ...options });
const impatient = { connectRoundsMax: 1, connectTimeoutMs: 15_000 };

describe.skipIf(missing !== undefined).each(found)('$name', { timeout: 120_000 }, (peer) => {
  test('who has a ticket is who it says, on the next link too, and others are not', async () => {
    await using zk = await start(peer);
    await using link = await Link.to({ host: '127.0.0.1', port: zk.port });
    process.env.KRB5CCNAME = kdc.ticket('app');
    await using client = await connect(link.address, { sasl: as() });
    process.env.KRB5CCNAME = kdc.ticket('robot');
    await using robot = await connect(zk.address, { sasl: as({ principal: `robot@${realm}` }) });
    process.env.KRB5CCNAME = kdc.ticket('app');
    const acl = [{ perms: 31, id: { scheme: 'sasl', id: `app@${realm}` } }];

    await client.create('/mine', 'x', { acl });
    link.cut();

    expect(String((await client.get('/mine')).data)).toBe('x');
    expect(link.stats.connections).toBe(2);
    expect(await client.whoAmI()).toContainEqual({ authScheme: 'sasl', user: `app@${realm}` });
    expect(await robot.whoAmI()).toContainEqual({ authScheme: 'sasl', user: `robot@${realm}` });
    await expect(robot.get('/mine')).rejects.toMatchObject({ code: 'NO_AUTH' });
  });

  test('who has no ticket, or asks for another service, is told why', async () => {
    await using zk = await start(peer);
    process.env.KRB5CCNAME = 'FILE:/nonexistent/cache';

    await expect(connect(zk.address, { ...impatient, sasl: as() })).rejects.toThrow(
      /no server took us in.*(No Kerberos credentials|No credentials cache)/is,
    );

    process.env.KRB5CCNAME = kdc.ticket('app');
    const other = as({ service: 'nobody' });
    await expect(connect(zk.address, { ...impatient, sasl: other })).rejects.toThrow(
      /Server.*not found|nobody/i,
    );
  });
});
