/**
 * From one embedded server to an ensemble of three Apache servers, as `drover ensemble import` does it:
 * every node, ACL, Stat and session is there, also after the leader was killed.
 */

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LocalEnsemble, localMembers } from '../../src/cli/ensemble.ts';
import { importData } from '../../src/cli/ensemble-import.ts';
import { type ClientOptions, connect } from '../../src/client/index.ts';
import { startAdminServer, startServer } from '../../src/server/index.ts';
import { runInProcess } from '../cli-run.ts';
import { fill, picture } from './moving-data.ts';
import { findZooKeepers, freePort, startApache, type ZooKeeperPeer } from './zookeeper.ts';

const { found } = await findZooKeepers();
const auth = { auth: [{ scheme: 'digest', auth: 'ann:secret' }] } satisfies ClientOptions;
let dir: string;
let ensembles: LocalEnsemble[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-move-'));
  ensembles = [];
});

afterEach(async () => {
  await Promise.all(ensembles.flatMap((e) => e.members.map(({ id }) => e.process(id).kill())));
  rmSync(dir, { recursive: true, force: true });
});

async function newEnsemble(peer: ZooKeeperPeer, size = 3): Promise<LocalEnsemble> {
  const ensemble = await LocalEnsemble.create({
    dir: join(dir, 'ensemble'),
    peer,
    members: await localMembers(size, { client: 0, quorum: 0, election: 0 }),
    settings: { tickTime: '500' },
    heapMiB: 256,
  });
  ensembles.push(ensemble);
  return ensemble;
}

for (const peer of found) {
  test(`an embedded server becomes three of ${peer.name}, and outlives its leader`, async () => {
    const dataDir = join(dir, 'embedded');
    const ours = await startServer({
      port: 0,
      dataDir,
      extendedTypesEnabled: true,
      snapCount: 100,
      sessionPasswords: 'apache', // the session moves along
    });
    const zk = await connect(ours.address, { ...auth, sessionTimeoutMs: 10_000 });
    await fill(zk);
    const before = await picture(zk);
    const identity = zk.identity!;
    await ours.close();
    const source = readdirSync(join(dataDir, 'version-2')).sort();

    const ensemble = await newEnsemble(peer);
    const { lastZxid, files } = await importData({ dataDir }, ensemble);
    await ensemble.save();
    await ensemble.startAll();
    const there = await connect(ensemble.connectionString, { ...auth, identity });
    const moved = await picture(there);
    const leader = (await ensemble.status()).find(({ mode }) => mode === 'leader')!.member.id;
    await ensemble.process(leader).kill();
    await there.create('/after-the-leader', 'still here').catch(() => {});
    await ensemble.untilServing(2);
    const second = await connect(ensemble.connectionString, auth);
    const newLeader = (await ensemble.status()).find(({ mode }) => mode === 'leader')!.member.id;
    await second.deleteRecursive('/after-the-leader').catch(() => {});
    await there.connected({ timeoutMs: 30_000 });
    const after = await picture(there);
    await Promise.all([zk.close(), there.close(), second.close()]);

    expect(moved).toEqual(before);
    expect(newLeader).not.toBe(leader);
    expect(after.ephemerals).toEqual(before.ephemerals);
    expect(after.sessionId).toBe(identity.sessionId);
    // The root's own Stat has counted the node that came and went; all else is as it was.
    const { '/': _, ...nodes } = after.nodes as Record<string, unknown>;
    const { '/': __, ...expected } = before.nodes as Record<string, unknown>;
    expect(nodes).toEqual(expected);
    expect(Object.keys(nodes).length).toBeGreaterThan(280);
    expect(lastZxid).toBeGreaterThan(300n);
    expect(files).toBeGreaterThan(2);
    expect(readdirSync(join(dataDir, 'version-2')).sort()).toEqual(source);
  });
}

const peer = found[0];

test.skipIf(!peer)('an ensemble is found again, and only its own processes end', async () => {
  const ensemble = await newEnsemble(peer!);
  await ensemble.save();
  await ensemble.startAll();

  const again = await LocalEnsemble.open(ensemble.dir);
  const running = await again.status();
  const pidFile = join(ensemble.folders(1).home, 'zookeeper.pid');
  const { mark } = JSON.parse(readFileSync(pidFile, 'utf8'));
  // Our own process, under the mark of a server that is gone: it must not be taken for it.
  writeFileSync(pidFile, JSON.stringify({ pid: process.pid, mark }));
  const wasKilled = await again.process(1).kill();
  const isGone = !existsSync(pidFile);
  writeFileSync(pidFile, JSON.stringify({ pid: running[0]!.pid, mark }));
  const ended = await again.stopAll();

  expect(running.map(({ mode }) => mode).sort()).toEqual(['follower', 'follower', 'leader']);
  expect(wasKilled).toBe(false);
  expect(isGone).toBe(true);
  expect(ended).toBe(3);
  expect((await again.status()).every(({ pid }) => pid === undefined)).toBe(true);
});

const release = found.find(({ name }) => name.startsWith('apache-'));

test.skipIf(!release)(
  'an ensemble is started, looked at, broken, mended and ended by the command line',
  async () => {
    const home = join(dir, 'home');
    mkdirSync(home);
    symlinkSync(dirname(release!.classPath), join(home, 'lib'));
    const environment = { ZOOKEEPER_HOME: home, PATH: process.env.PATH ?? '' };
    const place = ['--dir', join(dir, 'ensemble')];
    const run = (...argv: string[]) =>
      runInProcess('127.0.0.1:1', ['ensemble', ...argv, ...place], { environment });
    const small = ['--port', '0', '--heap', '256', '--set', 'tickTime=500'];

    const up = await run('up', ...small, '--json');
    ensembles.push(await LocalEnsemble.open(join(dir, 'ensemble')));
    const again = await run('up', '--json');
    const other = await run('up', '--size', '5');
    const imported = await run('import', '--from', dir);
    const status = await run('status', '--json');
    const [{ servers, leader }] = up.records;
    const killed = await run('kill', String(leader));
    const twice = await run('kill', String(leader));
    const client = await connect(servers, { connectTimeoutMs: 60_000 });
    await client.create('/while-one-is-down', 'x');
    const without = await run('status');
    const started = await run('start', String(leader));
    const seen = await runInProcess(servers, ['status', '--json']);
    const strange = await run('kill', '9');
    await client.close();
    const down = await run('down', '--json');
    const gone = await run('status');

    expect(up.code).toBe(0);
    expect(up.records[0].zooKeeper).toBe(release!.name);
    expect(again.records[0].servers).toBe(servers);
    expect([other.code, imported.code]).toEqual([2, 2]);
    expect(status.records.map(({ mode }) => mode).sort()).toEqual([
      'follower',
      'follower',
      'leader',
    ]);
    expect([killed.code, twice.code, without.code]).toEqual([0, 1, 0]);
    expect(without.out).toContain('down');
    expect(started.code).toBe(0);
    expect(seen.records.at(-1)).toEqual({ quorum: true, servers: 3 });
    expect(strange.code).toBe(2);
    expect(down.records).toMatchObject([{ ended: 3 }]);
    expect(gone.code).toBe(1);
    expect(readFileSync(join(dir, 'ensemble', 'server-2', 'data', 'myid'), 'utf8')).toBe('2\n');
  },
);

test.skipIf(!peer)(
  'data that is in use, missing or damaged is not taken, and nothing is left behind',
  async () => {
    const dataDir = join(dir, 'embedded');
    const ours = await startServer({ port: 0, dataDir });
    const zk = await connect(ours.address);
    for (let i = 0; i < 20; i++) await zk.create(`/n${i}`, 'x'.repeat(100));
    await zk.close();
    const environment = { PATH: process.env.PATH ?? '', XDG_CACHE_HOME: dir };
    const run = (from: string) =>
      runInProcess(
        '',
        ['ensemble', 'import', '--from', from, '--dir', join(dir, 'ensemble'), '--port', '0'],
        { environment },
      );

    const inUse = await run(dataDir);
    await ours.close();
    const missing = await run(join(dir, 'nothing'));
    const [log] = readdirSync(join(dataDir, 'version-2')).filter((name) => name.startsWith('log.'));
    const bytes = readFileSync(join(dataDir, 'version-2', log!));
    bytes[600] = bytes[600]! ^ 0xff;
    writeFileSync(join(dataDir, 'version-2', log!), bytes);
    const damaged = await run(dataDir);

    expect(inUse).toMatchObject({ code: 4 });
    expect(inUse.err).toContain('stop that server first');
    expect(missing.code).toBe(2);
    expect(damaged.code).toBe(4);
    expect(damaged.err).toContain('damaged');
    expect(LocalEnsemble.isAt(join(dir, 'ensemble'))).toBe(false);
    expect(existsSync(join(dir, 'ensemble', 'server-1'))).toBe(false);
  },
);

test.skipIf(!release)(
  'a backup of an embedded server is restored into Apache, and the other way round',
  async () => {
    const environment = { PATH: process.env.PATH ?? '', DROVER_AUTH: 'digest:ann:secret' };
    const run = (servers: string, ...argv: string[]) =>
      runInProcess(servers, argv, { environment });
    const lasting = (all: Record<string, unknown>) =>
      Object.fromEntries(
        Object.entries(
          all.nodes as Record<
            string,
            { data: string; acl: unknown; stat: { ephemeralOwner: bigint } }
          >,
        )
          .filter(([, { stat }]) => stat.ephemeralOwner === 0n || stat.ephemeralOwner < 0n)
          .map(([path, { data, acl }]) => [path, { data: data ?? '', acl }]),
      );
    await using ours = await startServer({ port: 0, inMemory: true, extendedTypesEnabled: true });
    const zk = await connect(ours.address, auth);
    await fill(zk);
    const before = lasting(await picture(zk));

    await using apache = await startApache(release!, {
      jvm: ['-Dzookeeper.extendedTypesEnabled=true'],
    });
    const out = await run(ours.address, 'backup', join(dir, 'a.json'));
    const over = await run(apache.address, 'restore', join(dir, 'a.json'));
    const there = await connect(apache.address, auth);
    const moved = lasting(await picture(there));
    const back = await run(apache.address, 'backup', join(dir, 'b.json.gz'));
    await using fresh = await startServer({ port: 0, inMemory: true, extendedTypesEnabled: true });
    const home = await run(fresh.address, 'restore', join(dir, 'b.json.gz'));
    const here = await connect(fresh.address, auth);
    const returned = lasting(await picture(here));
    await Promise.all([zk.close(), there.close(), here.close()]);

    expect([out.code, over.code, back.code, home.code]).toEqual([0, 0, 0, 0]);
    expect(moved).toEqual(before);
    expect(returned).toEqual(before);
  },
);

test.skipIf(!release)(
  'a running server gives a snapshot of itself, which another one runs',
  async () => {
    const port = await freePort();
    await using apache = await startApache(release!, {
      config: {
        'admin.enableServer': 'true',
        'admin.serverAddress': '127.0.0.1',
        'admin.serverPort': String(port),
        'admin.snapshot.enabled': 'true',
      },
    });
    const ours = await startServer({ port: 0, dataDir: join(dir, 'ours') });
    const admin = await startAdminServer(ours.facts, { port: 0, snapshotEnabled: true });
    const environment = { DROVER_ADMIN_AUTH: 'digest super:test' };

    for (const [name, address, adminPort] of [
      ['apache', apache.address, port],
      ['ours', ours.address, admin.port],
    ] as const) {
      const zk = await connect(address);
      await zk.create('/kept', name);
      const { stat } = await zk.get('/kept');
      const folder = join(dir, `backup-${name}`);
      const saved = await runInProcess(
        '',
        ['backup', folder, '--admin', `127.0.0.1:${adminPort}`],
        { environment },
      );
      const restored = await runInProcess('', ['restore', folder, '--data', `${folder}-run`], {
        environment,
      });
      const run = await startServer({ port: 0, dataDir: `${folder}-run` });
      const there = await connect(run.address);
      const found = await there.get('/kept');
      await Promise.all([zk.close(), there.close()]);
      await run.close();

      expect([saved.code, saved.err.includes('up to zxid'), restored.code]).toEqual([0, true, 0]);
      expect(found.data?.toString()).toBe(name);
      expect(found.stat.toObject()).toEqual(stat.toObject());
    }
    await admin.close();
    await ours.close();
  },
);
