/**
 * `drover backup` and `drover restore`, on an embedded server and on an ensemble alike.
 *
 *   through a client     a tree file; goes back into any server, as new nodes      backup.ts
 *   --data DIR           the files of a server, stopped or running: exact, Stats and sessions too
 *   --admin URL          a snapshot that a running server makes of itself (3.9 and ours): the same
 *
 * The last two make a data directory: `drover serve --data` and `drover ensemble import --from` run it.
 */

import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { backupTree } from './backup.ts';
import { backupByAdmin, newFolder } from './backup-admin.ts';
import type { Context, OptionValues } from './command.ts';
import { toServer } from './copy-commands.ts';
import { copyDataDirectory } from './ensemble-import.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped, foundCode, hex } from './output.ts';
import { refuseInBrowser } from './places.ts';
import { readTreeFile } from './tree-file.ts';
import { Unreadable } from './unreadable.ts';

export async function backup(
  context: Context,
  [place = '', path]: readonly string[],
  options: OptionValues,
): Promise<number> {
  refuseInBrowser(context);
  if (options.data !== undefined && options.admin !== undefined) {
    throw new CommandError('usage', 'either --data or --admin');
  }
  if (options.data !== undefined) return backupFiles(context, place, options);
  if (options.admin !== undefined) return backupByAdmin(context, place, options);
  if (place === '-') {
    throw new CommandError(
      'usage',
      'backup needs a file: it is written whole or not at all, which - (standard output) cannot be. ./- is a file of that name',
    );
  }
  if (existsSync(place) && options.overwrite !== true) {
    throw new CommandError(
      'refused',
      `${escaped(place)} is there already; --overwrite replaces it`,
    );
  }
  const { output, signal } = context;
  const client = await context.client();
  const root = context.path(path ?? '/');
  const unreadable = new Unreadable(context, options);
  const { nodes, ephemerals, zxid, rounds } = await backupTree(client, {
    root,
    file: place,
    signal,
    withoutAcl: options.acl === false,
    onUnreadable: unreadable.met,
    onProgress: (round, count) =>
      output.status(() =>
        round === 0 ? `reading: ${count} nodes` : `looking over, ${round}: ${count} nodes`,
      ),
  });
  if (output.isJson) {
    output.record({
      file: place,
      root,
      nodes,
      ephemerals,
      zxid,
      rounds,
      leftOut: unreadable.paths,
    });
  }
  if (!output.isJson && zxid !== null) {
    output.tell(`${nodes} nodes as of zxid ${hex(zxid)} in ${escaped(place)}${noted(ephemerals)}`);
  }
  if (zxid !== null || options.fuzzy === true) return unreadable.exitCode;
  output.tell(
    `${nodes} nodes in ${escaped(place)}, but not of one moment: the tree kept changing through ${rounds} looks; take it at a quieter time, use --admin or --data, or say --fuzzy if that will do`,
  );
  return foundCode;
}

function noted(ephemerals: number): string {
  return ephemerals === 0 ? '' : `; ${ephemerals} of them ephemeral, which no restore makes again`;
}

async function backupFiles(
  { output }: Context,
  place: string,
  options: OptionValues,
): Promise<number> {
  const dataDir = resolve(String(options.data));
  const dataLogDir = typeof options.dataLog === 'string' ? resolve(options.dataLog) : undefined;
  const folder = await newFolder(place);
  const { lastZxid, files } = await copyDataDirectory({ dataDir, dataLogDir }, folder, (path) =>
    output.status(`copying ${escaped(path)}`),
  ).catch(async (error) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  if (output.isJson) output.record({ folder, files, zxid: lastZxid });
  else output.tell(`${files} files, up to zxid ${hex(lastZxid)}, in ${escaped(place)}`);
  return exitCodes.ok;
}

export async function restore(
  context: Context,
  [place = '', path]: readonly string[],
  options: OptionValues,
): Promise<number> {
  refuseInBrowser(context);
  const status = await stat(place).catch(() => undefined);
  if (status === undefined) throw new CommandError('data', `there is no ${escaped(place)}`);
  if (status.isDirectory()) return restoreFiles(context, place, options);
  if (options.data !== undefined) {
    throw new CommandError(
      'usage',
      `${escaped(place)} is a tree file, which goes back through a server; --data is for backups that are folders`,
    );
  }
  const to = context.path(path ?? '/');
  const source = {
    name: place,
    root: '/',
    nodes: (signal: AbortSignal) => readTreeFile(place, {}, signal),
  };
  const target = { kind: 'here' as const, name: to, path: to };
  const withoutAcl = options.acl === false;
  const onConflict =
    options.overwrite === true ? 'overwrite' : options.merge === true ? 'skip' : 'fail';
  return toServer(context, source, target, {
    mirrors: options.delete === true,
    onConflict,
    withoutAcl,
    options,
  });
}

async function restoreFiles(
  { output }: Context,
  place: string,
  { data }: OptionValues,
): Promise<number> {
  if (typeof data !== 'string') {
    const message = `${escaped(place)} is a data directory: restore it into a new one with --data DIR, or make an ensemble of it with drover ensemble import --from ${escaped(place)}`;
    throw new CommandError('usage', message);
  }
  const folder = await newFolder(data);
  try {
    const { lastZxid, files } = await copyDataDirectory({ dataDir: resolve(place) }, folder);
    if (output.isJson) output.record({ folder, files, zxid: lastZxid });
    else
      output.tell(
        `${files} files, up to zxid ${hex(lastZxid)}; drover serve --data ${escaped(data)} runs them`,
      );
    return exitCodes.ok;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
