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

let full: string | undefined;

export function droverVersion(): string {
  const manifest = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}

export function fullVersion(): string {
  if (full === undefined) {
    const builtAt = statSync(new URL(import.meta.url)).mtime.toISOString();
    const minute = `${builtAt.slice(0, 10)} ${builtAt.slice(11, 16)} UTC`;
    full = `${zooKeeperVersion}-drover-${droverVersion()}, built on ${minute}`;
  }
  return full;
}
