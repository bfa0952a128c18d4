/**
 * Finds Apache Curator, or fetches it, and compiles the programs of this folder against it.
 *
 *   Maven Central    the version that pom.xml names, copied into .peers/      curator-<version>
 *   Debian           else the jars of libcurator-recipes-java and -discovery-java
 *
 * In: the machine. Out: a class path that runs CuratorPeer and LockLoad, or how to get what is missing.
 * What was fetched and compiled stays; sources that have changed are compiled anew.
 */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptInstall, once, reason, run, runs, store } from '../zookeeper-fetch.ts';

export interface Curator {
  /** Such as `curator-5.9.0`. */
  readonly name: string;
  readonly classPath: string;
}

type Log = (line: string) => void;

const here = fileURLToPath(new URL('.', import.meta.url));
const pom = join(here, 'pom.xml');
const sources = readdirSync(here).filter((name) => name.endsWith('.java'));

/** Those that Curator's own jars do not name in their manifests. */
const debianJars = [
  'curator-recipes',
  'curator-x-discovery',
  'curator-framework',
  'curator-client',
  'zookeeper',
  'zookeeper-jute',
  'jackson-databind',
  'jackson-core',
  'jackson-annotations',
  'guava',
  'slf4j-api',
  'slf4j-simple',
].map((name) => `/usr/share/java/${name}.jar`);

let search: Promise<Curator | string> | undefined;

/** A sentence instead of it when it is missing. */
export function findCurator(log: Log = () => {}): Promise<Curator | string> {
  search ??= find(log).catch(
    (error) =>
      `Curator needs a JDK, and mvn and a network, or Debian's libcurator-recipes-java and libcurator-discovery-java (${reason(error)})`,
  );
  return search;
}

async function find(log: Log): Promise<Curator> {
  if (!(await runs('javac', '-version'))) {
    await once('jdk', () => aptInstall(['default-jdk-headless'], log));
  }
  const { name, classPath } = await fromMaven(log).catch(() => fromDebian(log));
  const classes = await compiled(name, classPath, log);
  return { name, classPath: [classes, classPath].join(delimiter) };
}

async function fromMaven(log: Log): Promise<Curator> {
  const version = /<curator.version>(.+)<\/curator.version>/.exec(readFileSync(pom, 'utf8'))![1]!;
  const name = `curator-${version}`;
  const folder = join(store, name);
  if (!existsSync(folder)) {
    await once('curator', async () => {
      if (existsSync(folder)) return; // somebody else fetched it while we waited
      if (!(await runs('mvn', '-v'))) await aptInstall(['maven'], log);
      log(`fetching Curator ${version} with mvn`);
      await whole(folder, (part) =>
        run('mvn', [
          ...['-q', '-B', '-f', pom, 'dependency:copy-dependencies', '-DincludeScope=runtime'],
          `-DoutputDirectory=${part}`,
        ]),
      );
    });
  }
  return { name, classPath: join(folder, '*') };
}

async function fromDebian(log: Log): Promise<Curator> {
  const isHere = () => debianJars.every((jar) => existsSync(jar));
  if (!isHere()) {
    const packages = ['libcurator-recipes-java', 'libcurator-discovery-java', 'libslf4j-java'];
    await once('curator-debian', () => aptInstall(packages, log));
  }
  if (!isHere()) throw new Error(`there is no ${debianJars.find((jar) => !existsSync(jar))}`);
  return { name: 'curator-debian', classPath: debianJars.join(delimiter) };
}

async function compiled(name: string, classPath: string, log: Log): Promise<string> {
  const hash = createHash('sha256');
  for (const source of sources) hash.update(readFileSync(join(here, source)));
  const folder = join(store, `${name}-programs-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  log('compiling the programs that use Curator');
  const files = sources.map((source) => join(here, source));
  await whole(folder, (part) => run('javac', ['-nowarn', '-d', part, '-cp', classPath, ...files]));
  return folder;
}

/** The folder has its name only once all is in it, whoever else makes it meanwhile. */
async function whole(folder: string, work: (part: string) => Promise<void>): Promise<void> {
  const part = await mkdtemp(join(store, 'fetching-'));
  try {
    await work(part);
    await rename(part, folder).catch((error) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}
