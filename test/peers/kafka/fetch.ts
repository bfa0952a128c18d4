/**
 * Finds Apache Kafka, or fetches it: the version that a pom names, copied into .peers/kafka-<version>.
 *
 * In: the machine. Out: a class path that runs brokers in ZooKeeper mode and Kafka's own tools, or a
 * sentence that says how to get what is missing. What was fetched stays.
 */

import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptInstall, once, reason, run, runs, store } from '../zookeeper-fetch.ts';

export interface KafkaPeer {
  readonly version: string;
  readonly classPath: string;
}

type Log = (line: string) => void;

const searches = new Map<string, Promise<KafkaPeer | string>>();

/** A sentence instead of it when it is missing. */
export function findKafka(log: Log = () => {}): Promise<KafkaPeer | string> {
  return search('pom.xml', log);
}

/** The last release whose consumers keep their groups in ZooKeeper. */
export function findOldKafka(log: Log = () => {}): Promise<KafkaPeer | string> {
  return search('pom-1.1.xml', log);
}

function search(file: string, log: Log): Promise<KafkaPeer | string> {
  const found =
    searches.get(file) ??
    find(fileURLToPath(new URL(file, import.meta.url)), log).catch(
      (error) => `Kafka needs a Java runtime, mvn and a network (${reason(error)})`,
    );
  searches.set(file, found);
  return found;
}

async function find(pom: string, log: Log): Promise<KafkaPeer> {
  const version = /<kafka.version>(.+)<\/kafka.version>/.exec(readFileSync(pom, 'utf8'))![1]!;
  const folder = join(store, `kafka-${version}`);
  if (!(await runs('java', '-version'))) {
    await once('java', () => aptInstall(['default-jre-headless'], log));
  }
  if (!existsSync(folder)) {
    await once(`kafka-${version}`, async () => {
      if (existsSync(folder)) return; // somebody else fetched it while we waited
      if (!(await runs('mvn', '-v'))) await aptInstall(['maven'], log);
      log(`fetching Apache Kafka ${version} with mvn`);
      const part = await mkdtemp(join(store, 'fetching-'));
      try {
        await run('mvn', [
          ...['-q', '-B', '-f', pom, 'dependency:copy-dependencies', '-DincludeScope=runtime'],
          `-DoutputDirectory=${part}`,
        ]);
        await rename(part, folder);
      } finally {
        await rm(part, { recursive: true, force: true });
      }
    });
  }
  return { version, classPath: join(folder, '*') };
}

/** Burrow, LinkedIn's lag monitor, from Debian: where its program is, or a sentence. */
export async function findBurrow(
  log: (line: string) => void = () => {},
): Promise<{ readonly program: string } | string> {
  const program = '/usr/bin/Burrow';
  try {
    if (!existsSync(program)) await once('burrow', () => aptInstall(['burrow'], log));
    if (!existsSync(program)) throw new Error(`the package brought no ${program}`);
    return { program };
  } catch (error) {
    return `Burrow is in Debian: run 'apt-get install burrow' as root (${reason(error)})`;
  }
}
