/**
 * Where a copy comes from and goes to, as a person writes it.
 *
 *   /path                    on the server that the command goes to
 *   zk://host:2181/path      on another; several hosts with commas between them
 *   zk://prod/path           on the servers of the context "prod", with its credentials
 *   json://backup.json[.gz]  a file (tree-file.ts)
 *   file://folder            a folder of files (tree-folder.ts)
 *
 * Sessions that a place needed are closed with it.
 */

import { existsSync } from 'node:fs';
import type { Client } from '../client/index.ts';
import { pathFault } from '../protocol/index.ts';
import type { Context, Target } from './command.ts';
import { contextNames } from './contexts.ts';
import type { CopySource } from './copy.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';
import { targetOf } from './target.ts';
import { readTreeFile, TreeFileWriter } from './tree-file.ts';
import { readTreeFolder, TreeFolderWriter } from './tree-folder.ts';
import { type ReadOptions, readTree } from './tree-zk.ts';

export type ServerPlace =
  | { readonly kind: 'here'; readonly name: string; readonly path: string }
  | { readonly kind: 'zk'; readonly name: string; readonly servers: string; readonly path: string };

export interface FilePlace {
  readonly kind: 'json' | 'file';
  readonly name: string;
  readonly path: string;
}

export type Place = ServerPlace | FilePlace;

export function isFilePlace(place: Place): place is FilePlace {
  return place.kind === 'json' || place.kind === 'file';
}

export function placeOf(context: Context, text: string): Place {
  const match = /^([a-z]+):\/\/(.*)$/s.exec(text);
  if (match === null) return { kind: 'here', name: text, path: context.path(text) };
  const [, scheme, rest = ''] = match;
  if (scheme === 'json' || scheme === 'file') {
    if (rest === '') throw new CommandError('usage', `${escaped(text)} names no file`);
    refuseInBrowser(context);
    return { kind: scheme, name: text, path: rest };
  }
  if (scheme !== 'zk') {
    throw new CommandError(
      'usage',
      `${escaped(text)}: there is zk://host:port/path, json://file and file://folder`,
    );
  }
  const slash = rest.indexOf('/');
  const servers = slash === -1 ? rest : rest.slice(0, slash);
  const path = slash === -1 ? '/' : rest.slice(slash).replace(/(.)\/+$/s, '$1');
  const fault = pathFault(path);
  if (servers === '' || fault !== null) {
    throw new CommandError(
      'usage',
      `${escaped(text)}: ${fault ?? 'no host'}; zk://host:port/path is wanted`,
    );
  }
  return { kind: 'zk', name: text, servers, path };
}

/** A browser has no business with the files of the machine that serves it. */
export function refuseInBrowser({ surface }: Context): void {
  if (surface !== 'console') return;
  throw new CommandError('refused', 'files on this machine are for its own command line');
}

/** A place on a server: its session and what is known of it. */
export interface OpenPlace {
  readonly client: Client;
  readonly target: Target;
  readonly path: string;
  close(): Promise<void>;
}

export async function openPlace(context: Context, place: ServerPlace): Promise<OpenPlace> {
  const target = await context.target();
  if (place.kind === 'here') {
    return { client: await context.client(), target, path: place.path, close: async () => {} };
  }
  const { servers, path } = place;
  const isContext = (await contextNames(context.environment)).includes(servers);
  const there = isContext
    ? await targetOf({ context: servers }, withoutServer(context.environment))
    : {
        ...target,
        servers,
        origin: place.name,
        readOnly: target.readOnly && servers === target.servers,
      };
  const client = isContext ? await context.connectTo(there) : await context.connect(servers);
  return { client, target: there, path, close: async () => void (await client.close()) };
}

/** DROVER_SERVER says where the command goes, not where a context is that was named. */
export function withoutServer(environment: Context['environment']): Context['environment'] {
  const { DROVER_SERVER: _, ...rest } = environment;
  return rest;
}

export function refuseReadOnly({ target }: OpenPlace, name: string): void {
  if (!target.readOnly) return;
  throw new CommandError(
    'refused',
    `${escaped(name)} is read-only (${target.origin}); nothing was written`,
  );
}

/** Something to read from. `close` ends what it opened. */
export async function openSource(
  context: Context,
  place: Place,
  { withoutAcl, onUnreadable }: Pick<ReadOptions, 'withoutAcl' | 'onUnreadable'>,
): Promise<CopySource & { close(): Promise<void> }> {
  const { name } = place;
  if (isFilePlace(place)) {
    const { path } = place;
    if (!existsSync(path)) throw new CommandError('data', `there is no ${escaped(path)}`);
    const read =
      place.kind === 'json'
        ? (signal: AbortSignal) => readTreeFile(path, {}, signal)
        : (signal: AbortSignal) => readTreeFolder(path, signal);
    return { name, root: '/', nodes: read, close: async () => {} };
  }
  const { client, path, close } = await openPlace(context, place);
  const reading = { withoutAcl: withoutAcl === true, onUnreadable };
  const nodes = (signal: AbortSignal) => readTree(client, path, { signal, ...reading });
  return { name, root: path, nodes, close };
}

/** A file or folder that is written anew, whole or not at all. */
export function openExport(
  place: FilePlace,
  about: object,
): Promise<TreeFileWriter | TreeFolderWriter> {
  const { kind, path } = place;
  return kind === 'json' ? TreeFileWriter.open(path, about) : TreeFolderWriter.open(path);
}
