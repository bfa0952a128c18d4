/**
 * `drover txn 'create /a x' 'set -v 3 /b y' 'check /c 1' 'delete /d'`: all of it, or none.
 *
 * Each argument is an op, written as the command of that name is.
 */

import { MultiError, type MultiOp } from '../client/index.ts';
import { parseAcl } from './acl-text.ts';
import type { Command, Context } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { modeOf, ttlOf, versionOf } from './nodes.ts';
import { escaped } from './output.ts';
import { parse } from './parse.ts';
import { tokens } from './tokens.ts';

const check: Command = {
  usage: 'check <path> [version]',
  about: 'fails unless the node is there, and has this version',
  group: 'nodes',
  options: [{ flags: '-v <version>', about: 'the version' }],
  run: async () => exitCodes.ok,
};

export async function txn(context: Context, lines: readonly string[]): Promise<number> {
  const { output, signal } = context;
  const wanted = lines.map((line) => opOf(context, line));
  const client = await context.client();
  try {
    const results = await client.multi(wanted, { signal });
    for (const [i, result] of results.entries()) {
      const { op, path } = wanted[i]!;
      const made = (result as { path?: string } | undefined)?.path ?? path;
      if (output.isJson) output.record({ op, path: made });
      else output.line(`${op} ${escaped(made)}`);
    }
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof MultiError)) throw error;
    throw new CommandError('refused', `${error.message}; nothing was changed`, { cause: error });
  }
}

function opOf(context: Context, line: string): MultiOp {
  const [name = '', ...rest] = tokens(line);
  const { create, set, delete: remove } = context.commands;
  const ops: Record<string, Command | undefined> = { create, set, delete: remove, check };
  const command = Object.hasOwn(ops, name) ? ops[name] : undefined;
  if (command === undefined) {
    throw new CommandError('usage', `${escaped(line)}: an op is create, set, delete or check`);
  }
  const { args, options } = parsed(command, rest, line);
  const [given, text, more] = args;
  if (options.at !== undefined || options.file !== undefined || options.parents !== undefined) {
    throw new CommandError(
      'usage',
      `${escaped(line)}: --at, --file and --parents can't be in a txn`,
    );
  }
  const path = context.path(given, name === 'create' && options.s === true);
  if (name === 'create') {
    const ttlMs = ttlOf(options);
    return {
      ...{ op: 'create', path, data: text ?? null, mode: modeOf(options) },
      ...(more !== undefined && { acl: parseAcl(more) }),
      ...(ttlMs !== undefined && { ttlMs }),
    };
  }
  if (name === 'set') {
    if (text === undefined)
      throw new CommandError('usage', `${escaped(line)}: the data is missing`);
    return { op: 'set', path, data: text, version: versionOf(options, more) };
  }
  return { op: name as 'delete' | 'check', path, version: versionOf(options, text) };
}

function parsed(command: Command, rest: readonly string[], line: string) {
  let said = '';
  try {
    const err = (text: string) => {
      said += text;
    };
    return parse(command, rest, { out() {}, err });
  } catch (cause) {
    const why = said.split('\n', 1)[0]!.replace(/^drover: /, '') || 'it is no op';
    throw new CommandError('usage', `${escaped(line)}: ${escaped(why)}`, { cause });
  }
}
