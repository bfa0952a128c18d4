/** What waits for clients that do not take their replies: bounded over all links, and the others go on. */

import { expect, onTestFinished, test } from 'vitest';
import { encode } from '../jute/index.ts';
import { ops } from '../protocol/index.ts';
import { startTestServer } from '../testing/index.ts';
import type { Connection } from './connection.ts';
import { framed, greeting, NoWire } from './fixtures.ts';

const mb = 1_000_000;

/** A client that takes what it is told when it is told to. */
class SlowWire extends NoWire {
  override queuedBytes = 0;
  override write(_bytes: Buffer, length: number): boolean {
    this.sent += length;
    this.queuedBytes += length;
    return false;
  }
}

interface Client {
  readonly wire: SlowWire;
  readonly connection: Connection;
}

async function start(totalMb: number) {
  const zk = await startTestServer({ limits: { outputBytesTotalMax: totalMb * mb } });
  onTestFinished(() => zk.close());
  await zk.load({ '/large': 'x'.repeat(mb), '/small': 'x' });
  const settle = async () => {
    for (let turn = 0; turn < 4; turn += 1) await new Promise(setImmediate);
  };
  const dial = async (): Promise<Client> => {
    const wire = new SlowWire();
    const connection = zk.engine.accept(wire);
    connection.receive(greeting);
    while (connection.state === 'held') await new Promise(setImmediate);
    take({ wire, connection });
    return { wire, connection };
  };
  return { zk, settle, dial };
}

function take({ wire, connection }: Client): void {
  wire.queuedBytes = 0;
  wire.sent = 0;
  connection.drained();
}

function ask({ connection }: Client, code: number, body: Buffer): void {
  const head = Buffer.alloc(8);
  head.writeInt32BE(1);
  head.writeInt32BE(code, 4);
  connection.receive(framed(head, body));
}

const get = (client: Client, path = '/large') =>
  ask(client, ops.getData.code, encode(ops.getData.request, { path, watch: false }));
const multiGet = (client: Client, parts: number) => {
  const part = { op: 'getData' as const, request: { path: '/large', watch: false } };
  ask(client, ops.multiRead.code, encode(ops.multiRead.request, Array(parts).fill(part)));
};
const sum = (clients: readonly Client[]) =>
  clients.reduce((bytes, { wire }) => bytes + wire.queuedBytes, 0);

test('a thousand bytes from one client are answered by no more than a few frames', async () => {
  const { settle, dial } = await start(512);
  const client = await dial();

  multiGet(client, 64);
  await settle();

  expect(client.wire.queuedBytes).toBeLessThan(100); // a refusal
});

test('clients that take nothing are owed no more than the total, however many they are', async () => {
  const { settle, dial } = await start(40);
  const clients = await Promise.all(Array.from({ length: 30 }, dial));

  for (const client of clients) {
    multiGet(client, 7);
    await settle();
    expect(sum(clients)).toBeLessThan(40 * mb);
  }

  expect(sum(clients)).toBeGreaterThan(20 * mb);
});

test('a large read waits while too much is to be sent, small ones do not, and it goes on when there is room', async () => {
  const { settle, dial } = await start(6);
  const busy = await Promise.all([1, 2, 3, 4].map(dial));
  const late = await dial();
  for (const client of busy) get(client);
  await settle();

  get(late);
  await settle();
  expect(late.wire.sent).toBe(0);
  const other = await dial();
  get(other, '/small');
  await settle();
  expect(other.wire.sent).toBeGreaterThan(0);

  take(busy[0]!);
  await settle();
  take(busy[1]!);
  await settle();
  expect(late.wire.sent).toBeGreaterThan(mb);
  expect(busy.map(({ connection }) => connection.state)).toEqual(Array(4).fill('open'));
});

test('while others wait, the largest of those that take nothing is closed', async () => {
  const { zk, settle, dial } = await start(8);
  const [small, largest, slow] = [await dial(), await dial(), await dial()];
  get(small);
  multiGet(largest, 3);
  multiGet(slow, 2);
  await settle();
  const late = await dial();
  get(late);

  for (let look = 0; look < 5; look += 1) {
    slow.wire.queuedBytes -= 1;
    zk.clock.advance(250);
    await settle();
  }

  expect([small, largest, slow].map(({ connection }) => connection.state)).toEqual([
    'open',
    'closed',
    'open',
  ]);
  expect(late.wire.sent).toBeGreaterThan(mb);
});

test('what cannot wait closes the largest when it is too much in all', async () => {
  const { zk, settle, dial } = await start(4);
  const [largest, small] = [await dial(), await dial()];
  multiGet(largest, 3);
  await settle();
  // Events are told at once: each is a frame with a path of half a megabyte.
  const path = `/${'x'.repeat(mb / 2)}`;
  for (const name of ['a', 'b', 'c']) {
    const exists = { path: path + name, watch: true };
    ask(small, ops.exists.code, encode(ops.exists.request, exists));
  }
  await settle();

  await zk.load({ [`${path}a`]: '', [`${path}b`]: '', [`${path}c`]: '' });
  await settle();

  expect([largest, small].map(({ connection }) => connection.state)).toEqual(['closed', 'open']);
});
