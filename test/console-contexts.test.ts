/** Places by name: switched to, kept read-only where they are, and copied between after a look. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { offeredContexts } from '../src/cli/console-contexts.ts';
import { type SavedContext, writeContexts } from '../src/cli/contexts.ts';
import { type Client, connect } from '../src/client/index.ts';
import { type Clock, deferred, ManualClock } from '../src/support/index.ts';
import { startTestServer, type TestServer } from '../src/testing/index.ts';
import { runInProcess } from './cli-run.ts';
import { base64, type ConsoleInTest, startConsoleInTest } from './console-run.ts';

interface Places extends ConsoleInTest {
  /** Of the server that the context `other` names. */
  readonly there: Client;
  readonly other: TestServer;
  readonly environment: Readonly<Record<string, string>>;
}

/** A console for one server, and a second server under three names: other, kept (read-only), secret. */
async function startPlaces(
  contexts: 'all' | readonly string[] = 'all',
  write = true,
  clock?: Clock,
) {
  const home = await mkdtemp(join(tmpdir(), 'drover-contexts-'));
  const environment = { XDG_CONFIG_HOME: home };
  const other = await startTestServer();
  const there = await connect(other.address);
  const saved: Record<string, Omit<SavedContext, 'name'>> = {
    other: { servers: other.address },
    kept: { servers: other.address, readOnly: true },
    secret: { servers: other.address, auth: [{ scheme: 'digest', auth: 'canary:pass' }] },
  };
  await writeContexts(environment, { version: 1, selected: null, previous: null, contexts: saved });
  const zk = await startConsoleInTest(
    { write, ...(clock && { clock }) },
    { contexts, environment },
  );
  const places: Places = {
    ...zk,
    there,
    other,
    environment,
    async [Symbol.asyncDispose]() {
      await zk[Symbol.asyncDispose]();
      await there.close();
      await other.close();
      await rm(home, { recursive: true, force: true });
    },
  };
  return places;
}

test('the page is told of the contexts, without their secrets, and looks at the one it names', async () => {
  await using zk = await startPlaces();
  await zk.client.create('/here');
  await zk.there.create('/there');
  const names = async (context: string) =>
    (await zk.get(`/api/children?path=/${context}`)).json.rows.map(
      ({ name }: { name: string }) => name,
    );

  const list = (await zk.get('/api/contexts')).text;
  expect(JSON.parse(list)).toMatchObject({
    contexts: [
      { name: null, servers: zk.server.address, readOnly: false },
      { name: 'kept', readOnly: true },
      { name: 'other', readOnly: false },
      { name: 'secret', readOnly: false },
    ],
    why: null,
  });
  expect(list).not.toContain('canary');
  expect(await names('')).toEqual(['here', 'zookeeper']);
  expect(await names('&context=other')).toEqual(['there', 'zookeeper']);
  expect((await zk.get('/api/session?context=other')).json).toMatchObject({
    context: 'other',
    origin: 'context other',
    readOnly: false,
  });
  expect((await zk.get('/api/session')).json).toMatchObject({ context: null });
});

test('what was saved read-only stays so, by every route and by the shell, with --write or without', async () => {
  await using zk = await startPlaces();
  await zk.there.create('/x', 'as it was');
  const session = (await zk.get('/api/session?context=kept')).json;

  expect(session).toMatchObject({
    role: 'editor',
    readOnly: true,
    readOnlyReason: 'read-only: the context kept is kept so',
  });
  const { routes } = await import('../src/console/routes.ts');
  const writing = routes.filter(({ needs }) => needs === 'write');
  expect(writing.length).toBeGreaterThan(8);
  for (const { path } of writing) {
    expect([path, (await zk.post(`${path}?context=kept`, {})).status]).toEqual([path, 403]);
  }
  const said = (await zk.post('/api/shell?context=kept', { line: 'set /x no' })).json;
  expect([said.code, said.err]).toEqual([6, expect.stringContaining('read-only')]);
  expect((await zk.there.get('/x')).data?.toString()).toBe('as it was');
  const changed = await zk.post('/api/node/set?context=other', {
    ...{ path: '/x', data: base64('new'), version: 0 },
  });
  expect(changed.status).toBe(200);
  expect(zk.said.at(-1)).toContain('set /x in other, by editor at 127.0.0.1');
});

test('a console that may not write does so in no context', async () => {
  await using zk = await startPlaces('all', false);

  const answer = await zk.post('/api/node/create?context=other', { path: '/no' });

  expect(answer.status).toBe(403);
  expect(await zk.there.exists('/no')).toBeNull();
});

test('only contexts that were offered can be looked at, and none without being told', async () => {
  await using some = await startPlaces(['other']);
  const status = async (zk: ConsoleInTest, name: string) =>
    (await zk.get(`/api/children?path=/&context=${name}`)).status;

  expect((await some.get('/api/contexts')).json.contexts).toHaveLength(2);
  expect(await status(some, 'other')).toBe(200);
  for (const name of ['kept', 'none', '__proto__', 'constructor', '..%2Fx']) {
    expect([name, await status(some, name)]).toEqual([name, 404]);
  }
  await using alone = await startConsoleInTest();
  expect(await status(alone, 'other')).toBe(404);
  expect((await alone.get('/api/contexts')).json.why).toContain('--contexts');
});

test('who has no role opens no context', async () => {
  await using zk = await startConsoleInTest(
    { token: 'long-enough-token' },
    { contexts: 'all', environment: {} },
  );

  const { status, json } = await zk.get('/api/session?context=any');

  expect([status, json.role, json.context]).toEqual([200, 'nobody', null]);
  expect((await zk.get('/api/contexts')).status).toBe(401);
  expect((await zk.get('/api/overview?context=any')).status).toBe(401);
});

// biome-ignore format: a table is read down its columns
test.each([
  [undefined, true,  'all'],
  [undefined, false, undefined],
  ['all',     false, 'all'],
  ['none',    true,  undefined],
  ['a,b',     true,  ['a', 'b']],
] as const)('--contexts %s, on loopback %s, offers %j', (given, isLoopback, offered) => {
  expect(offeredContexts(given, isLoopback)).toEqual(offered);
});

test('drover console offers the saved contexts, those that are named, or none', async () => {
  await using zk = await startPlaces();
  const offered = async (...words: string[]) => {
    const stop = new AbortController();
    let names: Promise<(string | null)[]> | undefined;
    const said = await runInProcess(zk.server.address, ['console', '-p', '0', '--json', ...words], {
      environment: zk.environment,
      signal: stop.signal,
      onOut: (out) => {
        const { port } = JSON.parse(out) as { port: number };
        names ??= fetch(`http://127.0.0.1:${port}/api/contexts`)
          .then(async (answer) => (await answer.json()) as { contexts: { name: string | null }[] })
          .then(({ contexts }) => contexts.map(({ name }) => name))
          .finally(() => stop.abort());
      },
    });
    return [said.code, await names];
  };

  expect(await offered()).toEqual([0, [null, 'kept', 'other', 'secret']]);
  expect(await offered('--contexts', 'other')).toEqual([0, [null, 'other']]);
  expect(await offered('--contexts', 'none')).toEqual([0, [null]]);
  expect((await offered('--contexts', 'a,,b'))[0]).toBe(2);
  expect((await offered('--brokers', 'nonsense'))[0]).toBe(2);
  expect((await offered('--admin-port', '0'))[0]).toBe(2);
});

test('each context has an audit and a stream of its own', async () => {
  await using zk = await startPlaces();
  await zk.post('/api/node/create?context=other', { path: '/made' });

  expect((await zk.get('/api/audit')).json.total).toBe(0);
  expect((await zk.get('/api/audit?context=other')).json.entries).toMatchObject([
    { action: 'create', path: '/made' },
  ]);
});

test('the context that the console was started for is there once', async () => {
  await using zk = await startPlaces('all');
  const target = { servers: zk.server.address, origin: 'context other', readOnly: false };
  await using own = await startConsoleInTest(
    {},
    {
      contexts: 'all',
      environment: zk.environment,
      target: { ...target, client: {}, dataBytesMax: 1_000 },
    },
  );

  const { contexts } = (await own.get('/api/contexts')).json;

  expect(
    contexts.map(({ name, origin }: { name: string; origin: string }) => [name, origin]),
  ).toEqual([
    [null, 'context other'],
    ['kept', 'context kept'],
    ['secret', 'context secret'],
  ]);
});

test('a context that nobody looks at is closed, unless something was changed in it', async () => {
  const clock = new ManualClock();
  await using zk = await startPlaces('all', true, clock);
  await zk.get('/api/children?path=/&context=secret');
  await zk.post('/api/node/create?context=other', { path: '/made' });
  const closed = () => zk.other.log.filter(({ op }) => op === 'closeSession').length;
  clock.advance(9 * 60_000);
  expect(closed()).toBe(0);

  clock.advance(2 * 60_000);

  await expect.poll(closed).toBe(1);
  const [entry] = (await zk.get('/api/audit?context=other')).json.entries;
  expect((await zk.post('/api/audit/undo?context=other', { id: entry.id })).status).toBe(200);
});

// ── copies ──────────────────────────────────────────────────────────────────────────────────────

const asked = (more: object = {}) => ({
  ...{ from: null, paths: ['/app'], to: '/app', onConflict: 'skip', withAcl: true },
  ...more,
});

async function plantApp({ client }: Places): Promise<void> {
  await client.create('/app', 'top');
  await client.create('/app/a', 'one');
  await client.create('/app/b', 'two');
  await client.create('/app/alive', '', { mode: 'ephemeral' });
}

test('a copy is looked at, then made, told in the audit of the place it changed, and taken back', async () => {
  await using zk = await startPlaces();
  await plantApp(zk);
  const look = (await zk.post('/api/copy/preview?context=other', asked({ to: '/deep/app' }))).json;

  expect(look).toMatchObject({
    counts: { create: 3, change: 0, same: 0, ephemeral: 1 },
    confirm: null,
    isTooMany: false,
    done: false,
  });
  expect(
    look.steps.map(({ step, path }: { step: string; path: string }) => `${step} ${path}`),
  ).toEqual(
    expect.arrayContaining(['create /deep/app', 'create /deep/app/a', 'ephemeral /deep/app/alive']),
  );
  expect(await zk.there.exists('/deep')).toBeNull();
  const counted = { confirm: null, create: 3, change: 0 };
  const made = await zk.post('/api/copy?context=other', {
    ...asked({ to: '/deep/app' }),
    ...counted,
  });
  expect(made.json).toMatchObject({ done: true });
  expect((await zk.there.get('/deep/app/b')).data?.toString()).toBe('two');
  expect(await zk.there.exists('/deep/app/alive')).toBeNull();

  const [entry] = (await zk.get('/api/audit?context=other')).json.entries;
  expect(entry).toMatchObject({ action: 'copy', path: '/deep/app', ok: true, undo: 'possible' });
  expect((await zk.post('/api/audit/undo?context=other', { id: entry.id })).status).toBe(200);
  expect(await zk.there.exists('/deep')).toBeNull();
});

test('what differs is left alone, or overwritten once its name is typed; undo brings it back', async () => {
  await using zk = await startPlaces();
  await plantApp(zk);
  await zk.there.create('/app', 'top');
  await zk.there.create('/app/a', 'theirs');
  const text = async (path: string) => (await zk.there.get(path)).data?.toString();
  const copy = (body: object) => zk.post('/api/copy?context=other', asked(body));
  const counted = { create: 1, change: 1 };

  await copy({ confirm: null, create: 1, change: 0 });
  expect([await text('/app/a'), await text('/app/b')]).toEqual(['theirs', 'two']);
  const over = { onConflict: 'overwrite', ...counted };
  const look = await zk.post('/api/copy/preview?context=other', asked({ onConflict: 'overwrite' }));
  expect(look.json).toMatchObject({ counts: { change: 1, same: 2 }, confirm: 'app' });
  expect((await copy({ ...over, confirm: 'no' })).status).toBe(409);
  expect(await text('/app/a')).toBe('theirs');
  expect((await copy({ ...over, confirm: 'app' })).status).toBe(200);
  expect(await text('/app/a')).toBe('one');
  const [entry] = (await zk.get('/api/audit?context=other')).json.entries;
  await zk.post('/api/audit/undo?context=other', { id: entry.id });
  expect(await text('/app/a')).toBe('theirs');
});

test('a copy does no more than was shown', async () => {
  await using zk = await startPlaces();
  await plantApp(zk);
  const counted = { confirm: null, create: 3, change: 0 };
  await zk.client.create('/app/later');

  const answer = await zk.post('/api/copy?context=other', { ...asked(), ...counted });

  expect([answer.status, answer.json.error.message]).toEqual([
    409,
    'by now it is 4 to create and 0 to change; look again',
  ]);
  expect(await zk.there.exists('/app')).toBeNull();
});

test('undo of a copy takes back all of it or nothing', async () => {
  await using zk = await startPlaces();
  await plantApp(zk);
  await zk.post('/api/copy?context=other', { ...asked(), confirm: null, create: 3, change: 0 });
  await zk.there.create('/app/b/mine');
  const [entry] = (await zk.get('/api/audit?context=other')).json.entries;

  const answer = await zk.post('/api/audit/undo?context=other', { id: entry.id });

  expect(answer.status).toBe(409);
  expect(await zk.there.exists('/app/a')).not.toBeNull();
});

test('several subtrees go below a path by their names; none goes into itself', async () => {
  await using zk = await startPlaces();
  await plantApp(zk);
  const several = { paths: ['/app/a', '/app/b'], to: '/in', confirm: null, create: 2, change: 0 };
  await zk.post('/api/copy?context=other', asked(several));
  expect((await zk.there.children('/in')).sort()).toEqual(['a', 'b']);

  const preview = (body: object) => zk.post('/api/copy/preview', asked(body));
  expect((await preview({ to: '/app/below' })).status).toBe(400);
  expect((await preview({ paths: ['/'], to: '/app' })).status).toBe(400);
  expect((await preview({ to: '/copy' })).json.counts.create).toBe(3);
  expect((await preview({ paths: ['/app', '/app'], to: '/copy' })).status).toBe(400);
});

test('nothing is copied into a context that is kept read-only, but out of it', async () => {
  await using zk = await startPlaces();
  await plantApp(zk);
  await zk.there.create('/app', 'theirs');
  const counted = { confirm: 'app', create: 9, change: 9 };

  const into = await zk.post('/api/copy?context=kept', { ...asked(), ...counted });
  const look = await zk.post('/api/copy/preview?context=kept', asked());
  const out = await zk.post('/api/copy', { ...asked({ from: 'kept', to: '/got' }), ...counted });

  expect([into.status, look.status, out.status]).toEqual([403, 200, 200]);
  expect((await zk.client.get('/got')).data?.toString()).toBe('theirs');
  expect((await zk.there.get('/app')).data?.toString()).toBe('theirs');
});

test('a context that is still looked up when the console closes is not opened any more', async () => {
  const asked = deferred();
  const gate = deferred();
  const opened: string[] = [];
  const zk = await startConsoleInTest({
    contexts: {
      list: async () => {
        asked.resolve();
        await gate.promise;
        return [{ name: 'other', servers: '', origin: 'context other', readOnly: false }];
      },
      open: async (name) => {
        opened.push(name);
        throw new Error('nobody is there to close it');
      },
    },
  });
  const page = zk.get('/api/overview?context=other').catch(() => null);
  await asked.promise;

  await zk[Symbol.asyncDispose]();
  gate.resolve();
  await page;
  await new Promise((done) => setImmediate(done));

  expect(opened).toEqual([]);
});

test('a context that was saved anew is what it is now, for pages that look at it too', async () => {
  await using zk = await startPlaces();
  const save = (contexts: Record<string, Omit<SavedContext, 'name'>>) =>
    writeContexts(zk.environment, { version: 1, selected: null, previous: null, contexts });
  const create = async (path: string) =>
    (await zk.post('/api/node/create?context=other', { path })).status;
  expect(await create('/first')).toBe(200);
  const stream = await fetch(`${zk.origin}/api/events?context=other`);
  const ended = stream.text();

  await save({ other: { servers: zk.other.address, readOnly: true } });
  expect(await create('/kept')).toBe(403);
  expect(await ended).toContain('event: hello');
  await save({ other: { servers: zk.server.address } });
  expect(await create('/moved')).toBe(200);
  await save({});
  expect(await create('/gone')).toBe(404);

  expect(await zk.there.exists('/kept')).toBeNull();
  expect(await zk.client.exists('/moved')).not.toBeNull();
});
