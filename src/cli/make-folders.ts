/** A folder with whatever is missing above it, for what a person names: a copy, a backup, a journal. */

import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/**
 * A level at a time: Node's own recursive mkdir never ends, and no signal ends it, where a folder is there
 * and what is asked for in it can't be, as below /proc or where homes are mounted when asked for.
 */
export async function makeFolders(path: string, mode?: number): Promise<void> {
  const folder = resolve(path);
  const parent = dirname(folder);
  try {
    await makeOne(folder, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || parent === folder) throw error;
    await makeFolders(parent, mode);
    await makeOne(folder, mode);
  }
}

async function makeOne(path: string, mode: number | undefined): Promise<void> {
  try {
    await mkdir(path, { ...(mode !== undefined && { mode }) });
  } catch (error) {
    const isThere = (await stat(path).catch(() => undefined))?.isDirectory();
    if (!isThere) throw error;
  }
}
