/** The console beside a server of our own: its history, its counters, its sessions, its demo. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Context } from '../src/cli/command.ts';
import { commands } from '../src/cli/commands.ts';
import { openServerConsole } from '../src/cli/console-server.ts';
import { connect } from '../src/client/index.ts';
import { startServer } from '../src/server/index.ts';
import { textOf } from './console-run.ts';

// biome-ignore lint/suspicious/noExplicitAny: whatever was answered
type Json = any;

async function startBoth({ write = true, dataDir }: { write?: boolean; dataDir?: string } = {}) {
  const server = await startServer({
    port: 0,
    ...(dataDir === undefined ? { inMemory: true } : { dataDir }),
    limits: { connectionsPerAddressMax: 0 },
  });
  const said: string[] = [];
  const context = { commands, environment: {} } as unknown as Context;
  const web = await openServerConsole(context, server, {
    port: 0,
    write,
    say: (sentence) => said.push(sentence),
  });
  const client = await connect(server.address);
  const origin = `http://127.0.0.1:${web.port}`;
  const get = async (path: string) => (await fetch(`${origin}${path}`)).json() as Promise<Json>;
  const post = async (path: string, body: object) => {
    const { csrf } = await get('/api/session');
    const headers = { 'content-type': 'application/json', 'x-drover-token': csrf, origin };
    const answer = await fetch(`${origin}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    return { status: answer.status, json: (await answer.json()) as Json };
  };
  return {
    server,
    client,
    said,
    get,
    post,
    async [Symbol.asyncDispose]() {
      await web.close();
      await client.close();
      await server.close();
    },
  };
}

test('the life of a node is told out of the logs, without what its ACL hides', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-console-'));
  try {
    await using zk = await startBoth({ dataDir });
    await zk.client.create('/told', 'one');
    await zk.client.set('/told', 'two');
    const acl = [{ perms: 31, id: { scheme: 'digest', id: 'me:hash' } }];
    await zk.client.create('/secret', 'canary-4711', { acl });

    const { entries } = await zk.get('/api/history?path=/told');
    const secret = await zk.get('/api/history?path=/secret');

    expect(entries.map((one: { kind: string }) => one.kind)).toEqual(['dataSet', 'created']);
    expect([textOf(entries[0].before), textOf(entries[0].after)]).toEqual(['one', 'two']);
    expect(secret.entries).toMatchObject([{ kind: 'created', after: null }]);
    expect((await zk.get('/api/history?path=/told&limit=1')).isCut).toBe(true);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test('who was in sync is told out of the logs, from before the console too', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-timeline-'));
  try {
    await using zk = await startBoth({ dataDir });
    const state = (isr: number[]) =>
      JSON.stringify({ controller_epoch: 1, leader: 1, version: 1, leader_epoch: 0, isr });
    const topic = JSON.stringify({ version: 1, partitions: { 0: [1, 2] } });
    await zk.client.create('/brokers/topics/t', topic, { parents: true });
    const path = '/brokers/topics/t/partitions/0/state';
    await zk.client.create(path, state([1, 2]), { parents: true });
    for (const isr of [[1], [1, 2]]) await zk.client.set(path, state(isr));

    const { from, states } = await zk.get('/api/kafka/timeline?name=t&partition=0');

    expect(from).toBe('logs');
    expect(states.map(({ isr }: { isr: number[] }) => isr)).toEqual([[1, 2], [1], [1, 2]]);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test('every column is known, whatever the whitelist of words', async () => {
  await using zk = await startBoth();
  await zk.client.create('/x', '', { mode: 'ephemeral' });

  const { servers, quorum } = await zk.get('/api/overview');
  expect(servers).toMatchObject([{ role: 'standalone', isBrief: false, ephemerals: 1 }]);
  expect(quorum.hasQuorum).toBe(true);
  const { rows, unknown } = await zk.get('/api/sessions');
  expect(unknown).toEqual([]);
  for (const { expiresMs, timeoutMs } of rows) {
    expect(expiresMs - Date.now()).toBeGreaterThan(0);
    expect(expiresMs - Date.now()).toBeLessThan(timeoutMs + 60_000);
  }
  await zk.client.get('/x', { watch: () => {} });
  await zk.client.children('/', { watch: () => {} });
  const watched = await zk.get('/api/node/watches?path=/x');
  expect(watched).toMatchObject({ sessions: [expect.any(String)], kinds: ['data'], unknown: [] });
  const { kinds } = await zk.get('/api/watches');
  expect(kinds).toMatchObject({ data: 1, children: 1, recursive: 1 });
  for (const path of ['/y', '/z']) await zk.client.create(path);
  const { ops } = await zk.get('/api/metrics');
  const names = ops.map((one: { op: string }) => one.op);
  expect(names).toEqual(expect.arrayContaining(['create2', 'getData', 'getChildren']));
  expect(ops.find((one: { op: string }) => one.op === 'create2')).toMatchObject({ count: 2 });
});

test('an editor ends a session, but not the console’s own', async () => {
  await using zk = await startBoth();
  const session = `0x${zk.client.sessionId!.toString(16)}`;
  const own = (await zk.get('/api/session')).link.session;

  expect((await zk.post('/api/sessions/expire', { session: own })).status).toBe(409);
  expect((await zk.post('/api/sessions/expire', { session: '0x1' })).status).toBe(404);
  expect((await zk.post('/api/sessions/expire', { session })).status).toBe(200);
  await vi.waitFor(() => expect(zk.client.state.name).toBe('expired'));
  expect((await zk.get('/api/audit')).entries[0]).toMatchObject({
    action: 'expire',
    path: session,
  });
});

test('read-only offers no demo and ends no session', async () => {
  await using zk = await startBoth({ write: false });

  const { features, role } = await zk.get('/api/session');
  expect([features.demo, role]).toEqual([false, 'viewer']);
  expect((await zk.post('/api/sessions/expire', { session: '0x1' })).status).toBe(403);
  expect((await zk.post('/api/demo', {})).status).toBe(403);
});

test('the demo is for an empty server', async () => {
  await using zk = await startBoth();
  await zk.client.create('/something');

  const { status, json } = await zk.post('/api/demo', {});

  expect([status, json.error.code]).toEqual([409, 'CONFLICT']);
});

test('the demo shows every page alive', { timeout: 60_000 }, async () => {
  await using zk = await startBoth();
  expect((await zk.get('/api/overview')).isEmpty).toBe(true);

  expect((await zk.post('/api/demo', {})).status).toBe(200);

  const eventually = (look: () => Promise<void>) =>
    vi.waitFor(look, { timeout: 20_000, interval: 200 });
  await eventually(async () => {
    const kafka = await zk.get('/api/kafka');
    expect(kafka).toMatchObject({ found: 'zookeeper', topics: 2, partitions: 9, offline: 0 });
    expect(kafka.brokers).toHaveLength(3);
    expect(kafka.controller.brokerId).not.toBeNull();
  });
  await eventually(async () => {
    const { rows } = await zk.get('/api/groups');
    const names = rows.map((one: { group: string }) => one.group);
    expect(names).toEqual(expect.arrayContaining(['audit', 'billing']));
    const billing = await zk.get('/api/groups/one?name=billing');
    expect(billing.members).toHaveLength(2);
    expect(billing.partitions.every((one: { owner: string }) => one.owner !== null)).toBe(true);
    expect(billing.row.lag).not.toBeNull();
  });
  await eventually(async () => {
    const replay = await zk.get('/api/alignment/one?name=replay');
    expect(replay.partitions).toHaveLength(6);
    expect(replay.limitMs).not.toBeNull();
    expect(replay.members.filter((one: { isLeader: boolean }) => one.isLeader)).toHaveLength(1);
    expect(replay.left).toMatch(/^\d+$/);
    expect(replay.ratePerS).toEqual(expect.any(Number));
  });
  await eventually(async () => {
    const { recipes } = await zk.get('/api/recipes?path=/demo');
    const kinds = recipes.map((one: { kind: string }) => one.kind);
    expect(kinds).toEqual(expect.arrayContaining(['lock', 'election', 'semaphore']));
  });
  expect(zk.said.filter((sentence) => sentence.startsWith('demo:'))).toEqual([]);
  expect(zk.said.filter((sentence) => sentence.includes('Error'))).toEqual([]);
});

test('drover serve prints a second address where a console is asked for, and none with --no-console', {
  timeout: 60_000,
}, async () => {
  const main = join(import.meta.dirname, '../src/cli/main.ts');
  const start = async (...words: string[]) => {
    const args = ['--import', import.meta.resolve('tsx'), main, 'serve', '--in-memory', '--json'];
    const child = spawn(process.execPath, [...args, '--port', '0', ...words], {
      env: { PATH: process.env.PATH! },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [line] = await once(child.stdout!, 'data');
    return { child, facts: JSON.parse(String(line)) as { consolePort: number | null } };
  };
  const [asked, refused] = await Promise.all([
    start('--console-port', '0'),
    start('--console-port', '0', '--no-console'),
  ]);
  try {
    const { consolePort } = asked.facts;
    const session = await fetch(`http://127.0.0.1:${consolePort}/api/session`);
    expect(await session.json()).toMatchObject({ role: 'viewer', origin: 'drover serve' });
    expect(refused.facts.consolePort).toBeNull();
  } finally {
    asked.child.kill('SIGTERM');
    refused.child.kill('SIGTERM');
  }
  const codes = await Promise.all([asked, refused].map(({ child }) => once(child, 'exit')));
  expect(codes.map(([code]) => code)).toEqual([0, 0]);
});
