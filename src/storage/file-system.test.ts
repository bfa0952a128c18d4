import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { realFileSystem } from './file-system.ts';

const folders: string[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function newFile() {
  const folder = await mkdtemp(join(tmpdir(), 'drover-file-'));
  folders.push(folder);
  return realFileSystem.open(join(folder, 'file'), 'create');
}

test('an error of a read names the file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'drover-file-'));
  folders.push(folder);
  const file = await realFileSystem.open(folder, 'read');

  const reading = file.read(Buffer.alloc(1), 0);

  await expect(reading).rejects.toMatchObject({ code: 'EISDIR', path: folder });
  await file.close();
});

test.skipIf(process.platform === 'win32').each(['read', 'write'] as const)(
  'a named pipe and a socket are refused at once, and not waited for, when opened to %s',
  async (how) => {
    const folder = await mkdtemp(join(tmpdir(), 'drover-file-'));
    folders.push(folder);
    const pipe = join(folder, 'log.1');
    const socket = join(folder, 'log.2');
    execFileSync('mkfifo', [pipe]);
    const server = createServer().listen(socket);
    await once(server, 'listening');
    onTestFinished(() => void server.close());

    await expect(realFileSystem.open(pipe, how)).rejects.toMatchObject({
      ...{ code: 'UNSAFE_DIRECTORY', file: pipe, detail: expect.stringContaining('a named pipe') },
    });
    await expect(realFileSystem.open(socket, how)).rejects.toMatchObject({
      ...{ code: 'UNSAFE_DIRECTORY', file: socket },
    });
  },
);

test('who syncs aside while a test has faked the timers waits for none of them', async () => {
  const file = await newFile();
  await file.write(Buffer.from('data'), 0);
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());

  await file.sync('aside');

  await file.close();
});

test.each([
  ['for as long as it took', 30, 30],
  ['and no longer than a tenth of a second', 5_000, 100],
])('who syncs aside leaves the disk to others %s', async (_, tookMs, pauseMs) => {
  const file = await newFile();
  await file.write(Buffer.from('data'), 0);
  const timer = new Promise<[() => void, number]>((resolve) => {
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((...how: [() => void, number]) =>
      resolve(how)) as never);
  });
  vi.spyOn(performance, 'now')
    .mockReturnValueOnce(1_000)
    .mockReturnValueOnce(1_000 + tookMs);
  let isDone = false;

  const done = file.sync('aside').then(() => {
    isDone = true;
  });

  const [end, ms] = await timer;
  expect(ms).toBe(pauseMs);
  expect(isDone).toBe(false);
  end();
  await done;
  await file.close();
});
