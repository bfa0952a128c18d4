/**
 * Runs the stories on older releases of Apache ZooKeeper, each fetched from Maven Central when it is first
 * needed: all of them on 3.4 and 3.5, where the client falls back from ops that the server lacks, and the
 * client's own on 3.6 and 3.7. By hand, since that takes a quarter of an hour: `npm run test:versions`. A
 * story about what a release does not have is left out, and says what it needs.
 */

import { spawnSync } from 'node:child_process';
import { apacheOf, reason } from '../test/peers/zookeeper-fetch.ts';
import { olderReleases } from '../test/versions/releases.ts';

const say = (line: string) => console.error(`versions: ${line}`);

for (const version of olderReleases) {
  try {
    say(`using ${(await apacheOf(version, say)).name}`);
  } catch (error) {
    say(`${version} is missing: install 'mvn' and be online (${reason(error)})`);
    process.exit(1);
  }
}
const config = ['--config', 'test/versions/vitest.config.ts', '--root', '.'];
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', ...config, ...process.argv.slice(2)],
  { stdio: 'inherit' },
);
process.exit(status ?? 1);
