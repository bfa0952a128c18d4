/**
 * Runs the test suite under every Node.js that is supported. Each comes from the npm package `node`,
 * into a folder of its own that git ignores. `npm run test:nodes`, or with versions: `… -- 22 24`.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

const supported = ['20', '22', '24', '26'];
const root = resolve(import.meta.dirname, '..');
const asked = process.argv.slice(2);
const outcomes: [string, string][] = [];

for (const version of asked.length > 0 ? asked : supported) {
  const folder = join(root, '.peers', `node-${version}`);
  const node = join(folder, 'node_modules', 'node', 'bin', 'node');
  if (!existsSync(node)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    console.error(`nodes: fetching node@${version} …`);
    const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', `node@${version}`];
    const { status } = spawnSync('npm', args, { stdio: ['ignore', 2, 2] });
    if (status !== 0 || !existsSync(node)) {
      outcomes.push([version, 'could not be fetched']);
      continue;
    }
  }
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  console.error(`nodes: ${stdout.trim()}`);
  const { status } = spawnSync(node, [join(root, 'node_modules/vitest/vitest.mjs'), 'run'], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${join(node, '..')}${delimiter}${process.env.PATH}` },
  });
  outcomes.push([stdout.trim(), status === 0 ? 'passed' : 'failed']);
}

for (const [version, outcome] of outcomes) console.log(`${version.padEnd(10)} ${outcome}`);
process.exit(outcomes.every(([, outcome]) => outcome === 'passed') ? 0 : 1);
