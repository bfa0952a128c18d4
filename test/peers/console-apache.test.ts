/** What the console learns from real Apache servers: by four-letter words, by the AdminServer, or not. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { Election } from '../../src/recipes/index.ts';
import { runInProcess } from '../cli-run.ts';
import { consoleAt } from '../console-run.ts';
import { freePort } from './free-port.ts';
import { findZooKeepers, startApache } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

describe.each(found)('$name', { timeout: 120_000 }, (peer) => {
  test('what its whitelist keeps back is named, and the AdminServer tells it where it is asked', async () => {
    const port = await freePort();
    const apache = await startApache(peer, {
      config: {
        '4lw.commands.whitelist': 'srvr',
        'admin.enableServer': 'true',
        'admin.serverPort': String(port),
        'admin.serverAddress': '127.0.0.1',
      },
    });
    const client = await connect(apache.address);
    await client.create('/here', '', { mode: 'ephemeral' });
    await client.addWatch('/watched', 'persistent', () => {});
    const session = `0x${client.sessionId!.toString(16)}`;
    const words = await consoleAt(apache.address);
    const admin = await consoleAt(apache.address, {}, { adminPorts: [port] });
    try {
      const told = (await words.get('/api/sessions')).json;
      expect(told.rows).toEqual([]);
      expect(told.unknown).toContain(
        `${apache.address}: cons is not in its 4lw.commands.whitelist`,
      );
      const [brief] = (await words.get('/api/overview')).json.servers;
      expect(brief).toMatchObject({ role: 'standalone', isBrief: true, snapshotMs: null });

      // Debian's 3.8.0 comes without what its AdminServer is made of.
      const hasAdmin = await fetch(`http://127.0.0.1:${port}/commands/ruok`).then(
        ({ ok }) => ok,
        () => false,
      );
      const { rows, unknown } = (await admin.get('/api/sessions')).json;
      if (!hasAdmin) {
        expect(unknown[0]).toContain('AdminServer: nobody listens there');
        return;
      }
      const row = rows.find((one: { session: string }) => one.session === session);
      expect(row).toMatchObject({ ephemerals: 1, watches: 1, timeoutMs: 30_000 });
      expect(row.sinceMs).toBeGreaterThan(Date.now() - 120_000);
      expect(unknown).toEqual([]);
      const watches = (await admin.get('/api/watches')).json;
      expect(watches.rows).toContainEqual(
        expect.objectContaining({ path: '/watched', sessions: [session] }),
      );
      const one = (await admin.get(`/api/sessions/one?name=${session}`)).json;
      expect([one.ephemerals, one.watches]).toEqual([['/here'], ['/watched']]);
      // The first look may have been before the AdminServer was up.
      const overview = async () => (await admin.get('/api/overview')).json.servers[0];
      await expect
        .poll(overview, { timeout: 60_000 })
        .toMatchObject({ isBrief: false, ephemerals: 1, role: 'standalone' });
      const server = await overview();
      expect(server.p99Ms).toEqual(expect.any(Number));
      if (/^3\.9/.test(server.version)) {
        expect(server.snapshotMs).toBeGreaterThan(Date.now() - 120_000);
      }
    } finally {
      await admin[Symbol.asyncDispose]();
      await words[Symbol.asyncDispose]();
      await client.close();
      await apache[Symbol.asyncDispose]();
    }
  });

  test('what command lines wrote, an election and its terms are shown as on ours, and taken back', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'drover-apache-'));
    const environment = { XDG_STATE_HOME: folder };
    const apache = await startApache(peer, { config: { '4lw.commands.whitelist': '*' } });
    const client = await connect(apache.address);
    const zk = await consoleAt(apache.address, {}, { environment });
    try {
      const drover = (...argv: string[]) => runInProcess(apache.address, argv, { environment });
      await client.create('/app/a', 'one', { parents: true });
      await client.create('/leader');
      const ids = async () => {
        const { terms } = (await zk.get('/api/recipes/terms?path=/leader')).json;
        return terms.map(({ id }: { id: string }) => id);
      };
      expect(await ids()).toEqual([]);
      for (const id of ['ann', 'bob']) {
        // Until it was seen: a term may be shorter than a question and its answer.
        await new Election(client, '/leader', { id }).lead(async () => {
          await expect.poll(async () => (await ids())[0]).toBe(id);
        });
      }
      await drover('set', '/app/a', 'two');
      await drover('deleteall', '/app');

      const { entries } = (await zk.get('/api/audit')).json;
      expect(entries).toMatchObject([
        { note: 'drover deleteall', count: 2, undo: 'possible' },
        { note: 'drover set', before: { version: 0 }, after: { version: 1 }, undo: 'possible' },
      ]);
      for (const { id } of entries.slice(0, 1)) {
        expect((await zk.post('/api/audit/undo', { id })).status).toBe(200);
      }
      expect((await client.get('/app/a')).data?.toString()).toBe('two');
      // Made anew it is another node: what was set before can't be taken back any more.
      expect((await zk.post('/api/audit/undo', { id: entries[1].id })).status).toBe(409);
      await expect.poll(ids).toEqual(['bob', 'ann']);
    } finally {
      await zk[Symbol.asyncDispose]();
      await client.close();
      await apache[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
