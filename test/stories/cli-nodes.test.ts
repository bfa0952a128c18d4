/** zkCli's commands on nodes, as a command of their own and as lines of a shell. */

import { expect, test } from 'vitest';
import { runInProcess, shellInProcess } from '../cli-run.ts';
import { startZk } from '../zk.ts';

test('create, get, set, stat and delete do what zkCli does', async () => {
  await using zk = await startZk();
  const drover = (...argv: string[]) => runInProcess(zk.address, argv);

  expect(await drover('create', '/a', 'one')).toMatchObject({ code: 0, out: '/a\n' });
  expect(await drover('get', '/a')).toMatchObject({ code: 0, out: 'one' });
  expect((await drover('set', '/a', 'three', '-s')).out).toMatch(
    /^cZxid = 0x\w+\nctime = \w{3} \w{3} \d\d \d\d:\d\d:\d\d \S+ \d{4}\n[\s\S]*\ndataVersion = 1\n[\s\S]*\ndataLength = 5\nnumChildren = 0\n$/,
  );
  expect((await drover('stat', '/a')).out).toContain('\nephemeralOwner = 0x0\n');
  expect(await drover('set', '-v', '0', '/a', 'x')).toMatchObject({ code: 6 });
  expect((await drover('set', '-v', '0', '/a', 'x')).err).toContain('BAD_VERSION');
  expect(await drover('delete', '-v', '7', '/a')).toMatchObject({ code: 6 });
  expect(await drover('delete', '-v', '1', '/a')).toMatchObject({ code: 0, out: '', err: '' });
  expect(await drover('get', '/a')).toMatchObject({
    code: 6,
    out: '',
    err: 'drover: NO_NODE: no such node (getData /a)\n',
  });
});

test('nodes of every kind are made by their letters, and letters that do not go together are refused', async () => {
  await using zk = await startZk({ since: '3.6', what: 'getEphemerals' });
  const client = await zk.connect();
  await using shell = shellInProcess(zk.address);

  const sequential = await shell.run('create -s /s- x');
  const ephemeral = await shell.run('create -e /e');
  const both = await shell.run('create -e -s /es-');
  const bundled = await shell.run('create -es /es-');
  const container = await shell.run('create -c /c');
  const parents = await shell.run('create -p /p/q/r deep');
  const lived = await shell.run('create -t 100000 /t x');
  const acl = await shell.run('create /acl x world:anyone:r,world:anyone:a');

  expect(sequential.out).toMatch(/^Created \/s-\d{10}\n$/);
  expect(both.out).toMatch(/^Created \/es-\d{10}\n$/);
  expect(bundled.out).toMatch(/^Created \/es-\d{10}\n$/);
  expect([ephemeral, container, parents, acl].map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  // Apache has TTLs switched off unless told otherwise.
  expect([0, 6]).toContain(lived.code);
  expect((await client.exists('/e'))?.ephemeralOwner).not.toBe(0n);
  expect((await client.getAcl('/acl')).acl).toHaveLength(2);
  expect((await shell.run('getEphemerals /e')).out).toContain('/e');
  for (const line of [
    'create -c -e /x',
    'create -c -s /x',
    'create -t 5 -e /x',
    'create -t soon /x',
    'create /x y world:anyone',
    'create /x y world:anyone:q',
    'create',
    'create /x y world:anyone:r too-much',
  ]) {
    expect(await shell.run(line)).toMatchObject({ code: 2, out: '' });
  }
  expect(await client.exists('/x')).toBeNull();
});

test('a sequential node may be named by its number alone', async () => {
  await using zk = await startZk();
  await using shell = shellInProcess(zk.address);
  await shell.run('create /q');

  const made = await shell.run('create -s /q/');

  expect(made.out).toMatch(/^Created \/q\/\d{10}\n$/);
});

test('ls lists, with its Stat, below and in zkCli’s order; old spellings are understood', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  for (const path of ['/a', '/a/b', '/a/b/c', '/a/d', '/e']) await client.create(path);
  await using shell = shellInProcess(zk.address);

  const lines = await runInProcess(zk.address, ['ls', '/']);
  const seen = await runInProcess(zk.address, ['ls', '/'], { isTty: true });
  const all = await shell.run('ls -R /');
  const withStat = await shell.run('ls2 /a');
  const same = await shell.run('ls -s /a');
  const old = await shell.run('ls /a watch');
  const none = await shell.run('ls /none');

  expect(lines.out).toBe('a\ne\n');
  expect(seen.out).toBe('[a, e]\n');
  expect(all.lines).toEqual(['/', '/a', '/e', '/a/b', '/a/d', '/a/b/c']);
  expect(withStat.out).toMatch(/^\[b, d\]\ncZxid = [\s\S]*numChildren = 2\n$/);
  expect(same.out).toBe(withStat.out);
  expect(old).toMatchObject({ code: 0, out: '[b, d]\n' });
  expect(old.err).toContain('deprecated');
  expect(none).toMatchObject({ code: 6, out: '' });
});

test('get gives the very bytes to a pipe, and nothing harmful to a terminal', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const bytes = Buffer.from([0, 255, 27, 91, 51, 49, 109, 10, 128]);
  await client.create('/bytes', bytes);
  await client.create('/text', 'a\x1b[31m\u202eb\nc\t');
  await client.create('/null', null);
  const get = (path: string, ...flags: string[]) =>
    runInProcess(zk.address, ['get', path, ...flags]);
  const shown = (path: string) => runInProcess(zk.address, ['get', path], { isTty: true });

  expect((await get('/bytes')).bytes).toEqual(bytes);
  expect((await get('/bytes', '-b')).out).toBe(`${bytes.toString('base64')}\n`);
  expect((await get('/bytes', '-x')).out).toContain(
    '|00000000| 00 ff 1b 5b 33 31 6d 0a 80                      |...[31m..       |\n',
  );
  expect((await get('/null')).bytes).toHaveLength(0);
  expect((await shown('/null')).out).toBe('null\n');
  expect((await shown('/text')).out).toBe('a\\u001b[31m\\u202eb\nc\t\n');
  expect((await shown('/bytes')).out).toMatch(/^[ -~\n]*$/);
  expect((await get('/bytes', '--json')).records[0].data).toEqual({ hex: bytes.toString('hex') });
});

test('data comes out of a file, of standard input and of base64, byte for byte', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const input = Buffer.from([1, 0, 200, 10]);

  await runInProcess(zk.address, ['create', '/in', '--file', '-'], { input });
  await runInProcess(zk.address, ['create', '/b', 'x']);
  await runInProcess(zk.address, ['set', '-b', '/b', input.toString('base64')]);
  const twice = await runInProcess(zk.address, ['set', '/b', 'x', '--file', '-'], { input });
  const bad = await runInProcess(zk.address, ['set', '-b', '/b', '%%%']);
  const missing = await runInProcess(zk.address, ['set', '/b']);
  const large = await runInProcess(zk.address, ['set', '/b', '--file', '-'], {
    input: Buffer.alloc(2 ** 20),
  });

  expect((await client.get('/in')).data).toEqual(input);
  expect((await client.get('/b')).data).toEqual(input);
  expect([twice.code, bad.code, missing.code, large.code]).toEqual([2, 2, 2, 2]);
  expect(large.err).toContain('--max-buffer');
});

test('values inside JSON are read and set by their keys, whoever else writes meanwhile', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/j', '{\n  "a": {"list": [1, {"b": "x"}]}\n}');
  const drover = (...argv: string[]) => runInProcess(zk.address, argv);

  expect((await drover('get', '--at', 'a.list.1.b', '/j')).out).toBe('x\n');
  expect((await drover('get', '--at', 'a.list[0]', '/j')).out).toBe('1\n');
  expect((await drover('get', '--at', 'a.none', '/j')).code).toBe(6);
  const both = await Promise.all([
    drover('set', '--at', 'a.one=1', '/j'),
    drover('set', '--at', 'new.two', '/j', 'some text'),
  ]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  const { data } = await client.get('/j');
  expect(JSON.parse(data!.toString())).toEqual({
    a: { list: [1, { b: 'x' }], one: 1 },
    new: { two: 'some text' },
  });
  expect(data!.toString()).toMatch(/^\{\n {2}"a"/);
  await client.set('/j', 'no json');
  expect((await drover('set', '--at', 'a=1', '/j')).err).toContain('no JSON');
});

test('the old spellings with a version and with watch do what they did', async () => {
  await using zk = await startZk();
  await using shell = shellInProcess(zk.address);
  await shell.run('create /a x');

  expect((await shell.run('set /a y 7')).code).toBe(6);
  expect((await shell.run('set /a y 0')).code).toBe(0);
  expect((await shell.run('get /a watch')).out).toBe('y\n');
  expect((await shell.run('stat /a watch')).code).toBe(0);
  expect((await shell.run('delete /a 7')).code).toBe(6);
  expect((await shell.run('delete /a 1')).code).toBe(0);
});

test('a chroot that is not there is named, and how it is made', async () => {
  await using zk = await startZk();
  const nowhere = `${zk.address}/no/where`;

  const said = await Promise.all([
    runInProcess(nowhere, ['ls', '/']),
    runInProcess(nowhere, ['stat', '/']),
    runInProcess(nowhere, ['create', '/a']),
    runInProcess(nowhere, ['lock', '/l', '--', 'true']),
    runInProcess(nowhere, ['elect', '/e', '--', 'true']),
  ]);
  const below = await runInProcess(zk.address, ['ls', '/a']);

  for (const { code, err } of said) {
    expect(code).toBe(6);
    expect(err).toMatch(
      /the chroot \/\S*no\/where is not there.*create -p \/\S*no\/where --server/,
    );
  }
  expect(below.err).not.toContain('chroot');
});

test('a node that is not there has one code, whoever looks for it', async () => {
  await using zk = await startZk();
  await using shell = shellInProcess(zk.address, { json: true });

  for (const line of ['get /gone', 'stat /gone', 'cd /gone', 'whois /gone']) {
    const { error } = JSON.parse((await shell.run(line)).err);
    expect(error).toMatchObject({ code: 'NO_NODE', path: '/gone' });
  }
});

test('quotes are zkCli’s quotes', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using shell = shellInProcess(zk.address);

  await shell.run(`create /a "two words"`);
  await shell.run(`create '/b c' 'say "yes"'`);
  await shell.run(`create /d it's`);
  await shell.run('create /e ""');
  await shell.run('create /f a\\nb');

  expect((await client.get('/a')).data?.toString()).toBe('two words');
  expect((await client.get('/b c')).data?.toString()).toBe('say "yes"');
  expect((await client.get('/d')).data?.toString()).toBe("it's");
  expect((await client.get('/e')).data).toEqual(Buffer.alloc(0));
  expect((await client.get('/f')).data?.toString()).toBe('a\\nb');
});

test('txn does all or nothing, and says what failed', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/b', 'old');
  const txn = (...ops: string[]) => runInProcess(zk.address, ['txn', ...ops]);

  const done = await txn(
    'create /a "x y"',
    'set -v 0 /b new',
    'check /b 1',
    'create /c',
    'delete /c',
  );
  const failed = await txn('create /z', 'check /b 7');
  const wrong = await txn('create /z', 'drop /b');
  const sequential = await runInProcess(zk.address, ['txn', '--json', 'create -s /s- x']);

  expect(done).toMatchObject({ code: 0 });
  expect(done.lines).toEqual(['create /a', 'set /b', 'check /b', 'create /c', 'delete /c']);
  expect((await client.get('/a')).data?.toString()).toBe('x y');
  expect((await client.get('/b')).data?.toString()).toBe('new');
  expect(failed.code).toBe(6);
  expect(failed.err).toContain('BAD_VERSION');
  expect(await client.exists('/z')).toBeNull();
  expect(wrong.code).toBe(2);
  expect(sequential.records[0].path).toMatch(/^\/s-\d{10}$/);
});

test('a watch that was asked for by a command of its own is waited for', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a', 'one');
  let isPrinted: () => void;
  const printed = new Promise<void>((resolve) => {
    isPrinted = resolve;
  });

  const watching = runInProcess(zk.address, ['get', '-w', '/a', '--json'], {
    onOut: () => isPrinted(),
  });
  await printed;
  await client.set('/a', 'two');
  const said = await watching;

  expect(said.code).toBe(0);
  expect(said.records[1]).toMatchObject({ event: 'dataChanged', path: '/a' });
});

test('sync, getAllChildrenNumber and getEphemerals answer', async () => {
  await using zk = await startZk({ since: '3.6', what: 'getEphemerals' });
  await using shell = shellInProcess(zk.address);
  await shell.run('create /a');
  await shell.run('create -e /a/b');

  expect((await shell.run('sync /a')).out).toBe('Sync is OK\n');
  expect((await shell.run('getAllChildrenNumber /a')).out).toBe('1\n');
  expect((await shell.run('getEphemerals')).out).toBe('[/a/b]\n');
  expect((await shell.run('getEphemerals /a')).out).toBe('[/a/b]\n');
  expect((await shell.run('getEphemerals /none')).out).toBe('[]\n');
});
