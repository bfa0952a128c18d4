/** Every byte of a small directory, damaged in several ways: all is recovered, or it is refused (D7). */

import { expect, test } from 'vitest';
import { markName } from './durable-mark.ts';
import { createTxns, expectedNodes, FlatTree, folder, treeOf } from './fixtures.ts';
import { LogWriter } from './log-writer.ts';
import { recover } from './recover.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import { writeSnapshot } from './snapshot-writer.ts';
import { isStorageError } from './storage-error.ts';

const at = (name: string) => `${folder}/${name}`;
const last = 24;

/** Two snapshots and three logs; the last log has padding, as after a kill. */
async function directory(): Promise<Map<string, Buffer>> {
  const fs = new SimulatedDisk();
  const log = new LogWriter({ folder, lastZxid: 0n, fs, preallocBytes: 0 });
  for (const [from, to] of [
    [1, 6],
    [7, 14],
    [15, last],
  ] as const) {
    const content = { zxid: BigInt(from - 1), sessions: new Map([[5n, 4_000]]), acls: new Map() };
    const nodes = treeOf(from - 1).snapshotNodes();
    if (from !== 15) await writeSnapshot({ ...content, nodes }, { folder, fs });
    log.roll();
    for (const txn of createTxns(from, to)) await log.append([txn]);
  }
  await log.close();
  const files = fs.contents();
  const tail = files.get(at('log.f'))!;
  return files.set(at('log.f'), Buffer.concat([tail, Buffer.alloc(300)]));
}

type Outcome = 'whole' | 'refused';

async function outcomeOf(files: Map<string, Buffer>): Promise<Outcome> {
  const tree = new FlatTree();
  try {
    await recover(folder, folder, tree, { fs: SimulatedDisk.of(files, [folder]) });
  } catch (error) {
    if (!isStorageError(error)) throw error;
    if (error.file === undefined) throw new Error(`names no file: ${error.message}`);
    return 'refused';
  }
  const expected = expectedNodes(last);
  const isWhole =
    tree.nodes.size === last &&
    [...expected].every(([path, data]) => tree.nodes.get(path) === data);
  if (!isWhole) throw new Error(`silently lost: ${tree.nodes.size} of ${last} nodes found`);
  return 'whole';
}

async function expectNoSilence(
  files: Map<string, Buffer>,
  name: string,
  what: string,
  change: (bytes: Buffer) => Buffer | null,
): Promise<Outcome> {
  const damaged = new Map(files);
  const bytes = change(Buffer.from(files.get(at(name))!));
  if (bytes === null) damaged.delete(at(name));
  else damaged.set(at(name), bytes);
  try {
    return await outcomeOf(damaged);
  } catch (cause) {
    throw new Error(`${name}, ${what}: ${(cause as Error).message}`, { cause });
  }
}

const mutations: [string, (byte: number) => number][] = [
  ['one bit flipped', (byte) => byte ^ 0x04],
  ['all bits flipped', (byte) => byte ^ 0xff],
  ['zeroed', () => 0],
];

const names = ['log.1', 'log.7', 'log.f', 'snapshot.0', 'snapshot.6'];

test.each(names)('no byte of %s can be damaged in silence', { timeout: 120_000 }, async (name) => {
  const files = await directory();
  const size = files.get(at(name))!.length;
  const outcomes = { whole: 0, refused: 0 };

  for (let offset = 0; offset < size; offset++) {
    for (const [what, mutate] of mutations) {
      const outcome = await expectNoSilence(files, name, `${what} at ${offset}`, (bytes) => {
        bytes[offset] = mutate(bytes[offset]!);
        return bytes;
      });
      outcomes[outcome] += 1;
    }
  }

  expect(outcomes.whole + outcomes.refused).toBe(size * mutations.length);
  // Logs before the newest snapshot are not read, and a damaged snapshot is made up for by the logs.
  if (name === 'log.7' || name === 'log.f') expect(outcomes.refused).toBeGreaterThan(size);
});

test('no byte of Apache’s last log can be damaged in silence, bar its end zeroed', async () => {
  const files = await directory();
  files.delete(at(markName));
  const size = files.get(at('log.f'))!.length;

  for (let offset = 0; offset < size; offset++) {
    for (const [what, mutate] of mutations) {
      await expectNoSilence(files, 'log.f', `${what} at ${offset}`, (bytes) => {
        bytes[offset] = mutate(bytes[offset]!);
        return bytes;
      });
    }
  }
});

test.each(names)(
  '%s cut off, zeroed in stretches, deleted or swapped is no silent loss',
  async (name) => {
    const files = await directory();
    const size = files.get(at(name))!.length;

    for (let offset = 0; offset < size; offset += 7) {
      await expectNoSilence(files, name, `cut at ${offset}`, (bytes) => bytes.subarray(0, offset));
      for (const stretch of [13, 64, 512]) {
        await expectNoSilence(files, name, `${stretch} zeroed at ${offset}`, (bytes) =>
          bytes.fill(0, offset, Math.min(offset + stretch, size)),
        );
      }
    }
    await expectNoSilence(files, name, 'deleted', () => null);
    for (const other of names) {
      if (other === name) continue;
      const from = files.get(at(other))!;
      await expectNoSilence(files, name, `replaced by ${other}`, () => from);
      const swapped = new Map(files).set(at(other), files.get(at(name))!);
      await expectNoSilence(swapped, name, `swapped with ${other}`, () => from);
    }
  },
);
