/** Writes behind more reads than their client has taken the replies of: nothing is lost, and nothing is out of turn. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Reader } from '../jute/index.ts';
import { ops } from '../protocol/index.ts';
import { RawClient, type RawReply, startTestServer } from '../testing/index.ts';

const limits = { outputBytesSoftMax: 64 * 1024, outputBytesMax: 16 * 1024 * 1024 };
const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const path = '/large';
const content = { [path]: 'x'.repeat(1_000_000) };
const get = { path, watch: false };
/** A small write that shows in what is large: in its Stat. */
const change = { path, acl: open, version: -1 };
const changesIn = ({ body }: RawReply) => ops.getData.response.read(new Reader(body)).stat.aversion;
const multiGet = (parts: number) =>
  Array.from({ length: parts }, () => ({ op: 'getData' as const, request: get }));

test('a write behind more reads than may wait for a client waits with them, and the link lives', async () => {
  await using zk = await startTestServer({ limits });
  await zk.load(content);
  const client = await RawClient.connect(zk.port);
  client.pause();
  const { before, write, after } = client.atOnce(() => ({
    before: Array.from({ length: 30 }, () => client.send('getData', get)),
    write: client.send('setACL', change),
    after: client.send('getData', get),
  }));

  const [connection] = zk.engine.connections;
  while (connection!.packetsReceived < 33) await new Promise(setImmediate);
  expect(connection!.holdsWrites).toBe(true);
  client.resume();

  for (const xid of before) expect(changesIn(await client.reply(xid))).toBe(0);
  expect((await client.reply(write)).err).toBe(0);
  expect(changesIn(await client.reply(after))).toBe(1);
});

test('reads of many nodes at once are weighed as well', async () => {
  await using zk = await startTestServer({ limits });
  await zk.load(content);
  const client = await RawClient.connect(zk.port);
  client.pause();
  const sent = client.atOnce(() => [
    ...[1, 2, 3].map(() => client.send('multiRead', multiGet(7))),
    ...[1, 2].map(() => client.send('setACL', change)),
    client.send('closeSession', {}),
  ]);
  client.resume();

  for (const xid of sent) expect((await client.reply(xid)).err).toBe(0);
  await client.ended();
});

test('whatever a client asks for and however slowly it listens, its replies come in turn and reads see the writes before them alone', async () => {
  type Step = 'get' | 'set' | 'refused' | 'multi' | 'sync' | 'listen';
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.constant<Step>('get') },
    fc.constantFrom<Step>('set', 'refused', 'multi', 'sync', 'listen'),
  );
  await using zk = await startTestServer({ limits });
  await zk.load(content);
  let changes = 0;
  let held = 0;
  const tell = async (steps: readonly Step[]) => {
    const client = await RawClient.connect(zk.port);
    const connection = [...zk.engine.connections].at(-1)!;
    client.pause();
    const expected: { xid: number; err: number; changes?: number }[] = [];
    const ask = (one: Step) => {
      if (one === 'get') expected.push({ xid: client.send('getData', get), err: 0, changes });
      if (one === 'multi') expected.push({ xid: client.send('multiRead', multiGet(4)), err: 0 });
      if (one === 'sync') expected.push({ xid: client.send('sync', { path }), err: 0 });
      if (one === 'refused') {
        expected.push({ xid: client.send('setACL', { ...change, version: 1e9 }), err: -103 });
      }
      if (one === 'set') {
        expected.push({ xid: client.send('setACL', change), err: 0 });
        changes += 1;
      }
    };
    for (let at = 0; at < steps.length; ) {
      const next = steps.indexOf('listen', at);
      const end = next < 0 ? steps.length : next;
      client.atOnce(() => steps.slice(at, end).forEach(ask));
      at = end + 1;
      client.resume();
      await new Promise(setImmediate);
      client.pause();
    }
    await new Promise(setImmediate);
    if (connection.holdsWrites) held += 1;
    client.resume();
    for (const one of expected) {
      const reply = await client.reply(one.xid);
      expect(reply.err).toBe(one.err);
      if (one.changes !== undefined) expect(changesIn(reply)).toBe(one.changes);
    }
    expect(client.heard).toEqual(expected.map(({ xid }) => xid));
    client.close();
    while (zk.engine.connections.size > 0) await new Promise(setImmediate);
  };
  const scripts = fc.array(step, { minLength: 20, maxLength: 80 });
  await fc.assert(fc.asyncProperty(scripts, tell), { numRuns: 20 });
  expect(held).toBeGreaterThan(0);
});
