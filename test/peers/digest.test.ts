/**
 * The digest of the whole tree, which both servers log with every txn and compare when they replay it:
 * ours must be right to Apache's eyes, and Apache's to ours. Of what Apache found, `mntr` tells.
 */

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import { startServer } from '../../src/server/index.ts';
import { adler32, dumpLog } from '../../src/storage/index.ts';
import { findZooKeepers, fourLetterWord, startApache } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-digest-'));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const folder = () => join(dir, 'data', 'version-2');
const startOurs = (options = {}) =>
  startServer({ port: 0, dataDir: join(dir, 'data'), extendedTypesEnabled: true, ...options });

/** Every kind of txn, many of them under way at once. */
async function fill(zk: Client, top: string): Promise<void> {
  await zk.create(top, 'x'.repeat(6_000));
  await Promise.all(
    Array.from({ length: 300 }, async (_, i) => {
      const path = `${top}/n${i % 60}`;
      const attempts = [
        () => zk.create(path, i % 7 === 0 ? null : `value ${i}`),
        () => zk.set(path, `changed ${i}`),
        () => zk.setAcl(path, [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]),
        () => zk.create(`${path}/s-`, '', { mode: 'persistentSequential' }),
        () => zk.create(`${top}/e${i}`, '', { mode: 'ephemeral' }),
        () => zk.delete(path),
        () => zk.create(`${top}/c${i}`, '', { mode: 'container' }),
        () => zk.create(`${top}/t${i}`, '', { mode: 'persistentTtl', ttlMs: 1_000_000_000 }),
        () => zk.create(`/zookeeper${top}${i}`),
        () =>
          zk.multi([
            { op: 'create', path: `${top}/m${i}`, data: '日本' },
            { op: 'set', path: `${top}/m${i}`, data: 'twice' },
            { op: 'create', path: `${top}/m${i}/below` },
            { op: 'delete', path: i % 3 === 0 ? `${top}/none` : `${top}/m${i}/below` },
          ]),
      ];
      for (const attempt of attempts) await attempt().catch(() => {}); // an error takes a zxid too
    }),
  );
}

/** Its own connection: a session that ends, with what it owned. */
async function visit(address: string, top: string): Promise<void> {
  const zk = await connect(address);
  await fill(zk, top);
  await zk.close();
}

async function mismatches(port: number): Promise<number> {
  const line = /^zk_digest_mismatches_count\s+(\d+)$/m.exec(await fourLetterWord(port, 'mntr'));
  return Number(line?.[1] ?? Number.NaN);
}

for (const peer of found) {
  test(`${peer.name} finds every digest of ours right, and ours every one of its`, async () => {
    const ours = await startOurs({ snapCount: 700 });
    await visit(ours.address, '/ours');
    await ours.close();

    const apache = await startApache(peer, { dir, jvm: ['-Dzookeeper.snapCount=1000'] });
    const replayed = await mismatches(apache.port);
    await visit(apache.address, '/apache');
    const written = await mismatches(apache.port);
    await apache.kill();
    const copy = join(dir, 'copy');
    cpSync(join(dir, 'data'), join(copy, 'data'), { recursive: true });

    const again = await startOurs();
    const { digests, notices } = again.persistence!;
    await again.close();
    // Once in a hundred times, on a busy machine, it logs digests that it finds wrong itself.
    const itself = await startApache(peer, { dir: copy });
    const wrong = await mismatches(itself.port);
    await itself.kill();

    expect({ replayed, written }).toEqual({ replayed: 0, written: 0 });
    expect(digests.compared).toBeGreaterThan(0);
    expect(digests.mismatches).toBe(wrong);
    expect(notices.some(({ kind }) => kind === 'wrongDigest')).toBe(wrong > 0);
  });

  test(`${peer.name} does look: a digest of ours that was changed it finds`, async () => {
    const ours = await startOurs({ preallocBytes: 0 });
    const zk = await connect(ours.address);
    for (let i = 0; i < 20; i++) await zk.create(`/n${i}`, `${i}`);
    await ours.close();
    await zk.close();
    await changeDigest(join(folder(), readdirSync(folder()).find((name) => /^log\./.test(name))!));

    await using apache = await startApache(peer, { dir });

    expect(await mismatches(apache.port)).toBe(1);
  });
}

/** Of the tenth txn, with a checksum that is right. */
async function changeDigest(file: string): Promise<void> {
  let offset = -1;
  await dumpLog(file, (txn) => {
    if (txn.zxid === 10n) offset = txn.offset;
  });
  const bytes = readFileSync(file);
  const txn = bytes.subarray(offset + 12, offset + 12 + bytes.readUInt32BE(offset + 8));
  txn.writeUInt8(txn.at(-1)! ^ 1, txn.length - 1);
  bytes.writeUInt32BE(adler32(txn, 0, txn.length), offset + 4);
  writeFileSync(file, bytes);
}
