/** Changes of many nodes at once, and by the shell: what the audit keeps of them, and how they are taken back. */

import { expect, test } from 'vitest';
import { permissions } from '../src/client/index.ts';
import { base64, type ConsoleInTest, startConsoleInTest, textOf } from './console-run.ts';

const dataOf = async ({ client }: ConsoleInTest, path: string) =>
  (await client.get(path)).data?.toString();
const newest = async (zk: ConsoleInTest) => (await zk.get('/api/audit')).json.entries[0];
const undo = (zk: ConsoleInTest, id: number) => zk.post('/api/audit/undo', { id });

test('an import is taken back whole, or not at all', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/to', 'old');
  const nodes = [
    { path: '', data: base64('new') },
    { path: '/a', data: base64('a') },
    { path: '/a/b', data: base64('b') },
  ];
  const imported = { path: '/to', nodes, onConflict: 'overwrite', dryRun: false };

  await zk.post('/api/import', imported);
  const entry = await newest(zk);
  expect(entry).toMatchObject({ action: 'import', count: 3, undo: 'possible' });
  expect(textOf(entry.before.data)).toBe('/to  "old"');
  expect(textOf(entry.after.data)).toContain('/to/a/b  "b"');
  await zk.client.set('/to/a', 'touched');
  expect((await undo(zk, entry.id)).status).toBe(409);
  expect([await dataOf(zk, '/to'), await dataOf(zk, '/to/a/b')]).toEqual(['new', 'b']);

  await zk.client.delete('/to/a/b');
  await zk.client.delete('/to/a');
  await zk.client.set('/to', 'old');
  await zk.post('/api/import', imported);
  expect((await undo(zk, (await newest(zk)).id)).status).toBe(200);
  expect(await dataOf(zk, '/to')).toBe('old');
  expect(await zk.client.exists('/to/a')).toBeNull();
});

test('nothing is taken back of a node that was deleted since and made anew', async () => {
  await using zk = await startConsoleInTest();
  const anew = async (path: string, ...data: string[]) => {
    await zk.client.delete(path);
    await zk.client.create(path, data[0]!);
    for (const one of data.slice(1)) await zk.client.set(path, one);
  };
  const nodes = [{ path: '', data: base64('i') }];
  await zk.client.create('/set', 'old');
  const changes = [
    await zk.post('/api/node/create', { path: '/create', data: base64('c') }),
    await zk.post('/api/node/set', { path: '/set', data: base64('s'), version: 0 }),
    await zk.post('/api/shell', { line: 'create /shell x' }),
    await zk.post('/api/import', { path: '/import', nodes, onConflict: 'fail', dryRun: false }),
  ];
  expect(changes.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const { entries } = (await zk.get('/api/audit')).json;

  for (const path of ['/create', '/shell', '/import']) await anew(path, 'theirs');
  await anew('/set', 'first', 'theirs'); // of the same version as ours

  for (const { id } of entries) expect((await undo(zk, id)).status).toBe(409);
  for (const path of ['/create', '/set', '/shell', '/import']) {
    expect(await dataOf(zk, path)).toBe('theirs');
  }
});

test('what a change came to before it failed is written down, and is taken back', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/to');
  await zk.client.create('/to/ephemeral', '', { mode: 'ephemeral' });
  await zk.client.create('/gone', 'g');
  await zk.client.create('/kept/child', '', { parents: true });
  const anyone = { scheme: 'world', id: 'anyone' };
  await zk.client.setAcl('/kept', [{ perms: permissions.all & ~permissions.delete, id: anyone }]);
  const nodes = ['/a', '/ephemeral/b'].map((path) => ({ path, data: base64('x') }));

  await zk.post('/api/import', { path: '/to', nodes, onConflict: 'fail', dryRun: false });
  const imported = await newest(zk);
  expect(await zk.client.exists('/to/a')).not.toBeNull();
  expect(imported).toMatchObject({ action: 'import', ok: false, count: 1, undo: 'possible' });
  expect((await undo(zk, imported.id)).status).toBe(200);
  expect(await zk.client.exists('/to/a')).toBeNull();

  await zk.post('/api/node/delete', { paths: ['/gone', '/kept'], confirm: '3', count: 3 });
  const deleted = await newest(zk);
  expect(await zk.client.exists('/gone')).toBeNull();
  expect(deleted).toMatchObject({ action: 'delete', ok: false, count: 1, undo: 'possible' });
  expect((await undo(zk, deleted.id)).status).toBe(200);
  expect(await dataOf(zk, '/gone')).toBe('g');
});

test('what was made above a node goes with it', async () => {
  await using zk = await startConsoleInTest();
  const nodes = [{ path: '/leaf', data: base64('x') }];
  const made = [
    ['/api/node/create', { path: '/a/b/leaf', parents: true }],
    ['/api/import', { path: '/a/b', nodes, onConflict: 'fail', dryRun: false }],
  ] as const;
  for (const [route, body] of made) {
    await zk.post(route, body);
    const entry = await newest(zk);
    expect(entry).toMatchObject({ ok: true, count: 3, undo: 'possible' });

    expect((await undo(zk, entry.id)).status).toBe(200);

    expect(await zk.client.exists('/a')).toBeNull();
  }
});

test('who leaves while a change is made has made it whole, and can take it back', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/to');
  const nodes = Array.from({ length: 200 }, (_, at) => ({ path: `/n${at}`, data: base64('x') }));
  const leaving = new AbortController();
  const { csrf } = (await zk.get('/api/session')).json;
  await zk.client.exists('/to/n0', { watch: () => leaving.abort() });

  const asked = zk.send('/api/import', {
    method: 'POST',
    body: JSON.stringify({ path: '/to', nodes, onConflict: 'fail', dryRun: false }),
    headers: {
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
      'x-drover-token': csrf,
      origin: zk.origin,
    },
    signal: leaving.signal,
  });

  await expect(asked).rejects.toThrow(/abort/);
  await expect.poll(async () => (await newest(zk))?.action).toBe('import');
  const entry = await newest(zk);
  expect(entry).toMatchObject({ ok: true, count: 200, undo: 'possible' });
  expect(await zk.client.children('/to')).toHaveLength(200);
  expect((await undo(zk, entry.id)).status).toBe(200);
  expect(await zk.client.children('/to')).toEqual([]);
});

test('a delete that somebody has built on since is not half taken back', async () => {
  await using zk = await startConsoleInTest();
  for (const name of ['a', 'b', 'c']) await zk.client.create(`/d/${name}`, '', { parents: true });
  const paths = ['/d/a', '/d/b', '/d/c'];
  await zk.post('/api/node/delete', { paths, confirm: '3', count: 3 });
  const { id, before } = await newest(zk);
  expect(textOf(before.data).split('\n')).toHaveLength(3);

  await zk.client.create('/d/b', 'another');

  expect((await undo(zk, id)).status).toBe(409);
  expect(await zk.client.children('/d')).toEqual(['b']);
});

test('ACLs of a whole subtree want the name typed and the count known, and come back', async () => {
  await using zk = await startConsoleInTest();
  for (const name of ['', '/a', '/a/b']) await zk.client.create(`/acls${name}`);
  const ask = (body: object) =>
    zk.post('/api/node/acl', {
      path: '/acls',
      acl: [{ scheme: 'world', id: 'anyone', perms: 'rwa' }],
      version: 0,
      recursive: true,
      ...body,
    });
  const permsOf = async () =>
    Promise.all(
      ['/acls', '/acls/a', '/acls/a/b'].map(
        async (path) => (await zk.client.getAcl(path)).acl[0]!.perms,
      ),
    );

  const preview = (await zk.get('/api/node/below?path=/acls')).json;
  expect(preview).toMatchObject({ count: 3, confirm: 'acls', isTooMany: false });
  for (const body of [{}, { confirm: 'acls' }, { confirm: 'acl', count: 3 }]) {
    expect((await ask(body)).status).toBe(409);
  }
  expect((await ask({ confirm: 'acls', count: 2 })).status).toBe(409);
  expect(await permsOf()).toEqual([31, 31, 31]);

  expect((await ask({ confirm: 'acls', count: 3 })).status).toBe(200);
  expect(await permsOf()).toEqual([19, 19, 19]);
  const entry = await newest(zk);
  expect(textOf(entry.before.data)).toContain('/acls/a/b  world:anyone:cdrwa');
  expect((await undo(zk, entry.id)).status).toBe(200);
  expect(await permsOf()).toEqual([31, 31, 31]);
});

test('what a line of the shell changed has a before, an after and a way back', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/s', 'one');
  for (const name of ['x', 'y']) await zk.client.create(`/s/t/${name}`, '', { parents: true });
  const run = async (line: string, cwd = '/') => {
    const { json } = await zk.post('/api/shell', { line, cwd });
    expect([line, json.code, json.err]).toEqual([line, 0, expect.anything()]);
    return newest(zk);
  };

  const set = await run('set /s two');
  expect(set).toMatchObject({ action: 'shell', note: 'set', path: '/s', undo: 'possible' });
  expect([textOf(set.before.data), textOf(set.after.data)]).toEqual(['one', 'two']);
  expect((await undo(zk, set.id)).status).toBe(200);
  expect(await dataOf(zk, '/s')).toBe('one');

  const made = await run('create -s n- hi', '/s');
  expect(made).toMatchObject({ path: '/s/n-0000000001', before: null, undo: 'possible' });
  await undo(zk, made.id);
  expect(await zk.client.exists('/s/n-0000000001')).toBeNull();

  const acl = await run('setAcl /s/t world:anyone:cdra');
  expect(acl.after.acl).toEqual([{ scheme: 'world', id: 'anyone', perms: 'cdra' }]);
  await undo(zk, acl.id);

  const gone = await run('deleteall --yes /s/t');
  expect(gone).toMatchObject({ count: 3, after: null, undo: 'possible' });
  expect((await undo(zk, gone.id)).status).toBe(200);
  expect(await zk.client.children('/s/t')).toEqual(['x', 'y']);

  const again = await run('set /s three');
  await zk.client.set('/s', 'four');
  expect((await undo(zk, again.id)).status).toBe(409);
  expect(await dataOf(zk, '/s')).toBe('four');
});

test('a path is found by the letters of its names', async () => {
  await using zk = await startConsoleInTest();
  for (const path of ['/brokers/topics/orders', '/brokers/ids/1', '/config/brokers/2']) {
    await zk.client.create(path, '', { parents: true });
  }
  const like = async (text: string) =>
    (await zk.get(`/api/paths?text=${encodeURIComponent(text)}`)).json.paths;

  expect((await like('/br/to'))[0]).toBe('/brokers/topics');
  expect((await like('/br/to/or'))[0]).toBe('/brokers/topics/orders');
  expect(await like('/cfg/brk/2')).toEqual(['/config/brokers/2']);
  expect(await like('/nothing/like/it')).toEqual([]);
  expect((await like('/brokers/'))[0]).toMatch(/^\/brokers\//);
});

test('nodes are found by age, and a word that is none is said to be', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/young');
  const find = async (text: string) =>
    (await zk.get(`/api/find?path=/young&in=age&text=${encodeURIComponent(text)}`)).json;

  expect((await find('<1h')).matches).toMatchObject([{ path: '/young' }]);
  expect((await find('>1h')).matches).toEqual([]);
  expect((await find('yesterday')).error.message).toContain('an age is wanted');
});

test('a bench counts and times, leaves nothing behind and stands in the audit', async () => {
  await using zk = await startConsoleInTest();

  const [{ json }, second] = await Promise.all([
    zk.post('/api/bench', { what: 'writes', inFlight: 4 }),
    zk.post('/api/bench', { what: 'reads', inFlight: 4 }),
  ]);

  const done = json.error ? second.json : json;
  expect(done.count).toBeGreaterThan(0);
  expect(done.p50Ms).toBeLessThanOrEqual(done.p99Ms);
  expect([json, second.json].filter(({ error }) => error?.code === 'CONFLICT')).toHaveLength(1);
  expect(await zk.client.children('/')).toEqual(['zookeeper']);
  expect(await newest(zk)).toMatchObject({ action: 'bench', ok: true });
});

test('of a subtree that was deleted in part, that part is written down, and comes back', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/big/line', '', { parents: true });
  const names = Array.from({ length: 600 }, (_, i) => `/big/line/n${String(i).padStart(3, '0')}`);
  await Promise.all(names.map((path) => zk.client.create(path, 'x')));
  const anyone = { scheme: 'world', id: 'anyone' };
  await zk.client.setAcl('/big', [{ perms: permissions.all & ~permissions.delete, id: anyone }]);

  const asked = { paths: ['/big'], confirm: 'big', count: 602 };
  expect((await zk.post('/api/node/delete', asked)).status).toBe(403);
  const left = (await zk.client.children('/big/line')).length;
  const entry = await newest(zk);

  expect(left).toBeLessThan(600);
  expect(entry).toMatchObject({ ok: false, count: 600 - left, undo: 'possible' });
  expect((await undo(zk, entry.id)).status).toBe(200);
  expect(await zk.client.children('/big/line')).toHaveLength(600);
});

test('an ACL that lets nobody read is set on all below, too, and comes back', async () => {
  await using zk = await startConsoleInTest();
  await zk.client.create('/closed/below/deeper', '', { parents: true });
  const paths = ['/closed', '/closed/below', '/closed/below/deeper'];
  const perms = () =>
    Promise.all(paths.map(async (path) => (await zk.client.getAcl(path)).acl[0]!.perms));
  const acl = [{ scheme: 'world', id: 'anyone', perms: 'a' }];

  const asked = { path: '/closed', acl, version: 0, recursive: true, confirm: 'closed', count: 3 };
  expect((await zk.post('/api/node/acl', asked)).status).toBe(200);
  expect(await perms()).toEqual(paths.map(() => permissions.admin));
  const entry = await newest(zk);

  expect(entry).toMatchObject({ ok: true, count: 3, undo: 'possible' });
  expect((await undo(zk, entry.id)).status).toBe(200);
  expect(await perms()).toEqual(paths.map(() => permissions.all));
});

test('of an ACL that was set on a part of a subtree, that part is written down, and comes back', async () => {
  await using zk = await startConsoleInTest();
  for (const path of ['/part', '/part/a', '/part/b']) await zk.client.create(path);
  const anyone = { scheme: 'world', id: 'anyone' };
  await zk.client.setAcl('/part/b', [{ perms: permissions.all & ~permissions.admin, id: anyone }]);
  const perms = async (path: string) => (await zk.client.getAcl(path)).acl[0]!.perms;
  const acl = [{ ...anyone, perms: 'ra' }];

  const asked = { path: '/part', acl, version: 0, recursive: true, confirm: 'part', count: 3 };
  expect((await zk.post('/api/node/acl', asked)).status).toBe(403);
  const entry = await newest(zk);

  expect(await perms('/part/a')).toBe(permissions.read | permissions.admin);
  expect(entry).toMatchObject({ ok: false, count: 2, undo: 'possible' });
  expect((await undo(zk, entry.id)).status).toBe(200);
  expect([await perms('/part'), await perms('/part/a')]).toEqual([
    permissions.all,
    permissions.all,
  ]);
});
