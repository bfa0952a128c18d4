/**
 * zkCli's commands on single nodes: ls, get, set, create, delete, stat, sync and their like, with its
 * flags, its old spellings and its output.
 *
 * Into a pipe, `get` writes the node's bytes and nothing else, and `ls` a name a line; on a terminal and
 * in a shell both look as they do in zkCli.
 */

import { type Acl, type CreateMode, type StatView, ZkError } from '../client/index.ts';
import { Pace, readPlainFile, sortInTurns } from '../support/index.ts';
import { parseAcl } from './acl-text.ts';
import type { Context, OptionValues } from './command.ts';
import { hexDump, printStat, statJson, terminalText } from './data.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { keyValue, setAt, valueAt } from './json-keys.ts';
import { dataJson, escaped } from './output.ts';
import { eventWaiter } from './watch-events.ts';

type Args = readonly string[];

/** A person, or a script written for zkCli, reads it: no bare bytes, and lists on one line. */
function isLikeZkCli({ surface, output }: Context): boolean {
  return surface !== 'argv' || output.isTty;
}

function deprecated({ output }: Context, old: string, wanted: string): void {
  output.tell(`'${old}' has been deprecated; '${wanted}' is the same`);
}

export function versionOf(options: OptionValues, old?: string): number {
  const text = (options.v ?? old) as string | undefined;
  if (text === undefined) return -1;
  if (/^-?\d{1,10}$/.test(text)) return Number(text);
  throw new CommandError('usage', `-v ${escaped(text)}: a version is a whole number`);
}

// ── reading ───────────────────────────────────────────────────────────────────────────────────────

export async function ls(context: Context, args: Args, options: OptionValues): Promise<number> {
  const [given, old] = args;
  const path = context.path(given);
  const client = await context.client();
  const { output, signal } = context;
  const isWatched = options.w === true || old !== undefined;
  if (old !== undefined) deprecated(context, 'ls path [watch]', 'ls -w path');
  const waiter = isWatched ? eventWaiter(context) : undefined;
  const watch = waiter && { watch: waiter.listener };
  if (options.R === true) {
    const { listSubtree } = await import('./subtree.ts');
    if (watch) await client.get(path, { ...watch, signal });
    let count = 0;
    for await (const found of listSubtree(client, path, { signal, ...watch })) {
      count += 1;
      if (!output.isTty) output.status(() => `${count} nodes`);
      if (output.isJson) output.record({ path: found });
      else output.line(escaped(found));
      await output.paced();
    }
    return waiter ? waiter.wait() : exitCodes.ok;
  }
  const { children: found, stat } = await client.childrenAndStat(path, { signal, ...watch });
  const children = await sortInTurns(found); // a console with others in it may be where we run
  const withStat = options.s === true;
  if (output.isJson) {
    output.record({ path, children, ...(withStat && { stat: statJson(stat) }) });
  } else {
    await printNames(context, children);
    if (withStat) printStat(output, stat);
  }
  return waiter ? waiter.wait() : exitCodes.ok;
}

async function printNames(context: Context, names: readonly string[]): Promise<void> {
  const { output } = context;
  const isOneLine = isLikeZkCli(context);
  const pace = new Pace();
  if (isOneLine) output.write('[');
  for (const [i, name] of names.entries()) {
    if (!isOneLine) output.line(escaped(name));
    else output.write(i === 0 ? escaped(name) : `, ${escaped(name)}`);
    if (i % 1_000 !== 999) continue;
    await output.paced();
    await pace.keep();
  }
  if (isOneLine) output.line(']');
}

export async function get(context: Context, args: Args, options: OptionValues): Promise<number> {
  const [given, old] = args;
  const path = context.path(given);
  const { output, signal } = context;
  if (old !== undefined) deprecated(context, 'get path [watch]', 'get [-s] [-w] path');
  const waiter = options.w === true || old !== undefined ? eventWaiter(context) : undefined;
  const client = await context.client();
  const { data, stat } = await client.get(path, {
    signal,
    ...(waiter && { watch: waiter.listener }),
  });
  const withStat = options.s === true;
  if (typeof options.at === 'string') {
    const value = valueAt(data, options.at, path);
    if (output.isJson) output.record({ path, at: options.at, value, version: stat.version });
    else output.line(typeof value === 'string' ? escaped(value) : JSON.stringify(value));
  } else if (output.isJson) {
    output.record({ path, data: dataJson(data), stat: statJson(stat) });
  } else {
    printData(context, data, options);
  }
  if (withStat && !output.isJson) printStat(output, stat);
  return waiter ? waiter.wait() : exitCodes.ok;
}

function printData(context: Context, data: Buffer | null, options: OptionValues): void {
  const { output } = context;
  if (options.b === true) output.line((data ?? Buffer.from('null')).toString('base64'));
  else if (options.x === true) output.line(hexDump(data ?? Buffer.from('null')));
  else if (output.isTty) output.line(data === null ? 'null' : terminalText(data));
  else if (context.surface === 'argv') {
    output.bytes(data ?? Buffer.alloc(0));
    if (options.s === true) output.write('\n');
  } else {
    output.bytes(data ?? Buffer.from('null'));
    output.write('\n');
  }
}

export async function stat(context: Context, args: Args, options: OptionValues): Promise<number> {
  const [given, old] = args;
  const path = context.path(given);
  const { output, signal } = context;
  if (old !== undefined) deprecated(context, 'stat path [watch]', 'stat [-w] path');
  const waiter = options.w === true || old !== undefined ? eventWaiter(context) : undefined;
  const client = await context.client();
  const found = await client.exists(path, { signal, ...(waiter && { watch: waiter.listener }) });
  if (found === null && waiter !== undefined && context.surface === 'argv') {
    output.tell(`NO_NODE: no such node (${escaped(path)}); waiting for it`);
    return waiter.wait();
  }
  if (found === null) throw noNode(path);
  if (output.isJson) output.record({ path, ...statJson(found) });
  else printStat(output, found);
  return waiter ? waiter.wait() : exitCodes.ok;
}

function noNode(path: string): ZkError {
  return new ZkError('NO_NODE', { path });
}

export async function sync(context: Context, [given]: Args): Promise<number> {
  const path = context.path(given);
  const client = await context.client();
  await client.sync(path, { signal: context.signal, timeoutMs: syncTimeoutMs });
  if (context.output.isJson) context.output.record({ path, synced: true });
  else context.output.line('Sync is OK');
  return exitCodes.ok;
}

/** As zkCli's. */
const syncTimeoutMs = 30_000;

export async function getEphemerals(context: Context, [given]: Args): Promise<number> {
  const { output, signal } = context;
  const client = await context.client();
  const paths = await client.getEphemerals(context.path(given ?? '/'), { signal });
  if (output.isJson) output.record({ ephemerals: paths });
  else await printNames(context, paths);
  return exitCodes.ok;
}

export async function getAllChildrenNumber(context: Context, [given]: Args): Promise<number> {
  const path = context.path(given);
  const client = await context.client();
  const count = await client.countDescendants(path, { signal: context.signal });
  if (context.output.isJson) context.output.record({ path, count });
  else context.output.line(String(count));
  return exitCodes.ok;
}

// ── writing ───────────────────────────────────────────────────────────────────────────────────────

async function dataOf(
  context: Context,
  text: string | undefined,
  options: OptionValues,
): Promise<Buffer | null> {
  const file = options.file as string | undefined;
  if (file !== undefined && text !== undefined) {
    throw new CommandError('usage', 'the data is given twice: by --file and as an argument');
  }
  const data = file !== undefined ? await bytesOf(context, file) : textOf(text, options);
  const { dataBytesMax } = await context.target();
  if (data !== null && data.length > dataBytesMax) {
    const why = `${data.length} bytes are more than a server takes (${dataBytesMax}); a server would drop the link`;
    throw new CommandError(
      'usage',
      `${why}. If its jute.maxbuffer is larger, say so by --max-buffer`,
    );
  }
  return data;
}

function textOf(text: string | undefined, options: OptionValues): Buffer | null {
  if (text === undefined) return null;
  if (options.b !== true) return Buffer.from(text);
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 === 1) {
    throw new CommandError('usage', '-b: the data is no base64');
  }
  return Buffer.from(text, 'base64');
}

async function bytesOf(context: Context, file: string): Promise<Buffer> {
  if (file === '-') {
    const bytes = await context.input();
    if (bytes !== null) return bytes;
    throw new CommandError('usage', '--file -: there is no standard input here to read from');
  }
  try {
    return await readPlainFile(file);
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new CommandError('usage', `${escaped(file)} can't be read (${reason})`, { cause });
  }
}

export async function set(context: Context, args: Args, options: OptionValues): Promise<number> {
  const [given, text, old] = args;
  const path = context.path(given);
  const at = options.at as string | undefined;
  if (text === undefined && options.file === undefined && at === undefined) {
    throw new CommandError('usage', 'the data is missing; it is drover set <path> <data>');
  }
  if (old !== undefined)
    deprecated(context, 'set path data [version]', 'set [-v version] path data');
  const { output, signal } = context;
  const version = versionOf(options, old);
  let result: StatView;
  if (at !== undefined) {
    result = await setKey(context, path, keyValue(at, text), version);
  } else {
    const data = await dataOf(context, text, options);
    const client = await context.client();
    result = await client.set(path, data, { version, signal });
  }
  if (output.isJson) output.record({ path, stat: statJson(result) });
  else if (options.s === true) printStat(output, result);
  return exitCodes.ok;
}

/** How often others may come in between reading and writing. */
const setKeyAttempts = 10;

async function setKey(
  context: Context,
  path: string,
  change: { readonly keys: string; readonly value: unknown },
  version: number,
): Promise<StatView> {
  const client = await context.client();
  const { signal } = context;
  const { dataBytesMax } = await context.target();
  for (let attempt = 1; ; attempt++) {
    const { data, stat: before } = await client.get(path, { signal });
    const after = Buffer.from(setAt(data, change.keys, change.value, path));
    if (after.length > dataBytesMax) {
      throw new CommandError('usage', `${after.length} bytes are more than a server takes`);
    }
    try {
      return await client.set(path, after, {
        version: version === -1 ? before.version : version,
        signal,
      });
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code !== 'BAD_VERSION' || version !== -1 || attempt === setKeyAttempts) throw error;
    }
  }
}

export async function create(context: Context, args: Args, options: OptionValues): Promise<number> {
  const [given, text, aclText] = args;
  const mode = modeOf(options);
  const ttlMs = ttlOf(options);
  const path = context.path(given, options.s === true);
  const acl: Acl[] | undefined = aclText === undefined ? undefined : parseAcl(aclText);
  const data = await dataOf(context, text, options);
  const { output, signal } = context;
  const client = await context.client();
  const created = await client.create(path, data, {
    mode,
    signal,
    ...(acl && { acl }),
    ...(ttlMs !== undefined && { ttlMs }),
    parents: options.parents === true,
  });
  if (output.isJson) output.record({ path: created.path });
  else if (isLikeZkCli(context)) output.line(`Created ${escaped(created.path)}`);
  else output.line(escaped(created.path));
  if (options.e === true && context.surface === 'argv') {
    output.tell(
      'ephemeral: it goes as this command ends; drover shell and register keep a session',
    );
  }
  return exitCodes.ok;
}

export function modeOf({ e, s, c, t }: OptionValues): CreateMode {
  if (c && (e || s)) {
    throw new CommandError(
      'usage',
      '-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.',
    );
  }
  if (t && e) throw new CommandError('usage', 'TTLs cannot be used with Ephemeral znodes');
  if (t && c) throw new CommandError('usage', 'TTLs cannot be used with Container znodes');
  if (c) return 'container';
  if (e) return s ? 'ephemeralSequential' : 'ephemeral';
  if (t) return s ? 'persistentSequentialTtl' : 'persistentTtl';
  return s ? 'persistentSequential' : 'persistent';
}

export function ttlOf({ t }: OptionValues): number | undefined {
  if (t === undefined) return undefined;
  const ttlMs = Number(t);
  if (Number.isSafeInteger(ttlMs) && ttlMs > 0) return ttlMs;
  throw new CommandError('usage', '-t argument must be a long value, in milliseconds above 0');
}

export async function deleteOne(
  context: Context,
  args: Args,
  options: OptionValues,
): Promise<number> {
  const [given, old] = args;
  const path = context.path(given);
  if (old !== undefined) deprecated(context, 'delete path [version]', 'delete [-v version] path');
  const version = versionOf(options, old);
  const client = await context.client();
  await client.delete(path, { version, signal: context.signal });
  if (context.output.isJson) context.output.record({ path, deleted: 1 });
  return exitCodes.ok;
}
