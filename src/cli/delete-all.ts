/**
 * `drover deleteall PATH`: a node and all below it.
 *
 * In a terminal it says how many nodes would go and asks, unless `--yes` is given; in a pipe it does what zkCli
 * does, and asks nothing. The root is never deleted without `--yes`, because a script whose variable is
 * empty asks for just that. Ctrl-C stops between two batches and says how far it came.
 */

import { isWithin } from '../protocol/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { counted, escaped } from './output.ts';
import { deleteSubtree } from './subtree.ts';

/** Where the server keeps its configuration and quotas. */
const serversPath = '/zookeeper';
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
  checkDeletable(path, client.chroot, options);
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

/** @throws CommandError for the server's own nodes, and for the root unless `--yes` or `--dry-run` is given. */
function checkDeletable(path: string, chroot: string, options: OptionValues): void {
  const isServers = chroot === '' && (path === serversPath || isWithin(path, serversPath));
  if (isServers) {
    const why = `${serversPath} belongs to the server, which keeps its configuration and quotas there`;
    throw new CommandError('usage', `${why}; delete a quota with: drover delquota PATH`);
  }
  if (path !== '/' || options.yes === true || options.dryRun === true) return;
  const what = chroot === '' ? 'every node of the server' : `every node below ${escaped(chroot)}`;
  throw new CommandError(
    'usage',
    `deleteall / deletes ${what}; give --yes to do that, or --dry-run to see how many`,
  );
}
