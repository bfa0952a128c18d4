/** addWatch and removewatches, as zkCli has them. */

import type { WatcherType } from '../client/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { eventWaiter, isChange, printEvent } from './watch-events.ts';

const modes = { PERSISTENT: 'persistent', PERSISTENT_RECURSIVE: 'persistentRecursive' } as const;

export async function addWatch(
  context: Context,
  [given]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal, surface } = context;
  const path = context.path(given);
  const name = String(options.m ?? 'PERSISTENT_RECURSIVE').toUpperCase();
  if (!Object.hasOwn(modes, name)) {
    const all = Object.keys(modes).join(' or ');
    throw new CommandError('usage', `-m ${escaped(name)}: the mode is ${all}`);
  }
  const mode = modes[name as keyof typeof modes];
  const client = await context.client();
  if (surface !== 'argv') {
    await client.addWatch(path, mode, (event) => context.event(event), { signal });
    if (output.isJson) output.record({ path, mode: name });
    return exitCodes.ok;
  }
  // By itself it would end with its session: it goes on until it is told to stop.
  await client.addWatch(path, mode, (event) => {
    if (!isChange(event)) return;
    printEvent(output, event);
    void output.drained();
  });
  const { wait } = eventWaiter(context);
  return wait();
}

// biome-ignore format: a table is read down its columns
const kinds: Readonly<Record<string, WatcherType>> = {
  c: 'children',
  d: 'data',
  p: 'persistent',
  r: 'persistentRecursive',
  a: 'any',
};

export async function removeWatches(
  context: Context,
  [given]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const path = context.path(given);
  const letter = Object.keys(kinds).find((each) => options[each] === true) ?? 'a';
  const client = await context.client();
  await client.removeWatches(path, { kind: kinds[letter]!, local: options.l === true, signal });
  if (output.isJson) output.record({ path, removed: kinds[letter] });
  return exitCodes.ok;
}
