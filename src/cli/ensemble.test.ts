import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LocalEnsemble, localMembers } from './ensemble.ts';

test('an ensemble that came to nothing leaves no folder, unless it was there before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'drover-ensemble-'));
  const [made, found] = [join(folder, 'made'), join(folder, 'found')];
  mkdirSync(found);
  const members = await localMembers(3, { client: 0, quorum: 0, election: 0 });
  const peer = { name: 'none', classPath: '', java: 'java' } as never;
  try {
    for (const dir of [made, found]) {
      const plan = { dir, peer, members, settings: {} as never, heapMiB: 64 };
      await (await LocalEnsemble.create(plan)).discard();
    }

    expect([existsSync(made), existsSync(found)]).toEqual([false, true]);
    expect(existsSync(join(found, '1'))).toBe(false);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
