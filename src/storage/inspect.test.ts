import { describe, expect, test } from 'vitest';
import { encode, Writer } from '../jute/index.ts';
import { openAcl, TxnHeader, type TxnName, txns } from '../protocol/index.ts';
import { createTxns, folder, stat, treeOf } from './fixtures.ts';
import { type PathChange, pathHistory } from './history.ts';
import { type DescribedTxn, dumpLog, verifyDirectory } from './inspect.ts';
import { LogWriter } from './log-writer.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import { diffSnapshots, type SnapshotDifference } from './snapshot-diff.ts';
import { type SnapshotContent, writeSnapshot } from './snapshot-writer.ts';

const at = (name: string) => `${folder}/${name}`;

function txn(zxid: number, type: TxnName, body: unknown, clientId = 7n): Buffer {
  const writer = new Writer();
  const header = { clientId, cxid: zxid * 10, zxid: BigInt(zxid), time: BigInt(1000 + zxid) };
  TxnHeader.write(writer, { ...header, type: txns[type].code });
  (txns[type].record as { write(writer: Writer, value: unknown): void }).write(writer, body);
  return writer.detach();
}

const create = (path: string, data: string, ephemeral = false) => ({
  path,
  data: Buffer.from(data),
  acl: [...openAcl],
  ephemeral,
  parentCVersion: 1,
});
const part = (type: 'create' | 'setData' | 'delete' | 'error', body: never) => ({
  type: txns[type].code,
  data: encode<never>(txns[type].record as never, body),
});

async function logged(...batch: Buffer[]): Promise<SimulatedDisk> {
  const fs = new SimulatedDisk();
  const log = new LogWriter({ folder, lastZxid: 0n, fs, preallocBytes: 0 });
  for (const [i, each] of batch.entries()) {
    if (i === 4) log.roll();
    await log.append([each]);
  }
  await log.close();
  return fs;
}

describe('the history of a path', () => {
  const life = () =>
    logged(
      txn(1, 'createSession', { timeOut: 4_000 }),
      txn(2, 'create', create('/a', 'one')),
      txn(3, 'create', create('/b', 'other')),
      txn(4, 'setData', { path: '/a', data: Buffer.from('two'), version: 1 }, 8n),
      txn(5, 'multi', {
        txns: [
          part('create', create('/c', '') as never),
          part('setData', { path: '/a', data: Buffer.from('three'), version: 2 } as never),
        ],
      }),
      txn(6, 'delete', { path: '/a' }),
      txn(7, 'create2', create('/a', 'again', true)),
      txn(8, 'closeSession', { paths2Delete: ['/a'] }),
    );

  test("the root was there before the logs' first txn", async () => {
    const fs = await logged(
      txn(1, 'createSession', { timeOut: 4_000 }),
      txn(2, 'setData', { path: '/', data: Buffer.from('x'), version: 1 }),
    );
    const changes: PathChange[] = [];

    await pathHistory(folder, folder, '/', (change) => changes.push(change), fs);

    expect(changes).toMatchObject([
      { kind: 'dataSet', before: { data: Buffer.alloc(0), version: 0 }, after: { version: 1 } },
    ]);
  });

  test('says who, when, from what and to what, across logs', async () => {
    const changes: PathChange[] = [];

    await pathHistory(folder, folder, '/a', (change) => changes.push(change), await life());

    const told = changes.map(({ zxid, sessionId, timeMs, kind, part: nth, before, after }) => [
      ...[Number(zxid), Number(sessionId), timeMs, kind, nth],
      ...[before && String(before.data), after && String(after.data)],
    ]);
    expect(told).toEqual([
      [2, 7, 1002, 'created', null, null, 'one'],
      [4, 8, 1004, 'dataSet', null, 'one', 'two'],
      [5, 7, 1005, 'dataSet', 1, 'two', 'three'],
      [6, 7, 1006, 'deleted', null, 'three', null],
      [7, 7, 1007, 'created', null, null, 'again'],
      [8, 7, 1008, 'deletedWithSession', null, 'again', null],
    ]);
    expect(changes[2]!.file).toBe(at('log.5'));
  });

  test('starts from the snapshot before the first log that is left', async () => {
    const fs = await life();
    const node = { path: '/a', data: Buffer.from('two'), acl: -1, stat };
    const head = { zxid: 4n, sessions: new Map(), acls: new Map() };
    await writeSnapshot({ ...head, nodes: [node] }, { folder, fs });
    await fs.remove(at('log.1'));
    const changes: PathChange[] = [];

    await pathHistory(folder, folder, '/a', (change) => changes.push(change), fs);

    expect(String(changes[0]!.before!.data)).toBe('two');
  });

  test('a later snapshot tells what the node was, as long as no log has told of it', async () => {
    const fs = new SimulatedDisk();
    const log = new LogWriter({ folder, lastZxid: 1n, fs, preallocBytes: 0 });
    await log.append([txn(2, 'create', create('/b', ''))]);
    log.roll();
    await log.append([txn(3, 'setData', { path: '/a', data: Buffer.from('three'), version: 1 })]);
    await log.close();
    const nodes = [{ path: '/a', data: Buffer.from('two'), acl: -1, stat }];
    const head = { zxid: 2n, sessions: new Map(), acls: new Map() };
    await writeSnapshot({ ...head, nodes }, { folder, fs });
    const changes: PathChange[] = [];

    await pathHistory(folder, folder, '/a', (change) => changes.push(change), fs);

    expect(changes).toMatchObject([{ zxid: 3n, before: { data: Buffer.from('two') } }]);
  });

  test('admits what it can not know', async () => {
    const fs = await life();
    await fs.remove(at('log.1'));
    const changes: PathChange[] = [];

    await pathHistory(folder, folder, '/a', (change) => changes.push(change), fs);

    expect(changes[0]!.before).toBeUndefined();
  });

  test('behind a gap it goes on from the snapshot there, and knows nothing without one', async () => {
    const fs = await logged(
      txn(1, 'createSession', { timeOut: 4_000 }),
      txn(2, 'create', create('/a', 'one')),
    );
    const later = new LogWriter({ folder, lastZxid: 9n, fs, preallocBytes: 0 });
    await later.append([
      txn(10, 'setData', { path: '/a', data: Buffer.from('ten'), version: 5 }),
      txn(11, 'setData', { path: '/a', data: Buffer.from('eleven'), version: 6 }),
    ]);
    await later.close();
    const toldBefore = async () => {
      const changes: PathChange[] = [];
      await pathHistory(folder, folder, '/a', (change) => changes.push(change), fs);
      return changes.map((change) => change.before && String(change.before.data));
    };

    const unknown = await toldBefore();
    for (const [zxid, data] of [
      [5n, 'five'],
      [9n, 'nine'],
    ] as const) {
      const head = { zxid, sessions: new Map(), acls: new Map() };
      const nodes = [{ path: '/a', data: Buffer.from(data), acl: -1, stat }];
      await writeSnapshot({ ...head, nodes }, { folder, fs });
    }

    expect(unknown).toEqual([null, undefined, 'ten']);
    expect(await toldBefore()).toEqual([null, 'nine', 'ten']);
    await fs.remove(at('snapshot.9'));
    expect(await toldBefore()).toEqual([null, undefined, 'ten']);
  });

  test('of a multi that failed nothing is told', async () => {
    const fs = await logged(
      txn(1, 'create', create('/a', 'one')),
      txn(2, 'multi', {
        txns: [
          part('create', create('/b', '') as never),
          part('setData', { path: '/a', data: Buffer.from('never'), version: 1 } as never),
          part('delete', { path: '/a' } as never),
          part('error', { err: -101 } as never),
          part('error', { err: -2 } as never),
        ],
      }),
      txn(3, 'setData', { path: '/a', data: Buffer.from('two'), version: 1 }),
    );
    const changes: PathChange[] = [];

    for (const path of ['/a', '/b']) {
      await pathHistory(folder, folder, path, (change) => changes.push(change), fs);
    }

    expect(
      changes.map(({ zxid, kind, before }) => [zxid, kind, before && `${before.data}`]),
    ).toEqual([
      [1n, 'created', null],
      [3n, 'dataSet', 'one'],
    ]);
  });

  test('a snapshot that was written while the node changed does not tell what it was before', async () => {
    const fs = await logged(
      ...[1, 2, 3, 4].map((zxid) => txn(zxid, 'create', create(`/x${zxid}`, ''))),
      txn(5, 'setData', { path: '/a', data: Buffer.from('five'), version: 1 }),
      txn(6, 'setData', { path: '/b', data: Buffer.from('six'), version: 1 }),
      txn(7, 'delete', { path: '/gone' }),
      txn(8, 'create', create('/new', 'eight')),
    );
    const node = (path: string, data: string, mzxid: bigint) => ({
      ...{ path, data: Buffer.from(data), acl: -1 },
      stat: { ...stat, czxid: 1n, mzxid, aversion: 0 },
    });
    const nodes = [node('/a', 'five', 5n), node('/b', 'was', 3n), node('/new', 'eight', 8n)];
    const head = { zxid: 4n, sessions: new Map(), acls: new Map(), lastZxid: () => 8n };
    const digest = () => ({ zxid: 8n, version: 2, value: 1n });
    await writeSnapshot({ ...head, nodes, digest }, { folder, fs });
    await fs.remove(at('log.1'));
    const firstBefore = async (path: string) => {
      const changes: PathChange[] = [];
      await pathHistory(folder, folder, path, (change) => changes.push(change), fs);
      const { before } = changes[0]!;
      return before && String(before.data);
    };

    expect(await firstBefore('/a')).toBeUndefined();
    expect(await firstBefore('/b')).toBe('was');
    expect(await firstBefore('/gone')).toBeUndefined();
    expect(await firstBefore('/new')).toBeNull();
  });

  test('a dump names the parts of a multi', async () => {
    const dumped: DescribedTxn[] = [];

    const { end } = await dumpLog(at('log.5'), (each) => dumped.push(each), await life());

    expect(end.kind).toBe('clean');
    expect(dumped[0]!.parts.map(({ type }) => type)).toEqual(['create', 'setData']);
  });
});

test('a directory is verified file by file and as a whole', async () => {
  const fs = new SimulatedDisk();
  const log = new LogWriter({ folder, lastZxid: 0n, fs, preallocBytes: 0 });
  await log.append(createTxns(1, 5));
  await log.close();
  const head = { zxid: 3n, sessions: new Map(), acls: new Map() };
  await writeSnapshot({ ...head, nodes: treeOf(3).snapshotNodes() }, { folder, fs });

  const sound = await verifyDirectory(folder, folder, fs);
  const files = fs.contents();
  files.get(at('log.1'))![100]! ^= 1;
  files.get(at('snapshot.3'))![60]! ^= 1;
  const damaged = await verifyDirectory(folder, folder, SimulatedDisk.of(files, [folder]));

  expect(sound.recovered).toMatchObject({ lastZxid: 5n, txns: 2 });
  expect([...sound.logs, ...sound.snapshots].map(({ fault }) => fault)).toEqual([null, null]);
  expect(damaged.refusal).toMatchObject({ code: 'DAMAGED_LOG' });
  expect(damaged.logs[0]!.fault).toMatch(/wrong checksum, at offset/);
  expect(damaged.snapshots[0]!.fault).toMatch(/DAMAGED_SNAPSHOT/);
});

test('null and empty data are two, and so are two timeouts of a session', async () => {
  const fs = new SimulatedDisk();
  for (const [zxid, timeoutMs, data] of [
    [1n, 4_000, null],
    [2n, 30_000, Buffer.alloc(0)],
  ] as const) {
    const nodes = [{ path: '', data, acl: -1, stat }];
    const content = { zxid, sessions: new Map([[5n, timeoutMs]]), acls: new Map(), nodes };
    await writeSnapshot(content, { folder, fs });
  }
  const differences: SnapshotDifference[] = [];

  await diffSnapshots(at('snapshot.1'), at('snapshot.2'), (each) => differences.push(each), fs);

  expect(differences).toEqual([
    { path: '/', kind: 'changed', fields: ['data'] },
    { path: 'session 0x5', kind: 'changed', fields: ['timeoutMs'] },
  ]);
});

test('the difference of two snapshots is told by node and field', async () => {
  const fs = new SimulatedDisk();
  const node = (path: string, data: string, more = {}) => ({
    path,
    data: Buffer.from(data),
    acl: -1,
    stat: { ...stat, ...more },
  });
  const write = (zxid: bigint, content: Partial<SnapshotContent>) =>
    writeSnapshot(
      { zxid, sessions: new Map(), acls: new Map(), nodes: [], ...content },
      { folder, fs },
    );
  await write(1n, {
    sessions: new Map([[1n, 1]]),
    nodes: [node('', ''), node('/same', 's'), node('/gone', 'g'), node('/set', 'old')],
  });
  await write(2n, {
    sessions: new Map([[2n, 1]]),
    acls: new Map([[1, [...openAcl]]]),
    nodes: [
      node('', ''),
      { ...node('/same', 's'), acl: 1 },
      node('/set', 'new', { version: 6, mzxid: 9n }),
      node('/new', 'n'),
    ],
  });
  const found: SnapshotDifference[] = [];

  await diffSnapshots(at('snapshot.1'), at('snapshot.2'), (each) => found.push(each), fs);

  expect(found).toEqual([
    { path: '/set', kind: 'changed', fields: ['mzxid', 'version', 'data'] },
    { path: '/new', kind: 'added', fields: [] },
    { path: '/gone', kind: 'removed', fields: [] },
    { path: 'session 0x2', kind: 'added', fields: [] },
    { path: 'session 0x1', kind: 'removed', fields: [] },
  ]);
});

test('what only a larger jute.maxbuffer can have written is not called damage alone', async () => {
  const fs = new SimulatedDisk();
  const node = { path: '/a', data: Buffer.alloc(3_000_000, 'x'), acl: -1, stat };
  const head = { zxid: 1n, sessions: new Map(), acls: new Map() };
  await writeSnapshot({ ...head, nodes: [node] }, { folder, fs });
  const log = new LogWriter({ folder, lastZxid: 1n, fs, preallocBytes: 0 });
  await log.append(createTxns(2, 3));
  await log.close();
  const file = await fs.open(at('log.2'), 'write');
  const length = Buffer.alloc(4);
  length.writeInt32BE(3_000_000);
  await file.write(length, 16 + 8);
  await file.close();

  const { snapshots, logs } = await verifyDirectory(folder, folder, fs);

  for (const { fault } of [...snapshots, ...logs]) {
    expect(fault).toMatch(/of 3000000, where 2097150 at most are read: .* raised jute\.maxbuffer/);
  }
});
