import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ManualClock } from '../support/index.ts';
import { MovableClock, RawClient } from '../testing/index.ts';
import { DiskSpace, lookEveryMs, lookOftenMs } from './disk-space.ts';
import { metricsOf } from './metrics.ts';
import { startServer } from './start-server.ts';

const mib = 1024 * 1024;
const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string) => ({ path, data: null, acl: open, flags: 0 });

function told() {
  const lines: string[] = [];
  const say = (level: string) => (_: object, message: string) => lines.push(`${level}: ${message}`);
  const logger = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  return { lines, logger };
}

const settled = () => new Promise(setImmediate);

test('a disk that runs full is told of now and then, and so is its end, which takes a little more room', async () => {
  const { lines, logger } = told();
  const clock = new ManualClock();
  const changes: boolean[] = [];
  let free = 100;
  const space = new DiskSpace({
    ...{ clock, logger, folders: ['a', 'b'], freeBytesMin: 50 },
    freeBytes: async (folder) => (folder === 'a' ? 1_000 : free),
    changed: (isLow) => changes.push(isLow),
  });
  const pass = async (seconds: number, freeNow: number) => {
    free = freeNow;
    for (let i = 0; i < seconds; i++) {
      clock.advance(lookEveryMs);
      await settled();
    }
  };
  await space.start();

  await pass(2, 50);
  expect(changes).toEqual([]);
  await pass(59, 49);
  await pass(10, 54);
  expect(changes).toEqual([true]);
  await pass(1, 56);
  expect(changes).toEqual([true, false]);
  space.stop();
  await pass(5, 0);

  expect(changes).toEqual([true, false]);
  expect(lines).toEqual([
    'error: the disk is nearly full: all writes but deletes are refused until there is room',
    'error: the disk is nearly full: all writes but deletes are refused until there is room',
    'warn: there is room on the disk again: writes are taken',
  ]);
});

test('a disk with little more than the limit is looked at more often, until deletes are refused too', async () => {
  const clock = new ManualClock();
  let free = 1_000;
  let looks = 0;
  const space = new DiskSpace({
    ...{ clock, logger: told().logger, folders: ['a'], freeBytesMin: 50, changed: () => {} },
    freeBytes: async () => {
      looks += 1;
      return free;
    },
  });
  const looksWithin = async (ms: number) => {
    const before = looks;
    for (let past = 0; past < ms; past += lookOftenMs) {
      clock.advance(lookOftenMs);
      await settled();
    }
    return looks - before;
  };
  await space.start();

  expect(await looksWithin(lookEveryMs)).toBe(1);
  free = 700;
  expect(await looksWithin(lookEveryMs)).toBe(1);
  expect(await looksWithin(lookEveryMs)).toBe(lookEveryMs / lookOftenMs);
  free = 40;
  expect(await looksWithin(lookEveryMs)).toBe(lookEveryMs / lookOftenMs);
  expect([space.isLow, space.hasRoomForDeletes]).toEqual([true, true]);
  free = 24;
  expect(await looksWithin(lookEveryMs)).toBe(1);
  expect([space.isLow, space.hasRoomForDeletes]).toEqual([true, false]);
  space.stop();
});

test('a disk that does not tell is not taken for full', async () => {
  const { lines, logger } = told();
  const clock = new ManualClock();
  const space = new DiskSpace({
    ...{ clock, logger, folders: ['a'], freeBytesMin: 50, changed: () => {} },
    freeBytes: async () => Promise.reject(new Error('ENOSYS')),
  });
  await space.start();
  clock.advance(lookEveryMs);
  await settled();

  expect(space.isLow).toBe(false);
  expect(lines).toEqual(['warn: free disk space is unknown']);
});

test('on a disk that is nearly full writes are refused and not logged, reads and sessions go on, and room ends it', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-space-'));
  const clock = new MovableClock();
  let free = 1_000 * mib;
  const diskFreeBytes = async () => free;
  try {
    await using server = await startServer({ port: 0, dataDir, clock, diskFreeBytes });
    const look = async (freeNow: number) => {
      free = freeNow;
      await clock.advance(lookEveryMs);
      while (server.engine.refusesWrites !== free < 64 * mib) await settled();
    };
    const value = (name: string) => {
      const metric = metricsOf(server.facts).find((each) => each.name === `drover_${name}`)!;
      return 'value' in metric ? metric.value : undefined;
    };
    const client = await RawClient.connect(server.port);
    expect(await client.err('create', node('/a'))).toBe(0);

    await look(63 * mib);
    const zxid = server.engine.lastZxid;
    expect(await client.err('create', node('/b'))).toBe(-125);
    expect(await client.err('setData', { path: '/a', data: null, version: -1 })).toBe(-125);
    expect(await client.err('multi', [{ op: 'create', request: node('/c') }])).toBe(-125);
    expect(server.engine.lastZxid).toBe(zxid);
    expect(await client.err('exists', { path: '/a', watch: false })).toBe(0);
    const other = await RawClient.connect(server.port);
    expect(other.sessionId).not.toBe(0n);
    expect(await other.err('closeSession', {})).toBe(0);
    expect([value('writes_refused'), value('writes_refused_count')]).toEqual([1, 3]);
    expect(value('disk_free_bytes')).toBe(63 * mib);

    await look(100 * mib);
    expect(await client.err('create', node('/b'))).toBe(0);
    expect(value('writes_refused')).toBe(0);
    client.close();
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test('on a disk that is nearly full, what deletes is done as long as the log has room for it', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-space-'));
  const clock = new MovableClock();
  let free = 1_000 * mib;
  try {
    const options = { port: 0, dataDir, clock, diskFreeBytes: async () => free };
    await using server = await startServer(options);
    const look = async (freeNow: number) => {
      free = freeNow;
      await clock.advance(lookEveryMs);
      while (server.facts.storage!.freeBytes!() !== freeNow) await settled();
    };
    const client = await RawClient.connect(server.port);
    for (const name of 'abcdef') await client.ask('create', node(`/${name}`));
    const gone = (path: string) => ({ path, version: -1 });
    const deletes = (path: string) => ({ op: 'delete' as const, request: gone(path) });
    const checks = { op: 'check' as const, request: { path: '/a', version: 0 } };
    const creates = { op: 'create' as const, request: node('/g') };

    await look(40 * mib);
    expect(await client.err('create', node('/g'))).toBe(-125);
    expect(await client.err('delete', gone('/b'))).toBe(0);
    expect(await client.err('multi', [checks, deletes('/c'), deletes('/d')])).toBe(0);
    expect(await client.err('multi', [deletes('/e'), creates])).toBe(-125);
    expect(await client.err('multi', [checks])).toBe(-125);
    expect(await client.err('exists', { path: '/d', watch: false })).toBe(-101);
    expect(await client.err('exists', { path: '/e', watch: false })).toBe(0);

    await look(31 * mib);
    expect(await client.err('delete', gone('/e'))).toBe(-125);
    expect(await client.err('multi', [deletes('/e')])).toBe(-125);
    expect(await client.err('closeSession', {})).toBe(0);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test('the system is asked how much is free', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-space-'));
  try {
    const limits = { diskFreeBytesMin: Number.MAX_SAFE_INTEGER };
    await using server = await startServer({ port: 0, dataDir, limits });
    const client = await RawClient.connect(server.port);

    expect(server.facts.storage!.freeBytes!()).toBeGreaterThan(0);
    expect(await client.err('create', node('/a'))).toBe(-125);
    client.close();
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
