/** What the tests of this room share: txns to log, and a tree of the simplest kind to recover into. */

import { Writer } from '../jute/index.ts';
import { type CreateTxn, openAcl, type StatPersisted, TxnHeader, txns } from '../protocol/index.ts';
import type { LogEntry } from './log-entry.ts';
import type { RecoveryHandlers } from './recovery-report.ts';
import type { SnapshotNode } from './snapshot-format.ts';

export const folder = '/data/version-2';

export const stat: StatPersisted = {
  czxid: 1n,
  mzxid: 2n,
  ctime: 3n,
  mtime: 4n,
  version: 5,
  cversion: 6,
  aversion: 7,
  ephemeralOwner: 0n,
  pzxid: 8n,
};

/** Data that tells where it belongs, so that a mix-up shows; no zeros in it. */
export function dataFor(zxid: bigint, bytes: number): Buffer {
  const text = `${zxid} `;
  return Buffer.from(text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes));
}

/** Every record of the same length: offsets in tests are then easy to tell. */
export const pathFor = (zxid: bigint | number) => `/n${String(zxid).padStart(12, '0')}`;

/** The creation of that path. */
export function createTxn(zxid: bigint, bytes = 20): Buffer {
  const writer = new Writer();
  const header = { clientId: 7n, cxid: 1, zxid, time: 1_700_000_000_000n, type: txns.create.code };
  TxnHeader.write(writer, header);
  const txn: CreateTxn = {
    path: pathFor(zxid),
    data: dataFor(zxid, bytes),
    acl: [...openAcl],
    ephemeral: false,
    parentCVersion: 1,
  };
  txns.create.record.write(writer, txn);
  return writer.written();
}

export function createTxns(from: number, to: number, bytes = 20): Buffer[] {
  const all: Buffer[] = [];
  for (let zxid = from; zxid <= to; zxid++) all.push(createTxn(BigInt(zxid), bytes));
  return all;
}

/** A tree that is nothing but paths and data. */
export class FlatTree implements RecoveryHandlers {
  readonly nodes = new Map<string, string>();
  readonly sessions = new Map<bigint, number>();
  begun = 0;

  begin(): void {
    this.begun += 1;
    this.nodes.clear();
    this.sessions.clear();
  }

  session(id: bigint, timeoutMs: number): void {
    this.sessions.set(id, timeoutMs);
  }

  acl(): void {}

  node({ path, data }: SnapshotNode): void {
    if (path !== '') this.nodes.set(path, String(data));
  }

  txn({ body }: LogEntry): void {
    if (body.type === 'create') this.nodes.set(body.txn.path, String(body.txn.data));
  }

  /** The tree as a snapshot wants it. */
  *snapshotNodes(): Generator<SnapshotNode> {
    yield { path: '', data: Buffer.alloc(0), acl: -1, stat };
    for (const [path, data] of this.nodes) yield { path, data: Buffer.from(data), acl: -1, stat };
  }
}

/** What a tree holds after txns 1 to `last`. */
export function expectedNodes(last: number, bytes = 20): Map<string, string> {
  const nodes = new Map<string, string>();
  for (let zxid = 1; zxid <= last; zxid++) {
    nodes.set(pathFor(zxid), String(dataFor(BigInt(zxid), bytes)));
  }
  return nodes;
}

export function treeOf(last: number, bytes = 20): FlatTree {
  const tree = new FlatTree();
  for (const [path, data] of expectedNodes(last, bytes)) tree.nodes.set(path, data);
  return tree;
}
