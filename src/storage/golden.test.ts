/** Directories that Apache’s servers wrote, and what their clients read at that moment: test/golden/files. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Acl, nodeDigest, TreeDigest } from '../protocol/index.ts';
import { parseLogName, parseSnapshotName } from './file-names.ts';
import { realFileSystem } from './file-system.ts';
import { FlatTree, folder } from './fixtures.ts';
import { verifyDirectory } from './inspect.ts';
import { LogReader } from './log-reader.ts';
import { LogWriter } from './log-writer.ts';
import { recover } from './recover.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import type { SnapshotNode } from './snapshot-format.ts';
import { readSnapshot } from './snapshot-reader.ts';
import { writeSnapshot } from './snapshot-writer.ts';

const root = join(import.meta.dirname, '../../test/golden/files');
const directories = existsSync(root) ? readdirSync(root) : [];
const filesOf = (directory: string) => readdirSync(join(root, directory, 'version-2'));
const all = directories.flatMap((directory) => filesOf(directory).map((name) => [directory, name]));
const snapshots = all.filter(([, name]) => name!.startsWith('snapshot'));
const logs = all.filter(([, name]) => name!.startsWith('log'));

interface ExpectedNode {
  readonly path: string;
  readonly data: string | null;
  readonly acl: readonly { perms: number; scheme: string; id: string }[];
  readonly stat: Readonly<Record<string, string>>;
}

const expectedOf = (directory: string) =>
  JSON.parse(readFileSync(join(root, directory, 'expected.json'), 'utf8')) as {
    readonly lastZxid: string;
    readonly sessions: readonly { id: string; timeoutMs: number }[];
    readonly nodes: readonly ExpectedNode[];
  };

async function read(directory: string, name: string) {
  const nodes: SnapshotNode[] = [];
  const sessions = new Map<bigint, number>();
  const acls = new Map<number, Acl[]>();
  const file = parseSnapshotName(join(root, directory, 'version-2'), name)!;
  const summary = await readSnapshot(realFileSystem, file, {
    session: (id, timeoutMs) => void sessions.set(id, timeoutMs),
    acl: (id, acl) => void acls.set(id, acl),
    node: (node) => void nodes.push(node),
  });
  return { summary, nodes, sessions, acls };
}

test('there are such directories', () => {
  expect(snapshots.length).toBeGreaterThan(0);
  expect(logs.length).toBeGreaterThan(0);
});

test.each(directories)(
  '%s is recovered up to its last txn, and every file is sound',
  async (name) => {
    const folderThere = join(root, name, 'version-2');

    const { lastZxid } = await recover(folderThere, folderThere, new FlatTree(), {
      readOnly: true,
    });
    const { snapshots: reports, logs: logReports } = await verifyDirectory(
      folderThere,
      folderThere,
    );

    expect(lastZxid).toBe(BigInt(expectedOf(name).lastZxid));
    expect([...reports, ...logReports].map(({ fault }) => fault).filter(Boolean)).toEqual([]);
  },
);

describe.each(snapshots)('%s, %s', (directory, name) => {
  test('the sum over the nodes is the digest behind them', async () => {
    const { summary, nodes } = await read(directory!, name!);
    const sum = new TreeDigest();
    for (const node of nodes) sum.add(nodeDigest(node.path, node.data, node.stat));

    expect(summary.digest === null || summary.digest.value === sum.value).toBe(true);
  });

  test('what was read is written as the same bytes', async () => {
    if (!/^snapshot\.[0-9a-f]+$/.test(name!)) return; // deflate has many ways to say the same
    const { summary, nodes, sessions, acls } = await read(directory!, name!);
    const { zxid } = summary.file;
    const fs = new SimulatedDisk();
    const lastZxid = () => summary.lastZxid ?? zxid;
    const content = { zxid, sessions, acls, nodes, digest: () => summary.digest, lastZxid };

    await writeSnapshot(content, { folder, fs });

    const theirs = readFileSync(join(root, directory!, 'version-2', name!));
    const ours = [...fs.contents().values()][0]!;
    const extra = summary.lastZxid === null ? 21 : 0; // 3.8 has no last zxid and its seal
    expect(ours.subarray(0, ours.length - extra).toString('hex')).toBe(theirs.toString('hex'));
  });
});

test.each(logs)('%s, %s: what was read is written as the same bytes', async (directory, name) => {
  const file = parseLogName(join(root, directory!, 'version-2'), name!)!;
  const txns: Buffer[] = [];
  const reader = await LogReader.open(realFileSystem, file);
  const { end } = await reader.read(({ bytes }) => txns.push(bytes));
  await reader.close();
  const fs = new SimulatedDisk();
  const log = new LogWriter({ folder, lastZxid: file.zxid - 1n, fs, preallocBytes: 0 });

  await log.append(txns);
  await log.close();

  const theirs = readFileSync(file.path).subarray(0, end.offset);
  expect(fs.contents().get(`${folder}/${name}`)!.toString('hex')).toBe(theirs.toString('hex'));
});

const complete = snapshots.filter(([directory, name]) => {
  return parseSnapshotName('', name!)!.zxid === BigInt(expectedOf(directory!).lastZxid);
});

test.each(complete)('%s, %s holds what a client read', async (directory, name) => {
  const { nodes, sessions, acls } = await read(directory!, name!);
  const expected = expectedOf(directory!);
  const children = (path: string) => nodes.filter((node) => parentOf(node.path) === path).length;
  const shown = (node: SnapshotNode) => {
    const { stat, data, path } = node;
    const hidden = stat.ephemeralOwner < 0n; // the mark of a container or a TTL
    return {
      ...kindOf(stat.ephemeralOwner),
      path: path || '/',
      data: data?.toString('hex') ?? null,
      acl: (acls.get(node.acl) ?? openAcl).map(({ perms, id }) => ({ perms, ...id })),
      stat: {
        czxid: `${stat.czxid}`,
        mzxid: `${stat.mzxid}`,
        ctime: `${stat.ctime}`,
        mtime: `${stat.mtime}`,
        version: `${stat.version}`,
        cversion: `${stat.cversion * 2 - children(path)}`,
        aversion: `${stat.aversion}`,
        ephemeralOwner: `${hidden ? 0 : stat.ephemeralOwner}`,
        dataLength: `${data?.length ?? 0}`,
        numChildren: `${children(path)}`,
        pzxid: `${stat.pzxid}`,
      },
    };
  };

  const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1);
  expect(nodes.map(shown).sort(byPath)).toEqual([...expected.nodes].sort(byPath));
  expect([...sessions]).toEqual(
    expect.arrayContaining(expected.sessions.map(({ id, timeoutMs }) => [BigInt(id), timeoutMs])),
  );
});

/** A container's owner is the smallest long; a TTL's has a first byte of ff and then the milliseconds. */
function kindOf(owner: bigint): object {
  if (owner >= 0n) return {};
  if (owner === -(2n ** 63n)) return { mode: 'container' };
  return { mode: 'ttl', ttlMs: `${owner & 0xff_ffff_ffffn}` };
}

const openAcl: Acl[] = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const parentOf = (path: string) => (path === '' ? null : path.slice(0, path.lastIndexOf('/')));
