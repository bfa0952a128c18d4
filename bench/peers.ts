/**
 * The packages that ours is compared with, fetched when they are first wanted, into a folder that git
 * ignores: they are nobody's dependencies. And ours, as users get it: built into dist.
 *
 * In: the table below. Out: for each, where it lies, or a sentence that says why it is not here.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root, store } from './programs.ts';

export interface Package {
  readonly name: string;
  readonly version: string;
  /** What `import()` is given; undefined: missing. */
  readonly module?: string;
  /** Why it is missing. */
  readonly why?: string;
}

interface Wanted {
  readonly name: string;
  readonly version: string;
  readonly main: string;
}

/** The native one compiles ZooKeeper's C client: it wants make, a C compiler and python. */
const clients: readonly Wanted[] = [
  { name: 'node-zookeeper-client', version: '1.1.3', main: 'index.js' },
  { name: 'zookeeper', version: '7.3.0', main: 'lib/index.js' },
];

/** What a Node program locks with where there is no ZooKeeper. */
const lockers: readonly Wanted[] = [
  { name: 'redlock', version: '5.0.0-beta.2', main: 'dist/esm/index.js' },
  { name: 'ioredis', version: '5.8.2', main: 'built/index.js' },
  { name: 'etcd3', version: '1.1.2', main: 'lib/index.js' },
];

const installTimeoutMs = 10 * 60_000;

export function peerPackages(log: (line: string) => void): Package[] {
  return packagesOf(clients, log);
}

export function lockerPackages(log: (line: string) => void): Package[] {
  return packagesOf(lockers, log);
}

function packagesOf(wanted: readonly Wanted[], log: (line: string) => void): Package[] {
  mkdirSync(store, { recursive: true });
  return wanted.map(({ name, version, main }) => {
    const folder = join(store, 'node_modules', name);
    const why = versionIn(folder) === version ? undefined : install(name, version, log);
    if (why !== undefined) return { name, version, why };
    return { name, version, module: pathToFileURL(join(folder, main)).href };
  });
}

function install(name: string, version: string, log: (line: string) => void): string | undefined {
  const manifest = join(store, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, JSON.stringify(ownManifest, null, 2));
  log(`fetching ${name} ${version}, and compiling what is C in it …`);
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const { status, stderr, error } = spawnSync(
    npm,
    ['install', '--prefix', store, '--no-audit', '--no-fund', '--save-exact', `${name}@${version}`],
    { cwd: store, encoding: 'utf8', timeout: installTimeoutMs },
  );
  if (status === 0 && versionIn(join(store, 'node_modules', name)) === version) return undefined;
  const said = (stderr ?? '').split('\n').filter((line) => /^npm (error|ERR!)/.test(line));
  return error?.message ?? (said.slice(0, 3).join(' ') || `npm install ended with ${status}`);
}

/** npm runs a package's install script only where this field says so; of the two, one has one. */
const ownManifest = {
  private: true,
  type: 'module',
  allowScripts: { 'zookeeper@7.3.0': true },
};

function versionIn(folder: string): string | undefined {
  try {
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return String(version).replace(/^v/, '');
  } catch {
    return undefined;
  }
}

/** Ours, as `npm run bench` built it, or somebody else. */
export function ownPackage(dist: string | undefined): Package {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const main = join(dist ?? join(root, 'dist'), 'client', 'index.js');
  if (!existsSync(main)) return { name: 'drover', version, why: `there is no ${main}` };
  return { name: 'drover', version, module: pathToFileURL(main).href };
}
