/**
 * One data directory, two servers: what ours wrote Apache's serves, and the other way round, node by
 * node: data, ACLs, Stats, sessions and the ephemeral nodes they own.
 */

import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ClientOptions, connect } from '../../src/client/index.ts';
import { startServer } from '../../src/server/index.ts';
import { RawClient } from '../../src/testing/index.ts';
import { fill, picture } from './moving-data.ts';
import { findZooKeepers, startApache } from './zookeeper.ts';

const { found } = await findZooKeepers();
const auth = { auth: [{ scheme: 'digest', auth: 'ann:secret' }] } satisfies ClientOptions;
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-migration-'));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** Apache's helper keeps its data in `data` below the folder it is given. */
const startOurs = (options = {}) =>
  startServer({ port: 0, dataDir: join(dir, 'data'), extendedTypesEnabled: true, ...options });

/** The snapshots or logs of a folder, oldest first. */
function filesOf(folder: string, kind: 'snapshot' | 'log'): { name: string; zxid: number }[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${kind}.`))
    .map((name) => ({ name, zxid: Number.parseInt(name.slice(kind.length + 1), 16) }))
    .sort((a, b) => a.zxid - b.zxid);
}

/** So many sessions, which nobody ends. */
async function openAndLeave(port: number, count: number): Promise<void> {
  let left = count;
  const some = async () => {
    while (left > 0) {
      left -= 1;
      const raw = await RawClient.connect(port, { timeOut: 40_000 });
      raw.close();
    }
  };
  await Promise.all(Array.from({ length: 40 }, some));
}

for (const peer of found) {
  test(`what ours wrote ${peer.name} serves, and back again`, async () => {
    const ours = await startOurs({ snapCount: 100, sessionPasswords: 'apache' });
    const zk = await connect(ours.address, { ...auth, sessionTimeoutMs: 30_000 });
    await fill(zk);
    const before = await picture(zk);
    const identity = zk.identity!;
    await ours.close();

    const apache = await startApache(peer, { dir });
    const there = await connect(apache.address, { ...auth, identity });
    const onApache = await picture(there);
    await there.create('/from-apache', 'hi');
    await there.delete('/n4');
    const changed = await picture(there);
    await apache.stop();

    const again = await startOurs();
    const back = await connect(again.address, { ...auth, identity });
    const onOurs = await picture(back);
    await Promise.all([zk.close(), there.close(), back.close()]);
    await again.close();

    expect(onApache).toEqual(before);
    expect(onOurs).toEqual(changed);
  });

  test(`a restart by the rule of Apache takes living sessions along to ${peer.name}`, async () => {
    const ours = await startOurs();
    const zk = await connect(ours.address, { ...auth, sessionTimeoutMs: 30_000 });
    await zk.create('/mine', '', { mode: 'ephemeral' });
    const identity = zk.identity!;
    await ours.close();
    const restarted = await startOurs({ sessionPasswords: 'apache' });
    const here = await connect(restarted.address, { ...auth, identity });
    const told = here.identity!;
    await restarted.close();

    const apache = await startApache(peer, { dir });
    await expect(connect(apache.address, { identity })).rejects.toThrow('the session is over');
    const there = await connect(apache.address, { ...auth, identity: told });
    const owner = (await there.exists('/mine'))!.ephemeralOwner;
    await Promise.all([zk.close(), here.close(), there.close()]);
    await apache.stop();

    expect(told.sessionId).toBe(identity.sessionId);
    expect(owner).toBe(identity.sessionId);
  });

  test(`more sessions than are written at once do not stand in the way, on ${peer.name}`, async () => {
    const ours = await startOurs({ sessionPasswords: 'apache' });
    const zk = await connect(ours.address, { ...auth, sessionTimeoutMs: 30_000 });
    await fill(zk);
    await openAndLeave(ours.port, 12_000);
    const before = await picture(zk);
    const identity = zk.identity!;
    await ours.persistence!.snapshot();
    await ours.close();

    const apache = await startApache(peer, { dir });
    const there = await connect(apache.address, { ...auth, identity });
    const onApache = await picture(there);
    await Promise.all([zk.close(), there.close()]);
    await apache.stop();

    expect(onApache).toEqual(before);
  });

  test(`without digests ${peer.name} and ours serve what the other wrote`, async () => {
    const withoutDigest = ['-Dzookeeper.digest.enabled=false', '-Dzookeeper.snapCount=50'];
    const onlyNewest = () => {
      const folder = join(dir, 'data', 'version-2');
      for (const zxids of [filesOf(folder, 'snapshot'), filesOf(folder, 'log')]) {
        for (const { name } of zxids.slice(0, -2)) rmSync(join(folder, name));
      }
    };
    const apache = await startApache(peer, { dir, jvm: withoutDigest });
    const zk = await connect(apache.address, { ...auth, sessionTimeoutMs: 30_000 });
    await fill(zk);
    const before = await picture(zk);
    const identity = zk.identity!;
    await apache.kill();
    onlyNewest(); // what the older ones tell must not make up for what a snapshot lacks

    const ours = await startOurs({ digestEnabled: false, snapCount: 50 });
    const here = await connect(ours.address, { ...auth, identity });
    const onOurs = await picture(here);
    await ours.persistence!.snapshot();
    await ours.close();
    onlyNewest();

    const seen: unknown[] = [];
    for (const jvm of [withoutDigest, []]) {
      const copy = join(dir, `copy-${jvm.length}`);
      cpSync(join(dir, 'data'), join(copy, 'data'), { recursive: true });
      const again = await startApache(peer, { dir: copy, jvm });
      const there = await connect(again.address, { ...auth, identity });
      seen.push(await picture(there));
      await again.kill();
      await there.close();
    }
    await Promise.all([zk.close(), here.close()]);

    expect(onOurs).toEqual(before);
    expect(seen).toEqual([before, before]);
  });

  test(`what ${peer.name} wrote ours serves`, async () => {
    const apache = await startApache(peer, { dir, jvm: ['-Dzookeeper.snapCount=50'] });
    const zk = await connect(apache.address, { ...auth, sessionTimeoutMs: 30_000 });
    await fill(zk);
    const before = await picture(zk);
    const identity = zk.identity!;
    await apache.kill();

    const ours = await startOurs();
    const here = await connect(ours.address, { ...auth, identity });
    const onOurs = await picture(here);
    await Promise.all([zk.close(), here.close()]);
    await ours.close();

    expect(onOurs).toEqual(before);
  });
}
