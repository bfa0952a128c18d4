/**
 * Runs the stories on real ZooKeeper servers, and what else needs a peer. Prints which peers there
 * are. One that is missing is left out with a sentence on how to get it; under CI that is a failure.
 */

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { findConfluent } from '../test/peers/kafka/confluent.ts';
import { findKafka, findOldKafka } from '../test/peers/kafka/fetch.ts';
import { findZooKeepers } from '../test/peers/zookeeper.ts';
import { apacheOf, aptInstall, reason } from '../test/peers/zookeeper-fetch.ts';
import { oldestRelease } from '../test/versions/releases.ts';

const say = (line: string) => console.error(`peers: ${line}`);
const { found, missing } = await findZooKeepers(say);
for (const { name, version } of found) say(`using ${name} (ZooKeeper ${version})`);
for (const { name, how } of missing) say(`${name} is missing: ${how}`);
try {
  say(`using ${(await apacheOf(oldestRelease, say)).name} for some of the stories`);
} catch (error) {
  const name = `apache-${oldestRelease}`;
  const how = `install 'mvn' and be online (${reason(error)})`;
  missing.push({ name, how });
  say(`${name} is missing: ${how}`);
}
const kafka = await findKafka(say);
say(typeof kafka === 'string' ? `kafka is missing: ${kafka}` : `using Kafka ${kafka.version}`);
const old = await findOldKafka(say);
say(
  typeof old === 'string' ? `old Kafka is missing: ${old}` : `using Kafka ${old.version} as well`,
);
const confluent = findConfluent();
if (typeof confluent === 'string') say(`left out: ${confluent}`);
// The console's page is looked at in a real browser.
if (!existsSync('/usr/bin/chromium') && process.env.CHROMIUM === undefined) {
  await aptInstall(['chromium'], say).catch((error) => say(`no Chromium: ${reason(error)}`));
}
// Completion is tried in real shells.
const shells = ['zsh', 'fish'].filter((shell) => !existsSync(`/usr/bin/${shell}`));
if (shells.length > 0) {
  await aptInstall(shells, say).catch((error) => say(`left out: ${shells}: ${reason(error)}`));
}
if (missing.length > 0 && process.env.CI === 'true') {
  say('a missing peer is a failure when CI=true');
  process.exit(1);
}
if (found.length === 0) {
  say('no peer is here, so nothing was run');
  process.exit(0);
}
const { status } = spawnSync(
  process.execPath,
  [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--config',
    'vitest.peers.config.ts',
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit' },
);
process.exit(status ?? 1);
