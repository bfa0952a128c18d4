/**
 * `drover edit PATH`: the node's data in $EDITOR, written back only if nobody else has changed it.
 *
 * Where somebody has, nothing is written: what they changed is shown, and what was edited stays in its
 * file. Data that is no text is refused, since most editors would change it.
 */

import { isUtf8 } from 'node:buffer';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isZkError } from '../client/index.ts';
import { nameOf } from '../protocol/index.ts';
import type { Context, OptionValues } from './command.ts';
import { printStat, statJson } from './data.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { diffData } from './line-diff.ts';
import { escaped } from './output.ts';

export async function edit(
  context: Context,
  [given]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal, environment } = context;
  const path = context.path(given);
  const editor = environment.VISUAL || environment.EDITOR || 'vi';
  const client = await context.client();
  const { data, stat } = await client.get(path, { signal });
  const before = data ?? Buffer.alloc(0);
  if (!isUtf8(before)) {
    throw new CommandError(
      'refused',
      `${escaped(path)} holds no text; get and set --file keep its bytes`,
    );
  }
  const folder = await mkdtemp(join(tmpdir(), 'drover-edit-'));
  const extension = /^\s*[[{]/.test(before.toString('utf8')) ? '.json' : '.txt';
  const safeName =
    nameOf(path)
      .replace(/[^\w.-]/g, '_')
      .slice(0, 100) || 'root';
  const file = join(folder, safeName.endsWith(extension) ? safeName : safeName + extension);
  let isKept = false;
  try {
    await writeFile(file, before, { mode: 0o600 });
    await runEditor(context, editor, file);
    const after = await readFile(file);
    if (after.equals(before)) {
      if (output.isJson) output.record({ path, changed: false, stat: statJson(stat) });
      else output.tell('nothing was changed');
      return exitCodes.ok;
    }
    const { dataBytesMax } = await context.target();
    if (after.length > dataBytesMax) {
      isKept = true;
      throw new CommandError('refused', `${after.length} bytes are more than a server takes`);
    }
    isKept = true; // until it is written: what was typed is not to be lost
    const version = options.force === true ? -1 : stat.version;
    const written = await client.set(path, after, { version, signal });
    isKept = false;
    if (output.isJson) output.record({ path, changed: true, stat: statJson(written) });
    else if (options.s === true) printStat(output, written);
    else output.tell(`wrote ${escaped(path)}, version ${written.version}`);
    return exitCodes.ok;
  } catch (error) {
    if (isKept) output.tell(`what was edited is kept in ${file}`);
    if (isZkError(error, 'BAD_VERSION')) await showTheirs(context, path, before);
    throw error;
  } finally {
    if (!isKept) await rm(folder, { recursive: true, force: true });
  }
}

async function showTheirs(context: Context, path: string, before: Buffer): Promise<void> {
  const { output, signal } = context;
  const client = await context.client();
  const { data, stat } = await client.get(path, { signal });
  output.tell(`somebody else has changed it meanwhile, to version ${stat.version}:`);
  for (const line of diffData(before, data)) output.remark(`    ${line}\n`);
}

async function runEditor(context: Context, editor: string, file: string): Promise<void> {
  const open = async () => {
    // By a shell, as git does it: an editor may come with flags.
    const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit' });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0)
      throw new CommandError(
        'declined',
        `${escaped(editor)} ended with ${code}; nothing was written`,
      );
  };
  await (context.shell === null ? open() : context.shell.suspend(open));
}
