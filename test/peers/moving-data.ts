/** What is carried from one server to another, and how it looks there: to be compared, before and after. */

import type { Client } from '../../src/client/index.ts';

/** Nodes of every kind, made in every way, and some changed and some gone since. */
export async function fill(zk: Client): Promise<void> {
  const creator = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
  for (let i = 0; i < 300; i++) {
    await zk.create(`/n${i}`, i % 11 === 0 ? null : `value ${i}`, {
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
  await zk.create('/n1').catch(() => {}); // an error takes a zxid too
  await zk.create('/container', '', { mode: 'container' });
  await zk.create('/container/child');
  await zk.create('/ttl', '', { mode: 'persistentTtl', ttlMs: 1_000_000_000 });
  await zk.create('/zürich', '日本');
  for (let i = 0; i < 3; i++) await zk.create('/multi/s-', '', { mode: 'persistentSequential' });
}

/** All that a client can see, as of now: node by node, and whose session it is. */
export async function picture(zk: Client): Promise<Record<string, unknown>> {
  await zk.sync('/'); // a server of an ensemble may be behind
  const nodes: Record<string, unknown> = {};
  for await (const { path } of zk.walk('/')) {
    if (path.startsWith('/zookeeper')) continue;
    const [{ data, stat }, { acl }] = await Promise.all([zk.get(path), zk.getAcl(path)]);
    nodes[path] = { data: data?.toString('hex') ?? null, stat: stat.toObject(), acl };
  }
  return { nodes, ephemerals: (await zk.getEphemerals()).sort(), sessionId: zk.sessionId };
}
