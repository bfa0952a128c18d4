/**
 * `drover config get|set|watch PATH …`: values that programs share, as JSON, a node for each key.
 *
 *   get PATH [key]          one value, or all
 *   set PATH key=value…     several at once, in one transaction; a value that is no JSON is taken as text
 *   watch PATH [key]        and every change from then on, a line each
 */

import { isZkError } from '../client/index.ts';
import { ConfigError, ConfigStore } from '../recipes/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';

export async function configCommand(
  context: Context,
  [action = '', path = '', ...rest]: readonly string[],
  _: OptionValues,
): Promise<number> {
  const usage = 'there is drover config get PATH [key], set PATH key=value…, watch PATH [key]';
  if (path === '' || !['get', 'set', 'watch'].includes(action))
    throw new CommandError('usage', usage);
  if (action !== 'set' && rest.length > 1) throw new CommandError('usage', usage);
  const base = context.path(path);
  try {
    if (action === 'set') return await set(context, base, rest);
    return await show(context, base, rest[0], action === 'watch');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CommandError('refused', error.message, { cause: error });
  }
}

/** A store of these keys, whatever their values are. */
async function withStore<T>(
  context: Context,
  base: string,
  keys: readonly string[],
  work: (store: ConfigStore<Record<string, unknown>>) => Promise<T>,
): Promise<T> {
  const odd = keys.find((key) => key.includes('/'));
  if (odd !== undefined) {
    const why = 'a key is the name of a node, without a slash';
    throw new CommandError('usage', `${escaped(odd)}: ${why}`);
  }
  const any = (value: unknown) => value;
  const schemas = Object.fromEntries(keys.map((key) => [key, any]));
  const store = new ConfigStore<Record<string, unknown>>(await context.client(), base, { schemas });
  store.ready.catch(() => {});
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function set(context: Context, base: string, pairs: readonly string[]): Promise<number> {
  const { output, signal } = context;
  if (pairs.length === 0) throw new CommandError('usage', 'key=value is wanted, one or several');
  const target = await context.target();
  if (target.readOnly) {
    throw new CommandError('refused', `config set writes, and ${target.origin} is read-only`);
  }
  const values: Record<string, unknown> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new CommandError('usage', `${escaped(pair)}: key=value is wanted`);
    values[pair.slice(0, at)] = parsedValue(pair.slice(at + 1));
  }
  const version = await withStore(context, base, Object.keys(values), (store) =>
    store.updateAll(() => values, { signal }),
  );
  if (output.isJson) output.record({ path: base, values, version });
  else output.tell(`${Object.keys(values).map(escaped).join(', ')} written`);
  return exitCodes.ok;
}

/** As a person types it: `8080`, `true` and `{"a":1}` are JSON, `hello` is text. */
function parsedValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function show(
  context: Context,
  base: string,
  key: string | undefined,
  watches: boolean,
): Promise<number> {
  const { output, signal } = context;
  const keys = key === undefined ? await keysOf(context, base) : [key];
  await withStore(context, base, keys, async (store) => {
    if (key !== undefined && !watches && !(await exists(context, `${base}/${key}`))) {
      throw new CommandError('refused', `there is no ${escaped(`${base}/${key}`)}`);
    }
    const seen = new Map<string, bigint | null>();
    for await (const { values, versions } of store.changes({ signal })) {
      for (const name of keys) {
        if (seen.get(name) === versions[name]) continue;
        seen.set(name, versions[name] ?? null);
        print(context, name, values[name], versions[name] ?? null, key !== undefined);
      }
      await output.drained();
      if (!watches) return;
    }
  });
  return exitCodes.ok;
}

function print(
  { output }: Context,
  key: string,
  value: unknown,
  version: bigint | null,
  isOnly: boolean,
): void {
  if (output.isJson) output.record({ key, value: value ?? null, version });
  // One value alone is printed bare, so that $(drover config get /app port) is what it looks like.
  else if (isOnly) output.line(escaped(typeof value === 'string' ? value : JSON.stringify(value)));
  else output.line(escaped(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`));
}

/** Every child but the history. */
async function keysOf(context: Context, base: string): Promise<string[]> {
  const { signal } = context;
  const names = await (await context.client()).children(base, { signal });
  const keys = names.filter((name) => !name.startsWith('_')).sort();
  if (keys.length > 0) return keys;
  throw new CommandError('refused', `${escaped(base)} has no values`);
}

async function exists(context: Context, path: string): Promise<boolean> {
  const { signal } = context;
  try {
    return (await (await context.client()).exists(path, { signal })) !== null;
  } catch (error) {
    if (isZkError(error, 'NO_NODE')) return false;
    throw error;
  }
}
