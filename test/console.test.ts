/** The console's API, on a living server: what pages show, what they change, what they are told. */

import { gzipSync } from 'node:zlib';
import { expect, test, vi } from 'vitest';
import { setRule } from '../src/align/index.ts';
import { connect, permissions } from '../src/client/index.ts';
import { limits } from '../src/console/api.ts';
import { startServer } from '../src/server/index.ts';
import { MovableClock } from '../src/testing/index.ts';
import { runInProcess } from './cli-run.ts';
import {
  base64,
  type ConsoleInTest,
  consoleAt,
  events,
  startConsoleInTest,
  textOf,
} from './console-run.ts';

test('children come page by page, with their Stats, sorted and filtered', async () => {
  await using zk = await startConsoleInTest();
  for (const name of ['pear', 'Apple', 'plum'])
    await zk.client.create(`/fruit/${name}`, '', { parents: true });

  const all = (await zk.get('/api/children?path=/fruit&limit=2')).json;
  const rest = (await zk.get('/api/children?path=/fruit&limit=2&offset=2')).json;
  const found = (await zk.get('/api/children?path=/fruit&filter=PL&sort=-name')).json;

  expect(all).toMatchObject({ total: 3, matching: 3, rows: [{ name: 'Apple' }, { name: 'pear' }] });
  expect(all.rows[0].stat).toMatchObject({ version: 0, kind: 'persistent', owner: null });
  expect(rest.rows).toMatchObject([{ name: 'plum', path: '/fruit/plum' }]);
  expect(found).toMatchObject({
    total: 3,
    matching: 2,
    rows: [{ name: 'plum' }, { name: 'Apple' }],
  });
});

test('a list of children is new as soon as the node has others', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/few/a', '', { parents: true });
  await zk.get('/api/children?path=/few');

  await zk.client.create('/few/b');

  expect((await zk.get('/api/children?path=/few')).json.rows).toHaveLength(2);
});

test('data is shown for what it is, and gzip is unpacked up to a limit', async () => {
  await using zk = await startConsoleInTest();
  const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024));
  // biome-ignore format: a table is read down its columns
  const table: [string, Buffer | null, string][] = [
    ['empty',  null,                                   'empty'],
    ['text',   Buffer.from('plain words'),             'text'],
    ['json',   Buffer.from('{"a":[1,2]}'),             'json'],
    ['broken', Buffer.from('{"a":'),                   'text'],
    ['binary', Buffer.from([0, 1, 2, 255]),            'binary'],
    ['gzip',   gzipSync('inside'),                     'gzip'],
    ['bomb',   bomb,                                   'gzip'],
  ];
  for (const [name, data] of table) await zk.client.create(`/${name}`, data);

  for (const [name, data, encoding] of table) {
    const { json } = await zk.get(`/api/node?path=/${name}`);
    expect(json).toMatchObject({ encoding, data: data === null ? null : data.toString('base64') });
    expect(json.acl).toEqual([{ scheme: 'world', id: 'anyone', perms: 'cdrwa' }]);
  }
  expect(textOf((await zk.get('/api/node?path=/gzip')).json.unpacked)).toBe('inside');
  expect((await zk.get('/api/node?path=/bomb')).json.unpacked).toBeNull();
});

test('what is not there is 404, and says so', async () => {
  await using zk = await startConsoleInTest();

  for (const route of ['node', 'children']) {
    const { status, json } = await zk.get(`/api/${route}?path=/no/such`);
    expect([status, json.error.code]).toEqual([404, 'NO_NODE']);
  }
  expect((await zk.get('/api/kafka/topic?name=none')).status).toBe(404);
  expect((await zk.get('/api/groups/one?name=none')).status).toBe(404);
  expect((await zk.get('/api/alignment/one?name=none')).status).toBe(404);
});

test('a plan whose count is absurd is a problem with its path, and takes no memory', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/align/g/members', '', { parents: true });
  await zk.client.create('/align/g/plan', '{"version":1,"epoch":"1","topics":{"t":300000000}}');

  const list = await zk.get('/api/alignment');
  const one = await zk.get('/api/alignment/one?name=g');

  expect(list.json.groups).toMatchObject([{ group: 'g', members: 0 }]);
  expect(one.json.problems).toMatchObject([{ path: '/align/g/plan' }]);
});

test('a search looks at names, data and owners', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/x/Needle', '', { parents: true });
  await zk.client.create('/x/other', 'a needle in it');
  await zk.client.create('/x/mine', '', { mode: 'ephemeral' });
  const session = `0x${zk.client.sessionId!.toString(16)}`;
  const find = async (query: string) =>
    (await zk.get(`/api/find?path=/&${query}`)).json.matches.map(
      (one: { path: string }) => one.path,
    );

  expect(await find('text=needle')).toEqual(['/x/Needle']);
  expect(await find('text=needle&in=data')).toEqual(['/x/other']);
  expect(await find(`text=${session}&in=owner`)).toEqual(['/x/mine']);
});

test('a search goes around what it may not see, and says that there may be more', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/app/closed/needle', '', { parents: true });
  await zk.client.create('/app/open/needle', 'thread', { parents: true });
  await zk.client.setAcl('/app/closed', [
    { perms: permissions.admin, id: { scheme: 'world', id: 'anyone' } },
  ]);

  for (const where of ['text=needle', 'text=thread&in=data', 'text=<1d&in=age']) {
    const { status, json } = await zk.get(`/api/find?path=/app&${where}`);
    expect([where, status, json.isPartial]).toEqual([where, 200, true]);
    expect(json.matches).toContainEqual(expect.objectContaining({ path: '/app/open/needle' }));
  }
  expect((await zk.get('/api/find?path=/app/closed&text=needle')).status).toBe(403);
  expect((await zk.get('/api/find?path=/app/open&text=needle')).json.isPartial).toBe(false);
});

test('a change needs the version that was read, and can be taken back until somebody else writes', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/doc', 'one');

  const set = await zk.post('/api/node/set', { path: '/doc', data: base64('two'), version: 0 });
  const late = await zk.post('/api/node/set', { path: '/doc', data: base64('late'), version: 0 });

  expect(set.json).toMatchObject({ path: '/doc', stat: { version: 1 } });
  expect([late.status, late.json.error.code]).toEqual([409, 'BAD_VERSION']);
  expect((await zk.client.get('/doc')).data?.toString()).toBe('two');

  const { entries } = (await zk.get('/api/audit')).json;
  expect(entries).toMatchObject([
    { action: 'set', ok: false, undo: 'no' },
    { action: 'set', ok: true, path: '/doc', undo: 'possible', who: 'editor at 127.0.0.1' },
  ]);
  expect([textOf(entries[1].before.data), textOf(entries[1].after.data)]).toEqual(['one', 'two']);

  expect((await zk.post('/api/audit/undo', { id: entries[1].id })).status).toBe(200);
  expect((await zk.client.get('/doc')).data?.toString()).toBe('one');
  expect((await zk.post('/api/audit/undo', { id: entries[1].id })).status).toBe(404);
});

test('each change is one line on the terminal, its undo another', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/a', 'one');

  await zk.post('/api/node/set', { path: '/a', data: base64('two'), version: 0 });
  await zk.post('/api/audit/undo', { id: 1 });

  expect(zk.said).toEqual([
    'console: set /a, by editor at 127.0.0.1',
    'console: undo /a, by editor at 127.0.0.1',
  ]);
});

test('undo refuses once somebody else has written', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/doc', 'one');
  const set = await zk.post('/api/node/set', { path: '/doc', data: base64('two'), version: 0 });

  await zk.client.set('/doc', 'theirs');
  const undo = await zk.post('/api/audit/undo', { id: set.json.audit });

  expect([undo.status, undo.json.error.code]).toEqual([409, 'BAD_VERSION']);
  expect((await zk.client.get('/doc')).data?.toString()).toBe('theirs');
});

test('a delete wants the name typed and the count that was shown, and can be taken back', async () => {
  await using zk = await startConsoleInTest();
  for (const name of ['a', 'b/c']) {
    await zk.client.create(`/gone/${name}`, name, { parents: true });
  }

  const preview = (await zk.post('/api/node/delete-preview', { paths: ['/gone'] })).json;
  expect(preview).toMatchObject({ count: 4, ephemerals: 0, confirm: 'gone', isTooMany: false });
  const ask = (body: object) =>
    zk.post('/api/node/delete', { paths: ['/gone'], confirm: 'gone', count: 4, ...body });
  expect((await ask({ confirm: '' })).status).toBe(409);
  expect((await ask({ confirm: 'Gone' })).status).toBe(409);
  expect((await ask({ count: 3 })).status).toBe(409);
  expect(await zk.client.exists('/gone/b/c')).not.toBeNull();

  const deleted = await ask({});
  expect(deleted.json).toMatchObject({ count: 4 });
  expect(await zk.client.exists('/gone')).toBeNull();

  await zk.post('/api/audit/undo', { id: deleted.json.audit });
  expect((await zk.client.get('/gone/b/c')).data?.toString()).toBe('b/c');
});

test('the root is never deleted', async () => {
  await using zk = await startConsoleInTest();

  const { status } = await zk.post('/api/node/delete', {
    paths: ['/'],
    confirm: '',
    count: 100_000,
  });

  expect(status).toBe(400);
  expect(await zk.client.exists('/zookeeper')).not.toBeNull();
});

test('ACLs are edited without ever showing a hash', async () => {
  await using zk = await startConsoleInTest();
  const hash = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=';
  const acl = [
    { perms: 31, id: { scheme: 'world', id: 'anyone' } },
    { perms: 1, id: { scheme: 'digest', id: hash } },
  ];
  await zk.client.create('/guarded', '', { acl });

  const node = await zk.get('/api/node?path=/guarded');
  expect(node.text).not.toContain('InIHSb7');
  const changed = node.json.acl.map((one: { perms: string }) => ({ ...one, perms: 'ra' }));
  await zk.post('/api/node/acl', { path: '/guarded', acl: changed, version: 0 });

  const after = await zk.client.getAcl('/guarded');
  expect(after.acl.map(({ id, perms }) => [id.id, perms])).toEqual([
    ['anyone', 17],
    [hash, 17],
  ]);
});

test('what was exported is imported elsewhere, after a dry run', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/from/a/b', 'deep', { parents: true });
  const { nodes } = (await zk.get('/api/export?path=/from')).json;
  const ask = async (body: object) =>
    (await zk.post('/api/import', { path: '/to', nodes, ...body })).json;

  expect(await ask({})).toMatchObject({ created: 3, done: false });
  expect(await zk.client.exists('/to')).toBeNull();
  expect(await ask({ dryRun: false })).toMatchObject({ created: 3, done: true });
  expect((await zk.client.get('/to/a/b')).data?.toString()).toBe('deep');

  await zk.client.set('/to/a/b', 'other');
  expect(await ask({})).toMatchObject({ created: 0, same: 2, conflicts: ['/to/a/b'] });
  expect(await ask({ dryRun: false })).toMatchObject({ error: { code: 'CONFLICT' } });
  expect(await ask({ dryRun: false, onConflict: 'overwrite' })).toMatchObject({ overwritten: 1 });
});

async function until<T>(
  zk: ConsoleInTest,
  isIt: (event: { kind: string; data: T; id: string | null }) => boolean,
  options: { lastId?: string; onHello?: () => Promise<unknown> } = {},
) {
  const stop = new AbortController();
  const { lastId } = options;
  const seen: { kind: string; data: T; id: string | null }[] = [];
  for await (const event of events(zk, { signal: stop.signal, ...(lastId && { lastId }) })) {
    seen.push(event);
    if (event.kind === 'hello') await options.onHello?.();
    if (isIt(event)) break;
  }
  stop.abort();
  return seen;
}

test('a page is told of changes that others make, and goes on where its link broke', async () => {
  await using zk = await startConsoleInTest();
  await vi.waitFor(async () =>
    expect((await zk.get('/api/session')).json.features.live).toBe(true),
  );
  type Nodes = { changes: { type: string; path: string }[] };

  const first = await until<Nodes>(zk, ({ kind }) => kind === 'nodes', {
    onHello: () => zk.client.create('/seen'),
  });
  const { id, data } = first.at(-1)!;
  expect(data.changes).toMatchObject([{ type: 'created', path: '/seen' }]);

  await zk.client.set('/seen', 'while nobody listened');
  await zk.client.delete('/seen');
  const missed = await until<Nodes>(
    zk,
    ({ kind, data }) => kind === 'nodes' && data.changes.some(({ type }) => type === 'deleted'),
    { lastId: id! },
  );
  const changes = missed.flatMap(({ kind, data }) => (kind === 'nodes' ? data.changes : []));
  expect(changes.map(({ type }) => type)).toEqual(['dataChanged', 'deleted']);
});

test('who comes back from another run, or too late, is told to ask again', async () => {
  await using zk = await startConsoleInTest();

  for (const lastId of ['abcdef-3', 'rubbish', '-', `${'9'.repeat(400)}-1`]) {
    const [, second] = await until(zk, ({ kind }) => kind === 'resync', { lastId });
    expect(second).toMatchObject({ kind: 'resync', data: { why: 'gone' } });
  }
});

test('who asks for the head of the stream alone keeps no place in it', async () => {
  await using zk = await startConsoleInTest();
  const statuses = new Set<number>();

  for (let i = 0; i <= limits.streamsMax; i++) {
    statuses.add((await zk.send('/api/events', { method: 'HEAD' })).status);
  }

  expect([...statuses]).toEqual([200]);
});

test('a page is told of audit entries and of views that changed', async () => {
  await using zk = await startConsoleInTest();
  await vi.waitFor(async () =>
    expect((await zk.get('/api/session')).json.features.live).toBe(true),
  );

  const seen = await until<{ views?: string[] }>(
    zk,
    ({ kind, data }) => kind === 'views' && data.views?.includes('groups') === true,
    { onHello: () => zk.post('/api/node/create', { path: '/consumers/g/ids', parents: true }) },
  );

  expect(seen.map(({ kind }) => kind)).toContain('audit');
});

test('a lost session is told, and a new one has its watch', async () => {
  await using zk = await startConsoleInTest();
  await vi.waitFor(async () =>
    expect((await zk.get('/api/session')).json.features.live).toBe(true),
  );
  const before = (await zk.get('/api/session')).json.link.session;
  const own = [...zk.server.engine.sessions.values()].find(
    ({ id }) => `0x${BigInt.asUintN(64, id).toString(16)}` === before,
  )!;

  const seen = await until<{ why?: string }>(zk, ({ kind }) => kind === 'resync', {
    onHello: async () => zk.server.engine.expire(own),
  });
  expect(seen.map(({ kind }) => kind)).toContain('link');
  const again = await until<{ changes: { path: string }[] }>(zk, ({ kind }) => kind === 'nodes', {
    onHello: () =>
      vi.waitFor(async () => {
        expect((await zk.get('/api/session')).json.features.live).toBe(true);
        await zk.client.create('/after-');
      }),
  });
  expect(again.at(-1)!.data.changes).toMatchObject([{ path: '/after-' }]);
});

test('the shell runs what is allowed and nothing that leaves ZooKeeper', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/a/b', '', { parents: true });
  const run = async (line: string, cwd = '/') => (await zk.post('/api/shell', { line, cwd })).json;

  expect(await run('ls /a')).toMatchObject({ code: 0, out: '[b]\n' });
  expect(await run('ls b', '/a')).toMatchObject({ code: 0 });
  expect(await run('create /made x')).toMatchObject({ code: 0 });
  expect((await zk.client.get('/made')).data?.toString()).toBe('x');
  expect((await zk.get('/api/audit')).json.entries[0]).toMatchObject({
    action: 'shell',
    path: '/made',
  });
  for (const line of [
    'lock /x -- touch /tmp/never',
    'edit /made',
    'serve',
    'backup /tmp/never',
    'log dump /etc/passwd',
    'cp /a file:/tmp/never',
    'context add x --server y',
    'create /y --file /etc/passwd',
    'set /made --file=/etc/passwd',
    'ls / --server 10.0.0.1:2181',
    'ls / -server 10.0.0.1:2181',
    'ls / --context prod',
    'ls / --auth-file /etc/passwd',
    'ls / --client-configuration /etc/passwd',
    'kafka elect',
    'kafka topics --ndjson /etc',
    'addauth digest a:b',
    'watch /',
    'demo kafka',
    'quit',
    'constructor',
    '__proto__',
  ]) {
    expect([line, (await run(line)).code]).not.toEqual([line, 0]);
  }
  expect(await zk.client.exists('/y')).toBeNull();
});

test('sessions and watches are shown as servers tell them, with the console marked', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/eph', '', { mode: 'ephemeral' });
  await zk.client.get('/eph', { watch: () => {} });
  const session = `0x${zk.client.sessionId!.toString(16)}`;

  const { json } = await zk.get('/api/sessions');
  const mine = json.rows.find((row: { session: string }) => row.session === session);
  expect(mine).toMatchObject({ ephemerals: 1, watches: 1, isConsole: false });
  expect(json.rows.filter((row: { isConsole: boolean }) => row.isConsole)).toHaveLength(1);
  const one = (await zk.get(`/api/sessions/one?name=${session}`)).json;
  expect(one).toMatchObject({ ephemerals: ['/eph'], watches: ['/eph'] });
  const watches = (await zk.get('/api/watches?filter=eph')).json;
  expect(watches.rows).toMatchObject([{ path: '/eph', sessions: [session], count: 1 }]);
});

test('locks, elections and a deadlock are found by their names', async () => {
  await using zk = await startConsoleInTest();
  const other = await (await import('../src/client/index.ts')).connect(zk.server.address);
  const make = (client: typeof other, path: string) =>
    client.create(path, 'me', { mode: 'ephemeralSequential', parents: true });
  await zk.client.create('/locks-of/a', '', { parents: true });
  await zk.client.create('/locks-of/b');
  await zk.client.create('/leader');
  await make(zk.client, '/locks-of/a/lock-');
  await make(other, '/locks-of/b/lock-');
  await make(other, '/locks-of/a/lock-');
  await make(zk.client, '/locks-of/b/lock-');
  await make(zk.client, '/leader/latch-');

  const { recipes, deadlocks } = (await zk.get('/api/recipes')).json;
  await other.close();

  const kinds = recipes.map(({ kind, path }: { kind: string; path: string }) => `${kind} ${path}`);
  expect(kinds.sort()).toEqual(['election /leader', 'lock /locks-of/a', 'lock /locks-of/b']);
  const a = recipes.find(({ path }: { path: string }) => path === '/locks-of/a');
  expect(a).toMatchObject({
    holding: 1,
    waiting: 1,
    contenders: [{ state: 'holds', label: 'me' }, { state: 'waits' }],
  });
  expect(deadlocks).toHaveLength(1);
  expect(deadlocks[0]).toHaveLength(2);
});

test('an overview is there when no server is', async () => {
  await using zk = await startConsoleInTest();
  await zk.server.close();

  const { status, json } = await zk.get('/api/overview');

  expect(status).toBe(200);
  expect(json.servers).toHaveLength(1);
});

test('while no server answers for long, every page is told so in time, and no change waits for its return', async () => {
  const server = await startServer({ port: 0, inMemory: true });
  const clock = new MovableClock();
  const target = { servers: server.address, origin: '--server', readOnly: false };
  await server.close();
  await using zk = await consoleAt(
    server.address,
    {},
    { target: { ...target, client: { clock }, dataBytesMax: 1_000_000 } },
  );
  const asked = [
    ...['/api/kafka', '/api/kafka/topics', '/api/kafka/moves', '/api/groups', '/api/alignment'].map(
      (path) => zk.get(path),
    ),
    zk.post('/api/groups/reset', { name: 'g', to: '1', dryRun: false, confirm: 'g' }),
    zk.post('/api/kafka/elect', { topic: 't', dryRun: false, confirm: 't' }),
    zk.post('/api/alignment/hold', { name: 'g', action: 'pause' }),
  ];
  let statuses: number[] | undefined;
  void Promise.all(asked).then((answers) => {
    statuses = answers.map(({ status }) => status);
  });

  await expect
    .poll(() => {
      clock.advance(10_000);
      return statuses;
    })
    .toEqual(asked.map(() => 503));
});

test('a server that comes back with other nodes is shown as it is, though it counts as the one before', async () => {
  const before = await startServer({ port: 0, inMemory: true });
  await using zk = await consoleAt(before.address);
  const old = await connect(before.address);
  await old.create('/before');
  const shown = async () =>
    (await zk.get('/api/children?path=/')).json.rows?.map(({ name }: { name: string }) => name);
  expect(await shown()).toEqual(['before', 'zookeeper']);
  const { pzxid } = (await old.exists('/'))!;
  await old.close();
  await before.close();

  const after = await startServer({ port: before.port, inMemory: true });
  const fresh = await connect(after.address);
  while (fresh.lastZxid < pzxid - 1n) await fresh.set('/zookeeper', '');
  await fresh.create('/after');
  expect((await fresh.exists('/'))!.pzxid).toBe(pzxid);
  // The console may have seen more than the new server has done yet.
  for (let i = 0; i < 10; i++) await fresh.set('/zookeeper', '');

  await expect.poll(shown, { timeout: 10_000 }).toEqual(['after', 'zookeeper']);
  await fresh.close();
  await after.close();
});

test('drover console says where it is, works while no server does, and ends when told to', async () => {
  const stop = new AbortController();
  let answer: Promise<{ role: string; link: { state: string } }> | undefined;

  const said = await runInProcess('127.0.0.1:1', ['console', '--port', '0', '--json'], {
    signal: stop.signal,
    onOut: (out) => {
      const { port } = JSON.parse(out) as { port: number };
      answer ??= fetch(`http://127.0.0.1:${port}/api/session`)
        .then(async (response) => (await response.json()) as never)
        .finally(() => stop.abort());
    },
  });

  expect(said.code).toBe(0);
  expect(said.records).toMatchObject([{ servers: '127.0.0.1:1', write: false }]);
  expect(await answer).toMatchObject({ role: 'viewer', link: { state: 'connecting' } });
});

test('drover console refuses what would be unsafe, before it listens', async () => {
  const run = (...words: string[]) => runInProcess('127.0.0.1:1', ['console', '-p', '0', ...words]);

  const open = await run('--address', '0.0.0.0');
  const missing = await run('--token-file', '/no/such/file');
  const readOnly = await run('--write', '--read-only');

  expect([open.code, missing.code, readOnly.code]).toEqual([2, 2, 2]);
  expect(open.err).toContain('token');
  expect(missing.err).toContain("can't be read (ENOENT)");
});

test('the rule of an aligned group is changed and taken back', async () => {
  await using zk = await startConsoleInTest();
  await setRule(zk.client, 'replay', { period: '60s' });
  await zk.client.create('/align/replay/members');
  const ruleNow = async () => (await zk.get('/api/alignment/one?name=replay')).json.rule;

  const rule = { mode: 'drift', stepMs: 1_000, driftMs: 5_000 };
  const changed = await zk.post('/api/alignment/rule', { name: 'replay', rule });
  expect(await ruleNow()).toMatchObject(rule);
  await zk.post('/api/audit/undo', { id: changed.json.audit });

  expect(await ruleNow()).toMatchObject({ mode: 'period', stepMs: 60_000, lookAhead: 0 });
  expect((await zk.post('/api/alignment/rule', { name: 'none', rule })).status).toBe(404);
});

test('an aligned group is paused, let on by steps and let go, each written down and taken back', async () => {
  await using zk = await startConsoleInTest();
  await setRule(zk.client, 'replay', { period: '60s' });
  await zk.client.create('/align/replay/members');
  const now = async () => (await zk.get('/api/alignment/one?name=replay')).json;
  const hold = (action: string, more: object = {}) =>
    zk.post('/api/alignment/hold', { name: 'replay', action, ...more });
  const young = await hold('pause');
  const limit = (rule: object) => ({
    ...{ version: 1, epoch: '1', limit: 600_000, rule, cut: null, finished: false, moved_ms: 0 },
  });
  const rule = { mode: 'period', step_ms: 60_000, look_ahead: 0 };
  await zk.client.create('/align/replay/limit', JSON.stringify(limit(rule)));
  /** As a leader does. */
  const lead = async () => {
    const { data } = await zk.client.get('/align/replay/config');
    await zk.client.set('/align/replay/limit', JSON.stringify(limit(JSON.parse(String(data)))));
  };

  const paused = await hold('pause');
  await lead();
  expect(await now()).toMatchObject({ isPaused: true, holdMs: 600_000 });
  expect((await zk.get('/api/alignment')).json.groups).toMatchObject([{ isPaused: true }]);
  expect((await hold('pause')).status).toBe(409);

  const stepped = await hold('step', { periods: 2 });
  await lead();
  expect(await now()).toMatchObject({ isPaused: false, holdMs: 720_000 });
  expect((await zk.post('/api/audit/undo', { id: paused.json.audit })).status).toBe(409);
  await zk.post('/api/audit/undo', { id: stepped.json.audit });
  await lead();
  expect(await now()).toMatchObject({ isPaused: true, holdMs: 600_000 });

  await hold('continue');
  await lead();
  expect(await now()).toMatchObject({ isPaused: false, holdMs: null });
  expect(
    (await zk.get('/api/audit')).json.entries.map(({ note }: { note: string }) => note),
  ).toEqual(expect.arrayContaining(['replay: pause', 'replay: step 2', 'replay: continue']));
  expect([young.status, young.json.error?.message ?? young.json.message]).toEqual([
    ...[409, expect.stringContaining('no limit yet')],
  ]);
  expect((await hold('step', { periods: 0 })).status).toBe(400);
  const none = await zk.post('/api/alignment/hold', { name: 'none', action: 'pause' });
  expect(none.status).toBe(404);
});
