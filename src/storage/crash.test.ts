/**
 * A short life of a directory (first start, appends, a roll, snapshots, a purge, a restart), broken off
 * at every single call to the disk, with every outcome that a disk may have: whatever was acknowledged
 * is there afterwards, and the server starts.
 */

import { describe, expect, test } from 'vitest';
import { ManualClock } from '../support/index.ts';
import { createTxns, expectedNodes, FlatTree, folder, treeOf } from './fixtures.ts';
import { LogWriter } from './log-writer.ts';
import { purge } from './purge.ts';
import { recover } from './recover.ts';
import { errno, SimulatedDisk } from './simulated-disk.ts';
import { writeSnapshot } from './snapshot-writer.ts';

const dataBytes = 500;

/** What a client would know. */
interface Known {
  acked: number;
  attempted: number;
  /** Something was acknowledged after the log had failed. */
  ackedAfterFailure: boolean;
}

async function live(fs: SimulatedDisk, preallocBytes: number): Promise<Known> {
  const known: Known = { acked: 0, attempted: 0, ackedAfterFailure: false };
  await session(fs, known, preallocBytes).catch(() => {});
  return known;
}

async function session(fs: SimulatedDisk, known: Known, preallocBytes: number): Promise<void> {
  const clock = new ManualClock();
  const open = (lastZxid: number) =>
    new LogWriter({ folder, lastZxid: BigInt(lastZxid), fs, preallocBytes, clock });
  const append = async (log: LogWriter, count: number) => {
    const from = known.attempted + 1;
    const to = known.attempted + count;
    if (log.failure === null) known.attempted = to;
    await log.append(createTxns(from, to, dataBytes)).then(
      () => {
        if (log.failure !== null) known.ackedAfterFailure = true;
        known.acked = to;
      },
      () => {},
    );
    clock.advance(200); // the mark is written
  };
  const snapshot = async (zxid: number) => {
    const nodes = treeOf(zxid, dataBytes).snapshotNodes();
    const content = { zxid: BigInt(zxid), sessions: new Map(), acls: new Map(), nodes };
    await writeSnapshot(content, { folder, fs }).catch(() => {});
  };

  await recover(folder, folder, new FlatTree(), { fs });
  await snapshot(0);
  const first = open(0);
  await append(first, 1);
  await Promise.all([append(first, 3), append(first, 2)]);
  for (let i = 0; i < 5 && first.failure === null; i++) {
    first.roll();
    await snapshot(known.acked);
    await append(first, 2);
  }
  await purge(folder, folder, 3, fs).catch(() => {});
  await first.close();
  if (first.failure !== null) return;
  const { lastZxid } = await recover(folder, folder, new FlatTree(), { fs });
  const second = open(Number(lastZxid));
  await append(second, 2);
  await second.close();
}

/** Appends of any number at any time, rolls, snapshots and purges in between, restarts. */
async function randomLife(
  fs: SimulatedDisk,
  known: Known,
  choose: (n: number) => number,
): Promise<void> {
  const clock = new ManualClock();
  for (;;) {
    const { lastZxid } = await recover(folder, folder, new FlatTree(), { fs });
    known.attempted = Number(lastZxid);
    const preallocBytes = choose(2) * 3000;
    const log = new LogWriter({ folder, lastZxid, fs, preallocBytes, clock });
    for (let steps = choose(12); steps > 0; steps--) {
      const appends: Promise<void>[] = [];
      for (let count = choose(4); count > 0; count--) {
        const from = known.attempted + 1;
        const to = from + choose(5);
        known.attempted = to;
        appends.push(
          log.append(createTxns(from, to, dataBytes)).then(() => {
            known.acked = Math.max(known.acked, to);
          }),
        );
        if (choose(6) === 0) log.roll();
      }
      await Promise.all(appends);
      if (choose(2) === 0) clock.advance(200);
      if (choose(3) === 0) {
        log.roll();
        const nodes = treeOf(known.acked, dataBytes).snapshotNodes();
        const head = { zxid: BigInt(known.acked), sessions: new Map(), acls: new Map() };
        const compression = choose(4) === 0 ? 'gzip' : 'none';
        await writeSnapshot({ ...head, nodes }, { folder, fs, compression });
      }
      if (choose(4) === 0) await purge(folder, folder, 3, fs);
    }
    if (choose(2) === 0) await log.close();
  }
}

/** Starts, checks that all that was acknowledged is there, and goes on: twice, as after two crashes. */
async function check(disk: SimulatedDisk, known: Known): Promise<void> {
  const tree = new FlatTree();
  const { lastZxid } = await recover(folder, folder, tree, { fs: disk });
  const last = Number(lastZxid);
  if (last < known.acked || last > known.attempted) {
    throw new Error(`${known.acked} acknowledged, ${known.attempted} tried, ${last} found`);
  }
  if (tree.nodes.size !== last) throw new Error(`${tree.nodes.size} nodes of ${last}`);
  for (const [path, data] of expectedNodes(last, dataBytes)) {
    if (tree.nodes.get(path) !== data) throw new Error(`wrong or missing: ${path}`);
  }
  const log = new LogWriter({ folder, lastZxid, fs: disk, preallocBytes: 0 });
  await log.append(createTxns(last + 1, last + 1, dataBytes));
  const again = disk.afterPowerCut(() => 0);
  await log.close();
  const second = await recover(folder, folder, new FlatTree(), { fs: again });
  if (Number(second.lastZxid) !== last + 1) throw new Error('lost behind the recovery');
}

const brokenOff = (stop: number) => {
  const disk = new SimulatedDisk();
  disk.fault = ({ nth, path }) => {
    if (nth >= stop) throw errno('EIO', path);
    return undefined;
  };
  return disk;
};

async function callsOfLife(preallocBytes: number): Promise<number> {
  const disk = new SimulatedDisk();
  const known = await live(disk, preallocBytes);
  expect(known.acked).toBe(18);
  return disk.calls;
}

/** Every sequence of choices, one after the other, up to `limit`. */
async function everyChoice(limit: number, run: (choose: (n: number) => number) => Promise<void>) {
  const tape: { choice: number; of: number }[] = [];
  for (let states = 1; ; states++) {
    let at = 0;
    await run((of) => {
      tape[at] ??= { choice: 0, of };
      return tape[at++]!.choice;
    });
    tape.length = at;
    while (tape.length > 0 && tape.at(-1)!.choice === tape.at(-1)!.of - 1) tape.pop();
    if (tape.length === 0 || states === limit) return states;
    tape.at(-1)!.choice += 1;
  }
}

/** The same numbers for the same seed: mulberry32. */
function randomOf(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

describe('power cuts (D3)', { timeout: 120_000 }, () => {
  test('at every call, with every outcome that the disk may have', async () => {
    const calls = await callsOfLife(0);
    let states = 0;

    for (let stop = 1; stop <= calls + 1; stop++) {
      const disk = brokenOff(stop);
      const known = await live(disk, 0);
      states += await everyChoice(200, async (choose) => {
        await check(disk.afterPowerCut(choose), known).catch((cause) => {
          throw new Error(`power cut before call ${stop}: ${cause.message}`, { cause });
        });
      });
    }

    expect(states).toBeGreaterThan(400);
  });

  test('at every call, with preallocation, at random', async () => {
    const calls = await callsOfLife(2048);

    for (let stop = 1; stop <= calls + 1; stop++) {
      const disk = brokenOff(stop);
      const known = await live(disk, 2048);
      for (let seed = 0; seed < 12; seed++) {
        await check(disk.afterPowerCut(randomOf(stop * 1_000 + seed)), known).catch((cause) => {
          throw new Error(`call ${stop}, seed ${seed}: ${cause.message}`, { cause });
        });
      }
    }
  });

  test('in random lives, at a random call, with a random outcome', async () => {
    const lives = Number(process.env.DROVER_LIVES ?? 400); // more by hand
    for (let seed = 1; seed <= lives; seed++) {
      const choose = randomOf(seed);
      const disk = brokenOff(5 + choose(120));
      const known: Known = { acked: 0, attempted: 0, ackedAfterFailure: false };
      await randomLife(disk, known, choose).catch(() => {});
      for (const state of [disk.afterPowerCut(choose), disk.afterPowerCut(choose)]) {
        await check(state, known).catch((cause) => {
          throw new Error(`seed ${seed}: ${cause.message}`, { cause });
        });
      }
    }
  });

  test('a kill at every call', async () => {
    const calls = await callsOfLife(2048);

    for (let stop = 1; stop <= calls + 1; stop++) {
      const disk = brokenOff(stop);
      const known = await live(disk, 2048);
      await check(disk.afterKill(), known);
    }
  });
});

describe('errors (D4, D5, D6)', { timeout: 120_000 }, () => {
  const faults: [string, boolean, (op: string) => boolean, 'throw' | 'short'][] = [
    ['EIO, once', false, () => true, 'throw'],
    ['EIO, for ever', true, () => true, 'throw'],
    ['a short write on a full disk, once', false, (op) => op === 'write', 'short'],
    ['a full disk from some write on', true, (op) => op === 'write', 'short'],
  ];

  test.each(faults)('%s, at every call', async (_, isForEver, matches, how) => {
    const calls = await callsOfLife(2048);
    let failures = 0;

    for (let stop = 1; stop <= calls; stop++) {
      const disk = new SimulatedDisk();
      disk.fault = ({ nth, op, path }) => {
        if (nth !== stop && !(isForEver && nth > stop)) return undefined;
        if (!matches(op)) return undefined;
        failures += 1;
        if (how === 'short') return 'short';
        throw errno('EIO', path);
      };
      const known = await live(disk, 2048);
      disk.fault = () => undefined;

      expect(known.ackedAfterFailure).toBe(false);
      await check(
        disk.afterPowerCut(() => 0),
        known,
      );
      await check(disk.afterPowerCut(randomOf(stop)), known);
      // Last, since it goes on with the very same disk: what the cache shows may not be on it (D5).
      await check(disk.afterKill(), known);
    }

    expect(failures).toBeGreaterThan(10);
  });

  test('after a failed sync a restart makes durable what it builds on', async () => {
    const disk = new SimulatedDisk();
    const log = new LogWriter({ folder, lastZxid: 0n, fs: disk, preallocBytes: 0 });
    await log.append(createTxns(1, 1, dataBytes));
    disk.fault = ({ op, path }) => {
      if (op === 'sync') throw errno('EIO', path);
      return undefined;
    };
    await expect(log.append(createTxns(2, 5, dataBytes))).rejects.toThrow('EIO');

    const restarted = disk.afterKill();
    const tree = new FlatTree();
    await recover(folder, folder, tree, { fs: restarted });
    const afterPowerCut = restarted.afterPowerCut(() => 0);

    expect(tree.nodes.size).toBe(5); // the cache shows them, though the disk has never had them
    const found = new FlatTree();
    await recover(folder, folder, found, { fs: afterPowerCut });
    expect(found.nodes).toEqual(tree.nodes);
  });
});
