/** `drover edit`, with editors of one line, on ours and on Apache's. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runInProcess } from '../cli-run.ts';
import { startZk } from '../zk.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-edit-story-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What stands behind EDITOR gets the file as its argument. */
function editor(script: string): { environment: Record<string, string> } {
  return { environment: { EDITOR: `sh -c '${script}' sh` } };
}

test('edit --json writes what the editor left, and says which version it made', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a', '{"x":1}');

  const edited = await runInProcess(
    zk.address,
    ['edit', '/a', '--json'],
    editor('printf " " >> "$1"'),
  );
  const same = await runInProcess(zk.address, ['edit', '/a', '--json'], editor(':'));

  expect(edited).toMatchObject({ code: 0, err: '' });
  expect(edited.records).toMatchObject([{ path: '/a', changed: true, stat: { version: 1 } }]);
  expect((await client.get('/a')).data?.toString()).toBe('{"x":1} ');
  expect(same).toMatchObject({ code: 0, err: '' });
  expect(same.records).toMatchObject([{ path: '/a', changed: false, stat: { version: 1 } }]);
});

test('an editor that fails writes nothing, and neither does one on a node that is not there or no text', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a', 'old');
  await client.create('/bytes', Buffer.from([0xff, 0xfe]));
  const spoil = editor('echo spoilt > "$1"; exit 3');

  const failed = await runInProcess(zk.address, ['edit', '/a', '--json'], spoil);
  const missing = await runInProcess(zk.address, ['edit', '/b', '--json'], spoil);
  const bytes = await runInProcess(zk.address, ['edit', '/bytes', '--json'], spoil);

  expect([failed.code, missing.code, bytes.code]).toEqual([9, 6, 6]);
  expect(JSON.parse(failed.err)).toMatchObject({ error: { code: 'DECLINED' } });
  expect(JSON.parse(missing.err)).toMatchObject({ error: { code: 'NO_NODE', path: '/b' } });
  expect(JSON.parse(bytes.err)).toMatchObject({ error: { code: 'REFUSED' } });
  expect((await client.get('/a')).data?.toString()).toBe('old');
});

test('where somebody was faster nothing is written, and what was edited is kept', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/a', 'old');
  const gate = join(folder, 'gate');
  expect(spawnSync('mkfifo', [gate]).status).toBe(0);
  const slow = editor(`printf " and mine" >> "$1"; cat ${gate}`);

  const editing = runInProcess(zk.address, ['edit', '/a', '--json'], slow);
  const opened = await open(gate, 'w'); // once the editor waits there
  await client.set('/a', 'theirs');
  await opened.close();
  const { code, out, err } = await editing;

  expect({ code, out }).toEqual({ code: 6, out: '' });
  expect(JSON.parse(err.trimEnd().split('\n').at(-1)!)).toMatchObject({
    error: { code: 'BAD_VERSION', path: '/a' },
  });
  expect(err).toContain('+ theirs');
  const kept = /kept in (\S+)\n/.exec(err)![1]!;
  expect(readFileSync(kept, 'utf8')).toBe('old and mine');
  expect((await client.get('/a')).data?.toString()).toBe('theirs');
  rmSync(resolve(kept, '..'), { recursive: true });
});
