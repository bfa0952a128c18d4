import { expect, test, vi } from 'vitest';
import { ops } from '../protocol/index.ts';
import { type Deferred, deferred, ManualClock } from '../support/index.ts';
import { RawClient, startTestServer, type TestServer } from '../testing/index.ts';
import type { Call } from './call.ts';
import { greeting, NoWire } from './fixtures.ts';
import { Pipeline, type PipelineEnds } from './pipeline.ts';
import { startServer } from './start-server.ts';
import { ServerStats } from './stats.ts';
import type { LoggedTxn, TxnLog } from './txn-log.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string, flags = 0) => ({ path, data: null, acl: open, flags });

/** A log that takes a batch only when the test says so. */
function heldLog() {
  const batches: (readonly LoggedTxn[])[] = [];
  let gate: Deferred<void> | undefined;
  let heldFrom = 0;
  let failure: Error | undefined;
  const log: TxnLog = {
    async append(batch) {
      batches.push(batch);
      await gate?.promise;
      if (failure) throw failure;
    },
    close: async () => {},
  };
  return {
    log,
    batches,
    hold: () => {
      heldFrom = batches.length;
      gate = deferred<void>();
    },
    release: () => {
      gate?.resolve();
      gate = undefined;
    },
    fail: (error: Error) => {
      failure = error;
      gate?.resolve();
    },
    /** Since `hold` the log was given a batch. */
    async taken() {
      while (batches.length === heldFrom) await new Promise(setImmediate);
    },
  };
}

async function start() {
  const held = heldLog();
  const zk = await startTestServer({ log: held.log });
  const writer = await RawClient.connect(zk.port);
  const reader = await RawClient.connect(zk.port);
  return { held, zk, writer, reader };
}

/** Frames, of the link that the session has. */
const received = ({ engine }: TestServer, id: bigint) =>
  engine.sessions.get(id)?.connection?.packetsReceived;

test('nobody hears of a write that the log does not hold', async () => {
  const { held, zk, writer, reader } = await start();
  await using _ = zk;
  await reader.err('exists', { path: '/a', watch: true });
  held.hold();
  const xid = writer.send('create', node('/a'));
  await held.taken();

  expect(await reader.err('exists', { path: '/a', watch: false })).toBe(-101);
  expect(reader.heard.filter((entry) => typeof entry === 'string')).toEqual([]);
  expect(writer.heard).toEqual([]);

  held.release();
  expect((await writer.reply(xid)).err).toBe(0);
  expect(await reader.events()).toEqual(['created /a']);
});

test('reads of a session wait for its own writes, those of others do not', async () => {
  const { held, zk, writer, reader } = await start();
  await using _ = zk;
  held.hold();
  const made = writer.send('create', node('/a'));
  const read = writer.send('exists', { path: '/a', watch: false });
  const pinged = writer.send('ping', {}, -2);
  await held.taken();

  expect((await reader.ping()).err).toBe(0);
  expect(writer.heard).toEqual([]);

  held.release();
  expect((await writer.reply(read)).err).toBe(0);
  await writer.reply(pinged);
  expect(writer.heard).toEqual([made, read, -2]);
});

test('a read between two writes sees the first and not the second', async () => {
  const { held, zk, writer } = await start();
  await using _ = zk;
  held.hold();
  writer.send('create', node('/first'));
  const read = writer.send('getChildren', { path: '/', watch: false });
  writer.send('create', node('/second'));
  await held.taken();
  held.release();

  const names = (await writer.reply(read)).body.toString('latin1');
  expect(names).toContain('first');
  expect(names).not.toContain('second');
});

test('writes that come while the log is busy share the next batch', async () => {
  const { held, zk, writer, reader } = await start();
  await using _ = zk;
  held.hold();
  writer.send('create', node('/0'));
  await held.taken();
  const before = held.batches.length;
  const xids = [1, 2, 3].map((i) => writer.send('create', node(`/${i}`)));
  const other = reader.send('create', node('/4'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  held.release();
  await Promise.all([...xids.map((xid) => writer.reply(xid)), reader.reply(other)]);

  expect(held.batches.length).toBe(before + 1);
  expect(held.batches.at(-1)).toHaveLength(4);
});

test('a write is checked against those under way, not against the tree of now', async () => {
  const { held, zk, writer, reader } = await start();
  await using _ = zk;
  held.hold();
  const asked = [
    writer.send('create', node('/a')),
    writer.send('create', node('/a/b')),
    writer.send('setData', { path: '/a', data: null, version: 0 }),
    writer.send('setData', { path: '/a', data: null, version: 0 }),
    writer.send('delete', { path: '/a', version: -1 }),
    writer.send('delete', { path: '/a/b', version: -1 }),
    writer.send('delete', { path: '/a', version: 1 }),
    writer.send('create', node('/a')),
    writer.send('create', node('/s-', 2)),
    writer.send('create', node('/s-', 2)),
  ];
  await reader.ping();
  held.release();

  const errs = [];
  for (const xid of asked) errs.push((await writer.reply(xid)).err);
  expect(errs).toEqual([0, 0, 0, -103, -111, 0, 0, 0, 0, 0]);
  const { children } = await writer.ask('getChildren', { path: '/', watch: false });
  expect(children).toEqual(expect.arrayContaining(['s-0000000002', 's-0000000003']));
});

test('a multi that fails leaves no trace in the checks of what follows it', async () => {
  const { held, zk, writer, reader } = await start();
  await using _ = zk;
  held.hold();
  writer.send('create', node('/p'));
  writer.send('multi', [
    { op: 'create', request: node('/p/s-', 2) },
    { op: 'create', request: node('/p/s-', 2) },
    { op: 'delete', request: { path: '/none', version: -1 } },
  ]);
  const made = writer.send('create', node('/p/s-', 2));
  await reader.ping();
  held.release();

  expect((await writer.reply(made)).body.toString('latin1', 4)).toBe('/p/s-0000000000');
});

test('a failed write takes a zxid and is logged as an error', async () => {
  const { held, zk, writer } = await start();
  await using _ = zk;
  const before = (await writer.ping()).zxid;

  expect(await writer.err('delete', { path: '/none', version: -1 })).toBe(-101);

  expect((await writer.ping()).zxid).toBe(before + 1n);
  expect(held.batches.at(-1)?.[0]?.body).toEqual({ type: 'error', txn: { err: -101 } });
});

test('the end of a session takes along what it was just making', async () => {
  const { held, zk, writer, reader } = await start();
  await using _ = zk;
  await writer.ask('create', node('/before', 1));
  held.hold();
  writer.send('create', node('/under-way', 1));
  writer.send('delete', { path: '/before', version: -1 });
  const closed = writer.send('closeSession', {});
  await reader.ping();
  held.release();
  await writer.reply(closed);

  const last = held.batches.flat().findLast(({ body }) => body.type === 'closeSession');
  expect(last?.body.txn).toEqual({ paths2Delete: ['/under-way'] });
  expect(await reader.err('exists', { path: '/under-way', watch: false })).toBe(-101);
});

test('when the log fails nothing more is acknowledged and the server says why', async () => {
  const { held, zk, writer, reader } = await start();
  held.hold();
  writer.send('create', node('/a'));
  await held.taken();
  held.fail(new Error('no space left'));

  expect((await zk.failed).message).toBe('no space left');
  await writer.ended();
  await reader.ended();
  expect(writer.heard).toEqual([]);
  await expect(RawClient.connect(zk.port)).rejects.toThrow();
});

test('a sync waits for every write that was under way', async () => {
  const { held, zk, writer, reader } = await start();
  await using _ = zk;
  held.hold();
  writer.send('create', node('/a'));
  await held.taken();
  const synced = reader.send('sync', { path: '/' });
  const read = reader.send('exists', { path: '/a', watch: false });
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(reader.heard).toEqual([]);

  held.release();
  await reader.reply(synced);
  expect((await reader.reply(read)).err).toBe(0);
});

test('a session that moves does not read behind its own writes', async () => {
  const { held, zk, writer } = await start();
  await using _ = zk;
  held.hold();
  writer.send('create', node('/a'));
  await held.taken();
  const { sessionId, passwd } = writer;
  const moved = await RawClient.connect(zk.port, { sessionId, passwd });
  const read = moved.send('exists', { path: '/a', watch: false });
  await new Promise((resolve) => setTimeout(resolve, 10));
  held.release();

  expect((await moved.reply(read)).err).toBe(0);
});

test('a session that moves and moves again has no more under way than one link may', async () => {
  const { held, zk, writer } = await start();
  await using _ = zk;
  held.hold();
  writer.send('create', node('/a'));
  await held.taken();
  const { sessionId, passwd } = writer;
  const moves: RawClient[] = [];
  for (const path of ['/b', '/c', '/d']) {
    const moved = await RawClient.connect(zk.port, { sessionId, passwd });
    moved.send('create', node(path), 1);
    moved.send('exists', { path, watch: false }, 2);
    await vi.waitFor(() => expect(received(zk, sessionId)).toBe(3)); // and the handshake
    moves.push(moved);
  }
  const asked = zk.log.filter(({ op }) => op === 'create').length;
  held.release();

  expect(asked).toBe(1);
  expect((await moves[2]!.reply(1)).err).toBe(0);
  expect((await moves[2]!.reply(2)).err).toBe(0);
  expect(zk.tree()).not.toHaveProperty('/b');
});

test('the log is told when hardly anybody else would wait for a sync', async () => {
  const told: (boolean | undefined)[] = [];
  const clock = new ManualClock();
  let syncMs = 0.1;
  const log: TxnLog = {
    append: async (_batch, isQuiet) => {
      told.push(isQuiet);
      clock.advance(syncMs);
    },
    close: async () => {},
  };
  const stats = new ServerStats(0);
  const pipeline = new Pipeline(log, clock, stats, {
    isGathering: () => false,
    batchBegun: () => {},
    committed: () => {},
    batchDone: () => {},
    slow: () => {},
    failed: (error) => {
      throw error;
    },
  });
  const write = async (calls: number, packets: number, ms: number) => {
    stats.packetsReceived += packets;
    clock.advance(ms);
    for (let i = 0; i < calls; i++) pipeline.submit({} as Call);
    await pipeline.idle();
    return told.at(-1);
  };

  expect(await write(1, 1, 1)).toBe(false); // too early to tell
  expect(await write(1, 40, 10)).toBe(true);
  expect(await write(5, 5, 10)).toBe(false); // a load of writes
  expect(await write(1, 1, 10)).toBe(true);
  const learned = async () => {
    for (let i = 0; i < 40; i += 1) await write(1, 1, 10);
  };
  await learned();
  expect(await write(1, 2000, 10)).toBe(false); // many read
  expect(await write(1, 1, 10)).toBe(true);
  stats.connectionsAccepted += 2000;
  expect(await write(1, 1, 10)).toBe(false); // many come
  expect(await write(1, 1, 10)).toBe(true);
  expect(await write(1, 500, 10)).toBe(true);
  syncMs = 0.5;
  expect(await write(1, 500, 10)).toBe(true); // it is not yet known how slow the disk is
  expect(await write(1, 500, 10)).toBe(true); // it may have been that one alone
  await learned();
  expect(await write(1, 500, 10)).toBe(false);
  syncMs = 0.1;
  for (let i = 0; i < 100; i += 1) await write(5, 5, 10);
  expect(await write(1, 500, 10)).toBe(true); // long ago
  for (let i = 0; i < 1000; i += 1) await write(5, 5, 10);
  expect(await write(1, 2000, 10)).toBe(false); // too many for whatever disk
});

/** A log whose batches land when told, and ends that note the order of things. */
function pipelineWith(ends: Partial<PipelineEnds> = {}) {
  const order: string[] = [];
  const landings: (() => void)[] = [];
  const log: TxnLog = {
    append: (batch) => {
      order.push(`append ${batch.length}`);
      return new Promise((resolve) => landings.push(resolve));
    },
    close: async () => {},
  };
  const pipeline = new Pipeline(log, new ManualClock(), new ServerStats(0), {
    isGathering: () => false,
    batchBegun: () => order.push('begun'),
    committed: () => {},
    batchDone: () => order.push('done'),
    slow: () => {},
    failed: (error) => order.push(`failed: ${error.message}`),
    ...ends,
  });
  const submit = (calls: number) => {
    for (let i = 0; i < calls; i++) pipeline.submit({} as Call);
  };
  return { pipeline, order, submit, land: () => landings.shift()!() };
}

test('under a load the next batch is with the log before the replies to this one', async () => {
  const { order, submit, land, pipeline } = pipelineWith();
  submit(1);
  await vi.waitFor(() => expect(order).toEqual(['append 1']));
  submit(100);
  land();
  await vi.waitFor(() => expect(order).toEqual(['append 1', 'append 100', 'begun', 'done']));
  submit(1);
  land();
  await vi.waitFor(() => expect(order.slice(4)).toEqual(['begun', 'done', 'append 1']));
  land();
  await pipeline.idle();

  expect(order.slice(7)).toEqual(['begun', 'done']);
});

test('the log begins with the first of many while the rest is still being read', async () => {
  const { order, submit, land, pipeline } = pipelineWith();
  submit(100);
  expect(order).toEqual(['append 32']);
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual(['append 32']); // not begun twice
  land();
  await vi.waitFor(() => expect(order.slice(1)).toEqual(['append 68', 'begun', 'done']));
  land();
  await pipeline.idle();

  expect(order.slice(4)).toEqual(['begun', 'done']);
});

test('what is with the log when a batch before it fails is never told of', async () => {
  let committed = 0;
  const { order, submit, land } = pipelineWith({
    committed: () => {
      committed += 1;
      throw new Error('another tree');
    },
  });
  submit(1);
  await vi.waitFor(() => expect(order).toEqual(['append 1']));
  submit(100);
  land();
  await vi.waitFor(() => expect(order).toContain('failed: another tree'));
  land();
  await new Promise((resolve) => setImmediate(resolve));

  expect(order).toEqual(['append 1', 'append 100', 'begun', 'failed: another tree']);
  expect(committed).toBe(1);
});

test('a few writes wait while more is about to be asked, many do not', async () => {
  let turns = 3;
  const { order, submit, land } = pipelineWith({ isGathering: () => turns-- > 0 });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  submit(1);
  await turn();
  submit(1);
  await turn();
  expect(order).toEqual([]);
  await turn();
  await turn();
  expect(order).toEqual(['append 2']);
  land();
  await turn();

  turns = Infinity;
  submit(1);
  await turn();
  submit(31);

  expect(order).toEqual(['append 2', 'begun', 'done', 'append 32']);
});

test('who is back first waits for the other who was answered with it, and shares a sync', async () => {
  const held = heldLog();
  const clock = new ManualClock(); // stands still: nobody is late
  await using zk = await startServer({ port: 0, log: held.log, clock });
  const [a, b, c] = [
    await RawClient.connect(zk.port),
    await RawClient.connect(zk.port),
    await RawClient.connect(zk.port),
  ];
  const underWay = async (requests: number) => {
    while (zk.engine.outstanding !== requests) await new Promise(setImmediate);
  };
  held.hold();
  c.send('create', node('/c'));
  await held.taken();
  const both = [a.send('create', node('/a')), b.send('create', node('/b'))] as const;
  await underWay(3);
  held.release();
  await Promise.all([a.reply(both[0]), b.reply(both[1])]);
  const before = held.batches.length;

  const first = a.send('create', node('/a2'));
  await underWay(1);
  const second = b.send('create', node('/b2'));
  await Promise.all([a.reply(first), b.reply(second)]);

  expect(held.batches.slice(before).map((batch) => batch.length)).toEqual([2]);
});

test('links that come one a turn, as Node takes them, have their sessions in one batch', async () => {
  const { log, batches } = heldLog();
  await using zk = await startTestServer({ log });
  for (let turn = 0; turn < 10; turn++) {
    zk.engine.accept(new NoWire()).receive(greeting);
    await new Promise(setImmediate);
  }
  expect(batches).toEqual([]);
  await new Promise(setImmediate);

  expect(batches.map((batch) => batch.length)).toEqual([10]);
});

test.each([
  ['renewed', [{ op: 'setData', request: { path: '/t', data: null, version: -1 } }]],
  [
    'replaced by one that stays',
    [
      { op: 'delete', request: { path: '/t', version: -1 } },
      { op: 'create', request: node('/t') },
    ],
  ],
] as const)('a node whose time is over is not taken away while it is %s', async (_, parts) => {
  const held = heldLog();
  await using zk = await startTestServer({ log: held.log, extendedTypesEnabled: true });
  const client = await RawClient.connect(zk.port);
  await client.ask('createTTL', { ...node('/t', 5), ttl: 1n });
  held.hold();
  const write = client.send('multi', [...parts]);
  await held.taken();

  zk.engine.reap('/t');
  held.release();

  expect((await client.reply(write)).err).toBe(0);
  expect(await client.err('sync', { path: '/' })).toBe(0);
  expect(await client.err('exists', { path: '/t', watch: false })).toBe(0);
});

test('reads that wait behind a write are timed as others are, and events count as packets', async () => {
  await using zk = await startTestServer();
  const client = await RawClient.connect(zk.port);
  await client.ask('exists', { path: '/', watch: true });
  const { stats } = zk.engine;
  const readsBefore = stats.reads.count;

  client.send('setData', { path: '/', data: null, version: -1 });
  client.send('create', node('/a'));
  const xids = [1, 2, 3].map(() => client.send('exists', { path: '/', watch: false }));
  await client.reply(xids[2]!);

  expect(stats.reads.count - readsBefore).toBe(3);
  const exists = [...stats.byOp.entries()].find(([code]) => code === ops.exists.code)!;
  expect(exists[1].count).toBe(4);
  const [connection] = zk.engine.connections;
  expect(stats.packetsSent).toBe(connection!.packetsSent);
  expect(stats.packetsSent).toBe(8); // a welcome, six replies, an event
});
