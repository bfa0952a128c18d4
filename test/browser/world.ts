/**
 * A world for the page to show: a server of our own in which everything lives that the console knows of,
 * and a console in front of it. The page is built once for all tests, into a temporary folder.
 *
 * In: what the test wants of it. Out: the console's address and a client to change things with.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { align } from '../../src/align/index.ts';
import type { Context } from '../../src/cli/command.ts';
import { commands } from '../../src/cli/commands.ts';
import { type OpenConsole, openConsole } from '../../src/cli/console.ts';
import { ConsoleDemo } from '../../src/cli/console-demo.ts';
import { openServerConsole } from '../../src/cli/console-server.ts';
import { Cast } from '../../src/cli/demo-kafka-cast.ts';
import { startPassingServer } from '../../src/cli/passing-server.ts';
import { type Client, connect } from '../../src/client/index.ts';
import type { ConsoleOptions, RunningConsole } from '../../src/console/index.ts';
import { NdjsonSource } from '../../src/kafka/index.ts';
import { Election, Lock, Semaphore, SimpleQueue } from '../../src/recipes/index.ts';
import { type RunningServer, startServer } from '../../src/server/index.ts';

const root = resolve(import.meta.dirname, '../..');

/** Builds the page as `npm run build` does, into a folder of its own. */
export async function buildPage(): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-web-'));
  const vite = join(root, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', 'web', '--outDir', folder, '--emptyOutDir', '--logLevel', 'warn'];
  await promisify(execFile)(process.execPath, args, { cwd: root });
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

export interface World {
  readonly client: Client;
  readonly server: RunningServer;
  readonly console: RunningConsole;
  /** Where the ends of partitions are to be had, once there are any: lag is known by them. */
  readonly lag: Lag;
  readonly url: (path: string) => string;
  close(): Promise<void>;
}

export interface Lag {
  ends?: NdjsonSource;
  /** Who plays the brokers, for stories in which one goes. */
  cast?: Cast;
}

export interface WorldOptions {
  /** The tree is empty, and the page may fill it. */
  readonly demo?: boolean;
  readonly pageFolder: string;
  readonly console?: Partial<ConsoleOptions>;
  /** As the command line would open it: contexts and where they are saved. */
  readonly open?: Partial<Omit<OpenConsole, 'options'>>;
}

type Ending = () => Promise<void>;

export async function startWorld(options: WorldOptions): Promise<World> {
  const server = await startPassingServer(0);
  const client = await connect(server.address);
  const lag: Lag = {};
  const demo = options.demo ? new ConsoleDemo(server.address, () => {}) : null;
  const running = await consoleOf(server.address, {
    ...options,
    console: {
      offsets: () => demo?.ends ?? lag.ends,
      ...(demo && { demo: () => demo.begin() }),
      ...options.console,
    },
  });
  return {
    client,
    server,
    console: running,
    lag,
    url: (path) => new URL(path, running.url).href,
    close: async () => {
      await demo?.close();
      await running.close();
      await client.close();
      await server.close();
    },
  };
}

/** A server with its console in one process, as `drover serve` has it: it tells more than any other. */
export async function startOwnWorld(options: {
  readonly pageFolder: string;
  readonly dataDir?: string;
  readonly port?: number;
}): Promise<Omit<World, 'lag'>> {
  const { pageFolder, dataDir, port = 0 } = options;
  const server = await startServer({
    port,
    ...(dataDir === undefined ? { inMemory: true } : { dataDir }),
    extendedTypesEnabled: true,
    limits: { connectionsPerAddressMax: 0 },
  });
  const context = { commands, environment: {} } as unknown as Context;
  const say = () => {};
  const running = await openServerConsole(context, server, {
    port: 0,
    write: true,
    pageFolder,
    say,
  });
  const client = await connect(server.address);
  return {
    client,
    server,
    console: running,
    url: (path) => new URL(path, running.url).href,
    close: async () => {
      await client.close();
      await running.close();
      await server.close();
    },
  };
}

export async function consoleOf(
  servers: string,
  { pageFolder, console: more, open }: WorldOptions,
): Promise<RunningConsole> {
  return await openConsole({
    target: {
      servers,
      origin: '--server',
      readOnly: false,
      client: { frameBytesMax: 64 * 1024 * 1024 },
      dataBytesMax: 1_048_575,
    },
    commands,
    environment: {},
    say: (sentence) => {
      if (/^console: \w+Error|\n {4}at /.test(sentence)) console.error(sentence);
    },
    ...open,
    options: { port: 0, pageFolder, ...more },
  });
}

/** What a browser or a reader must never take for anything but text. */
export const hostile = [
  '<img src=x onerror=alert(1)>',
  '"><script>alert(1)<',
  "javascript:alert(1)'",
  '\u202egnp.exe',
  '__proto__',
  '{{7*7}}',
] as const;

/** Plain nodes of all kinds, and names and data that want to be more than text. */
export async function plantNodes(client: Client): Promise<void> {
  const put = (path: string, data: string | Buffer = '') => client.create(path, data);
  await put('/app');
  await put('/app/config', JSON.stringify({ retries: 3, hosts: ['a', 'b'], tls: true }, null, 2));
  await put('/app/motd', 'be kind\nto the herd\n');
  await put('/app/blob', Buffer.from([0, 1, 2, 3, 255, 254, 10, 65, 66]));
  await put('/app/zipped', gzipSync(JSON.stringify({ packed: true })));
  await put('/app/empty');
  await client.create('/app/alive', 'me', { mode: 'ephemeral' });
  await put('/hostile', '<script>alert(1)</script><svg onload=alert(1)>');
  for (const name of hostile) await put(`/hostile/${name.replaceAll('/', '_')}`, name);
}

/** Locks, an election, a semaphore and a queue, with holders and waiters. */
export async function plantRecipes(address: string): Promise<Ending> {
  const clients = await Promise.all([1, 2, 3].map(() => connect(address)));
  const end = new AbortController();
  const [ann, bob, cid] = clients as [Client, Client, Client];
  const options = { signal: end.signal };
  await new Lock(ann, '/locks/billing', { data: 'worker-a' }).acquire();
  await new Lock(bob, '/locks/shipping', { data: 'worker-b' }).acquire();
  const waits = [
    new Lock(bob, '/locks/billing', { data: 'worker-b' }).acquire(options),
    new Lock(cid, '/locks/billing', { data: 'worker-c' }).acquire(options),
    new Lock(ann, '/locks/shipping', { data: 'worker-a' }).acquire(options),
  ];
  for (const wait of waits) wait.catch(() => {}); // they wait until the world ends
  await new Semaphore(ann, '/semaphores/import', { limit: 2 }).acquire();
  const election = new Election(bob, '/leaders/scheduler', { id: 'host-b' });
  const stand = election.lead(() => new Promise(() => {}), options);
  stand.catch(() => {}); // as above
  const queue = new SimpleQueue(cid, '/queues/mail');
  for (let item = 0; item < 7; item += 1) await queue.put(`mail ${item}`);
  return async () => {
    end.abort();
    await Promise.all(clients.map((client) => client.close()));
  };
}

/** Three brokers, two topics, two groups, and records that come. */
export async function plantKafka(address: string, lag: Lag = {}): Promise<Ending> {
  const cast = await Cast.gather(address, () => {});
  for (const id of [1, 2, 3]) await cast.addBroker(id, { autoBalance: false });
  await cast.createTopics();
  await cast.startProducing();
  const work = { topics: ['orders'], mode: 'classic', workMs: 5 } as const;
  await cast.addMember('billing_a', { group: 'billing', ...work });
  await cast.addMember('billing_b', { group: 'billing', ...work });
  await cast.addMember('audit_a', { ...work, group: 'audit', topics: ['orders', 'payments'] });
  const ends = new NdjsonSource({ directory: cast.directory });
  lag.ends = ends;
  lag.cast = cast;
  return async () => {
    delete lag.ends;
    delete lag.cast;
    await ends.close();
    await cast.close();
  };
}

const startMs = Date.UTC(2026, 0, 1, 12);

/** A replay of two topics in step, slow enough to be watched. */
export async function plantReplay(address: string): Promise<Ending> {
  const directory = await mkdtemp(join(tmpdir(), 'drover-replay-'));
  await mkdir(directory, { recursive: true });
  const sizes = {
    'clicks-0': 6_000,
    'clicks-1': 900,
    'orders-7': 0,
    'orders-0': 400,
    'orders-1': 1_500,
  };
  for (const [name, size] of Object.entries(sizes)) {
    const lines = Array.from({ length: size }, (_, at) =>
      JSON.stringify({ timestamp: startMs + Math.floor((at / size) * 7_200_000), value: at }),
    );
    await writeFile(join(directory, `${name}.ndjson`), `${lines.join('\n')}\n`);
  }
  const members = await Promise.all(
    ['ann', 'bob'].map(async (consumerId) => {
      const client = await connect(address);
      const source = new NdjsonSource({ directory, pollMs: 50 });
      const aligner = align(client, {
        group: 'replay-jan',
        source,
        topics: { clicks: 2, orders: 2 },
        mode: { period: '5m', lookAhead: 1 },
        idleAfter: 2_000,
        batchRecordsMax: 25,
        consumerId,
      });
      const loop = (async () => {
        for await (const batch of aligner) {
          await new Promise((done) => setTimeout(done, batch.records.length * 14));
          await batch.done();
        }
      })().catch(() => {}); // ended by the end of the world
      return { client, source, aligner, loop };
    }),
  );
  return async () => {
    for (const { aligner, loop, source, client } of members) {
      await aligner.close();
      await loop;
      await source.close();
      await client.close();
    }
    await rm(directory, { recursive: true, force: true });
  };
}
