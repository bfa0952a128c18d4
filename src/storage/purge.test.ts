import { describe, expect, test } from 'vitest';
import { createTxns, expectedNodes, FlatTree, folder, treeOf } from './fixtures.ts';
import { LogWriter } from './log-writer.ts';
import { purge } from './purge.ts';
import { recover } from './recover.ts';
import { errno, SimulatedDisk } from './simulated-disk.ts';
import { writeSnapshot } from './snapshot-writer.ts';

const at = (name: string) => `${folder}/${name}`;

/** Six snapshots, ten txns apart, a log behind each. */
async function directory(): Promise<SimulatedDisk> {
  const fs = new SimulatedDisk();
  const log = new LogWriter({ folder, lastZxid: 0n, fs, preallocBytes: 0 });
  for (let zxid = 0; zxid < 60; zxid += 10) {
    const nodes = treeOf(zxid).snapshotNodes();
    const head = { zxid: BigInt(zxid), sessions: new Map(), acls: new Map() };
    await writeSnapshot({ ...head, nodes }, { folder, fs });
    log.roll();
    await log.append(createTxns(zxid + 1, zxid + 10));
  }
  await log.close();
  return fs;
}

/** The same as Apache leaves it: it syncs its logs, and neither its snapshots nor their names. */
async function unsyncedDirectory(): Promise<SimulatedDisk> {
  const fs = new SimulatedDisk();
  const log = new LogWriter({ folder, lastZxid: 0n, fs, preallocBytes: 0 });
  for (let zxid = 0; zxid < 60; zxid += 10) {
    log.roll();
    await log.append(createTxns(zxid + 1, zxid + 10));
  }
  await log.close();
  for (let zxid = 0; zxid < 60; zxid += 10) {
    const nodes = treeOf(zxid).snapshotNodes();
    const head = { zxid: BigInt(zxid), sessions: new Map(), acls: new Map() };
    await writeSnapshot({ ...head, nodes }, { folder, fs, unsafeNoFsync: true });
  }
  return fs;
}

const damagedAt = (fs: SimulatedDisk, ...names: string[]) => {
  const files = fs.contents();
  for (const name of names) files.get(at(name))![40]! += 1;
  return SimulatedDisk.of(files, [folder]);
};

async function names(fs: SimulatedDisk): Promise<string[]> {
  return (await fs.list(folder)).filter((name) => !name.startsWith('.')).sort();
}

async function expectWhole(fs: SimulatedDisk): Promise<void> {
  const tree = new FlatTree();
  await recover(folder, folder, tree, { fs });
  expect(tree.nodes).toEqual(expectedNodes(60));
}

describe('purge', () => {
  test('keeps three snapshots and the logs that they need', async () => {
    const fs = await directory();

    const { removed } = await purge(folder, folder, 3, fs);

    expect(removed.length).toBe(6);
    expect(await names(fs)).toEqual([
      'log.1f',
      'log.29',
      'log.33',
      'snapshot.1e',
      'snapshot.28',
      'snapshot.32',
    ]);
    await expectWhole(damagedAt(fs, 'snapshot.32', 'snapshot.28'));
  });

  test('never keeps fewer than three, whatever it is told', async () => {
    const fs = await directory();

    await purge(folder, folder, 1, fs);

    expect((await names(fs)).filter((name) => name.startsWith('snapshot')).length).toBe(3);
  });

  test('counts only snapshots that are whole (ZOOKEEPER-3231)', async () => {
    const fs = damagedAt(await directory(), 'snapshot.32', 'snapshot.28', 'snapshot.14');

    await purge(folder, folder, 3, fs);

    expect(await names(fs)).toContain('snapshot.0');
    await expectWhole(fs);
  });

  test('removes nothing while the way from the oldest one kept is not whole', async () => {
    const fs = damagedAt(await directory(), 'log.29');
    const before = await names(fs);

    const { removed, refusal } = await purge(folder, folder, 3, fs);

    expect(removed).toEqual([]);
    expect(refusal).toContain('log.29');
    expect(await names(fs)).toEqual(before);
  });

  test('says the zxid of a gap as all else does', async () => {
    const files = (await directory()).contents();
    files.delete(`${folder}/log.29`);
    const fs = SimulatedDisk.of(files, [folder]);

    const { removed, refusal } = await purge(folder, folder, 3, fs);

    expect(removed).toEqual([]);
    expect(refusal).toMatch(/a gap before zxid 0x33 in .*log\.33/);
  });

  test('interrupted at any call it leaves a way back, after a power cut too', async () => {
    const files = (await directory()).contents();
    for (let stop = 1; stop < 40; stop++) {
      const fs = SimulatedDisk.of(files, [folder]);
      fs.fault = ({ nth, path }) => {
        if (nth >= stop) throw errno('EIO', path);
        return undefined;
      };
      await purge(folder, folder, 3, fs).catch(() => {});
      for (let choice = 0; choice < 8; choice++) {
        let bits = choice * 7;
        const survivor = fs.afterPowerCut(() => (bits++ >> 1) & 1);

        await expectWhole(survivor);
        await expectWhole(damagedAt(survivor, 'snapshot.32', 'snapshot.28'));
      }
    }
  });

  test('a snapshot that Apache never synced is put on disk before anything is removed for it', async () => {
    const fs = await unsyncedDirectory();

    await purge(folder, folder, 3, fs);

    await expectWhole(fs.afterPowerCut(() => 0));
  });

  test('over snapshots that Apache never synced it leaves a way back too, interrupted at any call', async () => {
    const calls = (await unsyncedDirectory()).calls;
    for (let stop = 1; stop < 40; stop++) {
      for (let choice = 0; choice < 8; choice++) {
        const fs = await unsyncedDirectory();
        fs.fault = ({ nth, path }) => {
          if (nth >= calls + stop) throw errno('EIO', path);
          return undefined;
        };
        await purge(folder, folder, 3, fs).catch(() => {});
        let bits = choice * 7;

        await expectWhole(fs.afterPowerCut(() => (bits++ >> 1) & 1));
        await expectWhole(fs.afterPowerCut(() => 0));
      }
    }
  });

  test('aborted while it reads it removes nothing, and opens no file more', async () => {
    const fs = await directory();
    const before = await names(fs);
    const usual = fs.open.bind(fs);
    for (const last of ['snapshot.32', 'snapshot.1e', 'log.1f', 'log.33']) {
      const aborting = new AbortController();
      const opened: string[] = [];
      fs.open = (path, how) => {
        opened.push(path);
        if (path === at(last)) aborting.abort(new Error('enough'));
        return usual(path, how);
      };

      await expect(purge(folder, folder, 3, fs, aborting.signal)).rejects.toThrow('enough');

      expect(opened.at(-1)).toBe(at(last));
      expect(await names(fs)).toEqual(before);
    }
  });

  test('a log being written is left alone, however it ends just now', async () => {
    const fs = await directory();
    const files = fs.contents();
    const tail = files.get(at('log.33'))!;
    files.set(at('log.33'), tail.subarray(0, tail.length - 20));
    const live = SimulatedDisk.of(files, [folder]);

    const { removed } = await purge(folder, folder, 3, live);

    expect(removed.length).toBe(6);
  });
});
