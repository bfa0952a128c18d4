/**
 * Files across the border: what Apache ZooKeeper wrote is read by us, and the other way round.
 *
 * A tree as simple as can be stands between: it applies what is in the log, Stats included, and sums up
 * its digest, which is compared with the one that Apache logged with every txn.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { decode, encode, FrameSplitter, Reader, Writer } from '../../src/jute/index.ts';
import {
  type Acl,
  ConnectRequest,
  ConnectResponse,
  digestId,
  digestValue,
  type OpName,
  openAcl,
  ops,
  permissions,
  ReplyHeader,
  type RequestOf,
  type ResponseOf,
  type StatPersisted,
  TxnDigest,
  TxnHeader,
  type TxnName,
  txns,
} from '../../src/protocol/index.ts';
import {
  digestVersion,
  type LogEntry,
  LogWriter,
  nodeDigest,
  type Recovered,
  type RecoveryHandlers,
  recover,
  type SnapshotNode,
  TreeDigest,
  txnBytesMax,
  writeSnapshot,
} from '../../src/storage/index.ts';
import { findZooKeepers, fourLetterWord, startApache } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

/** One session, one call at a time: enough to ask a server what it holds. */
class Session {
  readonly #socket: Socket;
  readonly #frames: Buffer[] = [];
  #wake = () => {};
  #xid = 0;
  id = 0n;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const splitter = new FrameSplitter(0xfffff, (bytes, start, end) => {
      this.#frames.push(Buffer.from(bytes.subarray(start, end)));
      this.#wake();
    });
    socket.on('data', (chunk) => splitter.push(chunk));
    socket.on('error', () => {});
  }

  static async open(port: number): Promise<Session> {
    const session = new Session(connect(port, '127.0.0.1'));
    const hello = {
      protocolVersion: 0,
      lastZxidSeen: 0n,
      timeOut: 30_000,
      sessionId: 0n,
      passwd: Buffer.alloc(16),
      readOnly: false,
    };
    session.#send(encode(ConnectRequest, hello));
    session.id = decode(ConnectResponse, await session.#frame()).sessionId;
    return session;
  }

  async call<N extends OpName>(op: N, request: RequestOf<N>): Promise<ResponseOf<N>> {
    const writer = new Writer();
    writer.int(op === 'auth' ? -4 : ++this.#xid);
    writer.int(ops[op].code);
    (ops[op].request as { write(writer: Writer, value: unknown): void }).write(writer, request);
    this.#send(writer.written());
    const reader = new Reader(await this.#frame());
    const { err } = ReplyHeader.read(reader);
    if (err !== 0) throw new Error(`${op}: ${err}`);
    return ops[op].response.read(reader) as ResponseOf<N>;
  }

  end(): void {
    this.#socket.destroy();
  }

  #send(bytes: Buffer): void {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    this.#socket.write(Buffer.concat([length, bytes]));
  }

  async #frame(): Promise<Buffer> {
    while (this.#frames.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#frames.shift()!;
  }
}

type Node = { data: string; acl: Acl[]; stat: Mutable<StatPersisted> };
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/'));
const blank: StatPersisted = {
  czxid: 0n,
  mzxid: 0n,
  ctime: 0n,
  mtime: 0n,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  pzxid: 0n,
};

class SmallTree implements RecoveryHandlers {
  readonly nodes = new Map<string, Node>();
  readonly sessions = new Map<bigint, number>();
  readonly acls = new Map<number, Acl[]>();
  digestsCompared = 0;
  readonly wrongDigests: bigint[] = [];
  fuzzyUntil = 0n;

  begin(): void {
    this.nodes.clear();
    this.sessions.clear();
    this.acls.clear();
    this.nodes.set('', { data: '', acl: [...openAcl], stat: { ...blank } });
    this.nodes.set('/zookeeper', { data: '', acl: [...openAcl], stat: { ...blank } });
  }

  session(id: bigint, timeoutMs: number): void {
    this.sessions.set(id, timeoutMs);
  }

  acl(id: number, acl: Acl[]): void {
    this.acls.set(id, acl);
  }

  node({ path, data, acl, stat }: SnapshotNode): void {
    const list = acl === -1 ? [...openAcl] : this.acls.get(acl)!;
    const plain = 'toObject' in stat ? (stat as { toObject(): StatPersisted }).toObject() : stat;
    this.nodes.set(path, { data: text(data), acl: list, stat: { ...plain } });
  }

  txn(entry: LogEntry): void {
    const { zxid, timeMs, clientId, digest } = entry;
    this.apply(entry.body.type, entry.body.txn, { zxid, time: BigInt(timeMs), clientId });
    if (digest === null || entry.zxid <= this.fuzzyUntil) return;
    this.digestsCompared += 1;
    if (digestValue(digest.halves) !== this.digest()) this.wrongDigests.push(entry.zxid);
  }

  apply(type: TxnName, body: unknown, at: { zxid: bigint; time: bigint; clientId: bigint }): void {
    const { zxid, time, clientId } = at;
    const txn = body as Record<string, never>;
    switch (type) {
      case 'createSession':
        this.sessions.set(clientId, txn.timeOut!);
        return;
      case 'closeSession':
        this.sessions.delete(clientId);
        for (const path of txn.paths2Delete! as string[]) this.#delete(path, zxid);
        return;
      case 'create':
      case 'create2':
      case 'createContainer':
      case 'createTTL': {
        const owner =
          type === 'createContainer'
            ? -(2n ** 63n)
            : type === 'createTTL'
              ? BigInt.asIntN(64, (0xffn << 56n) | (txn.ttl! as bigint))
              : txn.ephemeral
                ? clientId
                : 0n;
        const stat = { ...blank, czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: time, mtime: time };
        const acl = txn.acl! as Acl[];
        const node = { data: text(txn.data!), acl, stat: { ...stat, ephemeralOwner: owner } };
        this.nodes.set(txn.path!, node);
        const parent = this.nodes.get(parentOf(txn.path!))!;
        if (parent.stat.cversion < txn.parentCVersion!) {
          parent.stat.cversion = txn.parentCVersion!;
          parent.stat.pzxid = zxid;
        }
        return;
      }
      case 'delete':
      case 'deleteContainer':
        this.#delete(txn.path!, zxid);
        return;
      case 'setData': {
        const node = this.nodes.get(txn.path!)!;
        node.data = text(txn.data!);
        node.stat = { ...node.stat, mzxid: zxid, mtime: time, version: txn.version! };
        return;
      }
      case 'setACL': {
        const node = this.nodes.get(txn.path!)!;
        node.acl = txn.acl! as Acl[];
        node.stat.aversion = txn.version!;
        return;
      }
      case 'multi':
        for (const { type: code, data } of txn.txns! as { type: number; data: Buffer }[]) {
          const names = Object.keys(txns) as TxnName[];
          const name = names.find((each) => txns[each].code === code)!;
          if (name !== 'check' && name !== 'error') {
            this.apply(name, txns[name].record.read(new Reader(data)), at);
          }
        }
        return;
      default:
        return;
    }
  }

  #delete(path: string, zxid: bigint): void {
    this.nodes.delete(path);
    const parent = this.nodes.get(parentOf(path));
    if (parent === undefined) return;
    if (zxid > parent.stat.pzxid) parent.stat.pzxid = zxid;
  }

  digest(): bigint {
    const sum = new TreeDigest();
    for (const [path, { data, stat }] of this.nodes) {
      sum.add(nodeDigest(path, Buffer.from(data, 'latin1'), stat));
    }
    return sum.value;
  }
}

const text = (data: Buffer | null) => data?.toString('latin1') ?? '';

/** Everything below `path` as a client sees it, with the Stat that files hold. */
async function readAll(session: Session, path = ''): Promise<Map<string, unknown>> {
  const all = new Map<string, unknown>();
  const name = path === '' ? '/' : path;
  const { data, stat } = await session.call('getData', { path: name, watch: false });
  const { acl } = await session.call('getACL', { path: name });
  const { dataLength, numChildren, ...persisted } = (
    stat as unknown as { toObject(): Record<string, unknown> }
  ).toObject();
  const { children } = await session.call('getChildren', { path: name, watch: false });
  // A file counts creations alone; a client is told creations and deletions (DataNode.copyStat).
  const cversion = (Number(persisted.cversion) + Number(numChildren)) / 2;
  const told = { ...persisted, cversion };
  if (path !== '/zookeeper') all.set(path, { data: text(data), acl, stat: told });
  for (const child of children) {
    const below = `${path}/${child}`;
    if (below === '/zookeeper') continue;
    for (const entry of await readAll(session, below)) all.set(...entry);
  }
  return all;
}

/** A client is not shown the marks of containers and TTLs, which stand where the owner does. */
function seen(tree: SmallTree): Map<string, unknown> {
  const all = [...tree.nodes].filter(([path]) => !path.startsWith('/zookeeper'));
  const shown = (owner: bigint) => (owner < 0n ? 0n : owner);
  return new Map(
    all.map(([path, { stat, ...node }]) => {
      return [path, { ...node, stat: { ...stat, ephemeralOwner: shown(stat.ephemeralOwner) } }];
    }),
  );
}

/** Where two trees differ, node by node: a failure that can be read. */
function differences(left: Map<string, unknown>, right: Map<string, unknown>): unknown[] {
  const paths = new Set([...left.keys(), ...right.keys()]);
  const isSame = (path: string) => isDeepStrictEqual(left.get(path), right.get(path));
  return [...paths]
    .filter((path) => !isSame(path))
    .map((path) => [path, left.get(path), right.get(path)]);
}

const create = (path: string, data: string, acl: Acl[] = [...openAcl], flags = 0) => ({
  path,
  data: Buffer.from(data),
  acl,
  flags,
});

/** A bit of everything that leaves a trace in the files. */
async function work(session: Session): Promise<void> {
  const mine: Acl[] = [{ perms: permissions.all, id: digestId('me:secret') }];
  await session.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from('me:secret') });
  await session.call('create', create('/a', 'first'));
  await session.call('create', create('/a/üñ', 'ünïcode'));
  await session.call('create', create('/mine', 'guarded', mine));
  for (let i = 0; i < 120; i++) await session.call('create', create(`/a/n-`, `${i}`, undefined, 2));
  for (let i = 0; i < 30; i++) {
    const data = Buffer.from(`${'x'.repeat(i * 100)}`);
    await session.call('setData', { path: '/a', data, version: -1 });
  }
  await session.call('delete', { path: '/a/n-0000000005', version: -1 });
  await session.call('setACL', { path: '/a/üñ', acl: mine, version: -1 });
  await session.call('create2', create('/ephemeral', 'me', undefined, 1));
  await session.call('createContainer', create('/container', '', undefined, 4));
  await session.call('createTTL', { ...create('/ttl', '', undefined, 5), ttl: 99_999n });
  await expect(session.call('create', create('/a', 'again'))).rejects.toThrow('-110');
  await session.call('create', create('/last', 'last'));
}

describe.each(found)('$name', { timeout: 120_000 }, (peer) => {
  test.each(['', 'gz', 'snappy'])(
    'what it wrote is what we read, compression %j',
    async (method) => {
      const jvm = ['-Dzookeeper.snapCount=50', `-Dzookeeper.snapshot.compression.method=${method}`];
      await using server = await startApache(peer, { jvm });
      const session = await Session.open(server.port);
      await work(session);
      const told = await readAll(session);
      await server.kill();

      const tree = new SmallTree();
      const folder = join(server.dir, 'data', 'version-2');
      const recovered = await recover(folder, folder, tree, { readOnly: true });
      const fromLogs = await replayAll(folder);

      expect(differences(seen(tree), told)).toEqual([]);
      expect(recovered.snapshot!.file.name).toMatch(
        method === '' ? /^snapshot\.[0-9a-f]+$/ : `.${method}`,
      );
      expect(recovered.lastZxid).toBe(fromLogs.recovered.lastZxid);
      expect(tree.sessions).toEqual(new Map([[session.id, 30_000]]));
      expect(differences(seen(fromLogs.tree), told)).toEqual([]);
      expect(fromLogs.tree.digestsCompared).toBeGreaterThan(100);
      expect(fromLogs.tree.wrongDigests).toEqual([]);
      session.end();
    },
  );

  test.each(['none', 'gzip'] as const)(
    'what we wrote is what it serves, compression %s',
    async (compression) => {
      const dir = mkdtempSync(join(tmpdir(), 'drover-storage-'));
      const folder = join(dir, 'data', 'version-2');
      mkdirSync(folder, { recursive: true });
      const { tree, sessionId } = await writeDirectory(folder, compression);

      await using server = await startApache(peer, { dir });
      const session = await Session.open(server.port);
      await session.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from('me:secret') });
      const told = await readAll(session);
      const dump = await fourLetterWord(server.port, 'dump');
      const metrics = await fourLetterWord(server.port, 'mntr');
      const mismatches = metrics.split('\n').filter((line) => line.includes('digest_mismatch'));

      expect(differences(told, seen(tree))).toEqual([]);
      expect(dump).toContain(`0x${sessionId.toString(16)}`);
      expect(dump).toContain('/ephemeral');
      expect(mismatches).toEqual(['zk_digest_mismatches_count\t0']);
      await session.call('create', create('/by-apache', 'after us'));
      await server.kill();

      const again = new SmallTree();
      const back = await recover(folder, folder, again);
      expect(again.nodes.get('/by-apache')!.data).toBe('after us');
      expect(back.notices.filter(({ kind }) => kind !== 'tornTail')).toEqual([]);
      session.end();
      rmSync(dir, { recursive: true });
    },
  );

  test('the largest txn that we log is one that it can read back (ZOOKEEPER-4306)', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'drover-storage-'));
    const folder = join(dir, 'data', 'version-2');
    mkdirSync(folder, { recursive: true });
    const tree = new SmallTree();
    tree.begin();
    const nodes = [...tree.nodes].map(([path, { stat }]) => ({ path, data: null, acl: -1, stat }));
    await writeSnapshot({ zxid: 0n, sessions: new Map(), acls: new Map(), nodes }, { folder });
    const log = new LogWriter({ folder, lastZxid: 0n });
    const closing = (zxid: bigint, bytes: number) => {
      const writer = new Writer();
      const type = txns.closeSession.code;
      TxnHeader.write(writer, { clientId: 5n, cxid: 0, zxid, time: 1n, type });
      const rest = bytes - writer.length - 4;
      const paths = Array.from({ length: Math.floor(rest / 1000) }, () => `/${'x'.repeat(995)}`);
      paths.push(`/${'x'.repeat((rest % 1000) - 5)}`);
      txns.closeSession.record.write(writer, { paths2Delete: paths });
      return writer.detach();
    };
    await log.append([closing(1n, txnBytesMax)]);
    await expect(log.append([closing(2n, txnBytesMax + 1)])).rejects.toThrow('TXN_TOO_LARGE');
    await log.append([closing(2n, 1_000)]);
    await log.close();

    await using server = await startApache(peer, { dir });

    expect(await fourLetterWord(server.port, 'srvr')).toContain('Zxid: 0x2');
    await server.kill();
    rmSync(dir, { recursive: true });
  });
});

/** From nothing, by the logs alone: our way back when every snapshot is gone. */
async function replayAll(folder: string): Promise<{ tree: SmallTree; recovered: Recovered }> {
  const tree = new SmallTree();
  const nowhere = mkdtempSync(join(tmpdir(), 'drover-storage-'));
  try {
    const recovered = await recover(nowhere, folder, tree, { readOnly: true });
    return { tree, recovered };
  } finally {
    rmSync(nowhere, { recursive: true });
  }
}

/** A snapshot in the middle of the history, a log before it and one behind. */
async function writeDirectory(folder: string, compression: 'none' | 'gzip') {
  const tree = new SmallTree();
  tree.begin();
  const sessionId = 0x1234_5678_9abc_def0n;
  const log = new LogWriter({ folder, lastZxid: 0n });
  const mine: Acl[] = [{ perms: permissions.all, id: digestId('me:secret') }];
  let zxid = 0n;
  const write = async (type: TxnName, txn: unknown) => {
    zxid += 1n;
    const header = {
      clientId: sessionId,
      cxid: Number(zxid),
      zxid,
      time: 1_700_000_000_000n + zxid,
    };
    tree.apply(type, txn, header);
    const writer = new Writer();
    TxnHeader.write(writer, { ...header, type: txns[type].code });
    (txns[type].record as { write(writer: Writer, txn: unknown): void }).write(writer, txn);
    TxnDigest.write(writer, { version: digestVersion, treeDigest: tree.digest() });
    await log.append([writer.detach()]);
  };
  let children = 0;
  const creation = (path: string, data: string, acl = [...openAcl], ephemeral = false) => ({
    path,
    data: Buffer.from(data),
    acl,
    ephemeral,
    parentCVersion: ++children,
  });
  await write('createSession', { timeOut: 30_000 });
  for (let i = 0; i < 200; i++) await write('create', creation(`/n${i}`, `${i}`.repeat(i)));
  await write('create', creation('/mine', 'guarded', mine));

  log.roll();
  const acls = new Map([[1, mine]]);
  const nodes = [...tree.nodes].map(([path, { data, acl, stat }]) => ({
    path,
    data: Buffer.from(data, 'latin1'),
    acl: acl === mine ? 1 : -1,
    stat: { ...stat },
  }));
  const digest = { zxid, version: digestVersion, value: tree.digest() };
  const content = { zxid, sessions: tree.sessions, acls, nodes, digest: () => digest };
  await writeSnapshot(content, { folder, compression });

  await write('create', creation('/ephemeral', 'me', undefined, true));
  await write('delete', { path: '/n7' });
  await write('setData', { path: '/n8', data: Buffer.from('changed'), version: 1 });
  await write('setACL', { path: '/n9', acl: mine, version: 1 });
  await write('error', { err: -101 });
  for (let i = 200; i < 300; i++) await write('create', creation(`/n${i}`, `${i}`));
  await log.close();
  return { tree, sessionId };
}
