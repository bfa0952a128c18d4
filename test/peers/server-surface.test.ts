/**
 * What ours and a real Apache server show of themselves, side by side: texts of four-letter words with
 * their numbers left out, fields of the admin server's JSON, names of metrics. Every difference that is
 * allowed stands here with its reason.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, connect } from '../../src/client/index.ts';
import {
  type AdminServer,
  metricsOf,
  type RunningServer,
  startAdminServer,
  startServer,
  unmeasured,
} from '../../src/server/index.ts';
import { RawClient } from '../../src/testing/index.ts';
import { beCounted, counts } from '../counted.ts';
import {
  type ApacheServer,
  findZooKeepers,
  fourLetterWord,
  freePort,
  startApache,
} from './zookeeper.ts';

const { found } = await findZooKeepers();
const peer = found.find(({ version }) => version.startsWith('3.9'));

let apache: ApacheServer;
let ours: RunningServer;
let admin: AdminServer;
let apacheAdminPort: number;
const clients: Client[] = [];

beforeAll(async () => {
  if (peer === undefined) return;
  apacheAdminPort = await freePort();
  apache = await startApache(peer, {
    config: {
      ...{ 'admin.enableServer': 'true', 'admin.serverPort': String(apacheAdminPort) },
      enforceQuota: 'true',
    },
  });
  ours = await startServer({
    ...{ port: 0, inMemory: true, fourLetterWords: '*', enforceQuota: true },
  });
  admin = await startAdminServer(ours.facts, { port: 0 });
  for (const { address } of [apache, ours]) {
    const client = await connect(address, { sessionTimeoutMs: 30_000 });
    clients.push(client);
    await client.create('/a', 'x');
    await client.create('/a/e', '', { mode: 'ephemeral' });
    // Enough txns for `hash`, which tells of every 128th, to have something to tell.
    await client.create('/b');
    await Promise.all(Array.from({ length: 300 }, () => client.set('/b', 'y')));
    await client.exists('/a', { watch: () => {} });
    await client.children('/a');
    await client.create('/zookeeper/quota/a');
    await client.create(
      '/zookeeper/quota/a/zookeeper_limits',
      'count=1,bytes=100=;byteHardLimit=-1;countHardLimit=2',
    );
    await client.create('/zookeeper/quota/a/zookeeper_stats', 'count=2,bytes=1');
    await expect(client.create('/a/more')).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
  }
});

afterAll(async () => {
  for (const client of clients) await client.close();
  await admin?.close();
  await ours?.close();
  await apache?.[Symbol.asyncDispose]();
});

/** Numbers, ids, dates, versions and folders say nothing about the format. */
function shape(text: string): string {
  return text
    .replace(/3\.9\.5-[^\n"]*/g, 'VERSION')
    .replace(/(dataDir|dataLogDir)=.*/g, '$1=DIR')
    .replace(/\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}/g, 'DATE')
    .replace(/0x[0-9a-f]+/g, 'HEX')
    .replace(/^[0-9a-f]+: -?\d+$/gm, 'ZXID: DIGEST')
    .replace(/-?\d+\.\d+(?!\.)/g, 'DOUBLE')
    .replace(/-?\b\d+\b/g, 'N');
}

async function both(word: string): Promise<[theirs: string, ours: string]> {
  return [
    shape(await fourLetterWord(apache.port, word)),
    shape(await fourLetterWord(ours.port, word)),
  ];
}

/** Links stand in no order there. */
const sorted = (text: string) => text.split('\n').sort().join('\n');

// Before srst, which sets Apache's counters to 0.
test.skipIf(peer === undefined)('quotas are summed up as Apache sums them', async () => {
  const quotas = (text: string) =>
    text
      .split('\n')
      .filter((line) => line.includes('quota_'))
      .sort();

  const theirs = quotas(await fourLetterWord(apache.port, 'mntr'));

  expect(theirs).toHaveLength(5);
  expect(quotas(await fourLetterWord(ours.port, 'mntr'))).toEqual(theirs);
});

const words = ['conf', 'cons', 'dirs', 'gtmk', 'hash', 'isro', 'ruok', 'srvr', 'stat', 'stmk'];
const more = ['wchc', 'wchp', 'wchs', 'srst', 'crst'];

for (const word of [...words, ...more]) {
  test.skipIf(peer === undefined)(`${word} reads as Apache's does`, async () => {
    const [theirs, own] = await both(word);

    const hasLinks = word === 'cons' || word === 'stat';
    if (word === 'hash') expect(theirs).toBe('ZXID: DIGEST\nZXID: DIGEST\n');
    expect(hasLinks ? sorted(own) : own).toBe(hasLinks ? sorted(theirs) : theirs);
  });
}

test.skipIf(peer === undefined)(
  "dump reads as Apache's does, but for links and empty buckets",
  async () => {
    const sessionPart = (text: string) =>
      text
        .slice(0, text.indexOf('Connections dump:'))
        .replace(/^N expire at DATE:\n(?!\t)/gm, '')
        .replace(/\(N\)\/\(N\)/, 'SETS');

    const [theirs, own] = await both('dump');

    expect(sessionPart(own)).toBe(sessionPart(theirs));
    expect(own).toMatch(/^Connections dump:\nConnections Sets \(N\)\/\(N\):\n/m);
  },
);

test.skipIf(peer === undefined)('a link that has asked for nothing yet shows so', async () => {
  const shown = async (port: number, adminPort: number) => {
    const first = await RawClient.connect(port);
    const { sessionId, passwd } = first;
    const link = await RawClient.connect(port, { sessionId, passwd });
    const id = `0x${sessionId.toString(16)}`;
    const line = (await fourLetterWord(port, 'cons')).split('\n').find((each) => each.includes(id));
    const told = await (await fetch(`http://127.0.0.1:${adminPort}/commands/connections`)).text();
    link.close();
    // Not as JSON: a session's id has more digits than a number.
    const fields = told.slice(told.indexOf(`"session_id":${sessionId},`)).split(',', 7);
    return { line: shape(line!), fields: fields.slice(1).map(shape) };
  };

  const theirs = await shown(apache.port, apacheAdminPort);

  expect(await shown(ours.port, admin.port)).toEqual(theirs);
});

test.skipIf(peer === undefined)('mntr has every metric of Apache, or says why not', async () => {
  const names = (text: string) =>
    text
      .split('\n')
      .map((line) => line.split('\t')[0]!.replace(/^zk_/, ''))
      .filter((name) => name !== '');
  const theirs = names(await fourLetterWord(apache.port, 'mntr'));
  const own = new Set(names(await fourLetterWord(ours.port, 'mntr')));
  const excused = new Set(Object.values(unmeasured).flat());
  const base = (name: string) =>
    name
      .replace(/^(avg|min|max|cnt|sum|p50|p95|p99|p999)_/, '')
      .replace(/^.*_((read|write)_per_namespace)$/, '$1');

  const missing = theirs.filter(
    (name) => !own.has(name) && !excused.has(base(name)) && !excused.has(name),
  );

  expect(theirs.length).toBeGreaterThan(200);
  expect(missing).toEqual([]);
});

test.skipIf(peer === undefined)('what clients do is counted as Apache counts it', async () => {
  const adminPort = await freePort();
  await using server = await startApache(peer!, {
    config: { 'admin.enableServer': 'true', 'admin.serverPort': String(adminPort) },
  });
  const asked = async () => {
    const answer = await fetch(`http://127.0.0.1:${adminPort}/commands/monitor`);
    return (await answer.json()) as Record<string, number>;
  };
  const before = await asked();

  await beCounted(server.port);

  await expect
    .poll(async () => {
      const after = await asked();
      return Object.fromEntries(
        Object.keys(counts).map((name) => [name, after[name]! - before[name]!]),
      );
    })
    .toEqual(counts);
});

test.skipIf(peer === undefined)('no metric is excused that is shown', () => {
  const shown = new Set(metricsOf(ours.facts).map(({ name }) => name));

  expect(
    Object.values(unmeasured)
      .flat()
      .filter((name) => shown.has(name)),
  ).toEqual([]);
});

/** All names in it, with those of what stands inside. */
function fields(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : fields(value[0], `${at}[]`);
  if (value === null || typeof value !== 'object') return [at];
  return Object.entries(value).flatMap(([name, each]) =>
    fields(each, `${at}.${/^-?\d+$|^\//.test(name) ? '*' : name}`),
  );
}

// environment and system_properties are Java's own; monitor is compared above.
const commands = [
  ...['configuration', 'connections', 'dirs', 'dump', 'get_trace_mask', 'hash', 'is_read_only'],
  ...['initial_configuration', 'last_snapshot', 'leader', 'observers', 'ruok', 'server_stats'],
  ...['set_trace_mask', 'stats', 'voting_view', 'watch_summary', 'watches', 'watches_by_path'],
  ...['zabstate', 'observer_connection_stat_reset', 'snapshot', 'restore', 'nonsense'],
];

for (const command of commands) {
  test.skipIf(peer === undefined)(`/commands/${command} has the fields of Apache's`, async () => {
    const ask = async (port: number) => {
      const answer = await fetch(`http://127.0.0.1:${port}/commands/${command}`);
      const type = answer.headers.get('content-type');
      return {
        status: answer.status,
        type,
        fields: [...new Set(fields(await answer.json()))].sort(),
      };
    };

    expect(await ask(admin.port)).toEqual(await ask(apacheAdminPort));
  });
}

test.skipIf(peer === undefined)('the list of commands is the same', async () => {
  const ask = async (port: number) => (await fetch(`http://127.0.0.1:${port}/commands`)).text();

  expect(await ask(admin.port)).toBe((await ask(apacheAdminPort)).replaceAll('\r\n', '\n'));
});

// Last: it ends the sessions that all the others look at.
test.skipIf(peer === undefined)('a snapshot of either is restored by the other', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'drover-surface-'));
  const headers = { authorization: 'digest anybody:password' }; // the ACL of the root is open
  const fetched = async (port: number) => {
    const answer = await fetch(`http://127.0.0.1:${port}/commands/snapshot`, { headers });
    expect(answer.status).toBe(200);
    return new Uint8Array(await answer.arrayBuffer());
  };
  const brought = async (port: number, body: Uint8Array<ArrayBuffer>) => {
    const at = `http://127.0.0.1:${port}/commands/restore`;
    const answer = await fetch(at, { method: 'POST', headers, body });
    return { status: answer.status, ...((await answer.json()) as { last_zxid: number }) };
  };
  try {
    await using server = await startServer({ port: 0, dataDir });
    const desk = await startAdminServer(server.facts, {
      ...{ port: 0, snapshotEnabled: true, restoreEnabled: true },
    });
    const mine = await connect(server.address);
    await mine.create('/ours', 'from here');
    const ofOurs = await fetched(desk.port);
    const ofTheirs = await fetched(apacheAdminPort);

    const here = await brought(desk.port, ofTheirs);
    expect(here).toMatchObject({ status: 200, command: 'restore', error: null });
    const reader = await connect(server.address);
    expect(String((await reader.get('/b')).data)).toBe('y');
    expect(await reader.exists('/ours')).toBeNull();
    await reader.close();
    const there = await brought(apacheAdminPort, ofOurs);

    expect(Object.keys(there).sort()).toEqual(Object.keys(here).sort());
    expect(there.status).toBe(200);
    const theirs = await connect(apache.address);
    expect(String((await theirs.get('/ours')).data)).toBe('from here');
    await theirs.close();
    await mine.close();
    await desk.close();
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
