import { mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { JournalReader } from '../src/cli/journal.ts';
import { runInProcess, shellInProcess } from './cli-run.ts';
import { type ConsoleInTest, startConsoleInTest, textOf } from './console-run.ts';

let folder: string;
let environment: Record<string, string>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drover-journal-'));
  environment = { XDG_STATE_HOME: folder };
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const file = () => join(folder, 'drover', 'journal.ndjson');

async function start(): Promise<
  ConsoleInTest & { drover(...argv: string[]): Promise<number>; entries(): Promise<Entry[]> }
> {
  const zk = await startConsoleInTest({}, { environment });
  const { address } = zk.server;
  return {
    ...zk,
    drover: async (...argv) => (await runInProcess(address, argv, { environment })).code,
    entries: async () => (await zk.get('/api/audit')).json.entries,
  };
}

interface Entry {
  readonly id: number;
  readonly action: string;
  readonly path: string;
  readonly note: string;
  readonly count: number;
  readonly undo: string;
  readonly ok: boolean;
  readonly who: string;
  readonly before: { data: string | null; version: number | null } | null;
  readonly after: { data: string | null; version: number | null } | null;
}

test('what a command line wrote is in the audit with before and after, and is taken back', async () => {
  await using zk = await start();
  await zk.client.create('/app', 'one');

  expect(await zk.drover('set', '/app', 'two')).toBe(0);
  const [entry] = await zk.entries();

  expect(entry).toMatchObject({
    action: 'cli',
    path: '/app',
    note: 'drover set',
    ok: true,
    undo: 'possible',
    before: { version: 0 },
    after: { version: 1 },
  });
  expect([entry!.before, entry!.after].map((one) => textOf(one!.data))).toEqual(['one', 'two']);
  expect((await zk.post('/api/audit/undo', { id: entry!.id })).status).toBe(200);
  expect((await zk.client.get('/app')).data?.toString()).toBe('one');
});

test('a way back is refused once somebody else has changed what the command left', async () => {
  await using zk = await start();
  await zk.client.create('/app', 'one');
  await zk.drover('set', '/app', 'two');
  const [entry] = await zk.entries();
  await zk.client.set('/app', 'three');

  const answer = await zk.post('/api/audit/undo', { id: entry!.id });

  expect(answer.status).toBe(409);
  expect((await zk.client.get('/app')).data?.toString()).toBe('three');
});

test('another node of the same name and version is not taken for the one that was written', async () => {
  await using zk = await start();
  await zk.client.create('/app', 'one');
  await zk.drover('set', '/app', 'two');
  const [entry] = await zk.entries();
  await zk.client.delete('/app');
  await zk.client.create('/app', 'other');
  await zk.client.set('/app', 'another');

  const answer = await zk.post('/api/audit/undo', { id: entry!.id });

  expect(answer.status).toBe(409);
  expect((await zk.client.get('/app')).data?.toString()).toBe('another');
});

test('a subtree that a command line deleted comes back whole', async () => {
  await using zk = await start();
  await zk.client.create('/app/a/b', 'deep', { parents: true });
  await zk.client.create('/app/c', 'flat');

  await zk.drover('deleteall', '/app');
  const [entry] = await zk.entries();
  expect(entry).toMatchObject({ note: 'drover deleteall', count: 4, undo: 'possible' });
  await zk.post('/api/audit/undo', { id: entry!.id });

  expect((await zk.client.get('/app/a/b')).data?.toString()).toBe('deep');
  expect((await zk.client.get('/app/c')).data?.toString()).toBe('flat');
});

test('creates, ACLs and lines of a shell are noted each for themselves; reads are not', async () => {
  await using zk = await start();
  await using shell = shellInProcess(zk.server.address, { environment });

  await zk.drover('create', '/n', 'x');
  await zk.drover('get', '/n');
  await shell.run('setAcl /n world:anyone:cdrwa');
  await shell.run('ls /');
  await shell.run('delete /n');
  const entries = await zk.entries();

  expect(entries.map(({ note, undo }) => [note, undo])).toEqual([
    ['drover delete', 'possible'],
    ['drover setAcl', 'possible'],
    ['drover create', 'possible'],
  ]);
});

test('data that not everybody may read, and hashes of passwords, never stand in the journal', async () => {
  await using zk = await start();
  await zk.client.create('/secret', 'hush', {
    acl: [{ perms: 31, id: { scheme: 'ip', id: '127.0.0.1' } }],
  });

  await zk.drover('set', '/secret', 'hush-hush');
  await zk.drover('create', '/mine', 'quiet', 'digest:ann:YW5uOnNlY3JldA==:r');
  const text = await readFile(file(), 'utf8');
  const entries = await zk.entries();

  for (const word of ['hush', 'quiet', 'YW5uOnNlY3JldA==']) {
    expect(text).not.toContain(word);
    expect(text).not.toContain(Buffer.from(word).toString('base64').slice(0, 5));
  }
  expect((await stat(file())).mode & 0o077).toBe(0);
  expect(entries.map(({ path, undo }) => [path, undo])).toEqual([
    ['/mine', 'possible'],
    ['/secret', 'no'],
  ]);
});

test('of a very large command the rest is counted, and there is no way back', async () => {
  await using zk = await start();
  for (let i = 0; i < 1_100; i += 100) {
    await zk.client.multi([
      ...(i === 0 ? [{ op: 'create' as const, path: '/many' }] : []),
      ...Array.from({ length: 100 }, (_, j) => ({
        op: 'create' as const,
        path: `/many/n${i + j}`,
      })),
    ]);
  }

  await zk.drover('deleteall', '/many');

  expect(await zk.entries()).toMatchObject([{ count: 1_101, undo: 'tooLarge' }]);
});

test('only what went to the same servers is shown, and damaged lines are left out', async () => {
  await using zk = await start();
  const reader = new JournalReader(file(), zk.server.address);
  expect(await reader.news()).toEqual([]);

  await zk.drover('create', '/a', 'x');
  await using other = await startConsoleInTest({}, { environment });
  await runInProcess(other.server.address, ['create', '/elsewhere', 'x'], { environment });
  const seen = await reader.news();
  await writeFile(file(), 'nonsense\n', { flag: 'a' });
  await zk.drover('create', '/b', 'x');

  expect(seen.flatMap(({ writes }) => writes.map(({ path }) => path))).toEqual(['/a']);
  expect((await reader.news()).flatMap(({ writes }) => writes.map(({ path }) => path))).toEqual([
    '/b',
  ]);
  expect((await other.get('/api/audit')).json.entries).toMatchObject([{ path: '/elsewhere' }]);
});

test('a journal that was set aside is read to its end, and the new one from its beginning', async () => {
  await using zk = await start();
  const reader = new JournalReader(file(), zk.server.address);
  const paths = async () =>
    (await reader.news()).flatMap(({ writes }) => writes.map(({ path }) => path));
  await zk.drover('create', '/a', 'x');
  expect(await paths()).toEqual(['/a']);

  await zk.drover('create', '/b', 'x');
  await rename(file(), `${file()}.1`);
  await zk.drover('create', '/c', 'x');

  expect(await paths()).toEqual(['/b', '/c']);
  expect(await paths()).toEqual([]);
  const late = new JournalReader(file(), zk.server.address);
  expect((await late.news()).map(({ writes }) => writes[0]!.path)).toEqual(['/a', '/b', '/c']);
});

test('DROVER_JOURNAL, when it is empty, keeps none, and the audit says so', async () => {
  environment = { XDG_STATE_HOME: folder, DROVER_JOURNAL: '' };
  await using zk = await start();

  await zk.drover('create', '/a', 'x');

  expect((await zk.get('/api/audit')).json).toEqual({
    entries: [],
    total: 0,
    hasCommandLines: false,
  });
  await expect(readFile(file())).rejects.toThrow('ENOENT');
});

test('a journal that can not be written is said, and the command succeeds all the same', async () => {
  environment = { DROVER_JOURNAL: join(folder, 'file', 'journal') };
  await writeFile(join(folder, 'file'), '');
  await using zk = await startConsoleInTest();

  const said = await runInProcess(zk.server.address, ['create', '/a', 'x'], { environment });

  expect(said.code).toBe(0);
  expect(said.err).toContain("can't be written");
});
