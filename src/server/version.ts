/**
 * Which ZooKeeper the server is taken for, and which drover it is.
 *
 *   3.9.5-drover-0.1.0, built on 2026-11-15 10:39 UTC
 *
 * Tools read the number up to the first dash and take the rest for a commit.
 */

import { readFileSync, statSync } from 'node:fs';

/** Whose behaviour this is. */
export const zooKeeperVersion = '3.9.5';

/** When this file was loaded: by the time somebody asks, another version may lie in its place, or none. */
const builtAt = statSync(new URL(import.meta.url)).mtime.toISOString();
const manifest = new URL('../../package.json', import.meta.url);
const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };

export function droverVersion(): string {
  return version;
}

export function fullVersion(): string {
  const minute = `${builtAt.slice(0, 10)} ${builtAt.slice(11, 16)} UTC`;
  return `${zooKeeperVersion}-drover-${version}, built on ${minute}`;
}
