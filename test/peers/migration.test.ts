/**
 * One data directory, two servers: what ours wrote Apache's serves, and the other way round, node by
 * node: data, ACLs, Stats, sessions and the ephemeral nodes they own.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, type ClientOptions, connect } from '../../src/client/index.ts';
import { startServer } from '../../src/server/index.ts';
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

async function fill(zk: Client): Promise<void> {
  const creator = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
  for (let i = 0; i < 300; i++) {
    await zk.create(`/n${i}`, {
      data: i % 11 === 0 ? null : `value ${i}`,
      mode: i % 7 === 0 ? 'ephemeral' : 'persistent',
      ...(i % 5 === 0 ? { acl: creator } : {}),
    });
    if (i % 3 === 0) await zk.set(`/n${i}`, 'changed');
    if (i % 13 === 0)
      await zk.setAcl(`/n${i}`, [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]);
    if (i % 17 === 0) await zk.delete(`/n${i}`);
  }
  await zk.multi([
    { op: 'create', path: '/multi' },
    { op: 'create', path: '/multi/below', mode: 'persistentSequential' },
    { op: 'set', path: '/n1', data: 'by multi' },
    { op: 'delete', path: '/n2' },
  ]);
  await zk.create('/n1', {}).catch(() => {}); // an error takes a zxid too
  await zk.create('/container', { mode: 'container' });
  await zk.create('/container/child');
  await zk.create('/ttl', { mode: 'persistentTtl', ttlMs: 1_000_000_000 });
  await zk.create('/zürich', { data: '日本' });
  for (let i = 0; i < 3; i++) await zk.create('/multi/s-', { mode: 'persistentSequential' });
}

async function picture(zk: Client): Promise<Record<string, unknown>> {
  const nodes: Record<string, unknown> = {};
  for await (const { path } of zk.walk('/')) {
    if (path.startsWith('/zookeeper')) continue;
    const [{ data, stat }, { acl }] = await Promise.all([zk.get(path), zk.getAcl(path)]);
    nodes[path] = { data: data?.toString('hex') ?? null, stat: stat.toObject(), acl };
  }
  return { nodes, ephemerals: (await zk.getEphemerals()).sort(), sessionId: zk.sessionId };
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
