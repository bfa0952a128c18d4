/** The console on any ZooKeeper, ours or Apache's: it shows what the server can tell, and says what it can't. */

import { expect, test, vi } from 'vitest';
import { base64, type ConsoleAsked, consoleAt, events, textOf } from '../console-run.ts';
import { persistentWatches, startZk } from '../zk.ts';

async function live(web: ConsoleAsked): Promise<void> {
  await vi.waitFor(async () => {
    expect((await web.get('/api/session')).json.features.live).toBe(true);
  });
}

test('a node is seen, changed, taken back and deleted', async () => {
  await using zk = await startZk();
  await using web = await consoleAt(zk.directAddress);
  const client = await zk.connect();
  await client.create('/doc', '{"a":1}');

  const node = (await web.get('/api/node?path=/doc')).json;
  expect(node).toMatchObject({ encoding: 'json', stat: { version: 0, kind: 'persistent' } });
  expect((await web.get('/api/children?path=/')).json.rows).toMatchObject([{ name: 'doc' }]);

  const set = await web.post('/api/node/set', { path: '/doc', data: base64('two'), version: 0 });
  expect(set.json.stat.version).toBe(1);
  const late = await web.post('/api/node/set', { path: '/doc', data: base64('x'), version: 0 });
  expect(late.json.error.code).toBe('BAD_VERSION');
  await web.post('/api/audit/undo', { id: set.json.audit });
  expect(textOf((await web.get('/api/node?path=/doc')).json.data)).toBe('{"a":1}');

  const body = { paths: ['/doc'], confirm: 'doc', count: 1 };
  expect((await web.post('/api/node/delete', body)).json.count).toBe(1);
  expect(await client.exists('/doc')).toBeNull();
});

test('what others change is told as it happens', async () => {
  await using zk = await startZk(persistentWatches);
  await using web = await consoleAt(zk.directAddress);
  const client = await zk.connect();
  await live(web);
  const stop = new AbortController();
  const told: string[] = [];

  for await (const { kind, data } of events(web, { signal: stop.signal })) {
    if (kind === 'hello') {
      await client.create('/n');
      await client.set('/n', 'x');
      await client.delete('/n');
    }
    if (kind === 'nodes') for (const { type, path } of data.changes) told.push(`${type} ${path}`);
    if (told.length >= 3) break;
  }
  stop.abort();

  expect(told).toEqual(['created /n', 'dataChanged /n', 'deleted /n']);
});

test('a link that was lost is a resync, and changes are told again', async () => {
  await using zk = await startZk();
  await using web = await consoleAt(zk.address);
  const witness = await zk.witness();
  await live(web);
  const stop = new AbortController();
  const kinds: string[] = [];

  for await (const { kind, data } of events(web, { signal: stop.signal })) {
    kinds.push(kind === 'link' ? `link ${data.state}` : kind);
    if (kind === 'hello') {
      zk.link.cut();
      await witness.create('/while-away');
      zk.link.heal();
    }
    if (kind === 'resync') await witness.create('/after');
    if (kind === 'nodes' && JSON.stringify(data).includes('/after')) break;
  }
  stop.abort();

  expect(kinds).toContain('link suspended');
  expect(kinds).toContain('link connected');
  expect(kinds).toContain('resync');
});

test('servers, sessions and watches are shown as far as the server tells', async () => {
  await using zk = await startZk(persistentWatches);
  await using web = await consoleAt(zk.directAddress);
  const client = await zk.connect();
  await client.create('/mine', '', { mode: 'ephemeral' });
  await client.get('/mine', { watch: () => {} });
  const session = `0x${client.sessionId!.toString(16)}`;

  const { servers, quorum } = (await web.get('/api/overview')).json;
  expect(servers).toMatchObject([{ role: 'standalone', error: null }]);
  expect(servers[0].version).toBe(zk.version);
  expect(quorum.hasQuorum).toBe(true);
  const sessions = (await web.get(`/api/sessions?filter=${session}`)).json;
  if (sessions.unknown.length === 0) {
    expect(sessions.rows).toMatchObject([{ session, ephemerals: 1, watches: 1 }]);
    const one = (await web.get(`/api/sessions/one?name=${session}`)).json;
    expect(one).toMatchObject({ ephemerals: ['/mine'], watches: ['/mine'] });
    const { rows } = (await web.get('/api/watches?filter=/mine')).json;
    expect(rows).toMatchObject([{ path: '/mine', sessions: [session] }]);
  } else {
    expect(sessions.unknown.join()).toContain('whitelist');
  }
});

test('every page answers on an empty tree', async () => {
  await using zk = await startZk();
  await using web = await consoleAt(zk.directAddress);
  await live(web);

  for (const page of [
    'recipes',
    'kafka',
    'kafka/topics',
    'groups',
    'alignment',
    'metrics',
    'audit',
    'commands',
  ]) {
    const { status } = await web.get(`/api/${page}`);
    expect([page, status]).toEqual([page, 200]);
  }
  expect((await web.get('/api/kafka')).json.found).toBe('none');
  expect((await web.get('/api/history?path=/')).json.entries).toBeNull();
});
