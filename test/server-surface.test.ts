/** What a running server shows of itself: four-letter words, the admin server, metrics, the audit log. */

import { once } from 'node:events';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect as dial, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connect, digestMd5 } from '../src/client/index.ts';
import { ops } from '../src/protocol/index.ts';
import {
  type AdminOptions,
  type AdminServer,
  Audit,
  fourLetterWords,
  metricsOf,
  monitorValues,
  type RunningServer,
  Sasl,
  type ServerOptions,
  startAdminServer,
  startServer,
} from '../src/server/index.ts';
import { MovableClock, RawClient } from '../src/testing/index.ts';
import { certificates } from './certificates/certificates.ts';
import { beCounted, counts } from './counted.ts';

const asSuper = { headers: { authorization: 'digest super:test' } };
const superDigest = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=';

const start = (options: ServerOptions = {}) =>
  startServer({ port: 0, inMemory: true, fourLetterWords: '*', ...options });

function ask(port: number, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = dial(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('connect', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });
}

async function withAdmin(
  server: RunningServer,
  body: (
    admin: AdminServer,
    get: (path: string, init?: RequestInit) => Promise<Response>,
  ) => unknown,
  options: AdminOptions = {},
) {
  const admin = await startAdminServer(server.facts, { port: 0, ...options });
  try {
    await body(admin, (path, init) => fetch(`http://127.0.0.1:${admin.port}${path}`, init));
  } finally {
    await admin.close();
  }
}

test('only srvr is answered where no word is on the whitelist', async () => {
  await using server = await startServer({ port: 0, inMemory: true });

  expect(await ask(server.port, 'srvr')).toMatch(/^Zookeeper version: 3\.9\.5-.*\nLatency min/);
  for (const word of Object.keys(fourLetterWords).filter((each) => each !== 'srvr')) {
    expect(await ask(server.port, word)).toBe(
      `${word} is not executed because it is not in the whitelist.\n`,
    );
  }
});

test('every word is answered where the whitelist says so', async () => {
  await using server = await start();
  const silent = ['hash', 'stmk'];

  for (const word of Object.keys(fourLetterWords)) {
    const answer = await ask(server.port, word);
    if (silent.includes(word)) expect(answer).toBe('');
    else expect(answer, word).not.toMatch(/^$|whitelist/);
  }
});

test('hash tells the digest of the tree as every 128th txn left it', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-hash-'));
  await using server = await startServer({ port: 0, dataDir, fourLetterWords: '*' });
  const client = await connect(server.address);
  await client.create('/a');
  await Promise.all(Array.from({ length: 300 }, () => client.set('/a', 'x')));
  await client.close();

  const lines = (await ask(server.port, 'hash')).trimEnd().split('\n');

  expect(lines.map((line) => line.split(': ')[0])).toEqual(['80', '100']);
  expect(new Set(lines.map((line) => line.split(': ')[1])).size).toBe(2);
  await server.close();
  rmSync(dataDir, { recursive: true });
});

test('four letters that are no word are a length, and close the link', async () => {
  await using server = await start();

  expect(await ask(server.port, 'abcd')).toBe('');
});

test('a word may come byte by byte, and with a line end behind it', async () => {
  await using server = await start();

  expect(await ask(server.port, 'ruok\n')).toBe('imok');
});

test('the trace mask is set by the eight bytes behind the word', async () => {
  await using server = await start();
  const mask = Buffer.alloc(12);
  mask.write('stmk');
  mask.writeBigInt64BE(0x132n, 4);

  expect(await ask(server.port, mask)).toBe('306');
  expect(await ask(server.port, 'gtmk')).toBe('306');
});

test('cons shows what a session did, and crst forgets it', async () => {
  await using server = await start();
  const client = await connect(server.address);
  const hex = `0x${client.sessionId!.toString(16)}`;
  await client.create('/a'); // the connect request, a question what the server speaks, and the create
  await client.exists('/a');

  const before = await ask(server.port, 'cons');
  await ask(server.port, 'crst');
  const after = await ask(server.port, 'cons');
  await client.close();

  expect(before).toMatch(
    new RegExp(
      `^ /127\\.0\\.0\\.1:\\d+\\[1\\]\\(queued=0,recved=4,sent=4,sid=${hex},lop=EXIS,est=\\d+,to=\\d+,lcxid=0x\\w+,lzxid=0x2,lresp=\\d+,llat=\\d+,minlat=\\d+,avglat=\\d+,maxlat=\\d+\\)$`,
      'm',
    ),
  );
  expect(before).toMatch(/^ \/127\.0\.0\.1:\d+\[0\]\(queued=0,recved=1,sent=0\)\n\n$/m);
  expect(after).toMatch(/recved=0,sent=0,sid=\w+,lop=NA,.*,lzxid=0xf{16},lresp=0,/);
});

test('dump shows sessions by their end, and ephemeral nodes by their owner', async () => {
  await using server = await start();
  const client = await connect(server.address);
  const hex = `0x${client.sessionId!.toString(16)}`;
  await client.create('/e', '', { mode: 'ephemeral' });

  const dump = await ask(server.port, 'dump');
  await client.close();

  expect(dump).toMatch(
    /^SessionTracker dump:\nSession Sets \(1\)\/\(1\):\n1 expire at \w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}:\n/,
  );
  expect(dump).toContain(`Sessions with Ephemerals (1):\n${hex}:\n\t/e\n`);
});

test('dump shows links by their end, with their sessions, and the one that asks', async () => {
  await using server = await start();
  const client = await connect(server.address, { sessionTimeoutMs: 40_000 });
  const hex = `0x${client.sessionId!.toString(16)}`;

  const dump = await ask(server.port, 'dump');
  await client.close();

  const when = '\\w{3} \\w{3} \\d\\d \\d\\d:\\d\\d:\\d\\d UTC \\d{4}';
  const link = (session: string) =>
    `1 expire at ${when}:\n\tip: /127\\.0\\.0\\.1:\\d+ sessionId: ${session}\n`;
  expect(dump).toMatch(
    new RegExp(
      `\nConnections dump:\nConnections Sets \\(2\\)/\\(2\\):\n${link('0x0')}${link(hex)}$`,
    ),
  );
});

test('watches are listed by session and by path, and counted', async () => {
  await using server = await start();
  const client = await connect(server.address);
  const hex = `0x${client.sessionId!.toString(16)}`;
  await client.create('/a');
  await client.exists('/a', { watch: () => {} });

  const [wchc, wchp, wchs] = [
    await ask(server.port, 'wchc'),
    await ask(server.port, 'wchp'),
    await ask(server.port, 'wchs'),
  ];
  await client.close();

  expect(wchc).toBe(`${hex}\n\t/a\n\n`);
  expect(wchp).toBe(`/a\n\t${hex}\n\n`);
  expect(wchs).toBe('1 connections watching 1 paths\nTotal watches:1\n');
});

test('a list of watches without end is cut, and says so', async () => {
  await using server = await start();
  const watcher = { watcherId: 1n, mayRead: () => true, deliver: () => {} };
  const long = 'x'.repeat(200);
  for (let i = 0; i < 20_000; i++) server.engine.watches.data.add(`/${long}${i}`, watcher, 1);

  for (const word of ['wchc', 'wchp']) {
    const answer = await ask(server.port, word);
    expect(answer.length).toBeLessThan(4 * 1024 * 1024);
    expect(answer).toMatch(/there is more than is shown\n$/);
  }
});

test('a path can not break a line of an answer', async () => {
  await using server = await start();
  const watcher = { watcherId: 1n, mayRead: () => true, deliver: () => {} };
  server.engine.watches.data.add('/a\nMode: leader\u001b[2J', watcher, 1);

  expect(await ask(server.port, 'wchp')).toBe('/a\\u000aMode: leader\\u001b[2J\n\t0x1\n\n');
});

test('lists tell a path in full, and JSON as the text that it is', async () => {
  await using server = await start();
  const client = await connect(server.address);
  const path = `/${'long'.repeat(100)}\u202e${'er'.repeat(100)}`;
  await client.create(path, '', { mode: 'ephemeral' });
  await client.exists(path, { watch: () => {} });
  const shown = path.replace('\u202e', '\\u202e');

  for (const word of ['wchc', 'wchp', 'dump']) {
    expect(await ask(server.port, word)).toContain(shown);
  }
  await withAdmin(server, async (_, get) => {
    const text = async (name: string) => (await get(`/commands/${name}`)).text();

    expect(await text('wchp')).not.toContain('\u202e');
    expect(Object.keys(JSON.parse(await text('wchp')).path_to_session_ids)).toEqual([path]);
    const { session_id_to_watched_paths } = JSON.parse(await text('wchc'));
    expect(Object.values(session_id_to_watched_paths)).toEqual([[path]]);
    const { session_id_to_ephemeral_paths } = JSON.parse(await text('dump'));
    expect(Object.values(session_id_to_ephemeral_paths)).toEqual([[path]]);
  });
  await client.close();
});

test('a list of the admin server ends, however long its paths are', async () => {
  await using server = await start();
  const watcher = { watcherId: 1n, mayRead: () => true, deliver: () => {} };
  const long = 'x'.repeat(10_000);
  for (let i = 0; i < 1_000; i++) server.engine.watches.data.add(`/${long}${i}`, watcher, 1);
  await withAdmin(server, async (_, get) => {
    for (const name of ['wchc', 'wchp']) {
      const { length } = await (await get(`/commands/${name}`)).text();
      expect(length).toBeGreaterThan(1024 * 1024);
      expect(length).toBeLessThan(5 * 1024 * 1024);
    }
  });
});

test('srst forgets latencies and packets', async () => {
  await using server = await start();
  const client = await connect(server.address);
  await client.create('/a');

  const answer = await ask(server.port, 'srst');
  const srvr = await ask(server.port, 'srvr');
  await client.close();

  expect(answer).toBe('Server stats reset.\n');
  expect(srvr).toContain('Latency min/avg/max: 0/0.0/0\n');
});

test('the admin server answers by every name, and an unknown command in words', async () => {
  await using server = await start();
  await withAdmin(server, async (_, get) => {
    const json = async (path: string) => (await get(`/commands/${path}`)).json();

    expect(await json('ruok')).toEqual({ command: 'ruok', error: null });
    expect(await json('srvr')).toMatchObject({ command: 'server_stats', read_only: false });
    expect(await json('server_stats')).toMatchObject({ command: 'server_stats' });
    expect(await json('nonsense')).toEqual({
      command: 'nonsense',
      error: 'Unknown command: nonsense',
    });
    expect(await (await get('/commands')).text()).toContain(
      '<a href="/commands/configuration">configuration</a>\n<br/>\n',
    );
    expect((await get('/')).status).toBe(404);
    expect(await json('%72uok')).toEqual({ command: 'ruok', error: null });
    expect((await get('/commands/%ff')).status).toBe(400);
    for (const path of ['/commands', '/commands/ruok']) {
      expect((await get(path, { method: 'DELETE' })).status).toBe(405);
    }
  });
});

test('a session id is a whole number in JSON, as Java writes it', async () => {
  await using server = await start();
  const client = await connect(server.address);
  await withAdmin(server, async (_, get) => {
    const text = await (await get('/commands/connections')).text();

    expect(text).toContain(`"session_id" : ${client.sessionId},`);
  });
  await client.close();
});

test('snapshot and restore want somebody who may, and then are off', async () => {
  await using server = await start({ superDigest });
  const client = await connect(server.address, {
    auth: [{ scheme: 'digest', auth: 'super:test' }],
  });
  await client.setAcl('/', [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }]);
  await client.close();
  await withAdmin(server, async (_, get) => {
    const status = async (authorization?: string) =>
      (
        await get('/commands/snapshot', {
          ...(authorization === undefined ? {} : { headers: { authorization } }),
        })
      ).status;

    expect(await status()).toBe(401);
    expect(await status('nonsense x')).toBe(401);
    expect(await status('digest ann:guess')).toBe(403);
    expect(await status('digest super:test')).toBe(503);
    expect(await status('Digest super:test')).toBe(503); // as HTTP has it, schemes are of any case
  });
});

async function onDisk(
  options: ServerOptions,
  body: (server: RunningServer, dataDir: string) => Promise<unknown>,
): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-surface-'));
  try {
    await using server = await startServer({ port: 0, dataDir, superDigest, ...options });
    await body(server, dataDir);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

test('a snapshot comes over the admin server, to who may do everything, and is all that a new server needs', async () => {
  await onDisk({}, async (server) => {
    const client = await connect(server.address, {
      auth: [{ scheme: 'digest', auth: 'super:test' }],
    });
    await client.create('/kept', 'x'.repeat(300_000));
    await client.setAcl('/', [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }]);
    await client.close();
    const zxid = `0x${server.engine.lastZxid.toString(16)}`;
    await withAdmin(
      server,
      async (_, get) => {
        expect((await get('/commands/snapshot')).status).toBe(401);
        expect((await get('/commands/restore', { ...asSuper, method: 'POST' })).status).toBe(503);
        expect((await get('/commands/snapshot', { ...asSuper, method: 'POST' })).status).toBe(405);
        const answer = await get('/commands/snapshot', asSuper);
        const bytes = Buffer.from(await answer.arrayBuffer());

        expect(answer.status).toBe(200);
        expect(answer.headers.get('content-type')).toBe('application/octet-stream');
        expect(answer.headers.get('last_zxid')).toBe(zxid);
        expect(answer.headers.get('snapshot_size')).toBe(String(bytes.length));
        await onDisk({}, async (other, folder) => {
          await other.close();
          for (const name of readdirSync(join(folder, 'version-2'))) {
            rmSync(join(folder, 'version-2', name));
          }
          writeFileSync(join(folder, 'version-2', `snapshot.${zxid.slice(2)}`), bytes);
          await using restored = await startServer({ port: 0, dataDir: folder });
          const reader = await connect(restored.address);
          expect((await reader.get('/kept')).data?.length).toBe(300_000);
          await reader.close();
        });
      },
      { snapshotEnabled: true },
    );
  });
});

test('a snapshot need not be sent, is not taken twice in a while, and not at all unless switched on', async () => {
  await onDisk({}, async (server, dataDir) => {
    const client = await connect(server.address);
    await client.create('/a');
    await client.close();
    const hex = server.engine.lastZxid.toString(16);
    const file = join(dataDir, 'version-2', `snapshot.${hex}`);
    await withAdmin(server, async (_, get) => {
      const answer = await get('/commands/snapshot', asSuper);
      expect(answer.status).toBe(503);
      expect(await answer.json()).toEqual({ command: 'snapshot', error: null });
    });
    await withAdmin(
      server,
      async (_, get) => {
        const answer = await get('/commands/snap?streaming=false', asSuper);
        expect(answer.status).toBe(200);
        expect(await answer.json()).toEqual({ command: 'snapshot', error: null });
        expect(answer.headers.get('last_zxid')).toBe(`0x${hex}`);
        expect(answer.headers.get('snapshot_size')).toBe(String(readFileSync(file).length));

        expect((await get('/commands/snapshot', asSuper)).status).toBe(429);
      },
      { snapshotEnabled: true },
    );
    const metrics = new Map(metricsOf(server.facts).map((metric) => [metric.name, metric]));
    expect(metrics.get('snapshot_rate_limited_count')).toMatchObject({ value: 1 });
  });
});

test('what storage did is told: the last snapshot, how long it took, what the start had to read', async () => {
  await onDisk({}, async (first, dataDir) => {
    const client = await connect(first.address);
    for (const path of ['/a', '/b', '/c']) await client.create(path);
    await client.close();
    await first.persistence!.snapshot();
    const zxid = first.engine.lastZxid;
    const more = await connect(first.address);
    await more.create('/d');
    await more.close();
    await first.close();

    await using second = await startServer({ port: 0, dataDir });
    const summary = (name: string) => metricsOf(second.facts).find((each) => each.name === name);
    expect(summary('startup_txns_loaded')).toMatchObject({ count: 1, sum: 3 });
    expect(summary('startup_snap_load_time')).toMatchObject({ count: 1 });
    expect(summary('startup_txns_load_time')).toMatchObject({ count: 1 });
    expect(summary('dbinittime')).toMatchObject({ count: 1 });
    expect(summary('snapshottime')).toMatchObject({ count: 0 });
    await withAdmin(second, async (_, get) => {
      const last = async () => (await get('/commands/last_snapshot')).json();
      const { timestamp, ...named } = (await last()) as { timestamp: number };
      expect(named).toMatchObject({ zxid: zxid.toString(16) });
      expect(Math.abs(timestamp - Date.now() / 1000)).toBeLessThan(60);

      await second.persistence!.snapshot();

      expect(await last()).toMatchObject({ zxid: second.engine.lastZxid.toString(16) });
      expect(summary('snapshottime')).toMatchObject({ count: 1 });
    });
  });
});

test('a word is answered though the folder that the server was started in is gone', async () => {
  await using server = await start();
  const cwd = vi.spyOn(process, 'cwd').mockImplementation(() => {
    throw Object.assign(new Error('uv_cwd'), { code: 'ENOENT' });
  });
  try {
    expect(await ask(server.port, 'envi')).toContain('\nuser.dir=unknown\n');
  } finally {
    cwd.mockRestore();
  }

  expect(await ask(server.port, 'ruok')).toBe('imok');
});

test('a file whose size is not to be had counts as nothing, and ends nobody', async () => {
  await onDisk({ fourLetterWords: '*' }, async (server, dataDir) => {
    symlinkSync('loop', join(dataDir, 'version-2', 'loop'));

    expect(await ask(server.port, 'dirs')).toMatch(/^datadir_size: [1-9]\d*\n/);
    expect(
      metricsOf(server.facts).find(({ name }) => name === 'drover_data_dir_size'),
    ).toMatchObject({ value: expect.any(Number) });
    expect(await ask(server.port, 'ruok')).toBe('imok');
  });
});

test('a disk that is slow to take the log is told of, though not each time', async () => {
  const lines: string[] = [];
  const say = (fields: object, message: string) =>
    lines.push(`${message} ${JSON.stringify(fields)}`);
  const logger = { debug: say, info: say, warn: say, error: say };
  const log = {
    append: () => new Promise<void>((done) => setTimeout(done, 30)),
    close: async () => {},
  };
  await using server = await start({ logger, log, slowAppendMs: 10 });
  const client = await connect(server.address);
  for (let i = 0; i < 5; i++) await client.create(`/${i}`);
  await client.close();

  const slow = lines.filter((line) => line.includes('slow to take the log'));
  expect(slow).toHaveLength(1);
  expect(slow[0]).toMatch(/"tookMs":\d\d+,"txns":1,"slowSoFar":1/);
  expect(server.engine.stats.slowAppends).toBeGreaterThanOrEqual(6);
});

test('a foreign host name and a cross-site request are refused', async () => {
  await using server = await start();
  await withAdmin(server, async (admin, get) => {
    const rebound = await ask(
      admin.port,
      'GET /commands/conf HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
    );

    expect(rebound).toMatch(/^HTTP\/1\.1 421 /);
    expect(
      (await get('/commands/crst', { headers: { 'sec-fetch-site': 'cross-site' } })).status,
    ).toBe(403);
  });
});

test('beyond loopback a name that was not allowed is refused too, and an allowed one is answered', async () => {
  await using server = await start();
  const asking = (host: string) =>
    `GET /commands/conf HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
  await withAdmin(
    server,
    async ({ port }) => {
      expect(await ask(port, asking('evil.example'))).toMatch(
        /^HTTP\/1\.1 421 .*drover\.allowHosts/s,
      );
      expect(await ask(port, asking('zk1.example'))).toMatch(/^HTTP\/1\.1 200 /);
      expect(await ask(port, asking(`127.0.0.1:${port}`))).toMatch(/^HTTP\/1\.1 200 /);
    },
    { host: '0.0.0.0', allowHosts: ['zk1.example'] },
  );
});

test('a hundred silent connections keep nobody from the admin server', async () => {
  await using server = await start();
  await withAdmin(server, async ({ port }, get) => {
    const silent = Array.from({ length: 110 }, () => dial(port, '127.0.0.1'));
    for (const socket of silent) socket.on('error', () => {});
    await Promise.all(silent.map((socket) => once(socket, 'connect')));

    expect((await get('/healthz')).status).toBe(200);
    for (const socket of silent) socket.destroy();
  });
});

test('whose request names no host is no browser, and is answered', async () => {
  await using server = await start();
  await withAdmin(server, async ({ port }) => {
    expect(await ask(port, 'GET /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 .*ok\n$/s);
  });
});

test('commands that tell are read, those that take are posted to, and who asks how is told', async () => {
  await using server = await start();
  await withAdmin(server, async (_, get) => {
    const answer = async (path: string, method: string) => {
      const { status, headers } = await get(`/commands${path}`, { ...asSuper, method });
      return [status, headers.get('allow')];
    };

    expect(await answer('/stat', 'POST')).toEqual([405, 'GET, HEAD, OPTIONS']);
    expect(await answer('/stat', 'HEAD')).toEqual([200, null]);
    expect(await answer('/restore', 'GET')).toEqual([405, 'POST, OPTIONS']);
    expect(await answer('/stat', 'PATCH')).toEqual([405, 'GET, HEAD, POST, OPTIONS']);
    expect(await answer('/stat', 'OPTIONS')).toEqual([200, 'GET, HEAD, POST, OPTIONS']);
    expect(await answer('', 'POST')).toEqual([200, null]);
    expect(await answer('/nonsense', 'POST')).toEqual([200, null]);
  });
});

test('who does not take an answer of the admin server does not keep it', async () => {
  await using server = await start();
  const watcher = { watcherId: 1n, mayRead: () => true, deliver: () => {} };
  const long = 'x'.repeat(10_000);
  for (let i = 0; i < 500; i++) server.engine.watches.data.add(`/${long}${i}`, watcher, 1);
  await withAdmin(
    server,
    async ({ port }) => {
      const socket = dial(port, '127.0.0.1').pause();
      let isBroken = false;
      socket.on('error', () => {
        isBroken = true;
      });
      socket.write('GET /commands/wchc HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(8));

      await vi.waitFor(
        () => {
          socket.write('\r\n'); // nothing, but who is gone says so
          expect(isBroken).toBe(true);
        },
        { timeout: 10_000 },
      );
    },
    { sendTimeoutMs: 50 },
  );
});

test('health is of the process, readiness of the service', async () => {
  await using server = await start();
  await withAdmin(server, async (_, get) => {
    expect([(await get('/healthz')).status, (await get('/readyz')).status]).toEqual([200, 200]);

    await server.engine.stop();

    expect([(await get('/healthz')).status, (await get('/readyz')).status]).toEqual([200, 503]);
    expect(await (await get('/commands/srvr')).json()).toEqual({
      command: 'srvr',
      error: 'This ZooKeeper instance is not currently serving requests',
    });
  });
});

test('metrics count what happened', async () => {
  await using server = await start();
  const client = await connect(server.address);
  await client.create('/a');
  await client.exists('/a', { watch: () => {} });
  await client.set('/a', 'x');
  for (let i = 0; i < 10; i++) await client.get('/a');

  const metrics = new Map(metricsOf(server.facts).map((metric) => [metric.name, metric]));
  await client.close();

  expect(metrics.get('znode_count')).toMatchObject({ type: 'gauge', value: 6 });
  expect(metrics.get('connection_request_count')).toMatchObject({ value: 1 });
  expect(metrics.get('updatelatency')).toMatchObject({ type: 'summary', count: 3 });
  const reads = metrics.get('readlatency')!;
  if (reads.type !== 'summary') throw new Error('readlatency is a summary');
  expect(reads.count).toBeGreaterThanOrEqual(10);
  expect(reads.quantiles.get(0.99)).toBeGreaterThan(0);
  expect(reads.quantiles.get(0.99)).toBeLessThanOrEqual(reads.max);
  expect(reads.buckets!.at(-1)).toEqual([Infinity, reads.count]);
  expect(metrics.get('node_changed_watch_count')).toMatchObject({ count: 1, sum: 1 });
  expect(metrics.get('bytes_received_count')).toMatchObject({ type: 'counter' });
});

test('packets, bytes and requests are counted as Apache counts them', async () => {
  await using server = await start();

  await beCounted(server.port);
  await vi.waitFor(() => expect(server.engine.stats.connectionsDropped).toBe(1));

  const counted = new Map<string, unknown>(monitorValues(server.facts));
  expect(Object.fromEntries(Object.keys(counts).map((name) => [name, counted.get(name)]))).toEqual(
    counts,
  );
});

test('a four-letter word counts itself as asked, and those before it as answered', async () => {
  await using server = await start();

  expect(await ask(server.port, 'srvr')).toContain('\nReceived: 1\nSent: 0\n');
  expect(await ask(server.port, 'srvr')).toContain('\nReceived: 2\nSent: 1\n');
  await ask(server.port, 'srst');
  expect(await ask(server.port, 'srvr')).toContain('\nReceived: 1\nSent: 1\n');
});

test('the last op of a link is told by the number that its client gave it, and not at all where it failed', async () => {
  await using server = await start();
  const client = await RawClient.connect(server.port);
  const node = { path: '/a', data: null, acl: [], flags: 0 };
  await client.err('exists', { path: '/', watch: false }, 7);
  await client.ping();
  const pinged = await ask(server.port, 'cons');
  await client.err('create', node, 8);
  const failed = await ask(server.port, 'cons');
  client.close();

  expect(pinged).toMatch(/,lop=PING,.*,lcxid=0x7,/);
  expect(failed).toMatch(/,lop=NA,.*,lcxid=0x8,/);
});

test('a link that has taken over a session and asked for nothing shows no op', async () => {
  await using server = await start();
  const first = await RawClient.connect(server.port);
  const { sessionId, passwd } = first;
  const second = await RawClient.connect(server.port, { sessionId, passwd });

  const shown = await ask(server.port, 'cons');
  await ask(server.port, 'crst');
  const reset = await ask(server.port, 'cons');
  second.close();

  expect(shown).toMatch(/,sid=\w+,lop=null,est=\d+,to=\d+,lcxid=0x0,lzxid=0x0,lresp=0,/);
  expect(reset).toMatch(/,sid=\w+,lop=NA,est=\d+,to=\d+,lzxid=0xf{16},lresp=0,/);
});

test('limits and usage of quotas are summed up by the first name of their paths', async () => {
  await using server = await start({ enforceQuota: true });
  const client = await connect(server.address);
  const limit = async (path: string, limits: string) => {
    const at = `/zookeeper/quota${path}`;
    await client.create(at, '', { parents: true });
    await client.create(`${at}/zookeeper_limits`, limits);
    await client.create(`${at}/zookeeper_stats`, 'count=1,bytes=0');
  };
  await client.create('/a');
  for (const path of ['/a/b', '/a/c', '/c']) await client.create(path);
  await limit('/a/b', 'count=5,bytes=100');
  await limit('/a/c', 'count=3,bytes=50=;byteHardLimit=70;countHardLimit=4');
  await limit('/c', 'count=9,bytes=-1=;byteHardLimit=-1;countHardLimit=1');
  await client.set('/a/b', 'four');
  await expect(client.create('/c/d')).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  await expect(client.create('/c/e')).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });

  const mntr = await ask(server.port, 'mntr');
  await client.close();

  expect(mntr.split('\n').filter((line) => line.includes('quota_'))).toEqual([
    'zk_c_quota_count_limit_per_namespace\t1',
    'zk_a_quota_count_limit_per_namespace\t9',
    'zk_c_quota_bytes_limit_per_namespace\t-1',
    'zk_a_quota_bytes_limit_per_namespace\t170',
    'zk_c_quota_count_usage_per_namespace\t1',
    'zk_a_quota_count_usage_per_namespace\t2',
    'zk_c_quota_bytes_usage_per_namespace\t0',
    'zk_a_quota_bytes_usage_per_namespace\t4',
    'zk_c_quota_exceeded_error_per_namespace\t2',
  ]);
});

test('sizes of what is said to clients are told until srst', async () => {
  await using server = await start();
  const client = await RawClient.connect(server.port);
  await client.ask('getData', { path: '/', watch: false });
  await client.ping();
  await withAdmin(server, async (_, get) => {
    const sizes = async () => {
      const { client_response } = (await (await get('/commands/srvr')).json()) as {
        client_response: unknown;
      };
      return client_response;
    };

    expect(await sizes()).toEqual({
      ...{ last_buffer_size: 16, min_buffer_size: 16, max_buffer_size: 88 },
    });
    await ask(server.port, 'srst');
    expect(await sizes()).toEqual({
      ...{ last_buffer_size: -1, min_buffer_size: -1, max_buffer_size: -1 },
    });
  });
  client.close();
});

test('links without TLS beside a port for it are counted, and certificates that failed as proofs that did', async () => {
  const { server: own, ca } = certificates;
  await using server = await start({ tls: { ...own, ca, port: 0 } });
  await ask(server.port, 'ruok');
  const values = () => new Map<string, unknown>(monitorValues(server.facts));

  await ask(server.securePort!, 'this is no TLS at all');

  expect(values().get('non_mtls_local_conn_count')).toBe(1);
  expect(values().get('non_mtls_remote_conn_count')).toBe(0);
  await vi.waitFor(() => expect(values().get('unsuccessful_handshake')).toBe(1));
  expect(values().get('auth_failed_count')).toBe(1);
});

test('the audit log has a line for each change, in the words of Apache', async () => {
  const lines: string[] = [];
  const audit = new Audit(
    (line) => lines.push(line),
    () => server.engine.auth,
  );
  await using server: RunningServer = await start({
    onCommitted: (call, applied) => audit.committed(call, applied),
  });
  const client = await connect(server.address, {
    auth: [{ scheme: 'digest', auth: 'ann:canary' }],
  });
  const session = `session=0x${client.sessionId!.toString(16)}`;
  await client.create('/a');
  await client.create('/a/e', '', { mode: 'ephemeral' });
  await client.set('/a', 'secret-data');
  await client.setAcl('/a', [{ perms: 31, id: { scheme: 'auth', id: '' } }]);
  await client.delete('/none').catch(() => {});
  await client.multi([
    { op: 'create', path: '/m' },
    { op: 'delete', path: '/m' },
  ]);
  await client.close();

  const who = `${session}\tuser=127.0.0.1,ann\tip=127.0.0.1`;
  expect(lines.slice(0, 7)).toEqual([
    `${who}\toperation=create\tznode=/a\tznode_type=persistent\tresult=success`,
    `${who}\toperation=create\tznode=/a/e\tznode_type=ephemeral\tresult=success`,
    `${who}\toperation=setData\tznode=/a\tresult=success`,
    `${who}\toperation=setAcl\tznode=/a\tacl=auth::cdrwa\tresult=success`,
    `${who}\toperation=delete\tznode=/none\tresult=failure`,
    `${who}\toperation=create\tznode=/m\tznode_type=persistent\tresult=success`,
    `${who}\toperation=delete\tznode=/m\tresult=success`,
  ]);
  expect(lines.at(-1)).toMatch(
    new RegExp(
      `^${session}\tuser=\\S+\toperation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=/a/e\tresult=success$`,
    ),
  );
  expect(lines.join()).not.toMatch(/canary|secret-data/);
});

test('the audit log tells paths and ACLs in full, and what was refused before it was a txn', async () => {
  const lines: string[] = [];
  const audit = new Audit(
    (line) => lines.push(line.replace(/^session=\S+\tuser=127\.0\.0\.1\tip=127\.0\.0\.1\t/, '')),
    () => server.engine.auth,
  );
  await using server: RunningServer = await start({
    onCommitted: (call, applied) => audit.committed(call, applied),
    onRefused: (call) => audit.refused(call),
  });
  const client = await RawClient.connect(server.port);
  const acl = Array.from({ length: 50 }, (_, i) => ({
    ...{ perms: 31, id: { scheme: 'ip', id: `10.0.0.${i}` } },
  }));
  const path = `/${'long'.repeat(100)}`;
  const node = { path, data: null, acl: [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }] };
  await client.err('create', { ...node, flags: 0 });
  await client.err('setACL', { path, acl, version: -1 });
  await client.err('multi', []);
  await client.reply(client.sendRaw(ops.setData.code, Buffer.alloc(2)));
  server.engine.refusesWrites = true;
  server.engine.takesDeletes = () => false; // not even these fit on the disk
  await client.err('delete', { path, version: -1 });
  await client.err('multi', [{ op: 'delete', request: { path, version: -1 } }]);
  client.close();

  const all = acl.map(({ id }) => `ip:${id.id}:cdrwa`).join(',');
  expect(lines).toEqual([
    `operation=create\tznode=${path}\tznode_type=persistent\tresult=success`,
    `operation=setAcl\tznode=${path}\tacl=${all}\tresult=success`,
    'operation=setData\tresult=failure',
    `operation=delete\tznode=${path}\tresult=failure`,
    'operation=multiOperation\tresult=failure',
  ]);
});

test('the audit log shows nothing of a hash, whatever is in it, and reads an id of any length at once', {
  timeout: 2_000,
}, async () => {
  const lines: string[] = [];
  const audit = new Audit(
    (line) => lines.push(line.replace(/^.*\tacl=/, '')),
    () => server.engine.auth,
  );
  await using server: RunningServer = await start({
    onCommitted: (call, applied) => audit.committed(call, applied),
  });
  const client = await RawClient.connect(server.port);
  for (const id of ['ann:ca\nnary', `${':'.repeat(200_000)}\n`]) {
    const acl = [{ perms: 31, id: { scheme: 'digest', id } }];
    await client.err('setACL', { path: '/', acl, version: -1 });
  }
  client.close();

  expect(lines).toEqual(['digest:ann:x:cdrwa\tresult=success', 'digest::x:cdrwa\tresult=failure']);
});

test('the log tells of failed authentication and of links too many, without secrets and without end', async () => {
  const lines: string[] = [];
  const say = (fields: object, message: string) =>
    lines.push(`${JSON.stringify(fields)} ${message}`);
  const logger = { debug: say, info: say, warn: say, error: say };
  await using server = await start({ logger, limits: { connectionsPerAddressMax: 1 } });
  const forger = await connect(server.address);
  await forger.addAuth('forged\nline', 'canary').catch(() => {});
  await forger.close();
  const client = await connect(server.address);

  for (let i = 0; i < 200; i++) await ask(server.port, 'ruok').catch(() => {});
  await client.close();

  expect(lines.filter((line) => line.includes('a link too many')).length).toBeLessThanOrEqual(150);
  expect(lines.join('\n')).toContain('a link too many');
  const failed = lines.find((line) => line.includes('authentication failed'));
  expect(failed).toContain('forged\\\\u000aline');
  expect(lines.join('\n')).not.toContain('canary');
});

test('a wrong SASL password is refused, and the link with it; a right one is an id', async () => {
  const sasl = new Sasl({ passwordOf: (name) => (name === 'ann' ? 'right' : undefined) });
  await using server = await start({ sasl, extraSchemes: ['sasl'] });
  const as = (username: string, password: string) =>
    connect(server.address, { sasl: digestMd5({ username, password }) });

  await expect(as('ann', 'wrong')).rejects.toMatchObject({ code: 'AUTH_FAILED' });
  await expect(as('bob', 'right')).rejects.toMatchObject({ code: 'AUTH_FAILED' });
  const ann = await as('ann', 'right');

  expect(await ann.whoAmI()).toContainEqual({ authScheme: 'sasl', user: 'ann' });
  expect(server.engine.stats.authFailures).toBe(2);
  await ann.close();
});

test('whoever shows a SASL password where none is asked for is told that it may not be the password', async () => {
  await using server = await start();

  const refused = connect(server.address, { sasl: digestMd5({ username: 'ann', password: 'x' }) });

  await expect(refused).rejects.toMatchObject({
    code: 'AUTH_FAILED',
    message: expect.stringContaining('a server with no SASL set up answers so'),
  });
});

test('after too many wrong SASL passwords not even the right one is looked at for a while', async () => {
  const sasl = new Sasl({ passwordOf: (name) => (name === 'ann' ? 'right' : undefined) });
  const clock = new MovableClock();
  await using server = await start({
    ...{ clock, sasl, extraSchemes: ['sasl'], limits: { authFailuresMax: 2 } },
  });
  const as = (password: string) =>
    connect(server.address, { sasl: digestMd5({ username: 'ann', password }) });
  await expect(as('wrong')).rejects.toMatchObject({ code: 'AUTH_FAILED' });
  await (await as('right')).close();
  await expect(as('guess')).rejects.toMatchObject({ code: 'AUTH_FAILED' });

  await expect(as('right')).rejects.toMatchObject({ code: 'AUTH_FAILED' });
  expect(server.engine.stats).toMatchObject({ authFailures: 2, authRefusals: 1 });

  clock.advance(61_000);
  await (await as('right')).close();
});

test('wrong SASL passwords keep out neither another user of the address nor an id of digest', async () => {
  const passwords: Record<string, string> = { ann: 'right', bob: 'other' };
  const sasl = new Sasl({ passwordOf: (name) => passwords[name] });
  const limits = { authFailuresMax: 2 };
  await using server = await start({ sasl, extraSchemes: ['sasl'], limits });
  const as = async (username: string, password: string) => {
    const client = await connect(server.address, { sasl: digestMd5({ username, password }) });
    await client.close();
  };
  for (const name of ['ann', 'nobody']) {
    for (const guess of ['a', 'b']) {
      await expect(as(name, guess)).rejects.toMatchObject({ code: 'AUTH_FAILED' });
    }
  }

  await expect(as('ann', 'right')).rejects.toMatchObject({ code: 'AUTH_FAILED' });
  await as('bob', 'other');
  const client = await connect(server.address);
  await client.addAuth('digest', 'carl:x');
  await client.close();
  expect(server.engine.stats).toMatchObject({ authFailures: 4, authRefusals: 1 });
});

test('mutual TLS lets nobody in without a certificate, nor with one of strangers', async () => {
  const { ca, server: own, client: known, otherClient } = certificates;
  await using server = await start({
    tls: { ...own, ca, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.2' },
  });
  const dial = (pair: { cert?: string; key?: string }) =>
    connect(server.address, {
      tls: { ca, servername: 'localhost', ...pair },
      connectTimeoutMs: 2_000,
      sessionTimeoutMs: 4_000,
    } as never);

  await expect(dial({})).rejects.toThrow();
  await expect(dial(otherClient)).rejects.toThrow();
  const client = await dial(known);

  expect(await client.exists('/')).not.toBeNull();
  await client.close();
});

test('NODE_TLS_REJECT_UNAUTHORIZED=0 does not make a client take the certificate of a stranger', async () => {
  const { ca, otherServer } = certificates;
  await using server = await start({ tls: { ...otherServer, minVersion: 'TLSv1.2' } });
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  vi.spyOn(process, 'emitWarning').mockReturnValue();
  onTestFinished(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  const dialled = connect(server.address, {
    tls: { ca, servername: 'localhost' },
    connectRoundsMax: 1,
  } as never).then((client) => client.close());

  await expect(dialled).rejects.toThrow(/certificate/);
});

test('a TLS handshake that fails is logged with its address and reason, and a good one is not', async () => {
  const { ca, server: own, client: known, otherClient } = certificates;
  const lines: string[] = [];
  const say = (fields: object, message: string) =>
    lines.push(`${message} ${JSON.stringify(fields)}`);
  const logger = { debug: say, info: say, warn: say, error: say };
  await using server = await start({
    ...{ logger, tls: { ...own, ca, requestCert: true, rejectUnauthorized: true } },
  });
  const dialled = (pair: { cert?: string; key?: string }) =>
    connect(server.address, {
      tls: { ca, servername: 'localhost', ...pair },
      ...{ connectRoundsMax: 1, connectTimeoutMs: 2_000 },
    } as never);
  const failed = () => lines.filter((line) => line.startsWith('a TLS handshake failed'));

  await (await dialled(known)).close();
  expect(failed()).toEqual([]);
  await expect(dialled(otherClient)).rejects.toThrow();

  await vi.waitFor(() => expect(failed()).toHaveLength(1));
  expect(failed()[0]).toMatch(/"address":"127\.0\.0\.1","reason":"[A-Z_]*(CERT|VERIFY|ISSUER)/);
});

test('a client that means another ensemble is disconnected, and one that means this one is not', async () => {
  await using named = await start({ ensembleNames: ['a', 'b'] });
  await using any = await start({ ensembleNames: [] });
  await using none = await start();
  const authOf = (name: string) => ({ type: 0, scheme: 'ensemble', auth: Buffer.from(name) });
  const show = async (server: RunningServer, name: string) => {
    const client = await RawClient.connect(server.port);
    try {
      return await client.err('auth', authOf(name), -4);
    } catch {
      return 'disconnected';
    } finally {
      client.close();
    }
  };

  expect([await show(named, 'a'), await show(named, 'b'), await show(named, '')]).toEqual([
    0, 0, 0,
  ]);
  expect(await show(named, 'c')).toBe('disconnected');
  expect(await show(any, 'c')).toBe(0);
  expect(await show(none, 'c')).toBe(-115);
});

test('where a certificate is wanted and not needed, one of strangers is refused all the same', async () => {
  const { ca, server: own, client: known, otherClient } = certificates;
  await using server = await start({
    tls: { ...own, ca, requestCert: true, rejectUnauthorized: false },
    extraSchemes: ['x509'],
  });
  const schemes = async (pair: { cert?: string; key?: string }) => {
    const client = await connect(server.address, {
      tls: { ca, servername: 'localhost', ...pair },
      connectTimeoutMs: 2_000,
    } as never);
    const ids = await client.whoAmI();
    await client.close();
    return ids.map(({ authScheme }) => authScheme);
  };

  expect(await schemes({})).not.toContain('x509');
  expect(await schemes(known)).toContain('x509');
  await expect(schemes(otherClient)).rejects.toThrow();
  expect(server.engine.stats.tlsFailures).toBeGreaterThan(0);
});

test('a certificate is a proof to whoever asks once more, and none to who has none', async () => {
  const { ca, server: own, client: known } = certificates;
  await using server = await start({
    tls: { ...own, ca, requestCert: true, rejectUnauthorized: false },
    extraSchemes: ['x509'],
  });
  const dial = (pair: { cert?: string; key?: string }) =>
    connect(server.address, { tls: { ca, servername: 'localhost', ...pair } } as never);
  const [owner, stranger] = [await dial(known), await dial({})];
  const before = await owner.whoAmI();

  await owner.addAuth('x509', '');

  expect(await owner.whoAmI()).toEqual(before);
  await expect(stranger.addAuth('x509', '')).rejects.toMatchObject({ code: 'AUTH_FAILED' });
  await owner.close();
  await stranger.close();
});

test('the owner of the super certificate may do everything', async () => {
  const { ca, server: own, client: known } = certificates;
  const options = { tls: { ca, servername: 'localhost', ...known } };
  const tls = { ...own, ca, requestCert: true, rejectUnauthorized: true };
  await using plain = await start({ tls, extraSchemes: ['x509'] });
  const probe = await connect(plain.address, options);
  const subject = (await probe.whoAmI()).find(({ authScheme }) => authScheme === 'x509')!.user!;
  await probe.close();
  await using server = await start({ tls, extraSchemes: ['x509'], x509SuperUser: subject });
  const client = await connect(server.address, options);

  await client.create('/closed', '', {
    acl: [{ perms: 0, id: { scheme: 'world', id: 'anyone' } }],
  });
  await client.set('/closed', 'x');

  expect((await client.get('/closed')).data?.toString()).toBe('x');
  await client.close();
});

/** Dials, and says nothing. */
async function silent(port: number): Promise<Socket> {
  const socket = dial(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket.resume();
}

test('who dials where TLS is spoken counts as a link before a word is said', async () => {
  const { ca, server: own } = certificates;
  await using server = await start({ tls: own, limits: { connectionsPerAddressMax: 2 } });
  const [first] = [await silent(server.port), await silent(server.port)];
  const third = await silent(server.port);
  await once(third, 'close');
  expect(server.engine.stats.connectionsRefused).toBe(1);

  first.destroy();
  await once(first, 'close');
  const client = await connect(server.address, { tls: { ca, servername: 'localhost' } });

  expect(await client.exists('/')).not.toBeNull();
  await client.close();
});

test('who dials where TLS is spoken and says nothing is closed in time', async () => {
  const { server: own } = certificates;
  await using server = await start({ tls: own, limits: { handshakeTimeoutMs: 50 } });

  await once(await silent(server.port), 'close');
});

test('a server closes though somebody dialled where TLS is spoken and says nothing', async () => {
  const { server: own } = certificates;
  const server = await start({ tls: own });
  const link = await silent(server.port);
  const closed = once(link, 'close');

  await server.close();
  await closed;
});
