/**
 * Runs the reader for Confluent's client against a real broker. The client is built first, in .peers/:
 * minutes, the first time. What is missing is a failure.
 */

import { spawnSync } from 'node:child_process';
import { buildConfluent, findConfluent } from '../test/peers/kafka/confluent.ts';
import { findKafka } from '../test/peers/kafka/fetch.ts';

const say = (line: string) => console.error(`confluent: ${line}`);
const kafka = await findKafka(say);
await buildConfluent(say);
const client = findConfluent();
for (const missing of [kafka, client]) {
  if (typeof missing !== 'string') continue;
  say(missing);
  process.exit(1);
}
const words = ['run', '--config', 'vitest.peers.config.ts', 'test/peers/kafka-confluent.test.ts'];
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', ...words, ...process.argv.slice(2)],
  { stdio: 'inherit' },
);
process.exit(status ?? 1);
