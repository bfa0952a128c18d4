import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { Reader } from '../jute/index.ts';
import { TxnHeader } from '../protocol/index.ts';
import { deferred } from '../support/index.ts';
import { parseLogName } from './file-names.ts';
import { createTxn, createTxns, dataFor, folder, pathFor } from './fixtures.ts';
import { type LogEntry, txnBytesMax } from './log-entry.ts';
import { LogReader } from './log-reader.ts';
import { LogWriter, type LogWriterOptions } from './log-writer.ts';
import { errno, SimulatedDisk } from './simulated-disk.ts';

/** The first two txns of a fresh 3.8.0: a session of 30 s, and the creation of /a with "first" in it. */
const recordedLog = Buffer.from(
  `5a4b4c47000000020000000000000000
   00000000e3cf0bb800000030
   01000025e5590000000000000000000000000001000001a1dec071bafffffff600007530000000020000000051c6d660
   42
   0000000065860efe0000005b
   01000025e5590000000000010000000000000002000001a1dec071c800000001000000022f6100000005666972737400
   0000010000001f00000005776f726c6400000006616e796f6e65000000000100000002000000009e62b2cb
   42`.replace(/\s/g, ''),
  'hex',
);

const logOf = (fs: SimulatedDisk, options: Partial<LogWriterOptions> = {}) =>
  new LogWriter({ folder, lastZxid: 0n, fs, preallocBytes: 0, ...options });

/** Zeros are written to files opened from now on when `step` is done. */
function beforeZeros(fs: SimulatedDisk, step: () => Promise<void>): void {
  const open = fs.open.bind(fs);
  fs.open = async (path, how) => {
    const file = await open(path, how);
    const allocate = file.allocate.bind(file);
    file.allocate = async (from, to) => {
      await step();
      await allocate(from, to);
    };
    return file;
  };
}

async function read(fs: SimulatedDisk, name = 'log.1') {
  const entries: LogEntry[] = [];
  const reader = await LogReader.open(fs, parseLogName(folder, name)!);
  const summary = await reader.read((entry) => entries.push(entry));
  return { entries, summary, zxids: entries.map(({ zxid }) => Number(zxid)) };
}

const bytesOf = (fs: SimulatedDisk, name: string) => fs.contents().get(`${folder}/${name}`)!;

describe('what is written', () => {
  test('is ZooKeeper’s own format, byte for byte', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    const session = recordedLog.subarray(16 + 12, 16 + 12 + 0x30);
    const create = recordedLog.subarray(16 + 61 + 12, 16 + 61 + 12 + 0x5b);

    await log.append([session, create]);
    await log.close();

    expect(bytesOf(fs, 'log.1').toString('hex')).toBe(recordedLog.toString('hex'));
  });

  test('comes back as it was, whatever the sizes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 40 }),
        async (sizes) => {
          const fs = new SimulatedDisk();
          const log = logOf(fs, { preallocBytes: 100_000 });
          await Promise.all(sizes.map((size, i) => log.append([createTxn(BigInt(i + 1), size)])));
          await log.close();

          const { entries, summary } = await read(fs);

          expect(summary.end.kind).toBe('clean');
          expect(entries.map(({ bytes }) => bytes.toString('latin1'))).toEqual(
            sizes.map((size, i) => createTxn(BigInt(i + 1), size).toString('latin1')),
          );
        },
      ),
      { numRuns: 30 },
    );
  });

  test('decodes to header, body and digest', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    const digest = Buffer.from('000000020000000012345678', 'hex');
    await log.append([createTxn(1n), Buffer.concat([createTxn(2n), digest])]);

    const { entries } = await read(fs);

    const { clientId, cxid, zxid, timeMs } = entries[0]!;
    const { time, ...header } = TxnHeader.read(new Reader(createTxn(1n))).toObject();
    expect({ clientId, cxid, zxid, type: 1 }).toEqual(header);
    expect(timeMs).toBe(Number(time));
    expect(entries[0]!.body).toMatchObject({ type: 'create', txn: { path: pathFor(1) } });
    expect(entries[0]!.digest).toBeNull();
    expect(entries[1]!.digest).toEqual({ version: 2, halves: { high: 0, low: 0x12345678 } });
  });

  test('a create of 3.4 and a close without paths are understood', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    const oldCreate = createTxn(1n).subarray(0, -4);
    const close = Buffer.from(createTxn(2n).subarray(0, 32));
    close.writeInt32BE(-11, 28);
    const closeAndDigest = Buffer.concat([close, Buffer.from('000000020000000012345678', 'hex')]);
    closeAndDigest.writeBigInt64BE(3n, 12);
    await log.append([oldCreate, close, closeAndDigest]);

    const { entries } = await read(fs);

    expect(entries[0]!.body).toMatchObject({ type: 'create', txn: { parentCVersion: -1 } });
    expect(entries[1]!.body).toEqual({ type: 'closeSession', txn: { paths2Delete: [] } });
    expect(entries[2]!.body).toEqual({ type: 'closeSession', txn: { paths2Delete: [] } });
    expect(entries[2]!.digest!.halves).toEqual({ high: 0, low: 0x12345678 });
  });

  test('entries of all sizes are read back, wherever they cross from one stretch into the next', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    // Some cross with less in front than there is room for where reading is ahead, some with more, one fills two.
    const small = Array<number>(60).fill(50_011);
    const sizes = [...small, 300_000, 700_000, 2_000_000, ...small, 900_000, 900_000, ...small];
    const txns = sizes.map((size, i) => createTxn(BigInt(i + 1), size));
    for (const txn of txns) await log.append([txn]);

    const { entries, summary, zxids } = await read(fs);

    expect(summary.end.kind).toBe('clean');
    expect(zxids).toEqual(txns.map((_, i) => i + 1));
    expect(entries.findIndex(({ bytes }, i) => !bytes.equals(txns[i]!))).toBe(-1);
  });

  test.each([60_000, 200_000, 900_000, 2_000_000])(
    'a log of records of %i bytes is read once',
    async (size) => {
      const fs = new SimulatedDisk();
      const log = logOf(fs);
      for (const txn of createTxns(1, 12, size)) await log.append([txn]);
      await log.close();
      const open = fs.open.bind(fs);
      let bytes = 0;
      fs.open = async (path, how) => {
        const file = await open(path, how);
        const usual = file.read.bind(file);
        file.read = async (target, position) => {
          const length = await usual(target, position);
          bytes += length;
          return length;
        };
        return file;
      };

      const { zxids } = await read(fs);

      expect(zxids).toHaveLength(12);
      expect(bytes).toBe(bytesOf(fs, 'log.1').length);
    },
  );

  test('what can not be read ahead ends the reading once it is asked for, and not before', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    for (const txn of createTxns(1, 60, 70_000)) await log.append([txn]);
    const open = fs.open.bind(fs);
    fs.open = async (path, how) => {
      const file = await open(path, how);
      const usual = file.read.bind(file);
      file.read = async (target, position) => {
        if (position > 3_000_000) throw errno('EIO', path);
        return usual(target, position);
      };
      return file;
    };
    const reader = await LogReader.open(fs, parseLogName(folder, 'log.1')!);
    const zxids: bigint[] = [];

    await expect(reader.read(({ zxid }) => zxids.push(zxid))).rejects.toThrow('EIO');
    await reader.close();

    expect(zxids.length).toBeGreaterThan(40);
  });

  test('is preallocated while it grows, and cut to its length at the end', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs, { preallocBytes: 4096 });
    await log.append(createTxns(1, 3));

    expect(bytesOf(fs, 'log.1').length).toBeGreaterThanOrEqual(16 + 4096);
    for (let zxid = 4; zxid < 300; zxid++) await log.append([createTxn(BigInt(zxid))]);
    const grown = bytesOf(fs, 'log.1').length;
    const { zxids, summary } = await read(fs);
    await log.close();

    expect(zxids.length).toBe(299);
    expect(summary.end.kind).toBe('clean');
    expect(grown).toBeGreaterThan(summary.end.offset);
    expect(bytesOf(fs, 'log.1').length).toBe(summary.end.offset);
  });
});

test('zeros are written ahead of small batches, and not of large ones', async () => {
  const fs = new SimulatedDisk();
  const allocations = vi.fn(async () => {});
  beforeZeros(fs, allocations);
  const log = logOf(fs, { preallocBytes: 8 * 1024 * 1024 });

  for (let zxid = 1; zxid <= 20; zxid++) await log.append([createTxn(BigInt(zxid), 100_000)]);
  expect(allocations).not.toHaveBeenCalled();

  for (let zxid = 21; zxid <= 80; zxid++) await log.append([createTxn(BigInt(zxid), 30_000)]);
  expect(allocations).toHaveBeenCalledTimes(3); // 1 MB at first, and again after 0.5 and 1.5 MB
  const { zxids, summary } = await read(fs);
  await log.close();

  expect(zxids.length).toBe(80);
  expect(summary.end.kind).toBe('clean');
});

test('zeros that are still being written never land on a batch', async () => {
  const fs = new SimulatedDisk();
  const gate = deferred();
  beforeZeros(fs, () => gate.promise);
  const log = logOf(fs, { preallocBytes: 4096 });
  await log.append([createTxn(1n)]);

  const done = log.append([createTxn(2n, 10_000)]);
  for (let i = 0; i < 100; i++) await Promise.resolve();
  gate.resolve();
  await done;
  await log.close();

  expect((await read(fs)).zxids).toEqual([1, 2]);
});

describe('group commit', () => {
  test('what arrives during a sync goes out in one write and one sync', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    await log.append([createTxn(1n)]);
    const ops: string[] = [];
    fs.fault = ({ op }) => void ops.push(op);

    const all = [];
    for (let zxid = 2; zxid <= 50; zxid++) all.push(log.append([createTxn(BigInt(zxid))]));
    await Promise.all(all);

    expect(ops).toEqual(['write', 'sync', 'write', 'sync']);
    expect((await read(fs)).zxids.length).toBe(50);
  });

  test('nobody is told before the sync is over', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    const gate = deferred();
    const open = fs.open.bind(fs);
    fs.open = async (path, how) => {
      const file = await open(path, how);
      const sync = file.sync.bind(file);
      file.sync = async () => {
        await gate.promise;
        await sync();
      };
      return file;
    };
    let isTold = false;

    const told = log.append([createTxn(1n)]).then(() => {
      isTold = true;
    });
    for (let i = 0; i < 100; i++) await Promise.resolve();

    expect(isTold).toBe(false);
    expect(log.lastDurableZxid).toBe(0n);
    expect(log.pendingBytes).toBeGreaterThan(0);
    gate.resolve();
    await told;
    expect(log.lastDurableZxid).toBe(1n);
    expect(log.pendingBytes).toBe(0);
  });

  test('a new file is synced, name, header and mark, before the first batch is written', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    const ops: string[] = [];
    fs.fault = ({ op, path }) => void ops.push(`${op} ${path.split('/').at(-1)}`);

    await log.append([createTxn(1n)]);

    expect(ops).toEqual([
      'open create .drover-mark',
      'open create log.1',
      'write log.1',
      'sync log.1',
      'syncFolder version-2',
      'write .drover-mark',
      'sync .drover-mark',
      'write log.1',
      'sync log.1',
    ]);
  });

  test('after a roll the next batch starts a file of its own, what was taken before does not', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    const before = [log.append([createTxn(1n)]), log.append([createTxn(2n)])];
    log.roll();
    const after = [log.append([createTxn(3n)]), log.append([createTxn(4n)])];
    await Promise.all([...before, ...after]);

    expect((await read(fs, 'log.1')).zxids).toEqual([1, 2]);
    expect((await read(fs, 'log.3')).zxids).toEqual([3, 4]);
  });

  test('without fsync nothing is synced', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs, { unsafeNoFsync: true });
    const ops = new Set<string>();
    fs.fault = ({ op }) => void ops.add(op);

    await log.append(createTxns(1, 10));

    expect([...ops]).toEqual(['open create', 'write']);
  });
});

describe('what is refused', () => {
  test('an entry that Apache could not read back, before anything is written', async () => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    const largest = Buffer.concat([createTxn(1n), Buffer.alloc(txnBytesMax)]).subarray(
      0,
      txnBytesMax,
    );
    const tooLarge = Buffer.concat([createTxn(1n), Buffer.alloc(txnBytesMax)]);

    const refused = log.append([createTxn(1n), tooLarge.subarray(0, txnBytesMax + 1)]);

    await expect(refused).rejects.toMatchObject({ code: 'TXN_TOO_LARGE' });
    expect(fs.calls).toBe(0);
    await log.append([largest]);
    expect((await read(fs)).entries[0]!.bytes.length).toBe(2 * 1_048_575);
  });

  test.each([
    ['a gap', 3n],
    ['a repetition', 1n],
    ['a step back', 0n],
    ['a later epoch from its middle', 0x1_0000_0002n],
  ])('%s in the zxids', async (_, zxid) => {
    const fs = new SimulatedDisk();
    const log = logOf(fs);
    await log.append([createTxn(1n)]);

    await expect(log.append([createTxn(zxid)])).rejects.toMatchObject({ code: 'ZXID_ORDER' });
    await log.append([createTxn(2n)]);

    expect((await read(fs)).zxids).toEqual([1, 2]);
  });

  test('everything after a sync has failed, which is not tried again', async () => {
    const fs = new SimulatedDisk();
    let told: unknown;
    const log = logOf(fs, {
      onFailure: (error) => {
        told = error;
      },
    });
    await log.append([createTxn(1n)]);
    let syncs = 0;
    fs.fault = ({ op, path }) => {
      if (op === 'sync' && ++syncs === 1) throw errno('EIO', path);
      return undefined;
    };

    const outcomes = await Promise.allSettled([
      log.append([createTxn(2n)]),
      log.append([createTxn(3n)]),
    ]);
    const later = log.append([createTxn(4n)]);

    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(later).rejects.toThrow(/WRITE_FAILED.*EIO.*last durable zxid 0x1/s);
    expect(told).toMatchObject({ code: 'WRITE_FAILED', lastDurableZxid: 1n });
    expect(syncs).toBe(1);
    await log.close();
    expect(syncs).toBe(1);
  });

  test('a file that is there already: it holds what nobody has read', async () => {
    const fs = SimulatedDisk.of(new Map([[`${folder}/log.1`, Buffer.from('precious')]]), [folder]);

    await expect(logOf(fs).append([createTxn(1n)])).rejects.toMatchObject({ code: 'WRITE_FAILED' });

    expect(String(bytesOf(fs, 'log.1'))).toBe('precious');
  });

  test('an append after close', async () => {
    const log = logOf(new SimulatedDisk());
    await log.close();

    await expect(log.append([createTxn(1n)])).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

test('data is copied before append returns', async () => {
  const fs = new SimulatedDisk();
  const log = logOf(fs);
  const txn = createTxn(1n, 100);

  const done = log.append([txn]);
  txn.fill(0);
  await done;

  const { body } = (await read(fs)).entries[0]!;
  expect(body).toMatchObject({ txn: { data: dataFor(1n, 100) } });
});
