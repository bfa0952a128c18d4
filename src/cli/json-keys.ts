/**
 * JSON inside a node, by key: `servers.0.port`, or `servers[0].port`. A key with a dot in it is written
 * with a backslash: `log\.level`.
 */

import { CommandError } from './exit-codes.ts';
import { escaped } from './words.ts';

/** `a.b=1`, or `a.b` with the value behind it: JSON where it is JSON, else text. */
export function keyValue(text: string, given?: string): { keys: string; value: unknown } {
  const at = text.indexOf('=');
  if (given !== undefined && at !== -1) {
    throw new CommandError('usage', `--at ${escaped(text)} ${escaped(given)}: one value is wanted`);
  }
  if (given === undefined && at < 1) {
    throw new CommandError(
      'usage',
      `--at ${escaped(text)}: key=value is wanted, or --at key value`,
    );
  }
  const keys = given === undefined ? text.slice(0, at) : text;
  const value = given ?? text.slice(at + 1);
  try {
    return { keys, value: JSON.parse(value) };
  } catch {
    return { keys, value };
  }
}

function keysOf(text: string): string[] {
  const plain = text.replace(/\[(\d+)\]/g, '.$1');
  return plain.split(/(?<!\\)\./).map((key) => key.replaceAll('\\.', '.'));
}

function parsed(data: Buffer | null, path: string): unknown {
  try {
    return JSON.parse((data ?? Buffer.alloc(0)).toString('utf8'));
  } catch (cause) {
    throw new CommandError('refused', `what ${escaped(path)} holds is no JSON`, { cause });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

export function valueAt(data: Buffer | null, keys: string, path: string): unknown {
  let value = parsed(data, path);
  for (const key of keysOf(keys)) {
    if (!isObject(value) || !Object.hasOwn(value, key)) {
      throw new CommandError('refused', `${escaped(path)} has no ${escaped(keys)}`);
    }
    value = value[key];
  }
  return value;
}

/** The JSON with one value changed, and objects made where they were missing. Indented as it was. */
export function setAt(data: Buffer | null, keys: string, value: unknown, path: string): string {
  const root = data === null || data.length === 0 ? {} : parsed(data, path);
  const way = keysOf(keys);
  const last = way.pop()!;
  let at: unknown = root;
  for (const key of way) {
    if (!isObject(at)) throw notBelow(path, keys, key);
    if (!Object.hasOwn(at, key)) define(at, key, {});
    at = at[key];
  }
  if (!isObject(at)) throw notBelow(path, keys, last);
  define(at, last, value);
  const indent = /\n([ \t]+)"/.exec(data?.toString('utf8') ?? '')?.[1];
  return JSON.stringify(root, null, indent);
}

/** A key of its own whatever its name, `__proto__` too. */
function define(target: Record<string, unknown>, key: string, value: unknown): void {
  const own = { value, writable: true, enumerable: true, configurable: true };
  Object.defineProperty(target, key, own);
}

function notBelow(path: string, keys: string, key: string): CommandError {
  const what = `${escaped(keys)}: what stands before ${escaped(key)} is neither object nor list`;
  return new CommandError('refused', `${escaped(path)}: ${what}`);
}
