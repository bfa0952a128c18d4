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

/** True when it worked. What npm says goes to standard error: standard output belongs to the caller. */
function npm(...args) {
  const command = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  return spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] }).status === 0;
}

if (!isInstalled()) {
  console.error('drover: installing packages (npm ci) …');
  // A registry that lacks a package of some other platform makes npm ci refuse the whole lock file.
  if (!npm('ci') && !npm('install', '--no-package-lock')) {
    console.error('drover: the packages could not be installed; is the npm registry reachable?');
    process.exit(1);
  }
}
