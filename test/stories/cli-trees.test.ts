/** Whole subtrees: tree, find, grep, du, diff, deleteall, watch. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runInProcess, shellInProcess } from '../cli-run.ts';
import { persistentWatches, startZk, type Zk } from '../zk.ts';

const emptyPath = 'drover: a path is empty; / is the root, . is here\n';

async function planted(zk: Zk) {
  const client = await zk.connect();
  for (const [path, data] of [
    ['/app', ''],
    ['/app/config', 'level=info\nname=one'],
    ['/app/config/db', '{"host": "h"}'],
    ['/app/locks', ''],
    ['/app/Zebra', 'LEVEL=warn'],
    ['/other', 'x'],
  ] as const) {
    await client.create(path, data);
  }
  await client.create('/app/locks/one', '12345', { mode: 'ephemeral' });
  return client;
}

test('tree draws what is there, as deep as wanted, and says what it leaves out', async () => {
  await using zk = await startZk();
  const client = await planted(zk);
  const owner = `0x${client.sessionId!.toString(16)}`;

  const all = await runInProcess(zk.address, ['tree', '/app']);
  const cut = await runInProcess(zk.address, ['tree', '/app', '--depth', '1', '--size']);
  const json = await runInProcess(zk.address, ['tree', '/', '--json']);

  expect(all.out).toBe(
    [
      '/app',
      '├── Zebra',
      '├── config',
      '│   └── db',
      '└── locks',
      `    └── one  (ephemeral ${owner})`,
      '',
    ].join('\n'),
  );
  expect(cut.lines).toContain('├── config  (19 B, 1 below)');
  expect(json.records.map(({ path }) => path)).toEqual([
    ...['/', '/app', '/app/Zebra', '/app/config', '/app/config/db'],
    ...['/app/locks', '/app/locks/one', '/other'],
  ]);
});

test('find finds by name, owner, size and age', async () => {
  await using zk = await startZk();
  const client = await planted(zk);
  const find = async (...args: string[]) =>
    (await runInProcess(zk.address, ['find', ...args])).lines;
  const owner = `0x${client.sessionId!.toString(16)}`;

  expect(await find('/', 'config')).toEqual(['/app/config', '/app/config/db']);
  expect(await find('/', 'z*')).toEqual([]);
  expect(await find('/', 'z*', '-i')).toEqual(['/app/Zebra']);
  expect(await find('/', '/(db|one)$', '-E')).toEqual(['/app/config/db', '/app/locks/one']);
  expect(await find('/app', '--ephemeral')).toEqual(['/app/locks/one']);
  expect(await find('/', '--owner', owner)).toEqual(['/app/locks/one']);
  expect(await find('/', '--min-bytes', '12')).toEqual(['/app/config', '/app/config/db']);
  expect(await find('/', '--min-children', '3')).toEqual(['/app']);
  expect(await find('/', '--older', '1h')).toEqual([]);
  expect(await find('/app', '--newer', '1h', '--count')).toEqual(['6']);
  expect(await find('/', '--leaf', '--depth', '1')).toEqual(['/other']);
  expect((await runInProcess(zk.address, ['find', '/', '--newer', 'soon'])).code).toBe(2);
  expect((await runInProcess(zk.address, ['find', '/', '(', '-E'])).code).toBe(2);
  expect((await runInProcess(zk.address, ['find', '/none'])).code).toBe(6);
});

test('a pattern that would keep a backtracking engine busy for ever is answered at once', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create(`/${'a'.repeat(120)}`, `${'a'.repeat(120)}\n`);
  const run = (...words: string[]) => runInProcess(zk.address, words);

  expect(await run('find', '/', '*a*a*a*a*a*a*b')).toMatchObject({ code: 0, lines: [] });
  expect(await run('find', '/', '(a+)+b', '-E')).toMatchObject({ code: 0, lines: [] });
  expect(await run('find', '/', '(a+)+b$', '-E', '-i')).toMatchObject({ code: 0, lines: [] });
  expect(await run('grep', '(a|a)*b', '/')).toMatchObject({ code: 1, lines: [] });
});

test('a pattern with any character is text, and what an expression cannot hold is named', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (const name of ['my-api-v1', 'a(b', 'a\\b', 'x{2}'])
    await client.create(`/${name}`, 'a-b (c)');
  const run = (...words: string[]) => runInProcess(zk.address, words);

  expect((await run('find', '/', 'api-')).lines).toEqual(['/my-api-v1']);
  expect((await run('find', '/', 'API-', '-i')).lines).toEqual(['/my-api-v1']);
  expect((await run('find', '/', '*-v?')).lines).toEqual(['/my-api-v1']);
  expect((await run('find', '/', '(')).lines).toEqual(['/a(b']);
  expect((await run('find', '/', 'x{2}')).lines).toEqual(['/x{2}']);
  expect((await run('grep', '-F', 'B (', '/', '-i', '-l')).lines).toHaveLength(4);
  expect(await run('find', '/', '(?=a)', '-E')).toMatchObject({
    code: 2,
    err: 'drover: cannot use the pattern (?=a): look-ahead ((?=…)) is not supported; without -E it is plain text\n',
  });
  expect((await run('grep', '(a)\\1', '/')).err).toContain('back-reference');
});

test('grep finds lines in data, and ends with 1 where there are none', async () => {
  await using zk = await startZk();
  await planted(zk);
  const grep = (...args: string[]) => runInProcess(zk.address, ['grep', ...args]);

  expect((await grep('level', '/')).out).toBe('/app/config:1: level=info\n');
  expect((await grep('level', '-i', '-l')).lines).toEqual(['/app/Zebra', '/app/config']);
  expect((await grep('name=(one|two)', '/app', '--json')).records).toEqual([
    { path: '/app/config', line: 2, text: 'name=one' },
  ]);
  expect((await grep('{"host"', '-F')).lines).toHaveLength(1);
  expect(await grep('nothing like it')).toMatchObject({ code: 1, out: '' });
});

test('du says where the bytes are, largest first', async () => {
  await using zk = await startZk();
  await planted(zk);

  const { records } = await runInProcess(zk.address, ['du', '/', '--json', '--top', '1']);
  const text = await runInProcess(zk.address, ['du', '/app']);

  expect(records[0]).toMatchObject({ path: '/app', bytes: 47, nodes: 6 });
  expect(records.at(-1)).toMatchObject({ path: '/', isTotal: true, bytes: 48 });
  expect(text.lines[0]).toBe('BYTES  NODES  PATH');
  expect(text.lines[1]).toBe('32     2      /app/config');
});

test('diff compares two subtrees, on one server or on two', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (const root of ['/a', '/b']) {
    await client.create(root, 'same');
    await client.create(`${root}/both`, `one\n${root}\nthree`);
  }
  await client.create('/a/left');
  await client.create('/b/both/right', 'r');
  await client.create('/b/z');
  await client.create('/a/z', '', { acl: [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }] });
  const there = `zk://${zk.directAddress}`;

  const text = await runInProcess(zk.address, ['diff', '/a', '/b']);
  const acls = await runInProcess(zk.address, ['diff', '/a', '/b', '--acl', '--json']);
  const remote = await runInProcess(zk.address, ['diff', '/a', `${there}/a`]);

  expect(text.code).toBe(1);
  expect(text.out).toBe('~ both\n    - /a\n    + /b\n+ both/right\n- left\n');
  expect(acls.records.map(({ kind, path }) => `${kind} ${path}`)).toContain('acl z');
  expect([remote.code, remote.out]).toEqual([0, '']);
});

test('diff compares with files and folders, and those with each other', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const folder = mkdtempSync(join(tmpdir(), 'drover-diff-'));
  const [file, packed] = [`json://${folder}/tree.json`, `json://${folder}/tree.json.gz`];
  const plain = `file://${folder}/tree`;
  const loose = join(folder, 'loose.json');
  const drover = (...argv: string[]) => runInProcess(zk.address, argv);
  await client.create('/a', 'root');
  await client.create('/a/b', 'one\ntwo');
  await client.create('/a/b/c');
  await client.create('/a/b-c', 'x'); // before b/c by its letters, behind it in the tree
  for (const place of [file, packed, plain]) {
    expect(await drover('cp', '/a', place, '--yes')).toMatchObject({ code: 0 });
  }

  const same = [await drover('diff', '/a', file), await drover('diff', plain, packed, '--acl')];
  await client.set('/a/b', 'one\n2');
  await client.delete('/a/b/c');
  await client.create('/a/new', '', { acl: [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }] });
  await client.setAcl('/a/b-c', [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }]);
  const changed = await drover('diff', file, '/a');
  const acls = await drover('diff', '/a', packed, '--acl', '--json');
  const root = await drover('diff', '/', file, '--json');
  writeFileSync(
    loose,
    JSON.stringify([{ path: '/b', data: { text: 'one\n2' }, mode: 'persistent' }]),
  );
  const others = await drover('diff', `json://${loose}`, '/a');
  const missing = await drover('diff', '/a', `json://${folder}/none.json`);

  expect(same.map(({ code, out }) => [code, out])).toEqual([
    [0, ''],
    [0, ''],
  ]);
  expect(changed.code).toBe(1);
  expect(changed.out).toBe('~ b\n    - two\n    + 2\n- b/c\n+ new\n');
  expect(changed.err).toContain('1 only on the left, 1 only on the right, 1 differ');
  expect(acls.records).toContainEqual({
    kind: 'acl',
    path: 'b-c',
    left: 'world:anyone:r',
    right: 'world:anyone:cdrwa',
  });
  expect(root.records.map(({ path }) => path)).not.toContain('zookeeper');
  expect(others.out).toBe('+ b-c\n+ new\n');
  expect(missing).toMatchObject({ code: 4, out: '' });
  rmSync(folder, { recursive: true });
});

test('deleteall says how many, asks where somebody can answer, and deletes the lot', async () => {
  await using zk = await startZk();
  const client = await planted(zk);
  const asked: string[] = [];
  const answer = (text: string) => async (question: string) => {
    asked.push(question);
    return text;
  };
  const run = (argv: string[], text: string) =>
    runInProcess(zk.address, argv, { ask: answer(text) });

  const dry = await run(['deleteall', '/app', '--dry-run'], 'n');
  const declined = await run(['deleteall', '/app'], 'n');
  const stillThere = await client.exists('/app/config/db');
  const agreed = await run(['rmr', '/app/config'], 'y');
  const unasked = await run(['deleteall', '/app', '--yes', '-b', '2'], 'n');
  const single = await run(['deleteall', '/other'], 'n');

  expect(dry.out).toBe('would delete /app and 5 nodes below it\n');
  expect(declined).toMatchObject({ code: 9 });
  expect(stillThere).not.toBeNull();
  expect(agreed.code).toBe(0);
  expect([unasked.code, single.code]).toEqual([0, 0]);
  expect(asked).toHaveLength(2);
  expect(asked[0]).toMatch(/^delete \/app and 5 nodes below it, on .*\? \[y\/N\] $/);
  expect(await client.children('/')).toEqual([]);
});

test('the root is deleted only with --yes, and the nodes of the server never', async () => {
  await using zk = await startZk();
  const client = await planted(zk);
  const run = (...argv: string[]) => runInProcess(zk.address, argv);

  const root = await run('deleteall', '/');
  const dry = await run('deleteall', '/', '--dry-run');
  const servers = await run('deleteall', '/zookeeper', '--yes');
  const below = await run('deleteall', '/zookeeper/quota', '--yes');
  const kept = (await client.children('/')).sort();
  const meant = await run('deleteall', '/', '--yes');

  const isBelowChroot = client.chroot !== '';
  expect(root).toMatchObject({ code: 2, out: '' });
  expect(root.err).toMatch(/^drover: deleteall \/ deletes every node .*; give --yes to do that/);
  expect(dry.code).toBe(0);
  if (!isBelowChroot) {
    for (const { code, err } of [servers, below]) {
      expect(code).toBe(2);
      expect(err).toMatch(/^drover: \/zookeeper belongs to the server/);
    }
  }
  expect(kept).toEqual(expect.arrayContaining(['app', 'other']));
  expect(meant.code).toBe(0);
  expect(await client.exists('/app')).toBeNull();
});

test('an empty path is refused: a variable that nobody set is not the root', async () => {
  await using zk = await startZk();
  const client = await planted(zk);
  await using shell = shellInProcess(zk.address);

  const refused = [
    await runInProcess(zk.address, ['deleteall', '']),
    await runInProcess(zk.address, ['mirror', '/other', '']),
    await runInProcess(zk.address, ['create', '', 'x']),
    await runInProcess(zk.address, ['txn', 'set "" x']),
    await shell.run('deleteall ""'),
  ];

  for (const { code, err } of refused) expect({ code, err }).toEqual({ code: 2, err: emptyPath });
  expect((await client.children('/')).sort()).toEqual(['app', 'other']);
  expect((await runInProcess(zk.address, ['getAllChildrenNumber', '.'])).code).toBe(0);
});

test('a script deletes without being asked, as zkCli does, one by one too', async () => {
  await using zk = await startZk();
  const client = await planted(zk);
  await using shell = shellInProcess(zk.address);

  const batch = await shell.run('deleteall /app -b 0');
  const gone = await shell.run('deleteall /app');
  const wrong = await shell.run('deleteall /other -b many');

  expect(batch).toMatchObject({ code: 0, err: 'drover: 6 nodes were deleted\n' });
  expect(gone.code).toBe(6);
  expect(wrong.code).toBe(2);
  expect(await client.children('/')).toEqual(['other']);
});

test('a family whose names fill more than jute.maxbuffer is listed, searched and deleted', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const nameOf = (i: number) => `${String(i).padStart(6, '0')}-${'n'.repeat(600)}`;
  await client.create('/big');
  for (let from = 0; from < 2_000; from += 1_000) {
    const ops = Array.from({ length: 1_000 }, (_, i) => `/big/${nameOf(from + i)}`);
    await client.multi(ops.map((path) => ({ op: 'create', path })));
  }
  const drover = (...argv: string[]) => runInProcess(zk.address, argv);

  const listed = await drover('ls', '/big');
  const found = await drover('find', '/big', '001999*');
  const counted = await drover('deleteall', '/big', '--dry-run');
  const deleted = await drover('deleteall', '/big', '--yes');

  expect(listed.bytes.length).toBeGreaterThan(1024 * 1024);
  expect([listed.lines.length, listed.lines[1_999]]).toEqual([2_000, nameOf(1_999)]);
  expect(found.out).toBe(`/big/${nameOf(1_999)}\n`);
  expect(counted.out).toBe('would delete /big and 2000 nodes below it\n');
  expect(deleted.code).toBe(0);
  expect(await client.exists('/big')).toBeNull();
});

test('deleteall goes on where others add and delete meanwhile', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/busy');
  for (let i = 0; i < 300; i++) await client.create(`/busy/n${i}`);

  const deleting = runInProcess(zk.address, ['deleteall', '/busy', '-b', '10']);
  await Promise.all([
    ...Array.from({ length: 50 }, (_, i) => client.delete(`/busy/n${i * 6}`).catch(() => {})),
    ...Array.from({ length: 50 }, (_, i) => client.create(`/busy/more${i}`).catch(() => {})),
  ]);

  expect((await deleting).code).toBe(0);
  expect(await client.exists('/busy')).toBeNull();
});

test('Ctrl-C stops a deletion between two batches, and says how far it came', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/many');
  for (let i = 0; i < 200; i++) await client.create(`/many/n${i}`);
  const controller = new AbortController();
  const stream = client.watch('/many', { recursive: true });
  await stream.ready;
  void stream.next().then(() => controller.abort());

  const said = await runInProcess(zk.address, ['deleteall', '/many', '-b', '1'], {
    signal: controller.signal,
  });
  await stream.close();

  expect(said.code).toBe(130);
  expect(said.err).toMatch(/^drover: \d+ nodes were deleted before this\ndrover: interrupted\n$/);
  expect(await client.exists('/many')).not.toBeNull();
});

test('watch tells of every change, with what has changed, until it is stopped', async () => {
  await using zk = await startZk(persistentWatches);
  const client = await zk.connect();
  await client.create('/w', 'a\nb\nc');
  let isHeard = false;
  const controller = new AbortController();
  const running = runInProcess(zk.address, ['watch', '-r', '/w', '--json'], {
    signal: controller.signal,
    onOut: (all) => {
      isHeard = true;
      if (all.includes('"deleted"')) controller.abort();
    },
  });
  // The first change that is seen proves that the watch is set; until then one is made again.
  await vi.waitFor(async () => {
    await client.set('/w', `a\n${Math.random()}\nc`);
    expect(isHeard).toBe(true);
  }, 10_000);
  await client.create('/w/x', 'new');
  await client.set('/w/x', 'newer');
  await client.delete('/w/x');
  const { code, records } = await running;

  expect(code).toBe(0);
  const below = records.filter(({ path }) => path === '/w/x');
  expect(below.map(({ type }) => type)).toEqual(['created', 'dataChanged', 'deleted']);
  const changes = records.filter(({ path, type }) => path === '/w' && type === 'dataChanged');
  expect(changes.length).toBeGreaterThan(0);
  expect(changes[0].after.text).toMatch(/^a\n/);
});

test('watch ends after so many changes, and shows lines that went and came', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/w', 'a\nb\nc');
  let changes = 0;
  const running = runInProcess(zk.address, ['watch', '/w', '--count', '2']);
  let isOver = false;
  void running.then(() => {
    isOver = true;
  });
  await vi.waitFor(async () => {
    changes += 1;
    await client.set('/w', `a\nb${changes}\nc`);
    expect(isOver).toBe(true);
  }, 10_000);
  const { code, out } = await running;

  expect(code).toBe(0);
  expect(out.match(/dataChanged/g)).toHaveLength(2);
  expect(out).toMatch(/\n {14}- b\d*\n {14}\+ b\d+\n/);
});

test('a node that may not be read is said to be so, and is left out of copies only when asked', async () => {
  await using zk = await startZk();
  const client = await planted(zk);
  const owner = await zk.connect({ auth: [{ scheme: 'digest', auth: 'ann:secret' }] });
  const acl = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
  await owner.create('/app/private', 'x', { acl });
  await owner.create('/app/private/below', 'y', { acl });
  const folder = mkdtempSync(join(tmpdir(), 'drover-unreadable-'));
  const file = join(folder, 'all.json');
  const run = (...argv: string[]) => runInProcess(zk.address, argv);

  const tree = await run('tree', '/app/private');
  const grep = await run('grep', 'x', '/app/private');
  const backup = await run('backup', file);
  const partial = await run('backup', file, '--skip-unreadable');
  const cp = await run('cp', '/app', '/copy');
  const partialCp = await run('cp', '/app', '/copy', '--skip-unreadable');
  const dash = await run('backup', '-');

  for (const { code, err } of [tree, grep]) {
    expect(code).toBe(6);
    expect(err).toMatch(/^drover: NO_AUTH.*--auth/);
  }
  for (const { code, err } of [backup, cp]) {
    expect(code).toBe(6);
    expect(err).toContain('/app/private may not be read; authenticate with --auth');
  }
  for (const { code, err } of [partial, partialCp]) {
    expect(code).toBe(1);
    expect(err).toContain('/app/private may not be read: left out, with all below it');
  }
  expect((await client.children('/copy')).sort()).toEqual(['Zebra', 'config', 'locks']);
  expect(dash).toMatchObject({ code: 2 });
  await owner.deleteRecursive('/app/private');
  rmSync(folder, { recursive: true });
});
