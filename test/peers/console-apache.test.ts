/** What the console learns from real Apache servers: by four-letter words, by the AdminServer, or not. */
import { describe, expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
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
    await client.create('/here', { mode: 'ephemeral' });
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
});
