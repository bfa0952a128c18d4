import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { startTestServer, type TestServer } from '../testing/index.ts';
import { commands } from './commands.ts';
import { complete, ranked } from './completion.ts';

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await startTestServer();
  client = await connect(`127.0.0.1:${server.port}`);
  for (const path of [
    ...['/brokers', '/brokers/ids', '/brokers/topics', '/brokers/topics/orders', '/consumers'],
    ...['/with space', '/with space/in', '/\u202eevil', '/--server=elsewhere'],
  ]) {
    await client.create(path);
  }
});

afterAll(async () => {
  await client.close();
  await server.close();
});

async function values(line: string, cwd = '/'): Promise<string[]> {
  const around = {
    commands,
    cwd,
    client: async () => client,
    contexts: async () => ['prod', 'test'],
  };
  return (await complete(line, around)).candidates.map(({ value }) => value);
}

test('commands are completed first by their beginning, then by what is near', async () => {
  expect(await values('getA')).toEqual(['getAcl', 'getAllChildrenNumber']);
  expect(await values('dlall')).toContain('deleteall');
  expect(await values('--server h:1 getA')).toEqual(['getAcl', 'getAllChildrenNumber']);
  expect(await values('')).toContain('ls');
  expect(await values('help getAc')).toEqual(['getAcl']);
});

test('paths are completed, every name on the way by what is near', async () => {
  expect(await values('ls /bro')).toEqual(['/brokers']);
  expect(await values('ls /brokers/')).toEqual(['/brokers/ids', '/brokers/topics']);
  expect(await values('get -s /br/to/or')).toEqual(['/brokers/topics/orders']);
  expect(await values('ls to', '/brokers')).toEqual(['topics']);
  expect(await values('ls ../cons', '/brokers')).toEqual(['../consumers']);
  expect(await values('ls /none/x')).toEqual([]);
  expect(await values('grep pattern /con')).toEqual(['/consumers']);
});

test('names with spaces are quoted, and hostile ones are not offered', async () => {
  expect(await values('ls /wi')).toEqual(['"/with space"']);
  expect(await values('ls "/with space/i')).toEqual(['"/with space/in"']);
  expect((await values('ls /')).join()).not.toContain('evil');
});

test('a name is not offered where it would be read as an option', async () => {
  expect(await values('ls --server=')).toEqual([]);
  expect((await values('ls ')).join()).not.toContain('elsewhere');
  expect(await values('ls /--server=')).toEqual(['/--server=elsewhere']);
});

test('flags and their values are completed', async () => {
  expect(await values('ls --serv')).toEqual(['--server']);
  expect(await values('deleteall --dr')).toEqual(['--dry-run']);
  expect(await values('addWatch -m PERSISTENT_')).toEqual(['PERSISTENT_RECURSIVE']);
  expect(await values('ls --context pr')).toEqual(['prod']);
  expect(await values('printwatches o')).toEqual(['off', 'on']);
  expect(await values('no-such-command /b')).toEqual([]);
});

test('no server is no reason to fail', async () => {
  const around = { commands, cwd: '/', client: async () => null, contexts: async () => [] };

  expect(await complete('ls /b', around)).toEqual({ candidates: [], word: '/b' });
});

test('contexts that can not be read are no reason to fail', async () => {
  const contexts = async () => Promise.reject(new Error('damaged'));
  const around = { commands, cwd: '/', client: async () => null, contexts };

  expect(await complete('ls --context p', around)).toEqual({ candidates: [], word: 'p' });
});

test('a hundred thousand names are ranked, and few are offered', async () => {
  const many = Array.from({ length: 100_000 }, (_, i) => ({ value: `child-${i}`, about: '' }));

  expect(await ranked(many, 'child-')).toHaveLength(200);
  expect((await ranked(many, 'ch99999'))[0]!.value).toBe('child-99999');
});
