/**
 * Finds Confluent's client, `@confluentinc/kafka-javascript`, in .peers/, or builds it there.
 *
 * In: the machine. Out: its consumer class, or a sentence. Building takes minutes and a compiler: the
 * package brings librdkafka as source, and no ready-made binary for every machine. So it is built only
 * where it is asked for (`npm run test:confluent`), and stays.
 */

import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { RdKafkaConsumerClass } from '../../../src/kafka/readers/confluent.ts';
import { once, reason, run, store } from '../zookeeper-fetch.ts';

export const confluentVersion = '1.10.1';

const name = '@confluentinc/kafka-javascript';
const folder = join(store, `confluent-${confluentVersion}`);

export function findConfluent(): RdKafkaConsumerClass | string {
  if (!existsSync(folder)) return `${name} is not built here: npm run test:confluent builds it`;
  try {
    return createRequire(join(folder, 'package.json'))(name).KafkaConsumer;
  } catch (error) {
    return `${folder} is of no use; remove it and run npm run test:confluent (${reason(error)})`;
  }
}

export async function buildConfluent(log: (line: string) => void): Promise<void> {
  if (existsSync(folder)) return;
  await once('confluent', async () => {
    if (existsSync(folder)) return; // somebody else built it while we waited
    log(`building ${name} ${confluentVersion}, which takes some minutes`);
    const part = await mkdtemp(join(store, 'fetching-'));
    try {
      await writeFile(join(part, 'package.json'), '{ "private": true }\n');
      // Dynamic: with what the system has of OpenSSL and zlib, instead of fetching their sources.
      const npm = ['npm', 'install', '--no-audit', '--no-fund', '--prefix', part];
      await run('env', ['CKJS_LINKING=dynamic', ...npm, `${name}@${confluentVersion}`]);
      await rename(part, folder);
    } finally {
      await rm(part, { recursive: true, force: true });
    }
  });
}
