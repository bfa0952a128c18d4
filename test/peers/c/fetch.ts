/**
 * Finds ZooKeeper's C client and its tools, or installs Debian's packages of them, and compiles the
 * story of this folder against it.
 *
 * In: the machine. Out: programs that can be run, or a sentence on how to get what is missing. What was
 * compiled stays in .peers/; sources that have changed are compiled anew.
 */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptInstall, once, reason, run, runs, store } from '../zookeeper-fetch.ts';

export interface CPrograms {
  readonly story: string;
  /** ZooKeeper's own shell in C. */
  readonly cli: string;
  /** Its generator of load: makes, writes, reads and deletes nodes in rounds, until it is ended. */
  readonly load: string;
}

const here = fileURLToPath(new URL('.', import.meta.url));
const header = '/usr/include/zookeeper/zookeeper.h';
const tools = '/usr/lib/zookeeper/bin';
const cli = join(tools, 'cli_mt');
const load = join(tools, 'load_gen');

/** A sentence instead of them when something is missing. */
export async function findCPrograms(): Promise<CPrograms | string> {
  try {
    await installed();
    return { story: await compiled(), cli, load };
  } catch (error) {
    return `The C client needs cc and Debian's libzookeeper-mt-dev and zookeeper-bin (${reason(error)})`;
  }
}

async function installed(): Promise<void> {
  const isHere = () => [header, cli, load].every((file) => existsSync(file));
  const packages = ['libzookeeper-mt-dev', 'zookeeper-bin'];
  const hasCompiler = await runs('cc', '--version');
  if (isHere() && hasCompiler) return;
  await once('c-client', async () => {
    if (isHere() && hasCompiler) return; // somebody else installed them while we waited
    await aptInstall(hasCompiler ? packages : ['gcc', 'libc6-dev', ...packages], () => {});
  });
}

async function compiled(): Promise<string> {
  const hash = createHash('sha256').update(readFileSync(header));
  const sources = readdirSync(here).filter((name) => /\.[ch]$/.test(name));
  for (const name of sources.sort()) hash.update(readFileSync(join(here, name)));
  const program = join(store, `c-story-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(program)) return program;
  await mkdir(store, { recursive: true });
  const part = `${program}.${process.pid}`;
  const files = sources.filter((name) => name.endsWith('.c')).map((name) => join(here, name));
  const warnings = ['-Wall', '-Wextra', '-Werror'];
  // The library declares what waits for its answer only where there are threads.
  const defines = ['-DTHREADED', '-D_POSIX_C_SOURCE=200809L'];
  const libraries = ['-lzookeeper_mt', '-lpthread'];
  try {
    await run('cc', ['-std=c99', ...warnings, ...defines, '-o', part, ...files, ...libraries]);
    await rename(part, program);
  } finally {
    await rm(part, { force: true });
  }
  return program;
}
