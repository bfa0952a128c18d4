/**
 * Finds Apache ZooKeeper on this machine, or fetches it, and says how to run it.
 *
 *   ZOOKEEPER_HOME   a binary release as Apache ships it: lib/*.jar        apache-<version>
 *   Debian           the jars of libzookeeper-java in /usr/share/java      debian-<version>
 *   Maven Central    else one release, kept in the user's cache            apache-<version>
 *
 * In: the environment. Out: a class path that runs a server. Nothing is installed and nothing needs to
 * be root. What is fetched is checked by its sum before it is used, and a folder in the cache is
 * complete whenever it has its final name, whoever else is fetching.
 */

import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { apacheJars, apacheVersion, type Jar, jarName, jarPath } from './apache-jars.ts';
import { CommandError } from './exit-codes.ts';
import { makeFolders } from './make-folders.ts';

/** An Apache ZooKeeper that can be run here. */
export interface ZooKeeperPeer {
  /** Such as `apache-3.9.5` or `debian-3.8.0`. */
  readonly name: string;
  readonly version: string;
  readonly classPath: string;
}

export interface FindOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly log?: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Take what is here and fetch nothing. */
  readonly offline?: boolean;
}

const debianJars = '/usr/share/java';
/** zookeeper.jar's manifest names most of what it needs; a log to print to and half of netty it does not. */
const debianClassPath = [
  'zookeeper.jar',
  'slf4j-simple.jar',
  'netty-codec.jar',
  'netty-resolver.jar',
  'netty-transport-native-unix-common.jar',
];
const mavenCentral = 'https://repo1.maven.org/maven2';
const jarBytesMax = 32 * 1024 * 1024;
const jarTimeoutMs = 120_000;

/** The first that is there, in the order above. Rejects with how to get one. */
export async function findApache(options: FindOptions = {}): Promise<ZooKeeperPeer> {
  const { env = process.env, offline = false } = options;
  await checkJava(env);
  if (env.ZOOKEEPER_HOME) return homePeer(env.ZOOKEEPER_HOME);
  const cached = join(cacheFolder(env), `apache-${apacheVersion}`);
  if (existsSync(cached)) return peerAt(cached, 'the cache has no');
  const debian = await debianPeer().catch(() => undefined);
  if (debian !== undefined) return debian;
  if (offline) throw notFound('it is not on this machine');
  try {
    return await fetchApacheInto(cached, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw notFound(reason(error), error);
  }
}

function notFound(why: string, cause?: unknown): CommandError {
  return new CommandError(
    'usage',
    `no Apache ZooKeeper: ${why}; set ZOOKEEPER_HOME to an unpacked binary release, install Debian's libzookeeper-java and libnetty-java, or be online (DROVER_MAVEN_URL names another mirror of Maven Central)`,
    { cause },
  );
}

/** Java 11 or newer, from JAVA_HOME or the path. */
export function javaCommand(env: NodeJS.ProcessEnv = process.env): string {
  return env.JAVA_HOME ? join(env.JAVA_HOME, 'bin', 'java') : 'java';
}

async function checkJava(env: NodeJS.ProcessEnv): Promise<void> {
  const java = javaCommand(env);
  try {
    await promisify(execFile)(java, ['-version'], { timeout: 30_000 });
  } catch (error) {
    throw new CommandError(
      'usage',
      `${java} does not run (${reason(error)}); Apache ZooKeeper needs a Java runtime, 11 or newer: install one or set JAVA_HOME`,
      { cause: error },
    );
  }
}

export function homePeer(home: string): Promise<ZooKeeperPeer> {
  return peerAt(join(home, 'lib'), `ZOOKEEPER_HOME is ${home}, without`);
}

/** Whether all of Debian's jars are here is looked at, not which package brought them. */
export async function debianPeer(): Promise<ZooKeeperPeer> {
  const jars = debianClassPath.map((jar) => join(debianJars, jar));
  const missing = jars.find((jar) => !existsSync(jar));
  if (missing !== undefined) throw new Error(`there is no ${missing}`);
  const version = await zooKeeperVersion(debianJars, 'Debian has no');
  return { name: `debian-${version}`, version, classPath: jars.join(delimiter) };
}

/** A folder that holds all jars of one release. */
export async function peerAt(folder: string, otherwise: string): Promise<ZooKeeperPeer> {
  const version = await zooKeeperVersion(folder, otherwise);
  return { name: `apache-${version}`, version, classPath: join(folder, '*') };
}

async function zooKeeperVersion(folder: string, otherwise: string): Promise<string> {
  const names = existsSync(folder) ? await readdir(folder) : [];
  for (const name of names) {
    const version = /^zookeeper-(\d+\.\d+\.\d+)\.jar$/.exec(name)?.[1];
    if (version) return version;
  }
  throw new CommandError('usage', `${otherwise} ${join(folder, 'zookeeper-<version>.jar')}`);
}

export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'drover');
}

export async function fetchApacheInto(final: string, options: FindOptions): Promise<ZooKeeperPeer> {
  const { env = process.env, log = () => {}, signal } = options;
  const base = (env.DROVER_MAVEN_URL || mavenCentral).replace(/\/+$/, '');
  log(`fetching Apache ZooKeeper ${apacheVersion} (${apacheJars.length} files) from ${base}`);
  const folder = `${final}.${randomBytes(4).toString('hex')}`;
  await makeFolders(folder);
  try {
    // A few at a time: polite, and still bounded by the line and not by the way there.
    const waiting = [...apacheJars];
    const worker = async () => {
      for (let jar = waiting.pop(); jar !== undefined; jar = waiting.pop()) {
        await writeFile(join(folder, jarName(jar)), await download(base, jar, signal));
      }
    };
    await Promise.all(Array.from({ length: 4 }, worker));
    await rename(folder, final).catch((error) => {
      if (!existsSync(final)) throw error; // else somebody else was faster
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return peerAt(final, 'Maven Central brought no');
}

async function download(base: string, jar: Jar, signal: AbortSignal | undefined): Promise<Buffer> {
  const url = `${base}/${jarPath(jar)}`;
  const late = AbortSignal.timeout(jarTimeoutMs);
  const response = await fetch(url, { signal: signal ? AbortSignal.any([signal, late]) : late });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > jarBytesMax) throw new Error(`${url} is longer than ${jarBytesMax} bytes`);
    chunks.push(chunk);
  }
  const content = Buffer.concat(chunks);
  const sum = createHash('sha256').update(content).digest('hex');
  if (sum !== jar.sha256) throw new Error(`${url} has sum ${sum}, not ${jar.sha256}; not used`);
  return content;
}

/** The first line is enough for a person. */
function reason(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : { message: String(error) };
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  return `${message.split('\n')[0]!}${why}`.slice(0, 300);
}
