/**
 * `drover queue`: work for scripts, from a queue that many put into and many take from.
 *
 *   put PATH [data…]           as many items as words, or one of what comes on standard input
 *   take PATH                  prints one; it is done once it was printed
 *   take PATH -- command…      hands one to a program on its standard input: done when that ends with 0,
 *                              back in its place when not, or when our session is over
 *
 * At most one taker has an item at a time. An item may be handed out again when a taker fails: what is
 * done for it must bear being done twice, by its id.
 */

import { Queue, QueueError, type QueueItem } from '../recipes/index.ts';
import { runChild } from './child.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { dataJson, escaped } from './output.ts';
import { childOptions, programOf, waitOf } from './recipe-commands.ts';
import { within } from './within.ts';

const actions: readonly string[] = ['put', 'take', 'size'];
const usage = 'use drover queue put PATH [data…], take PATH [-- command…] or size PATH';

export async function queue(
  context: Context,
  [action = '', path = '', ...rest]: readonly string[],
  options: OptionValues,
): Promise<number> {
  if (!actions.includes(action) || path === '') throw new CommandError('usage', usage);
  const target = await context.target();
  if ((action === 'put' || action === 'take') && target.readOnly) {
    throw new CommandError('refused', `queue ${action} writes, and ${target.origin} is read-only`);
  }
  const order = orderOf(options);
  const it = new Queue(
    await context.client(),
    context.path(path),
    order === undefined ? {} : { order },
  );
  try {
    if (action === 'put') return await put(context, it, rest, options);
    if (action === 'take') return await take(context, it, rest, options);
    return await size(context, it);
  } catch (error) {
    if (!(error instanceof QueueError)) throw error;
    const kind = error.code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'refused';
    throw new CommandError(kind, error.message, { cause: error });
  } finally {
    await it.close();
  }
}

async function put(
  context: Context,
  it: Queue,
  words: readonly string[],
  options: OptionValues,
): Promise<number> {
  const input =
    words.length === 0 || (words.length === 1 && words[0] === '-') ? await context.input() : null;
  const list = input === null ? words.filter((word) => word !== '-') : [input];
  if (list.length === 0)
    throw new CommandError('usage', 'what is to be put? words, or standard input');
  const priority =
    options.priority === undefined
      ? {}
      : { priority: within(options.priority, '--priority', -1e9, 1e9, 0) };
  const delay =
    options.delay === undefined
      ? {}
      : { delayMs: 1_000 * within(options.delay, '--delay', 0, 1e9, 0) };
  const ids = await it.putMany(list, { ...waitOf(context, options), ...priority, ...delay });
  for (const id of ids) {
    if (context.output.isJson) context.output.record({ id });
    else context.output.line(escaped(id));
  }
  return exitCodes.ok;
}

async function take(
  context: Context,
  it: Queue,
  program: readonly string[],
  options: OptionValues,
): Promise<number> {
  const command = program.length === 0 ? undefined : programOf(program, 'queue take PATH');
  const wait = waitOf(context, options);
  const item = options.try === true ? await it.tryTake(wait) : await it.take(wait);
  if (item === null) throw new CommandError('refused', `${escaped(it.path)} is empty`);
  try {
    if (command !== undefined) return await work(context, item, command, options);
    print(context, item);
    await context.output.drained();
    if (context.output.isLost) return exitCodes.output; // nobody has seen it: it goes back
    await item.confirm();
    return exitCodes.ok;
  } finally {
    await item[Symbol.asyncDispose]();
  }
}

async function work(
  context: Context,
  item: QueueItem,
  command: readonly [string, ...string[]],
  options: OptionValues,
): Promise<number> {
  const variables = { DROVER_ITEM_ID: item.id, DROVER_ITEM_TRIES: String(item.tries) };
  const { code, stopped } = await runChild(command, {
    ...childOptions(context, options, item.signal, variables),
    input: item.data,
  });
  if (stopped === 'interrupted') return exitCodes.interrupted;
  if (stopped === 'inDoubt') {
    context.output.tell(
      `item ${escaped(item.id)} may be another's by now; ${escaped(command[0])} was ended`,
    );
    return exitCodes.unknown;
  }
  if (code === 0) await item.confirm();
  return code;
}

function print({ output }: Context, { id, data, tries }: QueueItem): void {
  if (output.isJson) output.record({ id, tries, data: dataJson(data) });
  else output.bytes(data ?? Buffer.alloc(0));
}

async function size({ output }: Context, it: Queue): Promise<number> {
  const { waiting, claimed } = await it.size();
  if (output.isJson) output.record({ path: it.path, waiting, claimed });
  else output.line(`${waiting} waiting, ${claimed} taken`);
  return exitCodes.ok;
}

function orderOf({ order }: OptionValues): 'fifo' | 'priority' | 'delay' | undefined {
  if (order === undefined) return undefined;
  if (order === 'fifo' || order === 'priority' || order === 'delay') return order;
  throw new CommandError('usage', '--order: fifo, priority or delay is wanted');
}
