/** `drover barrier`: scripts that wait for each other. */

import { Barrier, BarrierError, DoubleBarrier } from '../recipes/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { waitOf } from './recipe-commands.ts';
import { within } from './within.ts';

const actions = ['wait', 'close', 'open', 'join'] as const;

export async function barrier(
  context: Context,
  [action = '', path = '']: readonly string[],
  options: OptionValues,
): Promise<number> {
  if (!(actions as readonly string[]).includes(action)) {
    throw new CommandError(
      'usage',
      'there is drover barrier close PATH, open PATH, wait PATH, and join PATH --size N',
    );
  }
  if (action !== 'wait' && (await context.target()).readOnly) {
    throw new CommandError(
      'refused',
      `barrier ${action} writes, and ${(await context.target()).origin} is read-only`,
    );
  }
  const client = await context.client();
  const at = context.path(path);
  const wait = waitOf(context, options);
  try {
    if (action === 'join')
      return await join(context, new DoubleBarrier(client, at, sizeOf(options)), wait);
    const it = new Barrier(client, at);
    if (action === 'close')
      return say(context, at, (await it.close()) ? 'closed' : 'was closed already');
    if (action === 'open') {
      await it.open();
      return say(context, at, 'open');
    }
    await it.wait(wait);
    return say(context, at, 'open');
  } catch (error) {
    if (!(error instanceof BarrierError)) throw error;
    throw new CommandError('refused', error.message, { cause: error });
  }
}

/** All come in, and all go on together. */
async function join(
  context: Context,
  it: DoubleBarrier,
  wait: ReturnType<typeof waitOf>,
): Promise<number> {
  await it.enter(wait);
  await it.leave(wait);
  return say(context, it.path, 'all were here');
}

function sizeOf({ size }: OptionValues): number {
  if (size === undefined) throw new CommandError('usage', '--size: how many come together');
  return within(size, '--size', 1, 1_000_000, 1);
}

function say({ output }: Context, path: string, state: string): number {
  if (output.isJson) output.record({ path, state });
  else output.tell(`${escaped(path)}: ${state}`);
  return exitCodes.ok;
}
