/**
 * Records the golden bytes of test/golden anew: `npx tsx test/golden/record/record.ts [java|c|raw|files]…`.
 *
 * Out: java-3.9.json, c-3.8.json, raw-3.9.json, raw-3.8.json and files/. Needs Java; for the C client also a
 * compiler and, where it may, installs libzookeeper-mt-dev. Session ids, times and zxids differ from one
 * recording to the next; names and order do not.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type ApacheOptions,
  findZooKeepers,
  startApache,
  startEnsemble,
  type ZooKeeperPeer,
} from '../../peers/zookeeper.ts';
import { run } from '../../peers/zookeeper-fetch.ts';
import { recordFiles } from './files.ts';
import { runRecorded } from './program.ts';
import { recordRaw, recordRawReadOnly } from './raw.ts';
import { type Entry, Recorder } from './recorder.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
const golden = join(here, '..');
const scratch = mkdtempSync(join(tmpdir(), 'drover-golden-'));

const javaScenarios: Record<string, ApacheOptions> = {
  standalone: {},
  'extended-types-off': { jvm: ['-Dzookeeper.extendedTypesEnabled=false'] },
  quota: { config: { enforceQuota: 'true' } },
  sasl: { sasl: { users: { ann: 'secret' } } },
  'sasl-required': {
    sasl: { users: { ann: 'secret' } },
    config: { sessionRequireClientSASLAuth: 'true' },
  },
  'reconfig-enabled': { config: { reconfigEnabled: 'true' } },
};

const parts = {
  async java(apache: ZooKeeperPeer): Promise<void> {
    const entries: Entry[] = [];
    for (const [scenario, options] of Object.entries(javaScenarios)) {
      await using server = await startApache(apache, options);
      entries.push(...(await recordJava(apache, scenario, server.port)));
    }
    {
      await using ensemble = await startEnsemble(apache);
      const leader = ensemble.servers[await ensemble.leader()]!;
      entries.push(...(await recordJava(apache, 'ensemble', leader.port)));
    }
    // Without local sessions a read-only server lets nobody in: see 'read-only' in raw.ts.
    await withReadOnly(apache, { localSessionsEnabled: 'true' }, async (port) => {
      entries.push(...(await recordJava(apache, 'read-only', port)));
    });
    write('java-3.9.json', entries);
  },
  async c(_: ZooKeeperPeer, debian: ZooKeeperPeer): Promise<void> {
    const program = join(scratch, 'record');
    await buildC(program);
    await using server = await startApache(debian);
    await using recorder = await Recorder.start(server.port);
    console.error('recording the C client');
    await runRecorded(program, [`127.0.0.1:${recorder.port}`, server.address], recorder);
    write('c-3.8.json', recorder.entries);
  },
  async raw(apache: ZooKeeperPeer, debian: ZooKeeperPeer): Promise<void> {
    for (const [file, peer] of [
      ['raw-3.9.json', apache],
      ['raw-3.8.json', debian],
    ] as const) {
      const entries: Entry[] = [];
      console.error(`recording raw bytes: ${peer.name}`);
      {
        await using server = await startApache(peer);
        entries.push(...(await recordRaw(server.port)));
      }
      await withReadOnly(peer, {}, async (port) => {
        entries.push(...(await recordRawReadOnly(port)));
      });
      write(file, entries);
    }
  },
  async files(apache: ZooKeeperPeer, debian: ZooKeeperPeer): Promise<void> {
    console.error('recording files');
    await recordFiles(apache, 'apache-3.9', scratch, ['gzip', 'snappy']);
    await recordFiles(debian, 'debian-3.8', scratch, []);
  },
};

const { found, missing } = await findZooKeepers(console.error);
for (const { name, how } of missing) console.error(`${name} is missing. ${how}`);
const apache = found.find(({ name }) => name.startsWith('apache-'));
const debian = found.find(({ name }) => name.startsWith('debian-'));
if (!apache || !debian) process.exit(1);

const wanted = process.argv.slice(2);
try {
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length === 0 || wanted.includes(name)) await part(apache, debian);
  }
} finally {
  rmSync(scratch, { recursive: true });
}

/** A server whose two fellows are gone: it may answer reads by itself. */
async function withReadOnly(
  peer: ZooKeeperPeer,
  config: Record<string, string>,
  use: (port: number) => Promise<void>,
): Promise<void> {
  const options = { jvm: ['-Dreadonlymode.enabled=true'], config };
  await using ensemble = await startEnsemble(peer, 3, options);
  await ensemble.kill(0);
  await ensemble.kill(1);
  const last = ensemble.servers[2]!;
  await last.untilReady(async () => (await last.mode()) === 'read-only');
  await use(last.port);
}

async function recordJava(peer: ZooKeeperPeer, scenario: string, port: number): Promise<Entry[]> {
  await using recorder = await Recorder.start(port);
  const addresses = [`127.0.0.1:${recorder.port}`, `127.0.0.1:${port}`];
  const flags = [
    '-Xshare:auto',
    '-XX:TieredStopAtLevel=1',
    ...(scenario === 'sasl' ? saslFlags() : []),
  ];
  const log = '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn';
  const program = join(here, 'Record.java');
  const args = [...flags, log, '-cp', peer.classPath, program, scenario, ...addresses];
  console.error(`recording the Java client: ${scenario}`);
  await runRecorded('java', args, recorder);
  return recorder.entries;
}

async function buildC(program: string): Promise<void> {
  if (!existsSync('/usr/include/zookeeper/zookeeper.h')) {
    await run('apt-get', ['install', '-y', '--no-install-recommends', 'libzookeeper-mt-dev']);
  }
  const source = join(here, 'record.c');
  await run('cc', ['-DTHREADED', '-o', program, source, '-lzookeeper_mt', '-lpthread']);
}

function saslFlags(): string[] {
  const module = 'org.apache.zookeeper.server.auth.DigestLoginModule';
  const file = join(scratch, 'client-jaas.conf');
  writeFileSync(file, `Client {\n  ${module} required username="ann" password="secret";\n};\n`);
  // The client is in "FIPS mode" unless told otherwise, and then has no DIGEST-MD5.
  return [`-Djava.security.auth.login.config=${file}`, '-Dzookeeper.fips-mode=false'];
}

/** One entry to a line, so that a diff shows which changed. */
function write(file: string, entries: Entry[]): void {
  const lines = entries.map(withUniqueName()).map((entry) => `  ${JSON.stringify(entry)}`);
  writeFileSync(join(golden, file), `[\n${lines.join(',\n')}\n]\n`);
  console.error(`${file}: ${entries.length} entries`);
}

/** A step may take several requests, or cause several events; the second of a kind is named `… #2`. */
function withUniqueName(): (entry: Entry) => Entry {
  const counts = new Map<string, number>();
  return (entry) => {
    const kind = 'op' in entry ? entry.op : 'event' in entry ? 'event' : 'connect';
    const key = `${kind} ${entry.name}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count === 1 ? entry : { ...entry, name: `${entry.name} #${count}` };
  };
}
