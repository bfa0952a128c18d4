/**
 * `drover top`: what the servers do, second by second, on the terminal's other screen.
 *
 * Each frame is drawn whole and in one write, over the one before, so that nothing flickers and nothing
 * is left when it ends: Ctrl-C brings the old screen back. Where nobody watches it prints a frame and
 * ends; with --json it prints a line for each server, --count times.
 */

import { setTimeout as delay } from 'node:timers/promises';
import type { Context, OptionValues } from './command.ts';
import { exitCodes } from './exit-codes.ts';
import { serversOf } from './four-letter.ts';
import { escaped } from './output.ts';
import { type ServerRow, serverRows } from './server-facts.ts';
import { cellsOf, heads, quorumOf, rowRecord, thousands } from './status.ts';
import { within } from './within.ts';

const enter = '\x1b[?1049h\x1b[?25l';
const leave = '\x1b[?25h\x1b[?1049l';
const home = '\x1b[H';
const clearLine = '\x1b[K';
const clearBelow = '\x1b[J';

export async function top(
  context: Context,
  _: readonly string[],
  options: OptionValues,
): Promise<number> {
  const { output, signal } = context;
  const intervalMs = 1_000 * within(options.interval, '--interval', 0.2, 3_600, 1);
  const isLive = output.isTty && !output.isJson;
  const frames =
    options.count === undefined
      ? isLive
        ? Number.POSITIVE_INFINITY
        : 1
      : within(options.count, '--count', 1, 1e9, 1);
  const target = await context.target();
  const servers = serversOf(target);
  let before: Sample | undefined;
  if (isLive) output.write(enter);
  try {
    for (let frame = 0; frame < frames; frame++) {
      if (frame > 0) await delay(intervalMs, undefined, { signal });
      const rows = await serverRows(servers, { signal, tls: target.client.tls, timeoutMs: 2_000 });
      const sample = { rows, atMs: performance.now() };
      const rates = rows.map((row, i) => rateOf(row, before?.rows[i], before, sample));
      if (output.isJson) {
        rows.forEach((row, i) => {
          output.record({ ...rowRecord(row), perSecond: rates[i] ?? null });
        });
      } else output.write(frameOf(rows, rates, isLive ? output : null));
      await output.drained();
      before = sample;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    if (!isLive) throw error; // a person ends it so; a script was interrupted
  } finally {
    if (isLive) {
      output.write(leave);
      await output.drained();
    }
  }
  return exitCodes.ok;
}

interface Sample {
  readonly rows: readonly ServerRow[];
  readonly atMs: number;
}

/** Packets a second; undefined before there are two samples, or after somebody set the counters back. */
function rateOf(
  row: ServerRow,
  old: ServerRow | undefined,
  before: Sample | undefined,
  now: Sample,
): number | undefined {
  if (row.received === undefined || old?.received === undefined || before === undefined)
    return undefined;
  const more = row.received - old.received;
  return more < 0 ? undefined : Math.round((1_000 * more) / (now.atMs - before.atMs));
}

/** All lines of a frame. On a screen, none is wider than it, and what goes below it is only counted. */
export function frameOf(
  rows: readonly ServerRow[],
  rates: readonly (number | undefined)[],
  screen: { readonly columns: number; readonly rows: number } | null,
): string {
  const cells = [
    [...heads.slice(0, -1), 'REQ/S', 'NODES', ''],
    ...rows.map((row, i) => {
      const all = cellsOf(row);
      const rate = rates[i];
      const nodes = row.nodes === undefined ? '-' : thousands(row.nodes);
      return [...all.slice(0, -1), rate === undefined ? '-' : thousands(rate), nodes, all.at(-1)!];
    }),
  ];
  const widths = cells[0]!.map((_, i) => Math.max(...cells.map((row) => row[i]!.length)));
  const { sentence } = quorumOf(rows);
  const lines = [
    escaped(
      `${sentence} · ${new Date().toISOString().slice(11, 19)}${screen ? ' · Ctrl-C ends' : ''}`,
    ),
    ...cells.map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    ),
  ];
  if (screen === null) return `${lines.join('\n')}\n`;
  if (lines.length > screen.rows) {
    const hidden = lines.length - screen.rows + 1;
    lines.splice(screen.rows - 1, hidden, `… ${hidden} more`);
  }
  const shown = lines.map((line) => `${line.slice(0, screen.columns)}${clearLine}`);
  return `${home}${shown.join('\r\n')}${clearBelow}`;
}
