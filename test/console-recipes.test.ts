/** Elections with their terms, and queues with what stands beside them, as the Recipes page is told. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Context } from '../src/cli/command.ts';
import { commands } from '../src/cli/commands.ts';
import { openServerConsole } from '../src/cli/console-server.ts';
import { connect } from '../src/client/index.ts';
import { Election, Queue, SimpleQueue } from '../src/recipes/index.ts';
import { startServer } from '../src/server/index.ts';
import { startConsoleInTest } from './console-run.ts';

type Term = { id: string; sinceMs: number | null; untilMs: number | null; epoch: string };

test('an election shows who led when, with epochs that grow, as the console saw it', async () => {
  await using zk = await startConsoleInTest();
  await using other = await connect(zk.server.address);
  const terms = async (): Promise<Term[]> =>
    (await zk.get('/api/recipes/terms?path=/leader')).json.terms;
  await zk.client.create('/leader');
  const [ann, bob] = [
    new Election(zk.client, '/leader', { id: 'ann' }),
    new Election(other, '/leader', { id: 'bob' }),
  ];
  const done = new AbortController();
  const over = new Promise<void>((resolve) =>
    done.signal.addEventListener('abort', () => resolve()),
  );
  const first = ann.lead(() => over);
  await expect.poll(async () => (await terms())[0]?.id).toBe('ann');
  const second = bob.lead(async () => {
    await expect.poll(async () => (await terms())[0]?.id).toBe('bob');
  });
  // In line before the first goes, or nobody would lead between the two.
  await expect.poll(async () => (await zk.client.children('/leader')).length).toBe(2);

  done.abort();
  await first;
  await second;

  await expect.poll(async () => (await terms()).map(({ id }) => id)).toEqual(['bob', 'ann']);
  await expect.poll(async () => (await terms())[0]!.untilMs).not.toBeNull();
  const [later, earlier] = await terms();
  expect(BigInt(later!.epoch)).toBeGreaterThan(BigInt(earlier!.epoch));
  expect(later!.sinceMs).toBe(earlier!.untilMs);
  expect((await zk.get('/api/recipes/terms?path=/leader')).json).toMatchObject({ from: 'seen' });
});

test('beside our own server terms come out of its logs, from before the console looked', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'drover-terms-'));
  const server = await startServer({ port: 0, dataDir });
  try {
    await using client = await connect(server.address);
    for (const id of ['ann', 'bob', 'cid']) {
      await new Election(client, '/leader', { id }).lead(async () => {});
    }
    const secret = [{ perms: 31, id: { scheme: 'ip', id: '127.0.0.1' } }];
    await client.create('/leader/latch-', 'x', { mode: 'ephemeralSequential', acl: secret });
    const context = { commands, environment: {} } as unknown as Context;
    const options = { port: 0, write: false, say() {} };
    await using running = await openServerConsole(context, server, options);

    const answer = await fetch(new URL('/api/recipes/terms?path=/leader', running.url));
    const { terms, from } = (await answer.json()) as { terms: Term[]; from: string };

    expect(from).toBe('logs');
    expect(terms.map(({ id }) => id)).toEqual([null, 'cid', 'bob', 'ann']);
    expect(terms.every(({ sinceMs }) => sinceMs !== null)).toBe(true);
    expect(terms.map(({ untilMs }) => untilMs === null)).toEqual([true, false, false, false]);
    const epochs = terms.map(({ epoch }) => BigInt(epoch));
    expect(epochs).toEqual(epochs.toSorted((a, b) => (a > b ? -1 : 1)));
  } finally {
    await server.close();
    await rm(dataDir, { recursive: true, force: true });
  }
});

test('queues of every layout are found once, with who works and who waits, and receipts are none', async () => {
  await using zk = await startConsoleInTest();
  await using other = await connect(zk.server.address);
  const gone = new AbortController();
  await new SimpleQueue(zk.client, '/q/mail').put('a');
  await using flat = new Queue(zk.client, '/q/flat', { layout: 'curator' });
  await flat.put('x');
  await using buckets = new Queue(zk.client, '/q/buckets');
  for (const item of ['x', 'y', 'z']) await buckets.put(item);
  const taken = [await flat.take(), await buckets.take()];
  await using empty = new Queue(other, '/q/empty');
  const waits = empty.take({ signal: gone.signal });
  waits.catch(() => {}); // called off below

  const seen = async () => {
    const { recipes } = (await zk.get('/api/recipes?path=/q')).json;
    return recipes.map((one: Record<string, unknown>) =>
      [one.kind, one.path, one.size, one.holding, one.waiting].join(' '),
    );
  };

  await expect
    .poll(async () => (await seen()).toSorted())
    .toEqual([
      'queue /q/buckets 3 1 0',
      'queue /q/empty 0 0 1',
      'queue /q/flat 1 0 0',
      'queue /q/mail 1 0 0',
    ]);
  gone.abort();
  expect(taken).toHaveLength(2);
});
