/**
 * Makes a fresh clone ready to work in: installs what the lock file names, unless it is installed already.
 * Plain JavaScript on built-ins alone, since nothing else is there yet when it runs.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const root = new URL('..', import.meta.url);
const installed = new URL('node_modules/.package-lock.json', root);

/** npm keeps its own copy of the lock file; the two agree on every package that this platform takes. */
function isInstalled() {
  if (!existsSync(installed)) return false;
  const wanted = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8')).packages;
  const present = JSON.parse(readFileSync(installed, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional, peer }]) =>
      path === '' || optional || peer || present[path]?.version === version,
  );
}

if (!isInstalled()) {
  console.error('drover: installing packages (npm ci) …');
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const { status, error } = spawnSync(npm, ['ci'], { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) {
    console.error(
      `drover: npm ci failed${error ? `: ${error.message}` : ''}; is the registry reachable?`,
    );
    process.exit(1);
  }
}
