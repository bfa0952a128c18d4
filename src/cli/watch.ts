/**
 * `drover watch PATH`: every change as it happens, with what changed in the data, until Ctrl-C.
 *
 * Without gaps: what changed while the link was away is found after it, and marked late. To show what
 * changed, the data last seen is kept, up to a bound; beyond it the new data alone is shown.
 */

import { type Change, type Client, isZkError } from '../client/index.ts';
import type { Context, OptionValues } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { diffData } from './line-diff.ts';
import { dataJson, dataText, escaped, hex } from './output.ts';
import { visitSubtree } from './subtree.ts';
import { countOf } from './trees.ts';

const keptBytesMax = 32 * 1024 * 1024;

/** Data by path, oldest first out. */
class Kept {
  readonly #data = new Map<string, Buffer | null>();
  #bytes = 0;

  get(path: string): Buffer | null | undefined {
    return this.#data.get(path);
  }

  set(path: string, data: Buffer | null): void {
    this.delete(path);
    this.#data.set(path, data);
    this.#bytes += sizeOf(path, data);
    for (const [oldest] of this.#data) {
      if (this.#bytes <= keptBytesMax) break;
      this.delete(oldest);
    }
  }

  delete(path: string): void {
    if (!this.#data.has(path)) return;
    this.#bytes -= sizeOf(path, this.#data.get(path)!);
    this.#data.delete(path);
  }
}

function sizeOf(path: string, data: Buffer | null): number {
  return 100 + path.length * 2 + (data?.length ?? 0);
}

const colours = {
  created: 'green',
  deleted: 'red',
  dataChanged: 'yellow',
  childrenChanged: 'cyan',
} as const;

export async function watch(
  context: Context,
  [given]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const path = context.path(given);
  const recursive = options.recursive === true;
  const countMax = countOf(options, 'count', '--count') ?? Number.POSITIVE_INFINITY;
  const client = await context.client();
  const stream = client.watch(path, { recursive, signal });
  try {
    await stream.ready;
    const kept = options.data === false ? undefined : await keep(context, client, path, recursive);
    output.tell(`watching ${escaped(path)}${recursive ? ' and all below it' : ''}; Ctrl-C stops`);
    let count = 0;
    for await (const change of stream) {
      await show(context, client, change, kept);
      await output.drained();
      count += 1;
      if (count >= countMax) break;
    }
    return exitCodes.ok;
  } catch (error) {
    if (signal.aborted && error === signal.reason) return exitCodes.ok; // how a watch is meant to end
    throw error;
  } finally {
    await stream.close();
  }
}

async function keep(
  context: Context,
  client: Client,
  root: string,
  recursive: boolean,
): Promise<Kept> {
  const { signal, output } = context;
  const kept = new Kept();
  const depthMax = recursive ? Number.POSITIVE_INFINITY : 0;
  try {
    const nodes = visitSubtree(client, root, { signal, withData: true, depthMax, onRefused() {} });
    for await (const { path, data } of nodes) {
      output.status(() => `reading ${escaped(path)}`);
      kept.set(path, data);
    }
  } catch (error) {
    if (!isZkError(error, 'NO_NODE')) throw error; // it may come yet
  }
  return kept;
}

async function show(
  context: Context,
  client: Client,
  change: Change,
  kept: Kept | undefined,
): Promise<void> {
  const { output, signal } = context;
  const { type, path, zxid, late } = change;
  const time = new Date();
  const before = kept?.get(path);
  let after: Buffer | null | undefined;
  if (kept !== undefined && (type === 'created' || type === 'dataChanged')) {
    after = await dataNow(client, path, signal);
    if (after !== undefined) kept.set(path, after);
  }
  if (type === 'deleted') kept?.delete(path);
  if (output.isJson) {
    output.record({
      ...{ time, type, path, zxid, late },
      ...(before !== undefined && { before: dataJson(before) }),
      ...(after !== undefined && { after: dataJson(after) }),
    });
    return;
  }
  const when = time.toISOString().slice(11, 23);
  const which = output.paint(colours[type], type.padEnd(15));
  const txn = zxid === null ? '' : output.paint('dim', `  ${hex(zxid)}`);
  output.line(`${when}  ${which}  ${escaped(path)}${txn}${late ? '  (late)' : ''}`);
  if (after === undefined) return;
  const lines =
    type === 'dataChanged' && before !== undefined ? diffData(before, after) : [dataText(after)];
  for (const line of lines) output.line(`              ${line}`);
}

/** What it holds by now, which may be newer than the change; undefined where it is gone or hidden. */
async function dataNow(
  client: Client,
  path: string,
  signal: AbortSignal,
): Promise<Buffer | null | undefined> {
  try {
    return (await client.get(path, { signal })).data;
  } catch (error) {
    if (isZkError(error, 'NO_NODE', 'NO_AUTH')) return undefined;
    throw error;
  }
}
