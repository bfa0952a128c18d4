/**
 * What `drover kafka` shows: lines and tables for people, records for programs, made from one reading.
 *
 * With `--watch` the reading is made again and again. A terminal sees each as a frame over the one
 * before; elsewhere only what differs from the one before is printed.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { Columns } from './columns.ts';
import type { Context, OptionValues } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import type { Output } from './output.ts';
import { within } from './within.ts';

export interface Table {
  readonly heads: readonly string[];
  /** Cells that are escaped. */
  readonly rows: readonly (readonly string[])[];
}

export interface View {
  /** Lines are escaped. */
  readonly parts: readonly (string | Table)[];
  readonly records: readonly object[];
  readonly code?: number;
}

export const enter = '\x1b[?1049h\x1b[?25l';
export const leave = '\x1b[?25h\x1b[?1049l';
const [home, clearLine, clearBelow] = ['\x1b[H', '\x1b[K', '\x1b[J'];

/** Prints once, or with `--watch` until it is told to stop. Resolves with the code of the last view. */
export async function present(
  context: Context,
  options: OptionValues,
  look: () => Promise<View>,
): Promise<number> {
  const { output, signal } = context;
  if (options.watch !== true) {
    const view = await look();
    print(output, view);
    return view.code ?? exitCodes.ok;
  }
  const intervalMs = 1_000 * within(options.interval, '--interval', 0.05, 3_600, 2);
  const framesMax = within(options.count, '--count', 1, 1e9, Number.POSITIVE_INFINITY);
  const isLive = output.isTty && !output.isJson;
  let code: number = exitCodes.ok;
  let before = '';
  if (isLive) output.write(enter);
  try {
    for (let frame = 0; frame < framesMax; frame++) {
      if (frame > 0) await delay(intervalMs, undefined, { signal });
      const view = await look();
      code = view.code ?? exitCodes.ok;
      const now = JSON.stringify(view.records, (_, each) =>
        typeof each === 'bigint' ? String(each) : each,
      );
      if (isLive) drawFrame(output, view);
      else if (now !== before) {
        if (before !== '' && !output.isJson) output.line('');
        print(output, view);
      }
      before = now;
      await output.drained();
    }
  } catch (error) {
    if (!signal.aborted) throw error; // Ctrl-C is how a watch is meant to end
  } finally {
    if (isLive) {
      output.write(leave);
      await output.drained();
    }
  }
  return code;
}

export function print(output: Output, view: View): void {
  if (output.isJson) for (const record of view.records) output.record(record);
  else output.write(textOf(view));
}

export function textOf({ parts }: View): string {
  let text = '';
  const sink = {
    write(more: string) {
      text += more;
    },
  };
  for (const part of parts) {
    if (typeof part === 'string') {
      text += `${part}\n`;
      continue;
    }
    const columns = new Columns(sink, ...part.heads);
    for (const row of part.rows) columns.row(...row);
    columns.end();
  }
  return text;
}

export function drawFrame(output: Output, view: View): void {
  const time = new Date().toISOString().slice(11, 19);
  const lines = [`${time} · Ctrl-C ends`, ...textOf(view).split('\n').slice(0, -1)];
  const shown = lines.map((line) => `${line.slice(0, output.columns)}${clearLine}`);
  output.write(`${home}${shown.join('\r\n')}${clearBelow}`);
}

/** `3d 4h`, `12m 5s`, `0.4s`: the two units that matter. */
export function ageText(ms: number): string {
  if (ms < 0) return '0s';
  if (ms < 10_000) return `${Math.round(ms / 100) / 10}s`;
  const seconds = Math.floor(ms / 1_000);
  const units: readonly [number, string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'm'],
    [1, 's'],
  ];
  const at = units.findIndex(([size]) => seconds >= size);
  const [size, name] = units[at]!;
  const rest = Math.floor((seconds % size) / (units[at + 1]?.[0] ?? 1));
  const next = units[at + 1];
  const head = `${Math.floor(seconds / size)}${name}`;
  return next === undefined || rest === 0 ? head : `${head} ${rest}${next[1]}`;
}

/** Offsets are decimal everywhere in Kafka, in JSON too; as text only where a number would lie. */
export function offsetJson(offset: bigint | null): number | string | null {
  if (offset === null) return null;
  return offset <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(offset) : String(offset);
}

export function listText(ids: readonly (number | string)[]): string {
  return ids.length === 0 ? '-' : ids.join(',');
}
