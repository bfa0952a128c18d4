/**
 * One data directory, two servers: what ours wrote Apache's serves, and the other way round, node by
 * node: data, ACLs, Stats, sessions and the ephemeral nodes they own.
 */

import { mkdtempSync, rmSync } from 'node:fs';
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
    const ours = await startOurs({ snapCount: 100 });
    const zk = await connect(ours.address, { ...auth, sessionTimeoutMs: 30_000 });
    await fill(zk);
    const before = await picture(zk);
    const identity = zk.identity!;
    await ours.close();

    const apache = await startApache(peer, { dir });
    const there = await connect(apache.address, { ...auth, identity });
    const onApache = await picture(there);
    await there.create('/from-apache', { data: 'hi' });
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

  test(`more sessions than are written at once do not stand in the way, on ${peer.name}`, async () => {
    const ours = await startOurs();
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
