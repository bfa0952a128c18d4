/** The command line as a person has it: real processes, what they print and how they end. */

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer, connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { connect, digestMd5 } from '../src/client/index.ts';
import { certificates } from './certificates/certificates.ts';

// A process takes long to start where several tests share two cores.
vi.setConfig({ testTimeout: 60_000 });

const root = resolve(import.meta.dirname, '..');
const tsx = import.meta.resolve('tsx');

let folder: string;
const running = new Set<ChildProcess>();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-cli-'));
});

afterEach(async () => {
  for (const child of running) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

class Drover {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  out = '';
  err = '';

  constructor(
    args: readonly string[],
    env: Record<string, string> = {},
    passedOn: readonly number[] = [],
  ) {
    const main = join(root, 'src/cli/main.ts');
    this.child = spawn(process.execPath, ['--import', tsx, main, ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH!, ...env },
      stdio: ['ignore', 'pipe', 'pipe', ...passedOn],
    });
    running.add(this.child);
    this.child.stdout!.on('data', (chunk) => {
      this.out += chunk;
    });
    this.child.stderr!.on('data', (chunk) => {
      this.err += chunk;
    });
    this.ended = once(this.child, 'close').then(([code]) => {
      running.delete(this.child);
      return { code: code as number | null, out: this.out, err: this.err };
    });
  }

  /** What `serve --json` says once it is ready. */
  async ready(): Promise<Record<string, string | number | null>> {
    const line = /^\{.*\}$/m;
    while (!line.test(this.out)) {
      const end = await Promise.race([once(this.child.stdout!, 'data'), this.ended]);
      if (!Array.isArray(end) && !line.test(this.out)) throw new Error(`ended early: ${this.err}`);
    }
    return JSON.parse(line.exec(this.out)![0]);
  }

  async says(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.out + this.err)) {
      await Promise.race([
        once(this.child.stdout!, 'data'),
        once(this.child.stderr!, 'data'),
        this.ended.then(({ err }) => {
          if (!pattern.test(this.out + this.err)) throw new Error(`ended early: ${err}`);
        }),
      ]);
    }
  }
}

const drover = (...args: string[]) => new Drover(args).ended;
const serve = (...args: string[]) => new Drover(['serve', '-p', '0', '--json', ...args]);

test('serve says where it listens, where its data is, which version it is and how to stop it', async () => {
  const server = new Drover(['serve', '-p', '0']);
  await server.says(/ready in \d+ ms; Ctrl-C stops/);
  server.child.kill('SIGTERM');
  const { code, out } = await server.ended;

  expect(out).toMatch(/^drover \d+\.\d+\.\d+, like ZooKeeper 3\.9\.5, standalone\n/);
  expect(out).toMatch(/^ {2}clients {2}127\.0\.0\.1:\d+$/m);
  expect(out).toContain(`data     ${join(folder, 'drover-data')}\n`);
  expect(code).toBe(0);
});

test('what was written before SIGTERM is there after a restart', async () => {
  const first = serve('--data', 'data');
  const one = await connect(String((await first.ready()).address));
  await one.create('/kept', 'x');
  await one.close();
  first.child.kill('SIGTERM');
  expect((await first.ended).code).toBe(0);

  const second = serve('--data', 'data');
  const two = await connect(String((await second.ready()).address));

  expect((await two.get('/kept')).data?.toString()).toBe('x');
  await two.close();
  second.child.kill('SIGINT');
  expect((await second.ended).code).toBe(0);
});

test('a port that is taken, a folder that is not ours, a file in the way: one sentence and a code', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const port = String((taken.address() as { port: number }).port);
  mkdirSync(join(folder, 'home'));
  writeFileSync(join(folder, 'home', 'letter.txt'), '');
  const [inUse, console, admin, metrics, foreign, noFolder, noParent] = await Promise.all([
    drover('serve', '-p', port, '-d', 'data'),
    drover('serve', '-p', '0', '--in-memory', '--console-port', port),
    drover('serve', '-p', '0', '--in-memory', '--admin-port', port),
    drover('serve', '-p', '0', '--in-memory', '--metrics-port', port),
    drover('serve', '-p', '0', '-d', 'home'),
    drover('serve', '-p', '0', '-d', 'home/letter.txt'),
    drover('serve', '-p', '0', '-d', 'home/letter.txt/data'),
  ]);
  taken.close();

  expect(inUse).toMatchObject({
    code: 3,
    err: `drover: 127.0.0.1:${port} is taken by another program; stop that one, or choose another port with --port\n`,
  });
  expect(console).toMatchObject({
    code: 3,
    err: expect.stringMatching(/choose another port for the console with --console-port\n$/),
  });
  expect([admin.code, metrics.code]).toEqual([3, 3]);
  expect(admin.err).toMatch(/choose another port with --admin-port\n$/);
  expect(metrics.err).toMatch(/choose another port with --metrics-port\n$/);
  expect(foreign.code).toBe(4);
  expect(foreign.err).toMatch(/^drover: home holds other things \(letter\.txt\) .*--data.*\n$/);
  expect(noFolder).toMatchObject({
    code: 4,
    err: 'drover: home/letter.txt is no folder; name one with --data\n',
  });
  expect(noParent.code).toBe(4);
  expect(noParent.err).toMatch(/^drover: .* can't be written \(ENOTDIR\).*\n$/);
});

const canMount = spawnSync('unshare', ['-rm', 'true']).status === 0;

test.skipIf(!canMount)('a disk that is full from the start is said to be so', () => {
  const main = join(root, 'src/cli/main.ts');
  const words = ['--import', tsx, main, 'serve', '-p', '0', '-d', 'small/data'];
  const fill =
    'mkdir small && mount -t tmpfs -o size=16k tmpfs small && head -c 16k /dev/zero > small/.fill';

  const { status, stderr } = spawnSync(
    'unshare',
    ['-rm', 'sh', '-c', `${fill}; exec "$@"`, 'sh', process.execPath, ...words],
    { cwd: folder, env: { PATH: process.env.PATH! }, encoding: 'utf8' },
  );

  expect(status).toBe(4);
  expect(stderr).toMatch(
    /^drover: .*snapshot\.0 can't be written \(ENOSPC\); the disk is full: make room/m,
  );
});

test('where nothing is whole to go on from, who salvages is not told to salvage', async () => {
  for (const path of ['/one', '/two']) {
    const server = serve('--data', 'data');
    const client = await connect(String((await server.ready()).address));
    await client.create(path);
    server.child.kill('SIGKILL');
    await client.close();
    await server.ended;
  }
  const files = join(folder, 'data', 'version-2');
  for (const name of ['snapshot.0', 'log.1']) rmSync(join(files, name));

  const [refused, salvaged] = [
    await drover('serve', '-p', '0', '-d', 'data'),
    await drover('serve', '-p', '0', '-d', 'data', '--salvage'),
  ];

  expect([refused.code, salvaged.code]).toEqual([4, 4]);
  expect(refused.err).toContain('go on without what is lost by --salvage');
  expect(salvaged.err).toMatch(/there is nothing whole to go on from: restore a backup\n$/);
});

test('what recovery gave up is said, also by a server that then finds its port taken', async () => {
  const first = serve('--data', 'data');
  const client = await connect(String((await first.ready()).address));
  for (const path of ['/one', '/two', '/three']) await client.create(path);
  first.child.kill('SIGKILL');
  await client.close();
  await first.ended;
  const log = join(folder, 'data', 'version-2', 'log.1');
  const bytes = readFileSync(log);
  bytes[bytes.indexOf('/two')]! ^= 1;
  writeFileSync(log, bytes);
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const port = String((taken.address() as { port: number }).port);

  const { code, err } = await drover('serve', '-p', port, '-d', 'data', '--salvage');
  taken.close();

  expect(code).toBe(3);
  expect(err).toMatch(/"kind":"salvaged"/);
  expect(err).toMatch(/is taken by another program/);
});

test.runIf(existsSync('/proc/self'))(
  'a folder that can not be is refused at once, however deep',
  async () => {
    const [shallow, deep] = await Promise.all([
      drover('serve', '-p', '0', '-d', '/proc/x'),
      drover('serve', '-p', '0', '-d', '/proc/self/x/y/z'),
    ]);

    expect(shallow.code).toBe(4);
    expect(shallow.err).toMatch(/^drover: \/proc\/x can't be written \(ENOENT\).*--data\n$/);
    expect(deep.code).toBe(4);
    expect(deep.err).toMatch(/^drover: \/proc\/self\/x can't be written \(\w+\).*--data\n$/);
  },
  20_000,
);

test('a folder is made with whatever is missing above it', async () => {
  const server = serve('--data', 'a/b/c');
  await server.ready();

  expect(readdirSync(join(folder, 'a/b/c'))).toEqual(['version-2']);
});

test('with datadir.autocreate=false no data directory is made, and one that is there is served', async () => {
  const args = ['--data', 'data', '-Dzookeeper.datadir.autocreate=false'];
  const refused = await drover('serve', '-p', '0', ...args);

  expect(refused).toMatchObject({
    code: 4,
    err: 'drover: data/version-2 is not there, and datadir.autocreate=false; make it, or name another folder with --data\n',
  });
  expect(readdirSync(folder)).toEqual([]);
  mkdirSync(join(folder, 'data', 'version-2'), { recursive: true });
  await serve(...args).ready();
});

test('the folder of the logs may be ready within that of the data, and that within it', async () => {
  mkdirSync(join(folder, 'data', 'log'), { recursive: true });
  mkdirSync(join(folder, 'log', 'deep', 'data'), { recursive: true });
  const within = serve('--data', 'data', '--data-log', 'data/log');
  const around = serve('--data', 'log/deep/data', '--data-log', 'log');
  await Promise.all([within.ready(), around.ready()]);

  mkdirSync(join(folder, 'else', 'logs'), { recursive: true });
  const { code } = await drover('serve', '-p', '0', '--data', 'else', '--data-log', 'else/log');
  expect(code).toBe(4);
});

test('a directory in use by another server is refused', async () => {
  const first = serve('--data', 'data');
  await first.ready();

  const second = await serve('--data', 'data').ended;

  expect(second.code).toBe(4);
  expect(JSON.parse(second.err).error.message).toMatch(/^IN_USE: /);
});

test('a broken zoo.cfg is refused by its line, with the nearest key', async () => {
  writeFileSync(join(folder, 'typo.cfg'), 'tickTime=2000\n\n# port\nclientProt=2181\n');
  writeFileSync(
    join(folder, 'ensemble.cfg'),
    'initLimit=5\nserver.1=a:2888:3888\nserver.2=b:2888:3888\n',
  );
  writeFileSync(join(folder, 'word.cfg'), 'tickTime=soon\n');

  const [typo, ensemble, word, none] = await Promise.all([
    drover('serve', 'typo.cfg'),
    drover('serve', 'ensemble.cfg'),
    drover('serve', 'word.cfg'),
    drover('serve', 'none.cfg'),
  ]);

  expect(typo).toMatchObject({
    code: 2,
    err: 'drover: typo.cfg line 4: there is no key "clientProt"; is clientPort meant?\n',
  });
  expect(ensemble.code).toBe(2);
  expect(ensemble.err).toMatch(/^drover: ensemble\.cfg line 3: server\.2 .*drover ensemble.*\n$/);
  expect(word.err).toBe(
    'drover: word.cfg line 1: tickTime has to be a whole number, and is "soon"\n',
  );
  expect(none.err).toMatch(/^drover: none\.cfg can't be read \(ENOENT\)/);
});

test('what a zoo.cfg holds can neither break a line of what is said nor harm a terminal', async () => {
  const lines = ['ssl.quorum.\\u001b[31mx\\nforged: 1', 'dataDir=da\\u001b[32mta'];
  writeFileSync(join(folder, 'hostile.cfg'), lines.join('\n'));
  const server = new Drover(['serve', 'hostile.cfg', '-p', '0']);
  await server.says(/Ctrl-C stops/);
  server.child.kill('SIGTERM');
  const { out, err } = await server.ended;

  expect(err).toContain('ssl.quorum.\\u001b[31mx\\n… has no effect here\n');
  expect(out).toContain('da\\u001b[32mta\n');
  expect(out + err).not.toContain('\x1b');
});

test('--set and --limit without an = do not say back what may be a password', async () => {
  const [set, limit] = await Promise.all([
    drover('serve', '--set', 'ssl.keyStore.password:canary'),
    drover('serve', '--limit', 'canary'),
  ]);

  expect(set).toMatchObject({
    code: 2,
    err: 'drover: --set wants name=value, with an = between them\n',
  });
  expect(limit.err).toMatch(/^drover: --limit wants name=value/);
});

test('flags win over -D, -D over the environment, that over the file', async () => {
  writeFileSync(
    join(folder, 'zoo.cfg'),
    'clientPort=0\ndataDir=data\nsnapCount=11\ntickTime=1111\nmaxClientCnxns=1\nminSessionTimeout=5001\n',
  );
  const server = new Drover(
    [
      ...['serve', 'zoo.cfg', '--json', '--admin-port', '0'],
      ...['--set', 'tickTime=2222', '-Dzookeeper.tickTime=3333', '-Dzookeeper.maxClientCnxns=4'],
    ],
    { DROVER_MAX_CLIENT_CNXNS: '5', DROVER_MIN_SESSION_TIMEOUT: '6006' },
  );
  const { adminPort } = await server.ready();

  const answer = await fetch(`http://127.0.0.1:${adminPort}/commands/conf`);

  expect(await answer.json()).toMatchObject({
    tick_time: 2222,
    max_client_cnxns: 4,
    min_session_timeout: 6006,
    data_dir: join(folder, 'data', 'version-2'),
  });
});

test('listening beyond this machine needs authentication, or a flag', async () => {
  const refused = await drover('serve', '-p', '0', '-a', '0.0.0.0');
  expect(refused.code).toBe(2);
  expect(refused.err).toMatch(/--insecure-bind\n$/);

  const allowed = serve('--address', '0.0.0.0', '--insecure-bind');
  expect((await allowed.ready()).address).toMatch(/^0\.0\.0\.0:/);
});

test('a named pipe in place of a file is refused by name, and nothing waits for its other end', async () => {
  mkdirSync(join(folder, 'data/version-2'), { recursive: true });
  const pipe = join(folder, 'data/version-2/log.1');
  execFileSync('mkfifo', [pipe, join(folder, 'pipe')]);
  const memory = ['serve', '--in-memory', '-p', '0'];
  const { address } = await new Drover([...memory, '--json']).ready();
  const at = ['--server', String(address)];
  const [serving, dumped, verified, ...named] = await Promise.all([
    drover('serve', '-p', '0', '-d', 'data'),
    drover('log', 'dump', 'data/version-2/log.1'),
    drover('log', 'verify', 'data'),
    drover('serve', 'pipe'),
    drover(...memory, '--users', 'pipe'),
    drover(...memory, '-Djava.security.auth.login.config=pipe'),
    drover(...memory, '--audit', 'pipe'),
    drover(
      ...memory,
      '--set',
      'secureClientPort=0',
      '--set',
      'ssl.keyStore.location=pipe',
      '--set',
      'ssl.clientAuth=none',
    ),
    drover('restore', 'pipe', ...at),
    drover('create', '/a', '--file', 'pipe', ...at),
    drover('console', '--token-file', 'pipe'),
  ]);

  expect(serving.code).toBe(4);
  for (const { err } of [serving, dumped])
    expect(err).toMatch(/log\.1.*a named pipe|a named pipe.*log\.1/s);
  expect(verified.code).not.toBe(0);
  expect(verified.out + verified.err).toContain('a named pipe');
  for (const { code, err } of named) {
    expect(err).toMatch(/pipe.*(NOT_A_PLAIN_FILE|not a plain file|ENXIO)/);
    expect(code).not.toBe(0);
  }
});

test('the port of TLS is told, and missed, by its own address', async () => {
  writeFileSync(join(folder, 'server.pem'), certificates.server.key + certificates.server.cert);
  writeFileSync(join(folder, 'ca.pem'), certificates.ca);
  const args = (address: string) => [
    ...['serve', '--in-memory', '-p', '0', '--set', 'secureClientPort=0'],
    ...['--set', 'ssl.keyStore.location=server.pem', '--set', 'ssl.trustStore.location=ca.pem'],
    ...['--set', `secureClientPortAddress=${address}`],
  ];
  const server = new Drover(args('localhost'));
  await server.says(/ready in/);
  const nowhere = await drover(...args('nobody.invalid'));

  expect(server.out).toMatch(/^ {2}clients {2}127\.0\.0\.1:\d+\n {2}TLS {6}localhost:\d+$/m);
  expect(nowhere.code).toBe(3);
  expect(nowhere.err).toMatch(/^drover: .*nobody\.invalid/m);
});

test('in memory and without fsync it says so loudly', async () => {
  const memory = serve('--in-memory');
  const unsafe = serve('--unsafe-no-fsync');
  await Promise.all([memory.ready(), unsafe.ready()]);

  expect(memory.err).toContain('IN MEMORY');
  expect(unsafe.err).toContain('UNSAFE');
  expect(readdirSync(folder)).toEqual(['drover-data']);
});

test('a log that can not be written ends the server with a code, and says what is certain', async () => {
  const limited = spawn(
    'sh',
    [
      ...['-c', 'ulimit -f 400; exec "$@"', 'sh', process.execPath, '--import', tsx],
      ...[join(root, 'src/cli/main.ts'), 'serve', '-p', '0', '--json', '--set', 'preAllocSize=16'],
    ],
    { cwd: folder, env: { PATH: process.env.PATH! }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  running.add(limited);
  let err = '';
  limited.stderr.on('data', (chunk) => {
    err += chunk;
  });
  const [line] = await once(limited.stdout, 'data');
  const ended = once(limited, 'close');
  const client = await connect(JSON.parse(String(line)).address);
  const data = Buffer.alloc(50_000);
  let acknowledged = 0n;
  try {
    for (let i = 0; i < 20; i++) {
      await client.create(`/n${i}`, data);
      acknowledged = client.lastZxid;
    }
  } catch {
    // the server is gone
  }
  await Promise.all([client.close().catch(() => {}), ended]);
  running.delete(limited);

  expect(limited.exitCode).toBe(5);
  expect(acknowledged).toBeGreaterThan(0n);
  expect(err).toMatch(/^drover: stopped, as going on could lose writes: WRITE_FAILED/m);
  const certain = BigInt(/certainly on disk has zxid (0x[0-9a-f]+)/.exec(err)![1]!);
  expect(certain).toBeGreaterThanOrEqual(acknowledged);
});

test.runIf(existsSync('/proc/self/limits'))(
  'links are no more than the files that a process may open leave room for: its next log needs one',
  async () => {
    const script = 'ulimit -n 128; exec "$@"';
    const few = spawn(
      'sh',
      [
        ...['-c', script, 'sh', process.execPath, '--import', tsx, join(root, 'src/cli/main.ts')],
        ...['serve', '-p', '0', '--json', '--set', 'snapCount=10', '--set', 'maxClientCnxns=0'],
      ],
      { cwd: folder, env: { PATH: process.env.PATH! }, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    running.add(few);
    few.once('exit', () => running.delete(few));
    const [line] = await once(few.stdout, 'data');
    const { address } = JSON.parse(String(line));
    const client = await connect(address);
    const port = Number(address.split(':')[1]);
    const links = Array.from({ length: 150 }, () => dial(port, '127.0.0.1'));
    const ends = links.map((link) => once(link.resume(), 'close').catch(() => {}));
    await Promise.race(ends);

    for (let i = 0; i < 40; i++) await client.create(`/n${i}`);

    expect(links.some((link) => !link.destroyed)).toBe(true);
    for (const link of links) link.destroy();
    await client.close();
    const [warned] = await once(few.stderr, 'data');
    expect(String(warned)).toContain('"openFilesMax":128');
  },
);

/** For a process in which Node does otherwise than it would. */
const withModule = (source: string) => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(source)}`,
});

/** Has Node say so when the snapshot is to be read, and never come to an end with it. */
const endlessSnapshot = `
  import fs from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const { open } = fs;
  fs.open = (path, ...rest) => {
    if (!/snapshot\\.0$/.test(path)) return open(path, ...rest);
    process.stderr.write('reading\\n');
    return new Promise(() => setInterval(() => {}, 1_000));
  };
  syncBuiltinESMExports();`;

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends a server that still reads its files, which are as they were',
  async (signal) => {
    const first = serve('--data', 'data');
    await first.ready();
    first.child.kill('SIGKILL');
    await first.ended;
    const args = ['serve', '-p', '0', '--json', '--data', 'data'];
    const reading = new Drover(args, withModule(endlessSnapshot));
    await reading.says(/^reading$/m);
    reading.child.kill(signal);

    expect(await reading.ended).toMatchObject({
      code: 0,
      out: '',
      err: `reading\ndrover: ${signal}: ending; what is on disk was still being read\n`,
    });
    await serve('--data', 'data').ready();
  },
);

test('a second Ctrl-C ends it at once', async () => {
  const server = serve('--in-memory');
  const { address } = await server.ready();
  const client = await connect(String(address));
  server.child.kill('SIGINT');
  server.child.kill('SIGINT');

  expect([0, 130]).toContain((await server.ended).code);
  await client.close();
});

test('metrics are there for Prometheus, with names of ZooKeeper', async () => {
  const server = serve('--in-memory', '--metrics-port', '0');
  const { address, metricsPort } = await server.ready();
  const client = await connect(String(address));
  await client.create('/a'); // behind a read that asks what the server speaks
  await client.get('/a');
  await client.close();

  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();

  expect(text).toContain('# TYPE znode_count gauge\nznode_count 6\n');
  expect(text).toMatch(/^# TYPE readlatency summary\nreadlatency\{quantile="0\.5"\} \S+$/m);
  expect(text).toMatch(/^readlatency_count 2$/m);
  expect(text).toMatch(/^drover_readlatency_histogram_bucket\{le="\+Inf"\} 2$/m);
  expect(text).toMatch(/^process_cpu_user_seconds_total /m);
});

test('an audit log that can not be written costs no write, and is said once; at the start it is refused', async () => {
  const file = join('audit', 'audit.log');
  mkdirSync(join(folder, 'audit'));
  const args = ['serve', '--port', '0', '--data', 'data', '--json', '--audit', file];
  const server = new Drover(args);
  const { address } = await server.ready();
  const client = await connect(String(address));
  await client.create('/a');
  rmSync(join(folder, 'audit'), { recursive: true });

  await client.create('/b');
  await client.create('/c');
  mkdirSync(join(folder, 'audit'));
  await client.create('/d');
  await client.close();
  server.child.kill('SIGTERM');
  const { code, err } = await server.ended;

  expect(code).toBe(0);
  expect(err.match(/the audit log audit.audit\.log can't be written/g)).toHaveLength(1);
  expect(err).toContain('the audit log is written again, and lacks 2 lines');
  const audit = readFileSync(join(folder, file), 'utf8');
  expect(audit.match(/znode=\S+/g)).toEqual(['znode=/d']);
  rmSync(join(folder, 'audit'), { recursive: true });
  const refused = await new Drover(args).ended;
  expect(refused).toMatchObject({ code: 4, out: '' });
  expect(refused.err).toContain(`the audit log ${file} can't be written (ENOENT)`);
});

test('SASL users, mutual TLS and the audit log work from a zoo.cfg, and no secret is printed', async () => {
  writeFileSync(join(folder, 'server.pem'), certificates.server.key + certificates.server.cert);
  writeFileSync(join(folder, 'ca.pem'), certificates.ca);
  writeFileSync(
    join(folder, 'jaas.conf'),
    'Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  user_ann="canary-password";\n};\n',
  );
  writeFileSync(
    join(folder, 'zoo.cfg'),
    [
      'dataDir=data',
      'clientPort=0',
      'secureClientPort=0',
      'ssl.keyStore.location=server.pem',
      'ssl.keyStore.password=canary-keystore',
      'ssl.trustStore.location=ca.pem',
      'authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider',
      'sessionRequireClientSASLAuth=true',
      'DigestAuthenticationProvider.superDigest=super:canary-digest',
      'admin.serverPort=0',
      '4lw.commands.whitelist=*',
      '',
    ].join('\n'),
  );
  const server = new Drover([
    ...['serve', 'zoo.cfg', '--json', '--audit', 'audit.log', '--log-level', 'debug'],
    '-Djava.security.auth.login.config=jaas.conf',
  ]);
  const { address, securePort, adminPort } = await server.ready();
  const sasl = digestMd5({ username: 'ann', password: 'canary-password' });

  const plain = await connect(String(address), { sasl });
  await plain.create('/a', '', { acl: [{ perms: 31, id: { scheme: 'sasl', id: 'ann' } }] });
  expect((await plain.whoAmI()).map(({ authScheme }) => authScheme)).toContain('sasl');
  await plain.close();
  const tls = {
    ca: certificates.ca,
    cert: certificates.client.cert,
    key: certificates.client.key,
    servername: 'localhost',
  };
  const secure = await connect(`127.0.0.1:${securePort}`, { sasl, tls });
  expect((await secure.get('/a')).data).toBeDefined();
  expect((await secure.whoAmI()).map(({ authScheme }) => authScheme)).toContain('x509');
  await secure.close();
  const icfg = await (await fetch(`http://127.0.0.1:${adminPort}/commands/icfg`)).text();
  server.child.kill('SIGTERM');
  const { code, out, err } = await server.ended;

  expect(code).toBe(0);
  const audit = readFileSync(join(folder, 'audit.log'), 'utf8');
  expect(audit).toMatch(/operation=serverStart\tresult=success\n/);
  expect(audit).toMatch(/\tuser=127\.0\.0\.1,ann\tip=127\.0\.0\.1\toperation=create\tznode=\/a\t/);
  expect(audit).toMatch(/operation=serverStop\tresult=invoked\n$/);
  expect(icfg).toContain('secureClientPort=0');
  for (const text of [out, err, audit, icfg]) expect(text).not.toContain('canary');
});

test('who has not authenticated is refused where SASL is required', async () => {
  writeFileSync(join(folder, 'users'), '# ours\nann: secret\n');
  const server = serve('--users', 'users', '--set', 'sessionRequireClientSASLAuth=true');
  const { address } = await server.ready();

  const nobody = await connect(String(address));
  await expect(nobody.create('/a')).rejects.toMatchObject({ code: 'SESSION_CLOSED_REQUIRE_SASL' });
  await nobody.close();
});

for (const how of ['on SIGHUP', 'when their file is replaced']) {
  test(`certificates are read again ${how}, and open links stay`, async () => {
    const pem = join(folder, 'server.pem');
    writeFileSync(pem, certificates.server.key + certificates.server.cert);
    const server = serve(
      ...['--in-memory', '--set', 'secureClientPort=0', '--set', `ssl.keyStore.location=${pem}`],
      ...['--set', 'ssl.clientAuth=none', '--set', `client.certReload=${how !== 'on SIGHUP'}`],
    );
    const { securePort } = await server.ready();
    const dial = (ca: string) =>
      connect(`127.0.0.1:${securePort}`, { tls: { ca, servername: 'localhost' } });
    const before = await dial(certificates.ca);
    await before.create('/a');

    writeFileSync(`${pem}.new`, certificates.otherServer.key + certificates.otherServer.cert);
    renameSync(`${pem}.new`, pem);
    if (how === 'on SIGHUP') server.child.kill('SIGHUP');
    await server.says(/certificates were read again/);
    const after = await dial(certificates.otherCa);

    expect(await after.exists('/a')).not.toBeNull();
    expect(await before.exists('/a')).not.toBeNull();
    await Promise.all([before.close(), after.close()]);
  });
}

/** As where others on the machine watch as much as may be watched. */
const unwatchable = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  fs.watch = (path) => {
    throw Object.assign(new Error('no watch'), { code: 'ENOSPC', syscall: 'watch', path });
  };
  syncBuiltinESMExports();`;

test('where files can not be watched a server starts all the same, and SIGHUP is heeded', async () => {
  writeFileSync(join(folder, 'server.pem'), certificates.server.key + certificates.server.cert);
  const server = new Drover(
    [
      ...['serve', '-p', '0', '--json', '--in-memory', '--set', 'secureClientPort=0'],
      ...['--set', 'ssl.keyStore.location=server.pem', '--set', 'ssl.clientAuth=none'],
      ...['--set', 'client.certReload=true'],
    ],
    withModule(unwatchable),
  );
  await server.ready();
  await server.says(/certificates can't be watched \(ENOSPC\): only SIGHUP has them/);
  server.child.kill('SIGHUP');
  await server.says(/certificates were read again/);
});

test('a SIGHUP that comes while a server starts does not end it, and is heeded once it runs', async () => {
  const pem = join(folder, 'server.pem');
  writeFileSync(pem, certificates.server.key + certificates.server.cert);
  const pipe = join(folder, 'users');
  execFileSync('mkfifo', [pipe]); // it starts no further than who fills this lets it
  const reading = await open(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const users = await open(pipe, 'w');
  const args = [
    ...['serve', '-p', '0', '--json', '--in-memory', '--users', '/dev/fd/3'],
    ...['--set', 'secureClientPort=0', '--set', `ssl.keyStore.location=${pem}`],
    ...['--set', 'ssl.clientAuth=none'],
  ];
  const server = new Drover(args, {}, [reading.fd]);
  await reading.close();
  const opened = `/proc/${server.child.pid}/fd`;
  const isPipe = (fd: string) => readlinkSync(join(opened, fd)) === pipe;
  await vi.waitFor(() => expect(readdirSync(opened).filter(isPipe)).toHaveLength(2), 30_000);

  server.child.kill('SIGHUP');
  await users.writeFile('ann: secret\n');
  await users.close();

  await server.ready();
  await server.says(/certificates were read again/);
});

test('the folder that Java makes of a name beyond ASCII is not passed over for an empty one', async () => {
  mkdirSync(join(folder, 'd\u00c3\u00a4ta', 'version-2'), { recursive: true });
  writeFileSync(join(folder, 'zoo.cfg'), 'dataDir=d\u00e4ta\nclientPort=0\n');

  const { code, err } = await drover('serve', 'zoo.cfg');

  expect(code).toBe(4);
  expect(err).toContain('d\u00e4ta is not there, and d\u00c3\u00a4ta is');
});

test('an audit log that nobody reads any more is told, and the server goes on', async () => {
  const server = serve('--in-memory', '--set', 'audit.enable=true');
  const { address } = await server.ready();
  server.child.stdout!.destroy();
  const client = await connect(String(address));
  const told = /the audit log on standard output can't be written \(EPIPE\)/;

  for (let i = 0; !told.test(server.err); i++) await client.create(`/${i}`);

  await client.create('/still-there');
  await client.close();
});

test('an audit log that nobody reads takes a bounded room, and no longer to end; who reads on has the rest', async () => {
  execFileSync('mkfifo', [join(folder, 'out')]);
  const main = join(root, 'src/cli/main.ts');
  const args = ['serve', '--in-memory', '-p', '0', '--set', 'audit.enable=true'];
  const script = 'exec "$@" > out';
  const shell = ['-c', script, 'sh', process.execPath, '--import', tsx, main, ...args];
  const server = spawn('sh', shell, { cwd: folder, env: { PATH: process.env.PATH! } });
  running.add(server);
  let err = '';
  server.stderr.on('data', (chunk) => {
    err += chunk;
  });
  const ended = once(server, 'exit');
  void ended.then(() => running.delete(server));
  const out = await open(join(folder, 'out'), 'r');
  const read = async () => (await out.read(Buffer.alloc(65_536))).buffer.toString('latin1');
  let said = '';
  while (!said.includes('Ctrl-C stops')) said += (await read()).replaceAll('\0', '');
  const client = await connect(/clients +(\S+)/.exec(said)![1]!);
  await client.create('/a');
  const write = () => Promise.all(Array.from({ length: 100 }, () => client.set('/a', '')));
  const told = /standard output can't be written \(EAGAIN\); the server goes on without/;

  for (let i = 0; i < 200 && !told.test(err); i++) await write();
  expect(err).toMatch(told);
  while (!/is written again, and lacks \d+ lines/.test(err)) {
    await Promise.all([read(), client.set('/a', '')]);
  }
  while (err.match(new RegExp(told, 'g'))?.length !== 2) await write();
  await client.close();
  server.kill('SIGTERM');

  expect(await ended).toEqual([0, null]);
  await out.close();
});

test("key store and trust store may be Java's, and are read again on SIGHUP", async () => {
  for (const name of ['server.jks', 'ca.jks']) {
    copyFileSync(join(root, 'test/certificates', name), join(folder, name));
  }
  const server = serve(
    ...['--in-memory', '--set', 'secureClientPort=0', '--set', 'ssl.keyStore.location=server.jks'],
    ...['--set', 'ssl.keyStore.password=changeit', '--set', 'ssl.trustStore.location=ca.jks'],
    ...['--set', 'ssl.trustStore.password=changeit'],
  );
  const { securePort } = await server.ready();
  const { ca, client: pair } = certificates;
  const dialled = () => connect(`localhost:${securePort}`, { tls: { ca, ...pair } } as never);

  const client = await dialled();
  expect(await client.whoAmI()).toContainEqual({ authScheme: 'x509', user: 'CN=drover-client' });
  await client.close();
  server.child.kill('SIGHUP');
  await server.says(/certificates were read again/);
  await (await dialled()).close();
});

test('a Java key store that can not be read is refused in a sentence', async () => {
  copyFileSync(join(root, 'test/certificates/server.jks'), join(folder, 'server.jks'));
  const refused = (password: string) =>
    drover(
      ...['serve', '--in-memory', '-p', '0', '--set', 'secureClientPort=0'],
      ...['--set', 'ssl.keyStore.location=server.jks', '--set', 'ssl.clientAuth=none'],
      ...['--set', `ssl.keyStore.password=${password}`],
    );

  const { code, err } = await refused('wrong');

  expect(code).toBe(2);
  expect(err).toContain(
    "drover: ssl.keyStore.location server.jks can't be read as a Java key store: the password is wrong, or missing\n",
  );
});

test('test-server runs a command beside a server and ends as the command does', async () => {
  const [ended, killed, missing] = await Promise.all([
    drover('test-server', '--', 'sh', '-c', 'echo "at $ZK_SERVERS"; exit 7'),
    drover('test-server', '--', 'sh', '-c', 'kill -TERM $$'),
    drover('test-server', '--', 'no-such-command'),
  ]);

  expect(ended.code).toBe(7);
  expect(ended.out).toMatch(/^at 127\.0\.0\.1:\d+\n$/);
  expect(killed.code).toBe(143);
  expect(missing).toMatchObject({
    code: 2,
    err: "drover: no-such-command can't be run (ENOENT)\n",
  });
});

test('commands of ours beside a test server go to it', async () => {
  const own = [process.execPath, '--import', tsx, join(root, 'src/cli/main.ts')];
  const script = `"$@" create /made x && "$@" ls /`;

  const { code, out } = await drover('test-server', '--', 'sh', '-c', script, 'sh', ...own);

  expect([code, out]).toEqual([0, '/made\nmade\nzookeeper\n']);
});

/** Sends its parent one signal after the other, each when the one before has come back, and ends with the last. */
const echo = (...signals: string[]) => `
  const left = ${JSON.stringify(signals)};
  const parent = process.ppid;
  const next = () => left.length > 0 ? process.kill(parent, left[0]) : process.exit(7);
  for (const signal of [...left]) {
    process.on(signal, () => {
      console.log('heard', signal);
      if (signal === left[0]) left.shift();
      next();
    });
  }
  setInterval(() => process.ppid === parent || process.exit(), 20);
  next();`;

test('test-server hands on what would end it, and ends behind its command', async () => {
  const signals = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'];
  const command = ['node', '-e', echo(...signals)];

  const { code, out } = await drover('test-server', '--', ...command);

  expect([code, out]).toEqual([7, signals.map((signal) => `heard ${signal}\n`).join('')]);
});

test.each([
  [['--', ''], 2, `"" can't be run (ERR_INVALID_ARG_VALUE)`],
  [['-p', '', '--', 'true'], 2, '--port : a number up to 65535 is wanted'],
  [['-p', '1.5', '--', 'true'], 2, '--port 1.5: a number up to 65535 is wanted'],
])('test-server %j says in a sentence what is wrong', async (words, code, sentence) => {
  expect(await drover('test-server', ...words)).toEqual({
    ...{ code, out: '' },
    err: `drover: ${sentence}\n`,
  });
});

test('test-server on a port that is taken says so, and ends as serve does', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as { port: number };

  expect(await drover('test-server', '-p', String(port), '--', 'true')).toEqual({
    ...{ code: 3, out: '' },
    err: `drover: 127.0.0.1:${port} is taken by another program; choose another --port, or none for any that is free\n`,
  });
});

test('version says who we are, also as data', async () => {
  const [text, json, typo] = await Promise.all([
    drover('version'),
    drover('version', '--json'),
    drover('versoin'),
  ]);

  expect(text.out).toMatch(/^drover \d+\.\d+\.\d+, like ZooKeeper 3\.9\.5, on Node /);
  expect(JSON.parse(json.out)).toMatchObject({ zooKeeper: '3.9.5' });
  expect(typo.code).toBe(2);
  expect(typo.err).toContain('is version meant?');
});
