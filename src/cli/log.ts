/**
 * `drover log dump|verify|history`: a look at transaction logs, Apache's and ours.
 *
 * Nothing is ever changed, and a server may be writing meanwhile: where a log seems broken at its end,
 * a second look tells whether that end has only moved on. Exit codes: 0 is fine, 1 says that damage was
 * found, 2 that there was nothing to look at, or no right to.
 */

import type { Context, OptionValues } from './command.ts';
import { type Action, runAction } from './file-actions.ts';
import { dump } from './log-dump.ts';
import { history } from './log-history.ts';
import { verify } from './log-verify.ts';

const actions = {
  dump: { usage: 'dump FILE|DIR', argsWanted: 1, options: ['full'], run: dump },
  verify: {
    usage: 'verify DIR [--data-log DIR]',
    argsWanted: 1,
    options: ['dataLog'],
    run: verify,
  },
  history: {
    usage: 'history PATH --data DIR [--data-log DIR]',
    argsWanted: 1,
    options: ['full', 'data', 'dataLog'],
    run: history,
  },
} satisfies Record<string, Action>;

export async function log(
  context: Context,
  args: readonly string[],
  options: OptionValues,
): Promise<number> {
  return runAction('log', actions, context, args, options);
}
