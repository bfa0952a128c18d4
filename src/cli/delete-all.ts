/**
 * `drover deleteall PATH`: a node and all below it.
 *
 * It says how many and asks, where there is somebody to ask: `--yes` answers, and a script does what
 * zkCli does. Ctrl-C stops between two batches and says how far it came.
 */

import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { counted, escaped } from './output.ts';
import { deleteSubtree } from './subtree.ts';

const batchUnlessSaid = 1_000;

export async function deleteAll(
  context: Context,
  [given]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const path = context.path(given);
  const batchMax = options.b === undefined ? batchUnlessSaid : Number(options.b);
  if (!Number.isInteger(batchMax)) {
    throw new CommandError('usage', '-b argument must be an int value');
  }
  const client = await context.client();
  const below = await client.countDescendants(path, { signal });
  const shown = escaped(path);
  if (options.dryRun === true) {
    if (output.isJson) output.record({ path, wouldDelete: below + 1 });
    else output.line(`would delete ${shown} and ${counted(below, 'node')} below it`);
    return exitCodes.ok;
  }
  if (below > 0) {
    const { servers } = await context.target();
    const question = `delete ${shown} and ${counted(below, 'node')} below it, on ${escaped(servers)}?`;
    if (!(await context.confirm(question, options))) {
      output.tell('nothing was deleted');
      return exitCodes.declined;
    }
  }
  let deleted = 0;
  const onProgress = (count: number) => {
    deleted = count;
    output.status(() => `${count} of ${below + 1} nodes deleted`);
  };
  try {
    deleted = await deleteSubtree(client, path, { signal, batchMax, onProgress });
  } catch (error) {
    output.tell(`${deleted} nodes were deleted before this`);
    throw error;
  }
  if (output.isJson) output.record({ path, deleted });
  else if (below > 0) output.tell(`${deleted} nodes were deleted`);
  return exitCodes.ok;
}
