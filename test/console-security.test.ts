/**
 * The console against those who mean it ill: other sites, other names, fewer rights, hostile nodes, paths
 * that lead elsewhere. The table of routes is walked whole, so that a new route is tested by being there.
 */

import { once, setMaxListeners } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { type AddressInfo, connect as connectTo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../src/console/api.ts';
import { type Route, routes } from '../src/console/routes.ts';
import {
  base64,
  type ConsoleInTest,
  events,
  type Sent,
  startConsoleInTest,
} from './console-run.ts';

/** How many times as much is tried as in CI: CONSOLE_FUZZ=100 takes minutes. */
const fuzz = Number(process.env.CONSOLE_FUZZ ?? 1);
const fuzzTime = { timeout: 20_000 + 20_000 * fuzz };

const token = 'canary-token-0815';
const viewToken = 'canary-viewer-4711';

/** Something that each route would take, so that nothing but the check refuses it. */
const inputs: Readonly<Record<string, object | string>> = {
  '/api/login': { token },
  '/api/children': 'path=/',
  '/api/node': 'path=/kept',
  '/api/paths': 'text=/ke',
  '/api/node/below': 'path=/kept',
  '/api/node/watches': 'path=/kept',
  '/api/history': 'path=/kept',
  '/api/find': 'path=/&text=kept',
  '/api/export': 'path=/kept',
  '/api/sessions/one': 'name=0x1',
  '/api/kafka/topic': 'name=x',
  '/api/groups/one': 'name=x',
  '/api/alignment/one': 'name=x',
  '/api/node/create': { path: '/made' },
  '/api/node/set': { path: '/kept', data: base64('changed'), version: 0 },
  '/api/node/acl': {
    path: '/kept',
    acl: [{ scheme: 'world', id: 'anyone', perms: 'r' }],
    version: 0,
  },
  '/api/node/delete-preview': { paths: ['/kept'] },
  '/api/node/delete': { paths: ['/kept'], confirm: 'kept', count: 1 },
  '/api/import': { path: '/in', nodes: [{ path: '', data: null }], dryRun: false },
  '/api/audit/undo': { id: 1 },
  '/api/bench': { what: 'writes', inFlight: 1 },
  '/api/shell': { line: 'create /by-shell' },
  '/api/alignment/rule': { name: 'g', rule: { mode: 'off', stepMs: 1 } },
  '/api/alignment/hold': { name: 'g', action: 'pause' },
  '/api/groups/reset': { name: 'g', to: '0', dryRun: false },
  '/api/sessions/expire': { session: '0x1' },
};

/** Of an event stream, which stays open until the signal. */
function streamStatus(
  { console: { port } }: ConsoleInTest,
  localAddress: string,
  signal: AbortSignal,
): Promise<number> {
  const headers = { host: `localhost:${port}`, authorization: `Bearer ${token}` };
  const to = { port, host: '127.0.0.1', path: '/api/events', localAddress, headers, agent: false };
  return new Promise((resolve, reject) => {
    const asking = request({ ...to, signal }, (response) => {
      response.on('error', () => {}); // the signal ends it
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asking.on('error', reject);
    asking.end();
  });
}

function sentOf(route: Route, headers: Sent['headers'] = {}): [path: string, sent: Sent] {
  const input = inputs[route.path] ?? {};
  if (route.method === 'GET')
    return [`${route.path}${typeof input === 'string' ? `?${input}` : ''}`, { headers }];
  const body = JSON.stringify(input);
  return [
    route.path,
    { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } },
  ];
}

/** Every node with its versions: nothing can be written without a trace in it. */
async function treeOf({ client }: ConsoleInTest): Promise<string[]> {
  const nodes: string[] = [];
  for await (const { path, stat } of client.walk('/')) {
    nodes.push(`${path} ${stat.version} ${stat.cversion} ${stat.aversion}`);
  }
  return nodes.sort();
}

/** Bytes as they are: what no HTTP library would send. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connectTo(port, '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      answer += text;
      if (/\r\n\r\n[\s\S]/.test(answer) || /content-length: 0|HTTP\/1.1 400/i.test(answer))
        socket.destroy();
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

const streams = (route: Route) => route.path === '/api/events';
const gets = routes.filter(({ method }) => method === 'GET');
const posts = routes.filter(({ method }) => method === 'POST');

describe('other sites', () => {
  let zk: ConsoleInTest;
  let csrf: string;
  beforeAll(async () => {
    zk = await startConsoleInTest();
    await zk.client.create('/kept', 'kept');
    csrf = (await zk.get('/api/session')).json.csrf;
  });
  afterAll(() => zk[Symbol.asyncDispose]());

  test('nothing is changed by a request that is not the page’s own', async () => {
    const good = { origin: zk.origin, 'sec-fetch-site': 'same-origin', 'x-drover-token': csrf };
    // biome-ignore format: a table is read down its columns
    const forms: [string, Sent['headers'], number][] = [
      ['no token',         { ...good, 'x-drover-token': undefined },                             403],
      ['an empty token',   { ...good, 'x-drover-token': '' },                                    403],
      ['another token',    { ...good, 'x-drover-token': csrf.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')) },               403],
      ['a longer token',   { ...good, 'x-drover-token': `${csrf}x` },                            403],
      ['no origin',        { ...good, origin: undefined },                                       403],
      ['a null origin',    { ...good, origin: 'null' },                                          403],
      ['another origin',   { ...good, origin: 'http://evil.example' },                           403],
      ['another port',     { ...good, origin: 'http://127.0.0.1:1' },                            403],
      ['a longer origin',  { ...good, origin: `${zk.origin}.evil.example` },                     403],
      ['another scheme',   { ...good, origin: zk.origin.replace('http', 'ftp') },                403],
      ['cross-site',       { ...good, 'sec-fetch-site': 'cross-site' },                          403],
      ['same-site',        { ...good, 'sec-fetch-site': 'same-site' },                           403],
      ['a typed address',  { ...good, 'sec-fetch-site': 'none' },                                403],
      ['a form',           { ...good, 'content-type': 'application/x-www-form-urlencoded' },     415],
      ['multipart',        { ...good, 'content-type': 'multipart/form-data; boundary=x' },       415],
      ['plain text',       { ...good, 'content-type': 'text/plain' },                            415],
      ['no type',          { ...good, 'content-type': undefined },                               415],
      ['a type like JSON', { ...good, 'content-type': 'text/plain; application/json' },          415],
    ];
    const before = await treeOf(zk);

    for (const route of posts) {
      for (const [form, headers, status] of forms) {
        const answer = await zk.send(...sentOf(route, headers));
        expect([route.path, form, answer.status]).toEqual([route.path, form, status]);
        expect(Object.keys(answer.headers).filter((name) => /^access-control/.test(name))).toEqual(
          [],
        );
      }
    }
    expect(await treeOf(zk)).toEqual(before);
  });

  test('no route changes anything by another method', async () => {
    const before = await treeOf(zk);
    const headers = {
      origin: zk.origin,
      'x-drover-token': csrf,
      'content-type': 'application/json',
    };
    for (const route of posts) {
      const body = JSON.stringify(inputs[route.path] ?? {});
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const sends = ['GET', 'HEAD'].includes(method)
          ? { method, headers }
          : { method, headers, body };
        const { status } = await zk.send(route.path, sends);
        expect([route.path, method, status]).toEqual([route.path, method, 405]);
      }
    }
    expect(await treeOf(zk)).toEqual(before);
  });

  test('other sites read nothing, and no answer lets them', async () => {
    for (const route of gets) {
      for (const site of ['cross-site', 'same-site']) {
        const answer = await zk.send(...sentOf(route, { 'sec-fetch-site': site }));
        expect([route.path, answer.status]).toEqual([route.path, 403]);
      }
    }
    const { headers } = await zk.get('/api/session');
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });

  test('a page’s own request passes: the refusals above are for what they say', async () => {
    const preview = await zk.post('/api/node/delete-preview', { paths: ['/kept'] });

    expect(preview.status).toBe(200);
  });
});

describe('other names', () => {
  test('a name that the console was not started for is answered with nothing', async () => {
    await using zk = await startConsoleInTest({
      allowHosts: ['console.example', 'proxy.example:8443', 'tls.example:443'],
    });
    const { port } = zk.console;
    // biome-ignore format: a table is read down its columns
    const hosts: [string, boolean][] = [
      [`127.0.0.1:${port}`, true], [`localhost:${port}`, true], [`LOCALHOST:${port}`, true], [`[::1]:${port}`, true],
      [`console.example:${port}`, true], ['proxy.example:8443', true],
      // Of a port that its scheme has anyway no browser speaks.
      ['console.example', true], ['tls.example', true], ['console.example:8443', false], [`tls.example:${port}`, false],
      ['evil.example', false], [`evil.example:${port}`, false], [`localhost:${port + 1}`, false], ['localhost', false],
      [`localhost.evil.example:${port}`, false], [`127.0.0.1.evil.example:${port}`, false], [`evil@127.0.0.1:${port}`, false],
      [`127.0.0.2:${port}`, false], [`0.0.0.0:${port}`, false], [`2130706433:${port}`, false], ['proxy.example', false],
    ];

    for (const [host, isOurs] of hosts) {
      const { status, text } = await zk.send('/api/session', { headers: { host } });
      // What is no host at all is refused before it gets to us.
      const refusal = host.includes('@') ? 400 : 421;
      expect([host, status]).toEqual([host, isOurs ? 200 : refusal]);
      if (!isOurs) expect(text).not.toContain('csrf');
    }
    for (const route of routes) {
      const { status } = await zk.send(...sentOf(route, { host: 'evil.example' }));
      expect([route.path, status]).toEqual([route.path, 421]);
    }
    for (const path of ['/', '/tree', '/assets/x.js', '/api/none']) {
      const answer = await zk.send(path, { headers: { host: 'evil.example' } });
      expect([path, answer.status]).toEqual([path, 421]);
    }
  });

  test('a page behind a proxy with TLS may change what it may change', async () => {
    await using zk = await startConsoleInTest({ allowHosts: ['console.example'] });
    const headers = { host: 'console.example', origin: 'https://console.example' };

    expect((await zk.post('/api/node/create', { path: '/by-proxy' }, headers)).status).toBe(200);
    expect(await zk.client.exists('/by-proxy')).not.toBeNull();
  });

  test('a request without a name, or with two, is answered with nothing', async () => {
    await using zk = await startConsoleInTest();
    const own = `Host: 127.0.0.1:${zk.console.port}`;
    const line = 'GET /api/session HTTP';

    for (const request of [
      `${line}/1.1\r\nHost:\r\n\r\n`,
      `${line}/1.0\r\n\r\n`,
      `${line}/1.1\r\n\r\n`,
      `${line}/1.1\r\nHost: evil.example\r\n${own}\r\n\r\n`,
      `GET http://evil.example/api/session HTTP/1.1\r\nHost: evil.example\r\n\r\n`,
    ]) {
      const answer = await raw(zk.console.port, request);
      expect([request, /^HTTP\/1\.1 (400|421) /.test(answer)]).toEqual([request, true]);
      expect(answer).not.toContain('csrf');
    }
    expect(await raw(zk.console.port, `${line}/1.1\r\n${own}\r\n\r\n`)).toContain('csrf');
  });

  test('headers of a proxy change neither who asks nor where', async () => {
    await using zk = await startConsoleInTest();
    const claims = {
      'x-forwarded-for': '10.9.8.7',
      forwarded: 'for=10.9.8.7;host=evil.example',
      'x-real-ip': '10.9.8.7',
      'x-forwarded-host': `127.0.0.1:${zk.console.port}`,
      'x-http-method-override': 'POST',
    };

    await zk.post('/api/node/create', { path: '/claimed' }, claims);
    const elsewhere = await zk.send('/api/session', {
      headers: { ...claims, host: 'evil.example' },
    });

    const [entry] = (await zk.get('/api/audit')).json.entries;
    expect(entry.who).toBe('editor at 127.0.0.1');
    expect(elsewhere.status).toBe(421);
  });

  test('beyond this machine there is no console without a token', async () => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.invalid']) {
      await expect(startConsoleInTest({ host })).rejects.toThrow('token');
    }
    await expect(startConsoleInTest({ token: 'short' })).rejects.toThrow('at least 8 characters');
  });
});

describe('fewer rights', () => {
  let zk: ConsoleInTest;
  beforeAll(async () => {
    zk = await startConsoleInTest({ token, viewToken });
    await zk.client.create('/kept', 'kept');
  });
  afterAll(() => zk[Symbol.asyncDispose]());

  test('each route asks for the right it needs, and nobody has any', async () => {
    const before = await treeOf(zk);
    // biome-ignore format: a table is read down its columns
    const callers: [string, Sent['headers']][] = [
      ['nobody',       {}],
      ['wrong bearer', { authorization: `Bearer ${token}x` }],
      ['wrong cookie', { cookie: `drover-console-${zk.console.port}=x` }],
      ['basic',        { authorization: `Basic ${base64(`x:${token}`)}` }],
      ['in the query', {}],
    ];

    for (const route of routes.filter(({ needs }) => needs !== 'nothing')) {
      for (const [caller, headers] of callers) {
        const [path, sent] = sentOf(route, { origin: zk.origin, ...headers });
        const where =
          caller === 'in the query'
            ? `${path}${path.includes('?') ? '&' : '?'}token=${token}`
            : path;
        const { status } = await zk.send(where, sent);
        expect([route.path, caller, status]).toEqual([route.path, caller, 401]);
      }
    }
    const { json } = await zk.get('/api/session');
    expect(json).toMatchObject({
      role: 'nobody',
      needsToken: true,
      csrf: null,
      servers: '',
      link: null,
    });
    expect(await treeOf(zk)).toEqual(before);
  });

  test('who only looks changes nothing, by no route and by no command', async () => {
    const before = await treeOf(zk);
    const headers = { authorization: `Bearer ${viewToken}` };

    for (const route of routes.filter(({ needs }) => needs === 'write')) {
      const { status, json } = await zk.post(route.path, inputs[route.path] ?? {}, headers);
      expect([route.path, status, json.error.code]).toEqual([route.path, 403, 'FORBIDDEN']);
    }
    for (const line of [
      'create /x',
      'set /kept x',
      'deleteall /kept',
      'setAcl /kept world:anyone:r',
      'delete /kept',
      'setquota -n 1 /kept',
      '4lw srst',
    ]) {
      const { json } = await zk.post('/api/shell', { line }, headers);
      expect([line, json.code]).toEqual([line, 6]);
    }
    expect((await zk.send('/api/node?path=/kept', { headers })).status).toBe(200);
    expect(await treeOf(zk)).toEqual(before);
  });

  test('a token becomes a cookie that scripts and other sites do not get', async () => {
    const login = await zk.post('/api/login', { token });
    const cookie = String(login.headers['set-cookie']);
    expect(login.json).toMatchObject({ role: 'editor', readOnly: false });
    expect(cookie).toMatch(/; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
    expect(cookie).not.toContain(token);

    const headers = { cookie: cookie.split(';')[0]! };
    expect((await zk.post('/api/node/create', { path: '/by-cookie' }, headers)).status).toBe(200);
    const stolen = (
      await zk.send('/api/session', { headers: { authorization: `Bearer ${viewToken}` } })
    ).json.csrf;
    const mixed = { ...headers, 'x-drover-token': stolen };
    expect((await zk.post('/api/node/create', { path: '/never' }, mixed)).json.error.code).toBe(
      'BAD_TOKEN',
    );

    await zk.post('/api/logout', {}, headers);
    expect((await zk.send('/api/overview', { headers })).status).toBe(401);
  });

  test('tokens cannot be tried without end', async () => {
    await using other = await startConsoleInTest({ token });
    const statuses: number[] = [];
    for (let i = 0; i < 25; i++) {
      statuses.push((await other.post('/api/login', { token: `guess-${i}` })).status);
    }

    expect(statuses.slice(0, 20).every((status) => status === 401)).toBe(true);
    expect(statuses.slice(20).every((status) => status === 429)).toBe(true);
    expect((await other.post('/api/login', { token })).status).toBe(429);
  });

  test('event streams of one address leave room for those of others', async () => {
    await using other = await startConsoleInTest({ host: '0.0.0.0', token });
    const leaving = new AbortController();
    setMaxListeners(0, leaving.signal);
    const open = (localAddress: string) => streamStatus(other, localAddress, leaving.signal);
    const statuses: number[] = [];
    for (let i = 0; i < 20; i++) statuses.push(await open('127.0.0.1'));

    expect(statuses).toEqual([...Array(16).fill(200), ...Array(4).fill(429)]);
    expect(await open('127.0.0.2')).toBe(200);
    leaving.abort();
  });

  test('silent connections do not keep the page out', async () => {
    await using other = await startConsoleInTest();
    const silent = Array.from({ length: 270 }, () => connectTo(other.console.port, '127.0.0.1'));
    for (const socket of silent) socket.on('error', () => {});
    await Promise.all(silent.map((socket) => once(socket, 'connect')));

    expect((await other.get('/api/session')).status).toBe(200);

    for (const socket of silent) socket.destroy();
  });

  test('a token in a header is tried no more often than one that is typed', async () => {
    await using other = await startConsoleInTest({ token });
    const ask = async (guess: string) => {
      const headers = { authorization: `Bearer ${guess}` };
      return (await other.send('/api/overview', { headers })).status;
    };
    // The same one again, as of a script that was not told of the new one, is no guess.
    for (let i = 0; i < 30; i++) expect(await ask('the-one-before')).toBe(401);
    const statuses: number[] = [];
    for (let i = 0; i < 25; i++) statuses.push(await ask(`guess-${i}`));

    expect(statuses).toEqual([...Array(19).fill(401), ...Array(6).fill(429)]);
    expect(await ask(token)).toBe(429);
    expect((await other.post('/api/login', { token })).status).toBe(429);
  });

  test('a console without --write makes no editor of anybody', async () => {
    await using other = await startConsoleInTest({ write: false });
    await other.client.create('/kept', 'kept');
    const before = await treeOf(other);

    expect((await other.get('/api/session')).json).toMatchObject({
      role: 'viewer',
      readOnly: true,
    });
    for (const route of routes.filter(({ needs }) => needs === 'write')) {
      const { status } = await other.post(route.path, inputs[route.path] ?? {});
      expect([route.path, status]).toEqual([route.path, 403]);
    }
    expect((await other.post('/api/shell', { line: 'create /x' })).json.code).toBe(6);
    expect(await treeOf(other)).toEqual(before);
  });
});

describe('hostile nodes', () => {
  const wide = async (zk: ConsoleInTest) => {
    for (let i = 0; i < 40; i++) {
      const at = (path: string) => path.replace('N', String(i));
      const topic = '{"version":1,"partitions":{"0":[1]}}';
      await zk.client.create(at('/brokers/topics/tN'), topic, { parents: true });
      await zk.client.create(at('/consumers/gN/offsets/t/0'), '1', { parents: true });
      await zk.client.create(at('/align/gN/members'), '', { parents: true });
    }
  };

  test.each([
    '/api/find?path=/&text=x',
    '/api/find?path=/&text=x&in=data',
    '/api/export?path=/',
    '/api/recipes?path=/',
    '/api/kafka',
    '/api/kafka/topics?only=faulty',
    '/api/groups',
    '/api/alignment',
  ])('%s stops at its budget of nodes, and says so', async (path) => {
    const limits = { nodesMax: 30, bytesMax: 1_000_000, timeMs: 30_000 };
    await using other = await startConsoleInTest({ requestLimits: limits });
    await wide(other);

    const { status, json } = await other.get(path);

    expect(json.error).toEqual({
      code: 'TOO_LARGE',
      message: expect.stringContaining('stopped: a request here may read 30 nodes'),
    });
    expect(status).toBe(413);
  });

  test('a search in data stops at its budget of bytes, and the next request has one of its own', async () => {
    const limits = { nodesMax: 1_000, bytesMax: 100_000, timeMs: 30_000 };
    await using other = await startConsoleInTest({ requestLimits: limits });
    for (let i = 0; i < 20; i++) await other.client.create(`/big-${i}`, 'x'.repeat(10_000));

    const search = await other.get('/api/find?path=/&text=y&in=data');

    expect(search.json.error.message).toContain('may read 100000 bytes');
    for (let i = 0; i < 20; i++)
      expect((await other.get(`/api/node?path=/big-${i}`)).status).toBe(200);
  });

  test('a broker that stands in ZooKeeper is connected to only when that was asked for', async () => {
    const said = async (brokers?: 'registered') => {
      await using other = await startConsoleInTest({}, brokers === undefined ? {} : { brokers });
      const listening = createServer().listen(0, '127.0.0.1');
      await once(listening, 'listening');
      let connections = 0;
      const dialled = new Promise<void>((done) => {
        listening.on('connection', (socket) => {
          connections += 1;
          socket.destroy();
          done();
        });
      });
      const { port } = listening.address() as AddressInfo;
      const endpoints = [`PLAINTEXT://127.0.0.1:${port}`];
      const broker = JSON.stringify({ version: 3, host: '127.0.0.1', port, endpoints });
      await other.client.create('/brokers/ids/1', broker, { parents: true });
      await other.client.create('/consumers/g/offsets/t/0', '1', { parents: true });
      const { text } = await other.get('/api/groups');
      if (brokers !== undefined) await dialled;
      listening.close();
      return [connections > 0, /brokers are not asked/.test(text)];
    };

    expect(await said('registered')).toEqual([true, false]);
    expect(await said()).toEqual([false, true]);
  });

  const hostile = [
    '<script>alert(1)<',
    '<img src=x onerror=alert(1)>',
    '"><svg onload=alert(1)>',
    "'--><!--",
    '\u202eevil\u202c',
    '\u2028\u2029',
    '%2e%2e%2f',
    '{{7*7}}',
    'javascript:alert(1)',
    '__proto__',
    'constructor',
    'event: nodes',
    'é漢',
  ].map((name) => name.replaceAll('/', '∕'));

  test('names, data and ACLs come back as they are, as JSON that no browser takes for anything else', async () => {
    await using zk = await startConsoleInTest();
    for (const name of hostile) {
      const acl = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
      await zk.client.create(`/h/${name}`, name, { acl, parents: true });
    }

    const page = await zk.get('/api/children?path=/h&limit=500');
    expect(page.json.rows.map((row: { name: string }) => row.name).sort()).toEqual(
      [...hostile].sort(),
    );
    for (const name of hostile) {
      const node = await zk.get(`/api/node?path=${encodeURIComponent(`/h/${name}`)}`);
      expect(Buffer.from(node.json.data, 'base64').toString()).toBe(name);
      expect(node.headers).toMatchObject({
        'content-type': 'application/json',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
      });
      const policy = String(node.headers['content-security-policy']);
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toContain('unsafe');
    }
  });

  test('what a node is called ends no event and begins none', async () => {
    await using zk = await startConsoleInTest();
    await expect.poll(async () => (await zk.get('/api/session')).json.features.live).toBe(true);
    const stop = new AbortController();
    const seen: string[] = [];
    const kinds = new Set<string>();

    for await (const { kind, data } of events(zk, { signal: stop.signal })) {
      kinds.add(kind);
      if (kind === 'hello') for (const name of hostile) await zk.client.create(`/${name}`);
      if (kind === 'nodes')
        seen.push(...data.changes.map(({ path }: { path: string }) => path.slice(1)));
      if (seen.length === hostile.length) break;
    }
    stop.abort();

    expect(seen).toEqual(hostile);
    expect(
      [...kinds].every((kind) =>
        ['hello', 'nodes', 'link', 'servers', 'metrics', 'views'].includes(kind),
      ),
    ).toBe(true);
  });

  test('what is said on the terminal is harmless there', async () => {
    await using zk = await startConsoleInTest();
    await zk.post('/api/node/create', { path: '/\u202eevil' });
    await zk.post('/api/node/create', { path: '/a\u001b[2J' });

    expect(zk.said.filter((line) => /[\p{Cc}\p{Cf}]/u.test(line))).toEqual([]);
    expect(zk.said.join()).toContain('\\u202eevil');
  });

  test('whatever is sent is refused or done, and never a fault of ours', fuzzTime, async () => {
    await using zk = await startConsoleInTest();
    const csrf = (await zk.get('/api/session')).json.csrf;
    const headers = {
      origin: zk.origin,
      'x-drover-token': csrf,
      'content-type': 'application/json',
    };
    const quick = routes.filter((route) => !streams(route) && route.path !== '/api/demo');
    const paths = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('/', '//', '/a/../b', '/a\0', 'a', '/a/', '/.', `/${'x'.repeat(20_000)}`),
    );
    const fields = fc.dictionary(
      fc.constantFrom(
        'path',
        'paths',
        'data',
        'version',
        'acl',
        'confirm',
        'count',
        'id',
        'line',
        'nodes',
        'session',
        'text',
        'name',
        'limit',
        'offset',
        'filter',
        'sort',
        '__proto__',
      ),
      fc.oneof(
        paths,
        fc.jsonValue({ maxDepth: 2 }),
        fc.integer(),
        fc.array(paths, { maxLength: 3 }),
      ),
    );

    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...quick),
        fields,
        fc.boolean(),
        async (route, given, isBroken) => {
          if (typeof given.line === 'string') given.line = `no ${given.line}`;
          const query = new URLSearchParams(
            Object.entries(given).map(([name, value]): [string, string] => [
              name,
              typeof value === 'string' ? value : JSON.stringify(value),
            ]),
          );
          const body = isBroken ? JSON.stringify(given).slice(1) : JSON.stringify(given);
          const answer =
            route.method === 'GET'
              ? await zk.send(`${route.path}?${query}`)
              : await zk.send(route.path, { method: 'POST', headers, body });
          expect([route.path, answer.status, answer.status < 500 || answer.status === 501]).toEqual(
            [route.path, answer.status, true],
          );
        },
      ),
      { numRuns: 150 * fuzz },
    );
    expect(zk.said.filter((line) => line.includes(' at '))).toEqual(
      zk.said.filter((line) => / by editor at 127/.test(line)),
    );
  });

  test('more than a body may hold is refused before it is read', async () => {
    await using zk = await startConsoleInTest();

    const { status } = await zk.post('/api/node/create', {
      path: '/x',
      data: 'A'.repeat(limits.bodyBytesMax),
    });

    expect(status).toBe(413);
  });

  test('no filter of a user is ever a pattern', async () => {
    await using zk = await startConsoleInTest();
    await zk.client.create('/f/a.b(c)+', '', { parents: true });

    for (const [filter, count] of [
      ['.*', 0],
      ['(', 1],
      ['a.b(c)+', 1],
      ['(a+)+$', 0],
    ] as const) {
      const { json } = await zk.get(`/api/children?path=/f&filter=${encodeURIComponent(filter)}`);
      expect([filter, json.matching]).toEqual([filter, count]);
    }
  });

  test('nothing of what comes from outside is ever code', () => {
    const root = join(import.meta.dirname, '..');
    const sinks =
      /\beval\s*\(|new Function\b|node:vm|innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|setTimeout\(\s*['"`]|srcdoc/;
    const files = ['src/console', 'web/src'].flatMap((folder) => {
      try {
        const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
        return names.filter((name) => /\.tsx?$/.test(name)).map((name) => join(root, folder, name));
      } catch {
        return [];
      }
    });

    expect(files.length).toBeGreaterThan(10);
    expect(files.filter((file) => sinks.test(readFileSync(file, 'utf8')))).toEqual([]);
  });
});

describe('paths that lead elsewhere', () => {
  let folder: string;
  let zk: ConsoleInTest;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'drover-page-'));
    mkdirSync(join(folder, 'web/assets'), { recursive: true });
    writeFileSync(join(folder, 'secret.html'), 'canary-outside');
    writeFileSync(
      join(folder, 'web/index.html'),
      '<meta content="__CSP_NONCE__"><script src="/assets/a.js"></script>',
    );
    writeFileSync(join(folder, 'web/assets/a.js'), 'ours()');
    writeFileSync(join(folder, 'web/assets/a.exe'), 'canary-type');
    symlinkSync(join(folder, 'secret.html'), join(folder, 'web/link.html'));
    symlinkSync(folder, join(folder, 'web/up'));
    zk = await startConsoleInTest({ pageFolder: join(folder, 'web') });
  });
  afterAll(async () => {
    await zk[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  test('the page and its views are there, each load with a nonce of its own', async () => {
    const [first, second] = [await zk.get('/'), await zk.get('/tree?path=/a')];

    const nonce = /content="([^"]+)"/.exec(first.text)?.[1];
    expect(first.headers['content-security-policy']).toContain(`style-src 'self' 'nonce-${nonce}'`);
    expect(first.headers['content-security-policy']).toContain("script-src 'self';");
    expect(second.status).toBe(200);
    expect(second.text).not.toBe(first.text);
    expect((await zk.get('/assets/a.js')).text).toBe('ours()');
  });

  test('no request gets a file that the build did not make', fuzzTime, async () => {
    const steps = fc.constantFrom(
      '..',
      '.',
      '%2e%2e',
      '..%2f',
      '%2e%2e%2f',
      '..%5c',
      '%00',
      '\\',
      '..\\',
      'up',
      'link.html',
      'secret.html',
      'assets',
      'a.js',
      'a.exe',
      '%c0%ae',
      '....//',
      ';',
      '%25%32%65',
      'file:',
      'etc',
      'passwd',
      '%',
    );
    const known = new Set(['ours()']);

    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 6 }), async (parts) => {
        const { status, text } = await zk.send(`/${parts.join('/')}`);
        const isIndex = text.startsWith('<meta content=');
        expect([parts, text.includes('canary')]).toEqual([parts, false]);
        expect(status !== 200 || isIndex || known.has(text)).toBe(true);
      }),
      { numRuns: 300 * fuzz },
    );
    for (const path of [
      '/link.html',
      '/up/secret.html',
      '/assets/a.exe',
      '/secret.html',
      '/index.html/../../secret.html',
    ]) {
      expect((await zk.get(path)).text).not.toContain('canary');
    }
  });

  test('what is imported stays below where it was asked to go', async () => {
    for (const path of ['/../x', '/a/../../x', '//x', '/.', '/a//b', '..', '/a/']) {
      const { status } = await zk.post('/api/import', {
        path: '/in',
        nodes: [{ path, data: null }],
        dryRun: false,
      });
      expect([path, status]).toEqual([path, 400]);
    }
    expect(await zk.client.children('/')).toEqual(['zookeeper']);
  });
});

test('a large node of children is served by the page, and nothing asks for all their Stats', {
  timeout: 120_000,
}, async () => {
  await using zk = await startConsoleInTest();
  const count = 20_000;
  await zk.client.create('/many');
  for (let at = 0; at < count; at += 1_000) {
    const ops = Array.from(
      { length: 1_000 },
      (_, i) => ({ op: 'create', path: `/many/n-${at + i}` }) as const,
    );
    await zk.client.multi(ops);
  }
  const packets = () => zk.server.engine.stats.packetsReceived;

  const first = await zk.get('/api/children?path=/many&limit=50');
  const before = packets();
  const later = await zk.get('/api/children?path=/many&limit=50&offset=19950');

  expect(first.json).toMatchObject({ total: count, matching: count });
  expect([first.json.rows.length, later.json.rows.length]).toEqual([50, 50]);
  expect(packets() - before).toBeLessThan(60);
  expect((await zk.get('/api/children?path=/many&limit=501')).status).toBe(400);
  const found = await zk.get('/api/children?path=/many&filter=n-1999&limit=500');
  expect(found.json.matching).toBe(11);
});

test('no secret is in any answer, event, audit line or word on the terminal', async () => {
  await using zk = await startConsoleInTest({ token, viewToken });
  await zk.client.addAuth('digest', 'user:canary-password');
  await zk.client.create('/mine', '', { acl: [{ perms: 31, id: { scheme: 'auth', id: '' } }] });
  const headers = { authorization: `Bearer ${token}` };
  const texts: string[] = [];
  const keep = async (answer: Promise<{ text: string; headers: object }>) => {
    const { text, headers: sent } = await answer;
    texts.push(text, JSON.stringify(sent));
  };

  for (const route of routes.filter((one) => !streams(one) && one.path !== '/api/login')) {
    if (route.method === 'GET') await keep(zk.send(...sentOf(route, headers)));
    else await keep(zk.post(route.path, inputs[route.path] ?? {}, headers));
  }
  await keep(zk.post('/api/login', { token }));
  await keep(zk.post('/api/login', { token: `${token}-wrong` }));
  await keep(zk.post('/api/shell', { line: `addauth digest user:canary-password` }, headers));
  await keep(zk.send(`/api/node?path=/mine&token=${token}`, { headers }));
  await keep(zk.send('/api/audit', { headers }));

  expect(
    [...texts, ...zk.said].filter((text) => /canary-(token|viewer|password)/.test(text)),
  ).toEqual([]);
});
