import { expect, test } from 'vitest';
import { digestId } from '../protocol/index.ts';
import { RawClient, startTestServer } from '../testing/index.ts';
import { startAdminServer } from './admin.ts';
import { AuthAttempts } from './auth-attempts.ts';
import { limitsOf } from './limits.ts';

const attempts = (authFailuresMax = 3, authAddressesMax = 2) =>
  new AuthAttempts(limitsOf({ authFailuresMax, authWindowMs: 1_000, authAddressesMax }));

test('failures within the window are too many, and are forgotten after as long again', () => {
  const table = attempts();
  for (const atMs of [0, 400, 900]) {
    expect(table.isRefused('10.0.0.1', atMs)).toBe(false);
    table.failed('10.0.0.1', atMs);
  }

  expect(table.isRefused('10.0.0.1', 1_899)).toBe(true);
  expect(table.isRefused('10.0.0.2', 1_899)).toBe(false);
  expect(table.isRefused('10.0.0.1', 1_900)).toBe(false);
});

test('failures that are further apart than the window do no harm', () => {
  const table = attempts();

  for (let atMs = 0; atMs < 10_000; atMs += 600) {
    table.failed('10.0.0.1', atMs);
    expect(table.isRefused('10.0.0.1', atMs)).toBe(false);
  }
});

test('a whole /64 is one address', () => {
  const table = attempts();
  for (const last of ['1', '2', '3']) table.failed(`2001:db8:1:2:a:b:c:${last}`, 0);

  expect(table.isRefused('2001:db8:1:2:ffff::4', 1)).toBe(true);
  expect(table.isRefused('2001:db8:1:3::4', 1)).toBe(false);
});

test('a /64 is known wherever zeros are left out of it, and none is taken for another', () => {
  const table = attempts();
  for (const rest of [':5:1:2:3:4', ':5:2:3:4:5', '0:0:5::1']) table.failed(`2001:${rest}`, 0);
  const spellings = ['2001::5:a:b:c:d', '2001:0:0:5::9', '2001::5:0:0:0:1%eth0'];

  expect(spellings.map((address) => table.isRefused(address, 1))).toEqual([true, true, true]);
  expect(table.isRefused('2001::6:a:b:c:d', 1)).toBe(false);
  expect(table.isRefused('2001::1', 1)).toBe(false);
});

test('failures of one user keep out no other user of the same address', () => {
  const table = attempts();
  for (let i = 0; i < 3; i++) table.failed('10.0.0.1', 0, 'ann');

  expect(table.isRefused('10.0.0.1', 1, 'ann')).toBe(true);
  expect(table.isRefused('10.0.0.1', 1, 'bob')).toBe(false);
  expect(table.isRefused('10.0.0.2', 1, 'ann')).toBe(false);
});

test('the table does not grow without end', () => {
  const table = attempts();
  for (let i = 0; i < 1_000; i++) table.failed(`10.0.${i >> 8}.${i & 255}`, 0);

  expect(table.size).toBe(2);
});

const authOf = (text: string, scheme = 'digest') => ({
  type: 0,
  scheme,
  auth: Buffer.from(text),
});

test('who has failed too often on other links is refused on this one, and let in after a while', async () => {
  await using zk = await startTestServer({ limits: { authFailuresMax: 2 } });
  for (const scheme of ['nosuch', 'other']) {
    const client = await RawClient.connect(zk.port);
    expect(await client.err('auth', authOf('x', scheme), -4)).toBe(-115);
  }

  const late = await RawClient.connect(zk.port);
  expect(await late.err('auth', authOf('x', 'third'), -4)).toBe(-115);
  await late.ended();
  expect(zk.engine.stats).toMatchObject({ authFailures: 2, authRefusals: 1 });
  const bystander = await RawClient.connect(zk.port);
  expect(await bystander.err('exists', { path: '/', watch: false })).toBe(0);

  zk.clock.advance(61_000);
  const later = await RawClient.connect(zk.port);
  expect(await later.err('auth', authOf('u:p'), -4)).toBe(0);
});

test('a guess at the password of the super user counts, though it is answered as any other id', async () => {
  const superDigest = digestId('super:test').id;
  await using zk = await startTestServer({ superDigest, limits: { authFailuresMax: 2 } });
  const guesser = await RawClient.connect(zk.port);

  expect(await guesser.err('auth', authOf('super:a'), -4)).toBe(0);
  expect(await guesser.err('auth', authOf('ann:a'), -4)).toBe(0);
  expect(await guesser.err('auth', authOf('super:b'), -4)).toBe(0);
  expect(await guesser.err('auth', authOf('super:test'), -4)).toBe(-115);
});

test('a guess at the password of a user of the root ACL counts against that user alone', async () => {
  const superDigest = digestId('super:test').id;
  await using zk = await startTestServer({ superDigest, limits: { authFailuresMax: 2 } });
  const owner = await RawClient.connect(zk.port);
  const acl = [{ perms: 31, id: { scheme: 'digest', id: digestId('ann:right').id } }];
  expect(await owner.err('setACL', { path: '/', acl, version: -1 })).toBe(0);
  const admin = await startAdminServer(zk.facts, { port: 0 });
  const ask = async (credentials: string) => {
    const headers = { authorization: `digest ${credentials}` };
    return (await fetch(`http://127.0.0.1:${admin.port}/commands/snapshot`, { headers })).status;
  };

  expect([await ask('ann:a'), await ask('ann:b'), await ask('ann:right')]).toEqual([403, 403, 429]);
  expect([await ask('x:a'), await ask('y:b'), await ask('z:c')]).toEqual([403, 403, 429]);
  expect(await ask('super:test')).not.toBe(429);
  await admin.close();
});

test('the admin server counts with the links', async () => {
  await using zk = await startTestServer({ limits: { authFailuresMax: 2 } });
  const admin = await startAdminServer(zk.facts, { port: 0 });
  const ask = async () => {
    const headers = { authorization: 'nosuch x' };
    return (await fetch(`http://127.0.0.1:${admin.port}/commands/snapshot`, { headers })).status;
  };

  expect([await ask(), await ask(), await ask()]).toEqual([401, 401, 429]);
  const client = await RawClient.connect(zk.port);
  expect(await client.err('auth', authOf('x', 'nosuch'), -4)).toBe(-115);
  await client.ended();
  expect(zk.engine.stats).toMatchObject({ authFailures: 2, authRefusals: 2 });
  await admin.close();
});
