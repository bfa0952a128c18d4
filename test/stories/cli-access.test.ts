/** ACLs, identities, quotas, configuration; and whose session it is. */

import { expect, test } from 'vitest';
import { runInProcess, shellInProcess } from '../cli-run.ts';
import { startZk } from '../zk.ts';

test('getAcl and setAcl speak zkCli’s way in a shell, and one that setAcl takes outside it', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a');
  await client.create('/a/b');
  await using shell = shellInProcess(zk.address);

  expect((await shell.run('getAcl /a')).out).toBe("'world,'anyone\n: cdrwa\n");
  expect((await shell.run('setAcl -s /a world:anyone:cdra')).out).toContain('aclVersion = 1\n');
  expect((await shell.run('setAcl -v 7 /a world:anyone:cdrwa')).code).toBe(6);
  expect((await shell.run('setAcl -v 1 /a world:anyone:cdrwa')).code).toBe(0);
  expect((await shell.run('setAcl -R /a ip:127.0.0.1:cdrwa')).code).toBe(0);
  expect((await shell.run('setAcl /a nonsense')).code).toBe(2);
  const plain = await runInProcess(zk.address, ['getAcl', '/a/b']);
  expect(plain.out).toBe('ip:127.0.0.1:cdrwa\n');
  expect((await runInProcess(zk.address, ['setAcl', '/a', plain.out.trim()])).code).toBe(0);
});

test('credentials that the server refuses are told of once', async () => {
  await using zk = await startZk();

  const { code, err } = await runInProcess(zk.address, ['ls', '/', '--auth', 'nosuch:secret']);

  expect(code).toBe(7);
  expect(err.match(/refused the credentials/g)).toHaveLength(1);
  expect(err).not.toContain('secret');
});

test('addauth proves who we are, for this session and no other', async () => {
  await using zk = await startZk();
  await using shell = shellInProcess(zk.address);
  await shell.run('addauth digest ann:secret');
  await shell.run('create /mine x auth::cdrwa');

  const own = await shell.run('get /mine');
  const other = await runInProcess(zk.address, ['get', '/mine']);
  const proved = await runInProcess(zk.address, ['get', '/mine', '--auth', 'digest:ann:secret']);
  const byVariable = await runInProcess(zk.address, ['get', '/mine'], {
    environment: { DROVER_AUTH: 'digest:ann:secret' },
  });
  const acl = await runInProcess(zk.address, ['setAcl', '/mine', 'world:anyone:cdrwa'], {
    environment: { DROVER_AUTH: 'digest:ann:secret' },
  });

  expect(own.out).toBe('x\n');
  expect(other).toMatchObject({ code: 6, out: '' });
  expect(other.err).toContain('NO_AUTH');
  expect([proved.out, byVariable.out, acl.code]).toEqual(['x', 'x', 0]);
});

test('whoami says who the server takes us for', async () => {
  await using zk = await startZk({ since: '3.7', what: 'whoAmI' });
  const { lines } = await runInProcess(zk.address, ['whoami', '--auth', 'digest:ann:secret']);

  expect(lines).toContain('Auth scheme: User');
  expect(lines).toContain('ip: 127.0.0.1');
  expect(lines.join('\n')).toMatch(/^digest: ann/m);
});

test('quotas are set, listed, narrowed and taken away, below a chroot too', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/q', '12');
  await client.create('/q/r');
  await using shell = shellInProcess(zk.address);

  const set = await shell.run('setquota -n 5 /q');
  await shell.run('setquota -B 100 /q');
  const listed = await shell.run('listquota /q');
  const nested = await shell.run('setquota -n 5 /q/r');
  const two = await shell.run('setquota -n 5 -b 6 /q');
  const none = await shell.run('setquota /q');
  const narrowed = await shell.run('delquota -n /q');
  const after = await runInProcess(zk.address, ['listquota', '/q', '--json']);
  const small = await shell.run('setquota -n 1 /q');
  const gone = await shell.run('delquota /q');
  const again = await shell.run('delquota /q');
  const missing = await shell.run('listquota /q');

  expect(set).toMatchObject({ code: 0, out: '' });
  expect(listed.lines).toEqual([
    'Output quota for /q count=5,bytes=-1=;byteHardLimit=100;countHardLimit=-1',
    'Output stat for /q count=2,bytes=2',
  ]);
  expect(nested).toMatchObject({ code: 6 });
  expect(nested.err).toMatch(/has a parent .*\/q which has a quota/);
  expect([two.code, none.code]).toEqual([2, 2]);
  expect(narrowed.code).toBe(0);
  expect(after.records[0].quota).toMatchObject({ count: -1, byteHardLimit: 100 });
  expect(small.err).toContain('less than the existing count:2');
  expect(gone.code).toBe(0);
  expect(again.out).toBe('Quota does not exist for /q\n');
  expect(missing.err).toContain('quota for /q does not exist.');
});

test('a parent of a quota can have none of its own', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/q');
  await client.create('/q/r');
  await using shell = shellInProcess(zk.address);
  await shell.run('setquota -n 5 /q/r');

  const above = await shell.run('setquota -n 5 /q');
  await shell.run('delquota /q/r');

  expect(above.code).toBe(6);
  expect(above.err).toMatch(/has a child .*\/q\/r which has a quota/);
});

test('the root can have no quota, whose limits would end a server', async () => {
  await using zk = await startZk();

  const { code, err } = await runInProcess(zk.directAddress.replace(/\/.*/, ''), [
    ...['setquota', '-n', '5', '/'],
  ]);

  expect(code).toBe(6);
  expect(err).toContain('/ can have no quota');
});

test('config prints what the server has, and reconfig says why it can not', async () => {
  await using zk = await startZk({ since: '3.5', what: '/zookeeper/config' });

  const config = await runInProcess(zk.address, ['config']);
  const json = await runInProcess(zk.address, ['config', '--json']);
  const withStat = await runInProcess(zk.address, ['config', '-c', '-s']);
  const nothing = await runInProcess(zk.address, ['reconfig']);
  const mixed = await runInProcess(zk.address, ['reconfig', '-add', 'x', '-members', 'y']);
  const refused = await runInProcess(zk.address, ['reconfig', '-remove', '7']);

  expect(config.code).toBe(0);
  expect(json.records[0]).toHaveProperty('config');
  expect(withStat.out).toContain('cZxid = ');
  expect([nothing.code, mixed.code]).toEqual([2, 2]);
  expect(refused.code).toBe(6);
});

test('whois names the client behind an ephemeral node', async () => {
  await using zk = await startZk();
  const owner = await zk.connect();
  await owner.create('/e', '', { mode: 'ephemeral' });
  await owner.create('/p');

  const found = await runInProcess(zk.address, ['whois', '/e', '--json']);
  const none = await runInProcess(zk.address, ['whois', '/p']);
  const nobody = await runInProcess(zk.address, ['whois', '0x1']);

  expect(found.records[0].session).toBe(`0x${owner.sessionId!.toString(16)}`);
  expect(none.code).toBe(6);
  expect(nobody.code).toBe(6);
  if (found.records[0].unanswered.length > 0) return; // it is not in this server's whitelist
  expect(found.code).toBe(0);
  expect(found.records[0].owners[0].client).toMatch(/^127\.0\.0\.1:\d+$/);
});
