import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDirectory } from './directory.ts';
import { lockDirectory } from './lock.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-lock-'));
});

afterEach(() => rmSync(dir, { recursive: true }));

/** A process of its own that takes the lock, says so, and stays. */
async function startHolder(folder: string) {
  const module = join(import.meta.dirname, 'lock.ts');
  const script = `import { lockDirectory } from ${JSON.stringify(module)};
    lockDirectory(${JSON.stringify(folder)}).then(
      () => { console.log('held'); setInterval(() => {}, 1e6); },
      (error) => console.log(error.code));`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', script];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said] = await once(child.stdout, 'data');
  return { child, said: String(said).trim() };
}

describe('the lock (D12)', { timeout: 60_000 }, () => {
  test('a second server is refused while the first lives, and not afterwards', async () => {
    const first = await lockDirectory(dir);

    await expect(lockDirectory(dir)).rejects.toThrow(
      `process ${process.pid} holds it; stop that one, or name another directory`,
    );
    await first.release();
    const second = await lockDirectory(dir);

    await second.release();
    expect(readdirSync(dir)).toEqual([]);
  });

  test('one that was killed does not block, one that is stopped does', async () => {
    const { child, said } = await startHolder(dir);
    expect(said).toBe('held');

    child.kill('SIGSTOP');
    await expect(lockDirectory(dir)).rejects.toMatchObject({ code: 'IN_USE' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const lock = await lockDirectory(dir);

    expect(readdirSync(dir).length).toBe(1);
    await lock.release();
  });

  test('one that is stopped blocks however many have asked it', async () => {
    const { child } = await startHolder(dir);
    child.kill('SIGSTOP');
    const address = join(dir, readdirSync(dir)[0]!);
    const knock = () =>
      new Promise<string | undefined>((resolve) => {
        const socket = connect(address, () => socket.destroy());
        let code: string | undefined;
        socket.on('error', (error: NodeJS.ErrnoException) => {
          code = error.code;
        });
        socket.on('close', () => resolve(code));
      });
    let refused: string | undefined;
    for (let i = 0; i < 5_000 && refused === undefined; i++) refused = await knock();

    const second = await lockDirectory(dir).catch((error) => error);
    child.kill('SIGKILL');
    await once(child, 'exit');

    expect(second).toMatchObject({ code: 'IN_USE' });
    expect(readdirSync(dir)).toHaveLength(1);
  });

  test('of several that start at once on a dead lock at most one gets it', async () => {
    const { child } = await startHolder(dir);
    child.kill('SIGKILL');
    await once(child, 'exit');
    for (let round = 0; round < 20; round++) {
      const tries = await Promise.allSettled(Array.from({ length: 6 }, () => lockDirectory(dir)));

      const held = tries.filter((outcome) => outcome.status === 'fulfilled');

      expect(held.length).toBeLessThanOrEqual(1);
      await Promise.all(held.map(({ value }) => value.release()));
    }
  });

  test('a path that is longer than a socket’s address may be', async () => {
    const long = join(dir, 'x'.repeat(150));
    mkdirSync(long);

    const lock = await lockDirectory(long);

    await expect(lockDirectory(long)).rejects.toMatchObject({ code: 'IN_USE' });
    await lock.release();
    expect(readdirSync(long)).toEqual([]);
  });
});

describe('a directory', () => {
  test('is made for its owner alone, and locked', async () => {
    const dataDir = join(dir, 'new');

    await using opened = await openDirectory({ dataDir });

    expect(opened).toMatchObject({
      snapshotFolder: join(dataDir, 'version-2'),
      logFolder: join(dataDir, 'version-2'),
    });
    expect(statSync(opened.logFolder).mode & 0o777).toBe(0o700);
    await expect(openDirectory({ dataDir })).rejects.toMatchObject({ code: 'IN_USE' });
  });

  test('may be two, and each is locked', async () => {
    const [dataDir, dataLogDir] = [join(dir, 'a'), join(dir, 'b')];
    await using _ = await openDirectory({ dataDir, dataLogDir });

    await expect(openDirectory({ dataDir: dataLogDir })).rejects.toMatchObject({ code: 'IN_USE' });
    await expect(openDirectory({ dataDir })).rejects.toMatchObject({ code: 'IN_USE' });
  });

  test('is refused where it is a link to nothing', async () => {
    symlinkSync(join(dir, 'nothing'), join(dir, 'astray'));

    const opening = openDirectory({ dataDir: join(dir, 'astray') });

    await expect(opening).rejects.toThrow(/leads nowhere.*astray/);
  });

  test('that anybody may write to is refused', async () => {
    mkdirSync(join(dir, 'version-2'));
    chmodSync(join(dir, 'version-2'), 0o777);

    const opening = openDirectory({ dataDir: dir });

    await expect(opening).rejects.toThrow(
      /UNSAFE_DIRECTORY.*anybody may write to it; take that right away/,
    );
  });

  test('may be reached by a link; what that leads to counts, and in it none is followed', async () => {
    for (const name of ['mine', 'all', 'inside']) mkdirSync(join(dir, name));
    chmodSync(join(dir, 'all'), 0o777);
    symlinkSync('mine', join(dir, 'to-mine'));
    symlinkSync('all', join(dir, 'to-all'));
    symlinkSync('../mine', join(dir, 'inside', 'version-2'));

    await using _ = await openDirectory({ dataDir: join(dir, 'to-mine') });
    const [all, inside] = ['to-all', 'inside'].map((name) =>
      openDirectory({ dataDir: join(dir, name) }),
    );

    await expect(all).rejects.toThrow('anybody may write');
    await expect(inside).rejects.toThrow('or a link to one, which is not followed');
  });

  test('of two names is one, and locked once', async () => {
    symlinkSync('.', join(dir, 'again'));
    const names = [join(dir, 'a'), relative('.', join(dir, 'a')), join(dir, 'again', 'a')];

    for (const dataLogDir of names) {
      await using opened = await openDirectory({ dataDir: join(dir, 'a'), dataLogDir });

      expect(opened.logFolder).toBe(opened.snapshotFolder);
    }
  });

  test('with logs where the snapshots should be is refused (ZOOKEEPER-2967)', async () => {
    const [dataDir, dataLogDir] = [join(dir, 'a'), join(dir, 'b')];
    mkdirSync(join(dataDir, 'version-2'), { recursive: true });
    writeFileSync(join(dataDir, 'version-2', 'log.1'), '');

    const opening = openDirectory({ dataDir, dataLogDir });

    await expect(opening).rejects.toThrow(
      /logs among the snapshots; if dataLogDir is new, move them .* swapped with dataDir/,
    );
  });
});
