/**
 * Commands of two words that look at files: `drover log dump`, `drover snapshot verify`.
 *
 * Memory stays bounded: files are read through `filesOf(output)`, which reads on only once what was
 * printed has been taken, and which can change nothing on disk.
 */

import { type FileSystem, realFileSystem, type StoredFile } from '../storage/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped, type Output } from './output.ts';

/** The real files, for looking at alone, and no faster than the output is taken. */
export function filesOf(output: Output): FileSystem {
  const refuse = (): never => {
    throw new Error('files are only looked at');
  };
  return {
    list: (folder) => realFileSystem.list(folder),
    status: (path) => realFileSystem.status(path),
    realPath: (path) => realFileSystem.realPath(path),
    async open(path, how) {
      if (how !== 'read') refuse();
      const file = await realFileSystem.open(path, 'read');
      const size = await file.size();
      const paced: StoredFile = {
        async read(target, position) {
          await output.drained();
          if (output.isGone) throw new Error('nobody reads the output any more');
          output.progress(path, position, size);
          return file.read(target, position);
        },
        size: () => file.size(),
        close: () => file.close(),
        write: refuse,
        allocate: refuse,
        truncate: refuse,
        sync: refuse,
      };
      return paced;
    },
    rename: refuse,
    remove: refuse,
    makeFolder: refuse,
    syncFolder: refuse,
  };
}

/** What stands behind the first word: `drover log` has three of them. */
export interface Action {
  readonly usage: string;
  readonly argsWanted: number;
  /** Which options it takes besides --json. */
  readonly options: readonly ('full' | 'data' | 'dataLog')[];
  run(output: Output, args: readonly string[], options: OptionValues): Promise<number>;
}

export async function runAction(
  command: string,
  actions: Readonly<Record<string, Action>>,
  context: Context,
  [name = '', ...args]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const action = Object.hasOwn(actions, name) ? actions[name]! : undefined;
  if (action === undefined) {
    const usages = Object.values(actions).map(({ usage }) => `drover ${command} ${usage}`);
    throw new CommandError(
      'usage',
      `no ${command} ${escaped(name)}; there is ${usages.join(', ')}`,
    );
  }
  const usage = `it is drover ${command} ${action.usage}`;
  const strange = (['full', 'data', 'dataLog'] as const).find(
    (option) => options[option] !== undefined && !action.options.includes(option),
  );
  if (strange !== undefined) {
    const flag = strange === 'dataLog' ? 'data-log' : strange;
    throw new CommandError('usage', `--${flag} means nothing to ${command} ${name}; ${usage}`);
  }
  if (args.length !== action.argsWanted) {
    throw new CommandError('usage', `${args.length} arguments for ${command} ${name}; ${usage}`);
  }
  const { output } = context;
  try {
    return await action.run(output, args, options);
  } catch (error) {
    if (output.isGone) return exitCodes.ok;
    throw error;
  }
}
