/**
 * Finds Apache ZooKeeper servers to test against, and fetches those that are not here yet. What makes a
 * server of what is here is the product's own knowledge (src/cli/apache.ts); tests also fetch by mvn, to
 * have the newest, and install packages.
 *
 *   ZOOKEEPER_HOME   a binary release as Apache ships it: lib/*.jar        apache-<version>
 *   Maven Central    else the newest 3.9.x, copied into .peers/            apache-<version>
 *   Debian           the jars of libzookeeper-java in /usr/share/java      debian-<version>
 *
 * In: the machine. Out: class paths that run a server, and for each source that gave none, how to get it.
 * What was fetched stays, so that only the first call on a machine is slow. A folder in .peers/ is
 * complete whenever it has its final name, whoever else is fetching. A failure is remembered for a
 * while: without a network every test file would wait for it anew.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { debianPeer, homePeer, peerAt, type ZooKeeperPeer } from '../../src/cli/apache.ts';

export type { ZooKeeperPeer };

export interface MissingPeer {
  readonly name: string;
  /** A sentence that tells a person how to get it. */
  readonly how: string;
}

export interface FoundPeers {
  readonly found: ZooKeeperPeer[];
  readonly missing: MissingPeer[];
}

type Log = (line: string) => void;

const pom = fileURLToPath(new URL('pom.xml', import.meta.url));
export const store = fileURLToPath(new URL('../../.peers/', import.meta.url));
const fetchTimeoutMs = 10 * 60_000;
const failureKeptMs = 10 * 60_000;

/** The newest is asked for first. A mirror may list a release that it does not hold in full. */
const mavenVersions = ['[3.9.5,3.10.0-alpha)', '3.9.5'];

let search: Promise<FoundPeers> | undefined;

export function findZooKeepers(log: Log = () => {}): Promise<FoundPeers> {
  search ??= find(log);
  return search;
}

async function find(log: Log): Promise<FoundPeers> {
  const found: ZooKeeperPeer[] = [];
  const missing: MissingPeer[] = [];
  if (!(await runs('java', '-version'))) {
    try {
      await once('java', () => aptInstall(['default-jre-headless'], log));
    } catch (error) {
      const how = `Install a Java runtime, 11 or newer (${reason(error)}).`;
      return { found, missing: ['apache-3.9', 'debian-3.8.0'].map((name) => ({ name, how })) };
    }
  }
  for (const source of [apache, debian]) {
    try {
      found.push(await source.get(log));
    } catch (error) {
      missing.push({ name: source.name, how: `${source.how} (${reason(error)})` });
    }
  }
  return { found, missing };
}

const apache = {
  name: 'apache-3.9',
  how: "Set ZOOKEEPER_HOME to an unpacked binary release, or install 'mvn' and be online.",
  async get(log: Log): Promise<ZooKeeperPeer> {
    const home = process.env.ZOOKEEPER_HOME;
    if (home) return homePeer(home);
    if (!(await newestInStore())) {
      await once('maven', async () => {
        if (await newestInStore()) return; // somebody else fetched it while we waited
        if (!(await runs('mvn', '-v'))) await aptInstall(['maven'], log);
        await copyFromMaven(log);
      });
    }
    const name = await newestInStore();
    return peerAt(join(store, name!), 'Maven brought no');
  },
};

const debian = {
  name: 'debian-3.8.0',
  how: "On Debian or Ubuntu, run 'apt-get install libzookeeper-java libnetty-java' as root.",
  async get(log: Log): Promise<ZooKeeperPeer> {
    const here = await debianPeer().catch(() => undefined);
    if (here !== undefined) return here;
    // The package `zookeeper` only adds a user and start scripts to these.
    const packages = ['libzookeeper-java', 'libslf4j-java', 'libnetty-java'];
    await once('debian', () => aptInstall(packages, log));
    return debianPeer();
  },
};

async function newestInStore(): Promise<string | undefined> {
  const names = existsSync(store) ? await readdir(store) : [];
  const patch = (name: string) => Number(name.split('.')[2]);
  return names
    .filter((name) => /^apache-3\.9\.\d+$/.test(name))
    .sort((a, b) => patch(b) - patch(a))[0];
}

/** One release of Apache's, from `.peers/` or from Maven Central: for what runs on older ones too. */
export async function apacheOf(version: string, log: Log = () => {}): Promise<ZooKeeperPeer> {
  if (!isReleaseHere(version)) {
    await once(`maven-${version}`, async () => {
      if (isReleaseHere(version)) return; // another process fetched it while this one waited
      if (!(await runs('mvn', '-v'))) await aptInstall(['maven'], log);
      await copyFromMaven(log, [version]);
    });
  }
  return peerAt(join(store, `apache-${version}`), 'Maven brought no');
}

/** Whether `apacheOf` has fetched it already. */
export function isReleaseHere(version: string): boolean {
  return existsSync(join(store, `apache-${version}`));
}

async function copyFromMaven(log: Log, versions: string[] = mavenVersions): Promise<void> {
  const folder = await mkdtemp(join(store, 'fetching-'));
  try {
    await firstThatWorks(versions, (version) => {
      log(`fetching Apache ZooKeeper ${version} with mvn`);
      const goal = [
        '-q',
        '-B',
        '-f',
        pom,
        'dependency:copy-dependencies',
        '-DincludeScope=runtime',
      ];
      return run('mvn', [...goal, `-Dzookeeper.version=${version}`, `-DoutputDirectory=${folder}`]);
    });
    const { name } = await peerAt(folder, 'Maven brought no');
    await rename(folder, join(store, name));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function firstThatWorks<T>(choices: T[], work: (choice: T) => Promise<void>): Promise<void> {
  let failure: unknown;
  for (const choice of choices) {
    try {
      return await work(choice);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

export async function aptInstall(packages: string[], log: Log): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('only root can install packages');
  log(`installing ${packages.join(', ')} with apt-get`);
  const wait = ['-o', 'DPkg::Lock::Timeout=300'];
  await run('apt-get', [...wait, 'update']);
  await run('apt-get', [...wait, 'install', '-y', '--no-install-recommends', ...packages]);
}

/**
 * One process at a time does the work named; one that waited does it again, so the work looks first.
 * The lock saves work and guards nothing: what is fetched becomes visible in one rename.
 */
export async function once(name: string, work: () => Promise<void>): Promise<void> {
  await mkdir(store, { recursive: true });
  const failed = join(store, `${name}.failed`);
  const unlock = await lock(join(store, `${name}.lock`));
  try {
    const age = Date.now() - ((await stat(failed).catch(() => null))?.mtimeMs ?? 0);
    if (age < failureKeptMs) {
      const before = await readFile(failed, 'utf8');
      throw new Error(`${before}; to try again at once, remove .peers/${name}.failed`);
    }
    try {
      await work();
    } catch (error) {
      await writeFile(failed, reason(error));
      throw error;
    }
  } finally {
    await unlock();
  }
}

async function lock(path: string): Promise<() => Promise<void>> {
  const deadlineMs = Date.now() + fetchTimeoutMs;
  for (;;) {
    try {
      await writeFile(path, String(process.pid), { flag: 'wx' });
      return () => rm(path, { force: true });
    } catch (error) {
      if (!isErrno(error, 'EEXIST')) throw error;
    }
    const holder = Number(await readFile(path, 'utf8').catch(() => '0'));
    if (holder > 0 && !isAlive(holder)) await rm(path, { force: true });
    else if (Date.now() > deadlineMs) throw new Error(`${path} is held by process ${holder}`);
    else await delay(200);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return !isErrno(error, 'ESRCH');
  }
}

export async function runs(command: string, ...args: string[]): Promise<boolean> {
  return run(command, args).then(
    () => true,
    () => false,
  );
}

/** Runs a program to its end. Rejects with the last of what it printed if that end is not a good one. */
export function run(
  command: string,
  args: string[],
  options: { cwd?: string } = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const child = spawn(command, args, { ...options, env, stdio: ['ignore', 'pipe', 'pipe'] });
    // Not spawn's own `timeout`: that timer runs on when the program does not exist.
    const timer = setTimeout(() => child.kill('SIGKILL'), fetchTimeoutMs);
    let tail = '';
    const keep = (chunk: Buffer) => {
      tail = (tail + chunk.toString()).slice(-4_000);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve();
      else reject(new Error(`${command} ended with ${code ?? signal}: ${tail.trim()}`));
    });
  });
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** The first line is enough for a person; Maven prints dozens. */
export function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split('\n')[0]!.slice(0, 300);
}
