import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { type RunningServer, startServer } from '../server/index.ts';
import { MovableClock } from '../testing/index.ts';
import { type MetricsServer, startMetrics } from './metrics.ts';

async function withMetrics(
  server: RunningServer,
  body: (url: string, metrics: MetricsServer) => Promise<unknown>,
): Promise<void> {
  const metrics = await startMetrics(server.facts, {
    ...{ host: '127.0.0.1', port: 0, processMetrics: false },
  });
  try {
    await body(`http://127.0.0.1:${metrics.port}/metrics`, metrics);
  } finally {
    await metrics.close();
  }
}

test('what Apache has by namespace has the label that it has there', async () => {
  await using server = await startServer({ port: 0, inMemory: true });
  const client = await connect(server.address);
  await client.create('/zookeeper/quota/a');
  await client.create('/zookeeper/quota/a/zookeeper_limits', 'count=5,bytes=-1');
  await client.close();
  await withMetrics(server, async (url) => {
    const text = await (await fetch(url)).text();

    expect(text).toContain('\nquota_count_limit_per_namespace{key="a"} 5\n');
    expect(text).toContain('\n# TYPE quota_exceeded_error_per_namespace counter\n');
  });
});

test('metrics that can not be worked out end the link, and nobody else', async () => {
  await using server = await startServer({ port: 0, inMemory: true });
  let isBroken = false;
  const facts = Object.create(server.facts, {
    tickTimeMs: { value: 2_000 },
    storage: {
      get() {
        if (isBroken) throw new Error('the disk is gone');
        return undefined;
      },
    },
  });
  await withMetrics({ ...server, facts } as RunningServer, async (url) => {
    isBroken = true;
    await expect(fetch(url)).rejects.toThrow();
    isBroken = false;

    expect((await fetch(url)).status).toBe(200);
  });
});

test('a scrape may ask for some metrics alone', async () => {
  await using server = await startServer({ port: 0, inMemory: true });
  await withMetrics(server, async (url) => {
    const text = await (await fetch(`${url}?name[]=znode_count&name[]=readlatency_count`)).text();

    expect([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)).toEqual([
      ...['znode_count', 'readlatency'],
    ]);
  });
});

test('metrics are read and not deleted, by who need not name the server', async () => {
  await using server = await startServer({ port: 0, inMemory: true });
  await withMetrics(server, async (url, { port }) => {
    const refused = await fetch(url, { method: 'DELETE' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
    expect((await fetch(url, { method: 'POST' })).status).toBe(200);

    const socket = dial(port, '127.0.0.1');
    socket.write('GET /metrics HTTP/1.0\r\n\r\n');
    const [first] = await once(socket, 'data');
    expect(String(first)).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });
});

test('beyond loopback metrics answer to addresses and allowed names alone, and to no other site', async () => {
  await using server = await startServer({ port: 0, inMemory: true });
  const metrics = await startMetrics(server.facts, {
    ...{ host: '0.0.0.0', port: 0, processMetrics: false, allowHosts: ['zk1.example'] },
  });
  const status = async (host: string, more = '') => {
    const socket = dial(metrics.port, '127.0.0.1');
    socket.write(`GET /metrics HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`);
    const [first] = await once(socket, 'data');
    socket.destroy();
    return Number(/^HTTP\/1\.1 (\d+)/.exec(String(first))![1]);
  };
  try {
    expect(await status('evil.example')).toBe(421);
    expect(await status('zk1.example:7000')).toBe(200);
    expect(await status('127.0.0.1')).toBe(200);
    expect(await status('127.0.0.1', 'Sec-Fetch-Site: cross-site\r\n')).toBe(403);
  } finally {
    await metrics.close();
  }
});

test('a hundred silent connections keep no scrape out', async () => {
  await using server = await startServer({ port: 0, inMemory: true });
  await withMetrics(server, async (url, { port }) => {
    const silent = Array.from({ length: 110 }, () => dial(port, '127.0.0.1'));
    for (const socket of silent) socket.on('error', () => {});
    await Promise.all(silent.map((socket) => once(socket, 'connect')));

    expect((await fetch(url)).status).toBe(200);
    for (const socket of silent) socket.destroy();
  });
});

test('quantiles are of the last ten minutes, and counts of all time', async () => {
  const clock = new MovableClock();
  await using server = await startServer({ port: 0, inMemory: true, clock });
  const { reads } = server.engine.stats;
  const minuteMs = 60_000;
  await withMetrics(server, async (url) => {
    const p99 = async () => {
      const text = await (await fetch(url)).text();
      return Number(/^readlatency\{quantile="0.99"\} (\S+)$/m.exec(text)![1]!.toUpperCase());
    };
    const count = async () =>
      Number(/^readlatency_count (\d+)$/m.exec(await (await fetch(url)).text())![1]);
    expect(await p99()).toBeNaN();

    reads.record(400);
    clock.advance(7 * minuteMs);
    expect(await p99()).toBeGreaterThan(250);
    for (let i = 0; i < 10; i++) reads.record(0.8);
    expect(await p99()).toBeGreaterThan(250);

    clock.advance(5 * minuteMs);
    expect(await p99()).toBeLessThanOrEqual(1);
    expect(await p99()).toBeGreaterThan(0.5);

    clock.advance(12 * minuteMs);
    expect(await p99()).toBeNaN();
    expect(await count()).toBe(11);

    reads.reset();
    reads.record(3);
    expect(await p99()).toBeGreaterThan(2.5);
  });
});
