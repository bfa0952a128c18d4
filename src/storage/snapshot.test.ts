import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { type Acl, nodeDigest, type StatPersisted, TreeDigest } from '../protocol/index.ts';
import { parseSnapshotName } from './file-names.ts';
import type { SyncManner } from './file-system.ts';
import { folder, stat } from './fixtures.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import { decodeBlock } from './snappy.ts';
import type { SnapshotNode } from './snapshot-format.ts';
import { readSnapshot } from './snapshot-reader.ts';
import { type SnapshotContent, writeSnapshot } from './snapshot-writer.ts';

/** What 3.9.5 wrote when it was started again with one session and /a in its log. */
const recorded = Buffer.from(
  `5a4b534e00000002ffffffffffffffff0000000101000025a93f00000000753000000002000000000000000100000001
   0000000100000005776f726c6400000006616e796f6e650000000000000002000000010000001f00000005776f726c64
   00000006616e796f6e650000000000000000ffffffffffffffff00000000000000000000000000000000000000000000
   0000000000000000000000000000000000010000000000000000000000000000000000000002000000022f6100000005
   6669727374000000000000000200000000000000020000000000000002000001a1dec02ef4000001a1dec02ef4000000
   000000000000000000000000000000000000000000000000020000000a2f7a6f6f6b656570657200000000ffffffffff
   ffffff000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
   000000000000000000000000000000000000112f7a6f6f6b65657065722f636f6e666967000000000000000000000001
   00000000000000000000000000000000000000000000000000000000000000000000000000000000ffffffff00000000
   000000000000000000000000000000102f7a6f6f6b65657065722f71756f746100000000ffffffffffffffff00000000
   000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
   0000000000000000000000012f0000000014f24b6b000000012f00000000000000020000000200000000a649b33b0000
   000007074f38000000012f00000000000000020000000091444fff000000012f`.replace(/\s/g, ''),
  'hex',
);

/** What 3.9.5 wrote into a new directory with `digest.enabled=false`. */
const recordedWithoutDigest = Buffer.from(
  `5a4b534e00000002ffffffffffffffff00000000000000010000000000000001000000010000000100000005776f726c
   6400000006616e796f6e650000000000000000ffffffffffffffff000000000000000000000000000000000000000000
   0000000000000000000000000000000000000000000000000000000000000000000000000000000000000a2f7a6f6f6b
   656570657200000000ffffffffffffffff00000000000000000000000000000000000000000000000000000000000000
   0000000000000000000000000000000000000000000000000000000000000000112f7a6f6f6b65657065722f636f6e66
   696700000000000000000000000100000000000000000000000000000000000000000000000000000000000000000000
   000000000000ffffffff00000000000000000000000000000000000000102f7a6f6f6b65657065722f71756f74610000
   0000ffffffffffffffff0000000000000000000000000000000000000000000000000000000000000000000000000000
   00000000000000000000000000000000000000000000000000012f00000000b8a23b49000000012f0000000000000000
   00000000b5663d57000000012f`.replace(/\s/g, ''),
  'hex',
);

const diskWith = (name: string, bytes: Buffer) =>
  SimulatedDisk.of(new Map([[`${folder}/${name}`, bytes]]), [folder]);

async function read(fs: SimulatedDisk, name: string, limits = {}) {
  const nodes: SnapshotNode[] = [];
  const sessions = new Map<bigint, number>();
  const acls = new Map<number, Acl[]>();
  const sink = {
    session: (id: bigint, timeoutMs: number) => void sessions.set(id, timeoutMs),
    acl: (id: number, acl: Acl[]) => void acls.set(id, acl),
    node: (node: SnapshotNode) => void nodes.push(node),
  };
  const summary = await readSnapshot(fs, parseSnapshotName(folder, name)!, sink, limits);
  return { summary, nodes, sessions, acls };
}

const bytesOf = (fs: SimulatedDisk, name: string) => fs.contents().get(`${folder}/${name}`)!;
const plain = ({ stat: s, ...node }: SnapshotNode) => ({
  ...node,
  stat: 'toObject' in s ? (s as { toObject(): StatPersisted }).toObject() : s,
});

function* manyNodes(count: number): Generator<SnapshotNode> {
  yield { path: '', data: null, acl: -1, stat };
  for (let i = 1; i < count; i++) {
    yield { path: `/n${i}`, data: Buffer.from(`${i}`.repeat(i % 90)), acl: (i % 3) - 1, stat };
  }
}

const openly: Acl[] = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const content = (count: number): SnapshotContent => ({
  zxid: 0x1_0000_0007n,
  sessions: new Map([
    [0x1234_5678_9abc_def0n, 4_000],
    [-1n, 30_000],
  ]),
  acls: new Map([
    [0, openly],
    [1, [{ perms: 1, id: { scheme: 'digest', id: 'ü:x' } }]],
  ]),
  nodes: manyNodes(count),
  digest: () => ({ zxid: 0x1_0000_0009n, version: 2, value: -5n }),
  lastZxid: () => 0x1_0000_0009n,
});

test('a snapshot of 3.9.5 is read, and written again as the same bytes', async () => {
  const { summary, nodes, sessions, acls } = await read(
    diskWith('snapshot.2', recorded),
    'snapshot.2',
  );
  const fs = new SimulatedDisk();

  await writeSnapshot(
    {
      zxid: 2n,
      sessions,
      acls,
      nodes,
      digest: () => summary.digest,
      lastZxid: () => summary.lastZxid!,
    },
    { folder, fs },
  );

  expect(nodes.map(({ path }) => path)).toEqual([
    '',
    '/a',
    '/zookeeper',
    '/zookeeper/config',
    '/zookeeper/quota',
  ]);
  expect(summary).toMatchObject({
    sessions: 1,
    acls: 2,
    nodes: 5,
    bytes: recorded.length,
    lastZxid: 2n,
  });
  expect(bytesOf(fs, 'snapshot.2').toString('hex')).toBe(recorded.toString('hex'));
});

test('the sum over its nodes is the digest that 3.9.5 wrote behind them', async () => {
  const { summary, nodes } = await read(diskWith('snapshot.2', recorded), 'snapshot.2');
  const sum = new TreeDigest();

  for (const node of nodes) sum.add(nodeDigest(node.path, node.data, node.stat));

  expect(sum.value).toBe(summary.digest!.value);
  for (const node of nodes) sum.remove(nodeDigest(node.path, node.data, node.stat));
  expect(sum.value).toBe(0n);
});

test('one of 3.9.5 without digests has its last zxid where a digest would stand', async () => {
  const whole = recordedWithoutDigest;
  const { summary, nodes } = await read(diskWith('snapshot.0', whole), 'snapshot.0');

  expect(summary).toMatchObject({ nodes: 4, digest: null, lastZxid: 0n, bytes: whole.length });
  expect(nodes.map(({ path }) => path)).toContain('/zookeeper/quota');
  for (const [cut, at] of [1, 8, 13, 20, 22, 33].entries()) {
    const fs = diskWith('snapshot.0', whole.subarray(0, whole.length - at));
    await expect(read(fs, 'snapshot.0'), `${cut}`).rejects.toThrow('DAMAGED_SNAPSHOT');
  }
});

test('where no digest is kept nothing stands behind the nodes, so that every server reads it', async () => {
  const fs = new SimulatedDisk();

  const { path } = await writeSnapshot({ ...content(10), digest: null }, { folder, fs });
  const { summary } = await read(fs, basename(path));

  expect(summary).toMatchObject({ nodes: 10, digest: null, lastZxid: null });
});

test('a digest carries over from one half to the other and back', () => {
  const sum = new TreeDigest();

  for (let i = 0; i < 5; i++) sum.add(0xffff_ffff);
  expect(sum.value).toBe(5n * 0xffff_ffffn);
  for (let i = 0; i < 6; i++) sum.remove(0xffff_ffff);

  expect(sum.value).toBe(-0xffff_ffffn);
});

describe.each(['none', 'gzip'] as const)('compression: %s', (compression) => {
  const name = compression === 'gzip' ? 'snapshot.100000007.gz' : 'snapshot.100000007';

  test('what was written comes back', async () => {
    const fs = new SimulatedDisk();

    const written = await writeSnapshot(content(5_000), { folder, fs, compression });
    const { summary, nodes, sessions, acls } = await read(fs, name);

    expect(written).toMatchObject({ path: `${folder}/${name}`, nodes: 5_000 });
    expect(isDeepStrictEqual(nodes.map(plain), [...manyNodes(5_000)])).toBe(true);
    expect(sessions).toEqual(content(0).sessions);
    expect(acls).toEqual(content(0).acls);
    expect(summary.digest).toEqual(content(0).digest!());
    expect(summary.lastZxid).toBe(0x1_0000_0009n);
  });

  test('it appears under its name only when it is synced as a whole', async () => {
    const fs = new SimulatedDisk();
    const ops: string[] = [];
    fs.fault = ({ op }) => void ops.push(op);

    await writeSnapshot(content(2_000), { folder, fs, compression });

    expect(ops.filter((op) => op !== 'write')).toEqual([
      'open create',
      'sync',
      'rename',
      'syncFolder',
    ]);
  });
});

test('one without a node is damage, however well it is sealed: every tree has a root', async () => {
  const fs = new SimulatedDisk();
  const { path } = await writeSnapshot({ ...content(0), nodes: [] }, { folder, fs });

  await expect(read(fs, basename(path))).rejects.toMatchObject({
    code: 'DAMAGED_SNAPSHOT',
    file: path,
    message: expect.stringContaining('every tree has a root'),
  });
});

test('it is synced piece by piece, aside from who else needs the disk, unless nobody does', async () => {
  const fs = new SimulatedDisk();
  const manners: (SyncManner | undefined)[] = [];
  const open = fs.open.bind(fs);
  fs.open = async (path, how) => {
    const file = await open(path, how);
    const sync = file.sync.bind(file);
    file.sync = (manner) => {
      manners.push(manner);
      return sync(manner);
    };
    return file;
  };

  const { bytes } = await writeSnapshot(content(20_000), { folder, fs });
  const pieces = Math.floor(bytes / (512 * 1024 + 128 * 1024));
  expect(pieces).toBeGreaterThan(2);
  expect(manners.pop()).toBeUndefined(); // the last: it is to have its name
  expect(manners.length).toBeGreaterThanOrEqual(pieces);
  expect(new Set(manners)).toEqual(new Set(['aside']));

  manners.length = 0;
  await writeSnapshot({ ...content(20_000), zxid: 2n }, { folder, fs, isAlone: true });
  expect(manners.length).toBeGreaterThan(pieces);
  expect(new Set(manners)).toEqual(new Set([undefined]));
});

test('while it is written others get their turn, every thousand nodes or so', async () => {
  const fs = new SimulatedDisk();
  let nodes = 0;
  const runs: number[] = [];
  fs.fault = ({ op }) => {
    if (op === 'write') runs.push(nodes);
    if (op === 'write') nodes = 0;
    return undefined;
  };
  function* counted() {
    for (const node of manyNodes(20_000)) {
      nodes += 1;
      yield node;
    }
  }

  await writeSnapshot({ ...content(0), nodes: counted() }, { folder, fs });

  expect(runs.length).toBeGreaterThan(10);
  expect(Math.max(...runs)).toBeLessThan(2_000); // a node takes at most a microsecond or two
});

test('a node with an ACL that is not listed is refused (ZOOKEEPER-4689)', async () => {
  const fs = new SimulatedDisk();
  const nodes = [{ path: '', data: null, acl: 9, stat }];

  const written = writeSnapshot({ ...content(0), nodes }, { folder, fs });

  await expect(written).rejects.toMatchObject({ code: 'SNAPSHOT_FAILED' });
  expect(await fs.list(folder)).toEqual([]);
});

describe('what is refused', () => {
  test.each([1, 15, 16, 40, 300, recorded.length - 30, recorded.length - 1])(
    'a snapshot cut to %i bytes',
    async (length) => {
      const fs = diskWith('snapshot.2', recorded.subarray(0, length));

      await expect(read(fs, 'snapshot.2')).rejects.toMatchObject({
        code: 'DAMAGED_SNAPSHOT',
        file: `${folder}/snapshot.2`,
      });
    },
  );

  test('a compressed snapshot cut short', async () => {
    const fs = diskWith('snapshot.2.gz', gzipSync(recorded).subarray(0, 100));

    await expect(read(fs, 'snapshot.2.gz')).rejects.toMatchObject({ code: 'DAMAGED_SNAPSHOT' });
  });

  test('one that inflates beyond the limit', async () => {
    const fs = diskWith('snapshot.2.gz', gzipSync(recorded));

    const reading = read(fs, 'snapshot.2.gz', { snapshotBytesMax: recorded.length - 1 });

    await expect(reading).rejects.toThrow(/more than 607 bytes once inflated/);
  });

  test('one that inflates to hundreds of times its size, before it is all in memory', async () => {
    const bomb = gzipSync(Buffer.concat([recorded.subarray(0, 16), Buffer.alloc(100 * 2 ** 20)]));
    const fs = diskWith('snapshot.2.gz', bomb);
    const sink = { session() {}, acl() {}, node() {} };

    const file = parseSnapshotName(folder, 'snapshot.2.gz')!;
    const reading = readSnapshot(fs, file, sink, { inflateRatioMax: 200 });

    await expect(reading).rejects.toThrow(/more than 67108864 bytes once inflated/);
  });
});

test('one of our own is read back, though it inflates a thousand times', async () => {
  const fs = new SimulatedDisk();
  const data = Buffer.alloc(1_000_000);
  const zeros = Array.from({ length: 70 }, (_, i) => ({ path: `/z${i}`, data, acl: -1, stat }));
  const nodes = [...manyNodes(1), ...zeros];

  const { path } = await writeSnapshot(
    { ...content(0), nodes },
    { folder, fs, compression: 'gzip' },
  );

  const ratio = 70e6 / bytesOf(fs, basename(path)).length;
  expect(ratio).toBeGreaterThan(900);
  expect((await read(fs, basename(path))).summary.nodes).toBe(71);
});

test('Snappy’s literals and copies are undone', () => {
  const literal = (text: string) => [(text.length - 1) << 2, ...Buffer.from(text)];
  // "abcd", 8 bytes from 4 back (overlapping itself), 5 from 2 back, and a literal of 61 bytes.
  const long = 'x'.repeat(61);
  const block = [4 + 8 + 5 + 61, ...literal('abcd')];
  block.push(1 | ((8 - 4) << 2), 4, 2 | ((5 - 1) << 2), 2, 0, 60 << 2, 60, ...Buffer.from(long));

  expect(String(decodeBlock(Buffer.from(block)))).toBe(`abcdabcdabcdcdcdc${long}`);
  expect(() => decodeBlock(Buffer.from([5, ...literal('abcd')]))).toThrow('cut short');
  expect(() => decodeBlock(Buffer.from([4, 1, 4]))).toThrow('from nowhere');
});
