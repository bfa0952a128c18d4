/**
 * A CI-size sample of the campaigns in `test/chaos/`. By hand, and longer: `npx tsx test/chaos/run.ts`;
 * what was run is in test/evidence/ledger.md.
 */

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openAcl } from '../src/protocol/index.ts';
import { startServer } from '../src/server/index.ts';
import { SimulatedDisk } from '../src/storage/index.ts';
import { RawClient } from '../src/testing/index.ts';
import { checkHistory, violationKinds } from './chaos/checker.ts';
import { Build, temporaryFolder } from './chaos/child.ts';
import { corruptionSweep } from './chaos/corruption.ts';
import { faultSweep } from './chaos/disk-faults.ts';
import { fuzzEngine, fuzzServer } from './chaos/fuzz.ts';
import { Gate } from './chaos/gate.ts';
import { killLoop } from './chaos/kill-loop.ts';
import { idealHistory, plantedHistories } from './chaos/planted.ts';
import { findBug, plantedBugs } from './chaos/planted-bugs.ts';
import { powerCuts, whyNoPowerCuts } from './chaos/power-cut.ts';
import { killAndWait, serveOnSlowDisk, stopAndGo } from './chaos/stalls.ts';

/** Another one each day, so that CI goes on looking; every failure names it. */
const seedOfRun = Number(process.env.DROVER_SEED ?? Math.floor(Date.now() / 86_400_000));

describe('the history checker', () => {
  test('finds nothing wrong with histories that are right', () => {
    for (let seed = 1; seed <= 50; seed++)
      expect(checkHistory(idealHistory(seed, 200))).toEqual([]);
  });

  test.each(plantedHistories)('finds it: %s', (_, kind, spoil) => {
    const history = idealHistory(7, 200);
    spoil(history);

    expect(checkHistory(history).map((violation) => violation.kind)).toContain(kind);
  });

  test('has a planted history for every kind of violation', () => {
    expect(
      violationKinds.filter((kind) => !plantedHistories.some((row) => row[1] === kind)),
    ).toEqual([]);
  });

  test('takes time in proportion to the length', () => {
    const timeOf = (count: number) => {
      const history = idealHistory(1, count, false);
      const startedMs = performance.now();
      checkHistory(history);
      return performance.now() - startedMs;
    };
    timeOf(10_000);

    expect(timeOf(50_000)).toBeLessThan(30 * Math.max(timeOf(5_000), 20));
  });
});

describe('a server in a process of its own', { timeout: 240_000 }, () => {
  let build: Build;

  beforeAll(() => {
    build = new Build();
  }, 120_000);

  afterAll(() => build[Symbol.dispose]());

  test('loses nothing when it is killed, again and again (D1)', async () => {
    const report = await killLoop({ seed: seedOfRun, cycles: 50, perLife: 25, build });

    expect(report.failures, `seed ${seedOfRun}`).toEqual([]);
    expect(report.kills).toBe(50);
    expect(report.acked).toBeGreaterThan(1_000);
  });

  test('loses nothing when the power is cut (D2)', async ({ skip }) => {
    const reason = whyNoPowerCuts();
    skip(reason !== null, `no power cuts: ${reason}`);
    const report = await powerCuts({ seed: seedOfRun, cuts: 3, perLife: 3, build });

    expect(report.failures, `seed ${seedOfRun}`).toEqual([]);
  });

  test('takes no harm from fuzzed frames (P1)', async () => {
    const report = await fuzzServer({ seed: seedOfRun, frames: 5_000, build });

    expect(report.failures, `seed ${seedOfRun}`).toEqual([]);
  });

  const canStop = process.platform !== 'win32';
  test.runIf(canStop)('expires nobody for having been stopped itself (D16)', async () => {
    const report = await stopAndGo({ build, pauses: 2, holders: 30 });

    expect(report.failures).toEqual([]);
  });

  test('keeps sessions when it was away for longer than their timeout', async () => {
    const report = await killAndWait({ build, holders: 10 });

    expect(report.failures).toEqual([]);
  });
});

describe('a server in this process', { timeout: 120_000 }, () => {
  test('takes no harm from fuzzed frames (P1)', async () => {
    const frames = 15_000;
    const report = await fuzzEngine({
      seed: seedOfRun,
      frames,
      perGeneration: 5_000,
      readBackEvery: 3,
    });

    expect(report.failures, `seed ${seedOfRun}`).toEqual([]);
    expect(report.readBack).toBe(1);
  });

  test('loses nothing to a disk that fails at any call (D4, D5, D6)', async () => {
    const first = 1 + (seedOfRun % 3);
    const report = await faultSweep({ seed: seedOfRun, stride: 3, first });

    expect(report.failures, `seed ${seedOfRun}`).toEqual([]);
    expect(report.stopped).toBeGreaterThan(0);
  });

  test('has all of a damaged directory, or refuses it (D7)', async () => {
    const report = await corruptionSweep({ seed: seedOfRun, bytes: 20_000, stride: 101 });

    expect(report.failures, `seed ${seedOfRun}`).toEqual([]);
    expect(report.whole).toBeGreaterThan(100);
    expect(report.refused).toBeGreaterThan(100);
  });

  test('expires nobody for the disk being slow (D15)', async () => {
    const report = await serveOnSlowDisk(1_400, 300);

    expect(report.failures).toEqual([]);
  });
});

describe('a bug planted on purpose is found (2.8)', { timeout: 60_000 }, () => {
  test.each(Object.keys(plantedBugs))('a server that %s', async (name) => {
    expect(await findBug(name)).not.toEqual([]);
  });
});

describe('found by the campaigns', () => {
  const create = (path: string, data: Buffer | null = null) => {
    return { path, data, acl: [...openAcl], flags: 0 };
  };

  test('a write behind a sync is answered behind it, when the sync waits for somebody else', async () => {
    const log = new Gate();
    await using server = await startServer({ port: 0, log });
    const [first, other, asker] = await Promise.all(
      [1, 2, 3].map(() => RawClient.connect(server.port)),
    );

    log.shut();
    first!.send('create', create('/first'));
    const { batches } = log;
    while (log.batches === batches) await new Promise((resolve) => setImmediate(resolve));
    const theirs = other!.send('create', create('/theirs'));
    while (server.engine.outstanding < 2) await new Promise((resolve) => setImmediate(resolve));
    asker!.send('sync', { path: '/' }, 1);
    asker!.send('getData', { path: '/mine', watch: false }, 2);
    asker!.send('create', create('/mine'), 3);
    while (server.engine.outstanding < 5) await new Promise((resolve) => setImmediate(resolve));
    log.open();
    await other!.reply(theirs);

    const { err } = await asker!.reply(2);
    await asker!.reply(3);
    expect(asker!.heard).toEqual([1, 2, 3]);
    expect(err).toBe(-101); // asked before the node was made
    await asker!.ping();
  });

  test('a write behind a large read is answered behind it, however much there is to say', async () => {
    const log = new Gate();
    await using server = await startServer({ port: 0, log });
    const client = await RawClient.connect(server.port);
    await client.ask('create', create('/large', Buffer.alloc(900_000)));

    log.shut();
    client.send('setData', { path: '/large', data: Buffer.alloc(900_000), version: -1 }, 101);
    for (let xid = 102; xid < 110; xid++)
      client.send('getData', { path: '/large', watch: false }, xid);
    client.send('setData', { path: '/large', data: Buffer.alloc(1), version: -1 }, 110);
    while (server.engine.outstanding < 10) await new Promise((resolve) => setImmediate(resolve));
    client.heard.splice(0);
    log.open();
    const replies = await Promise.all(Array.from({ length: 10 }, (_, i) => client.reply(101 + i)));

    expect(client.heard).toEqual([101, 102, 103, 104, 105, 106, 107, 108, 109, 110]);
    expect(replies.slice(1, 9).map(({ body }) => body.length > 900_000)).not.toContain(false);
  });

  test('a server whose log can not be closed lets go of the directory all the same', async () => {
    const dataDir = temporaryFolder('close');
    mkdirSync(join(dataDir, 'version-2'), { mode: 0o700 });
    const disk = new SimulatedDisk();
    const server = await startServer({ port: 0, dataDir, fs: disk, preallocBytes: 4_096 });
    const client = await RawClient.connect(server.port);
    client.close();
    disk.fault = ({ op }) => {
      if (op === 'truncate') throw new Error('EROFS');
      return undefined;
    };

    await expect(server.close()).rejects.toThrow('EROFS');

    disk.fault = () => undefined;
    const next = await startServer({ port: 0, dataDir, fs: disk });
    expect(next.engine.sessions.size).toBe(1);
    await next.close();
    rmSync(dataDir, { recursive: true });
  });

  test('an op and a flag that contradict each other stop nobody', async () => {
    const dataDir = temporaryFolder('flags');
    await using server = await startServer({ port: 0, dataDir, preallocBytes: 0 });
    const client = await RawClient.connect(server.port);
    const flags = { persistent: 0, ephemeral: 1, container: 4 };

    // The digest of the tree to be goes by what the op makes of it, and not by the flag.
    await client.ask('createContainer', { ...create('/a'), flags: flags.persistent });
    await client.ask('createContainer', { ...create('/b'), flags: flags.ephemeral });
    await client.ask('create', { ...create('/c'), flags: flags.container });
    for (const path of ['/a', '/b', '/c']) {
      await client.ask('setData', { path, data: Buffer.from('x'), version: -1 });
    }

    expect(server.engine.isServing).toBe(true);
    rmSync(dataDir, { recursive: true });
  });
});
