/**
 * `drover log` and `drover snapshot` as a person has them: real processes on files that Apache's servers
 * wrote and on a directory of ours, whole, damaged, and while a server writes to it.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Columns } from '../src/cli/columns.ts';
import type { Context } from '../src/cli/command.ts';
import { filesOf } from '../src/cli/file-actions.ts';
import { log } from '../src/cli/log.ts';
import { dataText, escaped, jsonLine, Output } from '../src/cli/output.ts';
import { snapshot } from '../src/cli/snapshot.ts';
import { connect } from '../src/client/index.ts';
import { Writer } from '../src/jute/index.ts';
import { openAcl, TxnHeader, txns } from '../src/protocol/index.ts';
import { startServer } from '../src/server/index.ts';
import { LogWriter, realFileSystem, writeSnapshot } from '../src/storage/index.ts';
import { ManualClock } from '../src/support/index.ts';

// A process takes long to start where several tests share two cores.
vi.setConfig({ testTimeout: 60_000 });

const root = resolve(import.meta.dirname, '..');
const tsx = import.meta.resolve('tsx');
const golden = join(root, 'test/golden/files');

let folder: string;
const running = new Set<ChildProcess>();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-files-'));
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const child of running) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
});

function start(...args: string[]): ChildProcess {
  const main = join(root, 'src/cli/main.ts');
  const child = spawn(process.execPath, ['--import', tsx, main, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH! },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function drover(...args: string[]) {
  const child = start(...args);
  const said = { out: '', err: '' };
  child.stdout!.setEncoding('utf8').on('data', (chunk) => {
    said.out += chunk;
  });
  child.stderr!.setEncoding('utf8').on('data', (chunk) => {
    said.err += chunk;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...said, lines: said.out.split('\n').slice(0, -1) };
}

// biome-ignore lint/suspicious/noExplicitAny: whatever was printed
const records = ({ lines }: { lines: string[] }): any[] => lines.map((line) => JSON.parse(line));

const copyOf = (name: string) => {
  cpSync(join(golden, name), join(folder, name), { recursive: true });
  return join(folder, name, 'version-2');
};

function flip(file: string, offset: number): void {
  const bytes = readFileSync(file);
  bytes[offset]! ^= 1;
  writeFileSync(file, bytes);
}

/** Every byte below a folder, and when it was written. */
function picture(dir: string): Record<string, string> {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' });
  const files = names.map((name) => join(dir, name)).filter((path) => statSync(path).isFile());
  return Object.fromEntries(
    files.map((path) => [path, `${statSync(path).mtimeMs} ${readFileSync(path).toString('hex')}`]),
  );
}

describe('files that Apache wrote', () => {
  test.each(readdirSync(golden))('%s is found sound', async (name) => {
    const [logs, snapshots] = await Promise.all([
      drover('log', 'verify', join(golden, name), '--json'),
      drover('snapshot', 'verify', join(golden, name)),
    ]);

    expect(logs.code).toBe(0);
    expect(records(logs).at(-1)).toMatchObject({ isSound: true, startsAtZxid: '0x4d' });
    expect(snapshots.code).toBe(0);
    expect(snapshots.lines.slice(1).every((line) => line.includes('  sound  '))).toBe(true);
  });

  test.each([
    ['apache-3.9-gzip', 'snapshot.4d.gz'],
    ['apache-3.9-snappy', 'snapshot.4d.snappy'],
  ])('%s is dumped as its clients saw it', async (name, file) => {
    const expected = JSON.parse(readFileSync(join(golden, name, 'expected.json'), 'utf8'));

    const dump = await drover('snapshot', 'dump', join(golden, name, 'version-2', file), '--json');

    const all = records(dump);
    const nodes = all.filter(({ record }) => record === 'node');
    const sorted = (paths: string[]) => paths.sort();
    expect(sorted(nodes.map(({ path }) => path))).toEqual(
      sorted(expected.nodes.map(({ path }: { path: string }) => path)),
    );
    for (const { path, data, acl, stat } of expected.nodes) {
      const node = nodes.find((each) => each.path === path);
      const bytes = node.data && Buffer.from(node.data.text ?? node.data.hex, encodingOf(node));
      expect([path, bytes?.toString('hex') ?? null]).toEqual([path, data]);
      expect(node.version).toBe(Number(stat.version));
      expect(BigInt(node.mzxid)).toBe(BigInt(stat.mzxid));
      expect(Date.parse(node.mtime)).toBe(Number(stat.mtime));
      expect(node.acl.map((each: { id: string }) => each.id)).toEqual(
        acl.map((each: { id: string }) => each.id),
      );
    }
    expect(all.filter(({ record }) => record === 'session')).toHaveLength(expected.sessions.length);
    expect(all.at(-1)).toMatchObject({ record: 'end', nodes: nodes.length, lastZxid: '0x4d' });
    expect(dump.code).toBe(0);
  });

  test.each(['apache-3.9', 'debian-3.8'])('every transaction of %s is dumped', async (name) => {
    const [json, text, one] = await Promise.all([
      drover('log', 'dump', join(golden, name), '--json'),
      drover('log', 'dump', join(golden, name)),
      drover('log', 'dump', join(golden, name, 'version-2/log.3f'), '--json'),
    ]);

    const all = records(json).filter(({ record }) => record === 'txn');
    expect(all.map(({ zxid }) => Number(zxid))).toEqual(
      Array.from({ length: 77 }, (_, i) => i + 1),
    );
    expect(all[1]).toMatchObject({ type: 'create', path: '/data', ephemeral: false, data: null });
    expect(all[49].parts).toHaveLength(9);
    const pathAt = text.lines[0]!.indexOf('PATH');
    expect(text.lines.find((line) => line.startsWith('0x3 '))!.slice(pathAt)).toMatch(
      /^\/data\/text +data hello$/,
    );
    expect(text.lines.filter((line) => line.startsWith('0x32 '))).toHaveLength(10);
    expect(text.err).toMatch(/log\.1: 62 transactions, 0x1 to 0x3e\n.*log\.3f: 15 transactions/);
    expect(records(one)).toHaveLength(16);
    expect([json.code, text.code, one.code]).toEqual([0, 0, 0]);
  });

  test('the life of a node is told across logs', async () => {
    const data = join(golden, 'apache-3.9');
    const [text, json, multi] = await Promise.all([
      drover('log', 'history', '/data/text', '--data', data),
      drover('log', 'history', '/data/text', '--data', join(data, 'version-2'), '--json'),
      drover('log', 'history', '/multi', '--data', data),
    ]);

    expect(text.lines.map((line) => line.split(/ {2,}/))).toEqual([
      ['ZXID', 'TIME', 'SESSION', 'CHANGE', 'VERSION', 'BEFORE', 'AFTER'],
      [
        '0x3',
        expect.stringMatching(/^2\d+-.*Z$/),
        '0x100002e4c590000',
        'created',
        '0',
        'none',
        'hello',
      ],
      [
        '0x40',
        expect.stringMatching(/Z$/),
        '0x100002e5a2e0000',
        'data set',
        '1',
        'hello',
        'hello again',
      ],
    ]);
    expect(records(json)[1]).toMatchObject({
      kind: 'dataSet',
      before: { data: { text: 'hello' }, version: 0 },
      after: { data: { text: 'hello again' }, version: 1 },
      file: join(data, 'version-2/log.3f'),
    });
    expect(records(json).at(-1)).toEqual({
      record: 'end',
      path: '/data/text',
      changes: 2,
      gaps: [],
    });
    expect(multi.out).toContain('data set, part 7 of a multi');
    expect([text.code, json.code]).toEqual([0, 0]);
  });

  test('two snapshots are compared', async () => {
    const at = (name: string) => join(golden, name);
    const old = at('apache-3.9/version-2/snapshot.3e');
    const gzip = at('apache-3.9-gzip/version-2/snapshot.4d.gz');
    const [text, json, same] = await Promise.all([
      drover('snapshot', 'diff', old, gzip),
      drover('snapshot', 'diff', old, gzip, '--json'),
      drover('snapshot', 'diff', gzip, at('apache-3.9-snappy/version-2/snapshot.4d.snappy')),
    ]);

    expect(text.code).toBe(1);
    expect(text.lines.map((line) => line.split(/ {2,}/))).toContainEqual([
      ...['changed', '/data/text', 'mzxid,mtime,version,data'],
    ]);
    expect(text.lines.map((line) => line.split(/ {2,}/))).toContainEqual([
      ...['removed', '/deep/a/b/c', '-'],
    ]);
    expect(records(json).at(-1)).toMatchObject({ added: 4, removed: 3, changed: 9 });
    expect(same).toMatchObject({
      code: 0,
      out: '',
      err: 'drover: 0 added, 0 removed, 0 changed\n',
    });
  });

  test('nothing is changed by looking', async () => {
    const there = copyOf('apache-3.9');
    const before = picture(folder);

    await Promise.all([
      drover('log', 'dump', there),
      drover('log', 'verify', there),
      drover('log', 'history', '/data', '--data', there),
      drover('snapshot', 'verify', there),
    ]);

    expect(picture(folder)).toEqual(before);
  });
});

function encodingOf({ data }: { data: { text?: string } }): 'utf8' | 'hex' {
  return data.text === undefined ? 'hex' : 'utf8';
}

describe('damage', () => {
  test('in a log is found by verify, dump and history, with file and offset', async () => {
    const there = copyOf('apache-3.9');
    const damaged = join(there, 'log.3f');
    const [, second] = records(await drover('log', 'dump', damaged, '--json'));
    flip(damaged, second.offset + 30);

    const [text, json, dump, history, fine] = await Promise.all([
      drover('log', 'verify', there),
      drover('log', 'verify', there, '--json'),
      drover('log', 'dump', damaged, '--json'),
      drover('log', 'history', '/data/text', '--data', there),
      drover('snapshot', 'verify', there),
    ]);

    expect([text.code, json.code, dump.code, history.code, fine.code]).toEqual([1, 1, 1, 1, 0]);
    const place = `${damaged}, behind zxid 0x3f, at offset ${second.offset}, is damaged: wrong checksum`;
    for (const { err } of [text, json, dump, history]) expect(err).toContain(place);
    expect(text.err).toMatch(
      /a server would refuse to start: DAMAGED_LOG.*0x40 to 0x4d.*--salvage/,
    );
    expect(text.lines.find((line) => line.startsWith(damaged))).toMatch(/ {2}damaged {2}/);
    const verdict = records(json).at(-1);
    expect(verdict).toMatchObject({ isSound: false, startsAtZxid: null, isInUse: false });
    expect(verdict.damage[0]).toMatchObject({ file: damaged, offset: second.offset });
    expect(verdict.refusal).toMatchObject({
      code: 'DAMAGED_LOG',
      zxids: { from: '0x40', to: '0x4d' },
    });
    expect(records(dump).map(({ record, zxid }) => zxid ?? record)).toEqual(['0x3f', 'end']);
    expect(history.out).toContain('0x3 ');
  });

  test('in a snapshot is found, and is told apart from whether a server would start', async () => {
    const there = copyOf('apache-3.9');
    const damaged = join(there, 'snapshot.3e');
    flip(damaged, 700);

    const [whole, one, dump, diff] = await Promise.all([
      drover('log', 'verify', there),
      drover('snapshot', 'verify', there),
      drover('snapshot', 'dump', damaged),
      drover('snapshot', 'diff', join(there, 'snapshot.0'), damaged),
    ]);

    expect([whole.code, one.code, dump.code, diff.code]).toEqual([1, 1, 1, 2]);
    for (const { err } of [whole, one, dump, diff]) {
      expect(err).toContain(`${damaged} (zxid 0x3e) is damaged at offset `);
    }
    expect(whole.out).toContain(
      'a server would start at zxid 0x4d: snapshot.0 and 77 transactions',
    );
    expect(whole.err).toContain('what a server needs is whole');
    expect(dump.err).toContain('believe nothing of what was printed');
    expect(diff.err).toContain("can't be compared");
  });

  test('a batch that was cut short is no damage', async () => {
    const there = copyOf('debian-3.8');
    const torn = join(there, 'log.3f');
    const end = records(await drover('log', 'dump', torn, '--json')).at(-1);
    truncateSync(torn, end.offset - 5);

    const [verified, dump] = await Promise.all([
      drover('log', 'verify', there),
      drover('log', 'dump', torn, '--json'),
    ]);

    expect([verified.code, dump.code]).toEqual([0, 0]);
    expect(verified.out).toMatch(/log\.3f {2,}torn .*\n.*start at zxid 0x4c/);
    expect(verified.err).toMatch(/log\.3f: cut short, at offset \d+: a batch that was never ackn/);
    expect(records(dump).at(-1)).toMatchObject({ end: 'torn', lastZxid: '0x4c' });
  });

  test('what no log tells is said with the life of a node', async () => {
    const there = copyOf('apache-3.9');
    rmSync(join(there, 'log.1'));
    rmSync(join(there, 'snapshot.3e'));
    const withGap = await drover('log', 'history', '/data/text', '--data', there);
    rmSync(join(there, 'snapshot.0'));

    const unknown = await drover('log', 'history', '/data/text', '--data', there, '--json');

    expect(withGap.err).toContain('zxids 0x1 to 0x3e are in no log');
    expect(withGap.lines[1]).toMatch(/data set +1 +\? +hello again/);
    expect(unknown.err).toContain('what was before zxid 0x3f is in no file');
    const [change] = records(unknown);
    expect(change).toMatchObject({ isBeforeKnown: false, before: null });
    expect(change.after).toEqual({ data: { text: 'hello again' }, version: 1 });
    expect(unknown.code).toBe(0);
  });

  test('what has a right checksum and is no transaction is named with its place', async () => {
    const bytes = new Writer();
    TxnHeader.write(bytes, { clientId: 1n, cxid: 2, zxid: 1n, time: 3n, type: 99 });
    await write(bytes.written());

    const [dump, verified, history] = await Promise.all([
      drover('log', 'dump', folder),
      drover('log', 'verify', folder),
      drover('log', 'history', '/a', '--data', folder),
    ]);

    for (const { code, err } of [dump, verified, history]) {
      expect(err).toMatch(/log\.1 holds at offset 16, zxid 0x1, what is no transaction.*type 99/);
      expect(code).toBe(1);
    }
  });
});

/** One log of the given transactions. */
async function write(...batch: Buffer[]): Promise<void> {
  const writer = new LogWriter({ folder, lastZxid: 0n, preallocBytes: 0 });
  await writer.append(batch);
  await writer.close();
}

function creation(zxid: number, path: string, data: string): Buffer {
  const writer = new Writer();
  const type = txns.create.code;
  TxnHeader.write(writer, { clientId: 7n, cxid: 1, zxid: BigInt(zxid), time: 1_700n, type });
  const txn = { path, data: Buffer.from(data), acl: [...openAcl], ephemeral: false };
  txns.create.record.write(writer, { ...txn, parentCVersion: 1 });
  return writer.detach();
}

describe('a directory of ours', () => {
  test('is read while its server writes to it', async () => {
    await using server = await startServer({ port: 0, dataDir: join(folder, 'data') });
    const zk = await connect(server.address);
    const owner = await connect(server.address);
    await zk.create('/config', 'one');
    await zk.set('/config', Buffer.from([0xff, 0x00]));
    await owner.create('/here', 'me', { mode: 'ephemeral' });
    const { sessionId } = owner;
    await owner.close();
    await zk.delete('/config');
    let isOver = false;
    const load = (async () => {
      for (let i = 0; !isOver; i++) await zk.create(`/n${i}`, 'x'.repeat(200));
    })();

    const verify = () => drover('log', 'verify', 'data');
    const [first, dump, config, here] = await Promise.all([
      verify(),
      drover('log', 'dump', 'data'),
      drover('log', 'history', '/config', '--data', 'data'),
      drover('log', 'history', '/here', '--data', 'data'),
    ]);
    // It looks for some milliseconds, in which this process, on a busy machine, may write nothing.
    let verified = first;
    while (!verified.err.includes('a server is writing to')) verified = await verify();
    isOver = true;
    await load;
    await zk.close();

    expect([first.code, verified.code, dump.code, config.code, here.code]).toEqual([0, 0, 0, 0, 0]);
    expect(verified.err).toContain('a server is writing to data/version-2');
    const told = (lines: string[]) => lines.slice(1).map((line) => line.split(/ {2,}/).slice(3));
    expect(told(config.lines)).toEqual([
      ['created', '0', 'none', 'one'],
      ['data set', '1', 'one', '0xff00'],
      ['deleted', '-', '0xff00', 'none'],
    ]);
    expect(told(here.lines)).toEqual([
      ['created ephemeral', '0', 'none', 'me'],
      ['deleted with its session', '-', 'me', 'none'],
    ]);
    expect(here.out).toContain(`0x${sessionId!.toString(16)}`);
  });

  test('may have its logs elsewhere', async () => {
    const at = { dataDir: join(folder, 'data'), dataLogDir: join(folder, 'logs') };
    const server = await startServer({ port: 0, ...at });
    const zk = await connect(server.address);
    await zk.create('/a', 'x');
    await zk.close();
    await server.close();

    const [verified, without, history, lost] = await Promise.all([
      drover('log', 'verify', 'data', '--data-log', 'logs'),
      drover('log', 'verify', 'data'),
      drover('log', 'history', '/a', '--data', 'data', '--data-log', 'logs'),
      drover('log', 'history', '/a', '--data', 'data'),
    ]);

    expect(verified).toMatchObject({ code: 0, err: '' });
    expect(without.err).toContain('name it with --data-log');
    expect(history.lines).toHaveLength(2);
    expect(lost).toMatchObject({ code: 2, out: '' });
    expect(lost.err).toContain('name it with --data-log');
  });

  test('damage below the durable mark is found although it looks like a torn end', async () => {
    const server = await startServer({ port: 0, dataDir: join(folder, 'data') });
    const zk = await connect(server.address);
    for (let i = 0; i < 20; i++) await zk.create(`/n${i}`);
    await zk.close();
    await server.close();
    const file = join(folder, 'data/version-2/log.1');
    const end = records(await drover('log', 'dump', file, '--json')).at(-1);
    truncateSync(file, end.offset - 5);

    const [verified, dump] = await Promise.all([
      drover('log', 'verify', 'data'),
      drover('log', 'dump', file),
    ]);

    expect([verified.code, dump.code]).toEqual([1, 1]);
    for (const { err } of [verified, dump]) expect(err).toContain('was synced');
  });
});

/**
 * The first look sees zeros from `offset` on in the stretch that it has read, and when it asks again,
 * to judge the end, they have become entries: what a reader meets beside a writer.
 */
function writeWhileRead(path: string, offset: number): void {
  const { open } = realFileSystem;
  let looks = 0;
  vi.spyOn(realFileSystem, 'open').mockImplementation(async (name, how) => {
    const file = await open(name, how);
    if (name !== path || looks++ > 0) return file;
    let reads = 0;
    const read = async (target: Buffer, position: number) => {
      const length = await file.read(target, position);
      if (reads++ === 0) target.fill(0, Math.max(0, offset - position), length);
      return length;
    };
    return Object.assign(Object.create(file), {
      read,
      close: () => file.close(),
      size: () => file.size(),
    });
  });
}

test('a node’s owner is told from its id, also where a server’s number is a high one', async () => {
  const stat = { czxid: 1n, mzxid: 1n, pzxid: 1n, ctime: 0n, mtime: 0n };
  const owners = [0n, 5n, -(2n ** 63n), 0xff00_0000_0000_03e8n, 0xc800_0000_0000_0001n];
  const nodes = owners.map((owner, i) => ({
    ...{ path: i === 0 ? '' : `/n${i}`, data: null, acl: -1 },
    stat: {
      ...{ ...stat, version: 0, cversion: 0, aversion: 0 },
      ephemeralOwner: BigInt.asIntN(64, owner),
    },
  }));
  const content = { zxid: 1n, sessions: new Map(), acls: new Map(), nodes };
  const { path } = await writeSnapshot(content, { folder });

  const { lines } = await drover('snapshot', 'dump', path);

  const told = lines
    .filter((line) => line.startsWith('0x1 '))
    .map((line) => line.split(/ {2,}/)[3]);
  expect(told).toEqual(['-', '0x5', 'container', 'ttl 1000 ms', '0xc800000000000001']);
});

test.each(['dump', 'verify'])('an end in motion is no damage to %s', async (action) => {
  const there = copyOf('apache-3.9');
  const path = join(there, 'log.3f');
  const [, , third] = records(await drover('log', 'dump', path, '--json'));
  let err = '';
  const take = (text: unknown, taken: unknown) => {
    if (typeof taken === 'function') taken();
    err += text;
    return true;
  };
  vi.spyOn(process.stdout, 'write').mockImplementation(take);
  vi.spyOn(process.stderr, 'write').mockImplementation(take);
  writeWhileRead(path, third.offset);

  const output = new Output({});
  const code = await log({ output } as Context, [action, there], {});
  await output.end();

  vi.restoreAllMocks();
  expect(code).toBe(0);
  expect(err).toContain(
    action === 'dump'
      ? 'log.3f is being written; it was read up to zxid 0x40'
      : 'a server would start at zxid 0x4d',
  );
});

test('what can not be looked at is said in one sentence, with exit code 2', async () => {
  const file = join(golden, 'apache-3.9/version-2/log.1');
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const context = { output: new Output({}) } as Context;
  const said = (command: typeof log, args: string[], options = {}) =>
    command(context, args, options).catch(({ exitCode, message }) => [exitCode, message]);

  const all = await Promise.all([
    said(log, ['dump', 'no-such']),
    said(log, ['dump', empty]),
    said(log, ['verify', empty]),
    said(log, ['verify', file]),
    said(log, ['history', 'a'], { data: golden }),
    said(log, ['history', '/a']),
    said(log, ['dmup', file]),
    said(log, ['verify', golden], { full: true }),
    said(snapshot, ['dump', file]),
    said(snapshot, ['diff', file]),
  ]);
  const process = await drover('log', 'dump', 'no-such');

  expect(all).toEqual(
    [
      /^no-such is not there; .*$/,
      /^no log is in .*empty; .*$/,
      /^neither logs nor snapshots are in .*empty; .*$/,
      /^.*log\.1 is no folder; .*$/,
      /^a is no path: a path must start with \/$/,
      /^.*--data DIR$/,
      /^no log dmup; there is drover log dump FILE\|DIR, .*$/,
      /^--full means nothing to log verify; .*$/,
      /^.*log\.1 is not named as a snapshot is: .*$/,
      /^1 arguments for snapshot diff; it is drover snapshot diff FILE FILE$/,
    ].map((sentence) => [2, expect.stringMatching(sentence)]),
  );
  expect(process).toMatchObject({ code: 2, out: '' });
  expect(process.err).toMatch(/^drover: no-such is not there; .*\n$/);
});

describe('what is printed', () => {
  const hostile = '/a\x1b[31m\u202e\nb';

  test('is harmless, on one line and bounded, and whole where it is asked for', async () => {
    const long = 'ü'.repeat(1_000);
    await write(
      creation(1, hostile, 'two\nlines'),
      creation(2, '/long', long),
      creation(3, '/bell', '\x07'),
    );

    const [text, full, json] = await Promise.all([
      drover('log', 'dump', folder),
      drover('log', 'dump', folder, '--full'),
      drover('log', 'dump', folder, '--json'),
    ]);

    expect(text.lines).toHaveLength(4);
    expect(text.lines[1]).toMatch(/\/a\\u001b\[31m\\u202e\\nb {2}data two\\nlines$/);
    expect(text.lines[2]).toMatch(/data ü{40}… \(2000 bytes\)$/);
    expect(text.lines[3]).toMatch(/data 0x07$/);
    expect(full.lines[2]).toContain(`data ${long}`);
    expect(json.out).not.toContain('\u202e');
    expect(records(json)[0]).toMatchObject({ path: hostile, data: { text: 'two\nlines' } });
    expect(records(json)[1].data.text).toBe(long);
  });

  test('says text and bytes apart', () => {
    expect(escaped('a\\n\n\u{e0041}')).toBe('a\\\\n\\n\\udb40\\udc41');
    expect(dataText(null)).toBe('-');
    expect(dataText(Buffer.alloc(0))).toBe('""');
    expect(dataText(Buffer.from('äöü'), 3)).toBe('ä… (6 bytes)');
    expect(dataText(Buffer.from([0xc3]))).toBe('0xc3');
    expect(jsonLine({ zxid: -1n, text: '\u2066' })).toBe(
      '{"zxid":"0xffffffffffffffff","text":"\\u2066"}\n',
    );
  });

  test('stands in columns as wide as the first rows need', () => {
    let text = '';
    const write = (line: string) => {
      text += line;
    };
    const output = { write } as Output;
    const columns = new Columns(output, 'A', 'B');

    columns.row('wide', 'x');
    columns.row('-', 'y');
    columns.end();
    columns.row('much wider', 'z');

    expect(text).toBe('A     B\nwide  x\n-     y\nmuch wider  z\n');
  });
});

describe('a long output', () => {
  const txnsMax = 20_000;
  const many = () =>
    write(
      ...Array.from({ length: txnsMax }, (_, i) => creation(i + 1, `/n${i + 1}`, 'x'.repeat(90))),
    );

  test('whose reader goes away ends quietly', async () => {
    await many();
    const child = start('log', 'dump', folder, '--json');
    let err = '';
    child.stderr!.on('data', (chunk) => {
      err += chunk;
    });

    await once(child.stdout!, 'data');
    child.stdout!.destroy();
    const [code] = await once(child, 'close');

    expect([code, err]).toEqual([0, '']);
  });

  test('ends at Ctrl-C, and nothing has changed', async () => {
    await many();
    const before = picture(folder);
    const child = start('log', 'dump', folder, '--json');
    await once(child.stdout!, 'readable'); // and takes no more

    child.kill('SIGINT');
    const [, signal] = await once(child, 'exit');

    expect(signal).toBe('SIGINT');
    expect(picture(folder)).toEqual(before);
  });

  test('reads on only once its reader has taken what there is', async () => {
    const path = join(golden, 'apache-3.9/version-2/log.1');
    const waiting: (() => void)[] = [];
    const stdout = new Writable({ write: (_, __, taken) => void waiting.push(taken) });
    const output = new Output({}, { stdout });
    const paced = await filesOf(output).open(path, 'read');
    const free = await realFileSystem.open(path, 'read');
    let isRead = false;

    output.write('a line\n');
    const reading = paced.read(Buffer.alloc(16), 0).then(() => {
      isRead = true;
    });
    for (let i = 0; i < 10; i++) await free.read(Buffer.alloc(16), 0);
    const wasReadEarly = isRead;
    waiting.pop()!();
    await reading;
    await Promise.all([paced.close(), free.close()]);

    expect(wasReadEarly).toBe(false);
  });

  test('shows its progress to a terminal after a second, and wipes it away', () => {
    const clock = new ManualClock();
    const shown = (isTTY: boolean) => {
      let text = '';
      const write = (chunk: Buffer, _: unknown, done: () => void) => {
        text += chunk;
        done();
      };
      const stderr = Object.assign(new Writable({ write }), { isTTY });
      return {
        output: new Output({}, { stderr, clock, stdout: new Writable({ write() {} }) }),
        text: () => text,
      };
    };
    const terminal = shown(true);
    const pipe = shown(false);

    for (const { output } of [terminal, pipe]) output.progress('/x/log.1', 1, 4);
    const early = terminal.text();
    clock.advance(1_000);
    for (const { output } of [terminal, pipe]) {
      output.progress('/x/log.1', 2, 4);
      output.progress('/x/log.1', 3, 4);
    }
    terminal.output.tell('done');

    expect(early).toBe('');
    expect(terminal.text()).toBe('\rlog.1 50%\x1b[K\r\x1b[Kdrover: done\n');
    expect(pipe.text()).toBe('');
  });
});

test('files are looked at, never written', async () => {
  const files = filesOf(new Output({}));
  const path = join(golden, 'apache-3.9/version-2/log.1');

  await expect(files.open(path, 'write')).rejects.toThrow(/only looked at/);
  expect(() => files.remove(path)).toThrow(/only looked at/);
  expect(() => files.rename(path, path)).toThrow(/only looked at/);
});
