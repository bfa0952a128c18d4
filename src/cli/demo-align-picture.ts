/**
 * A picture of how far partitions are in event time, and where the limit stands.
 *
 *   orders/0  ann  ████████████████▌   ┊              reading
 *   orders/1  bob  ████████████████████┊              paused
 *   clicks/1  cid  ██████              ┊              idle
 *                  12:00               12:16     12:30
 */

import type { inspect } from 'node:util';

export interface BarRow {
  readonly name: string;
  readonly owner: string;
  readonly state: string;
  readonly positionMs: number | null;
}

export interface Scale {
  readonly startMs: number;
  readonly endMs: number;
  readonly limitMs: number | null;
  /** Characters from start to end. */
  readonly width: number;
}

/** Colours by state. */
// biome-ignore format: a table is read down its columns
export const barOf: Readonly<Record<string, keyof typeof inspect.colors>> = {
  reading:  'green',
  paused:   'yellow',
  idle:     'gray',
  finished: 'blue',
  stopped:  'red',
};

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const mark = '┊';

export function bars(
  rows: readonly BarRow[],
  scale: Scale,
  paint: (state: string, text: string) => string = (_, text) => text,
): string[] {
  const widest = (of: (row: BarRow) => string) => Math.max(0, ...rows.map((row) => of(row).length));
  const [names, owners] = [widest(({ name }) => name), widest(({ owner }) => owner)];
  const limitAt = scale.limitMs === null ? null : Math.round(placeOf(scale.limitMs, scale));
  const drawn = rows.map((row) => {
    const head = `${row.name.padEnd(names)}  ${row.owner.padEnd(owners)}  `;
    const full = row.positionMs === null ? 0 : placeOf(row.positionMs, scale);
    const cells = [...`${'█'.repeat(Math.floor(full))}${eighths[Math.floor((full % 1) * 8)]}`];
    const line = Array.from({ length: scale.width + 1 }, (_, i) => {
      if (i === limitAt) return mark;
      return cells[i] === undefined ? ' ' : paint(row.state, cells[i]);
    });
    return `${head}${line.join('')}  ${paint(row.state, row.state)}`;
  });
  return [...drawn, `${' '.repeat(names + owners + 4)}${axisOf(scale, limitAt)}`];
}

function placeOf(timeMs: number, { startMs, endMs, width }: Scale): number {
  const share = (timeMs - startMs) / (endMs - startMs);
  return Math.max(0, Math.min(1, share)) * width;
}

/** Where it begins and ends, and the limit between them where there is room. */
function axisOf({ startMs, endMs, limitMs, width }: Scale, limitAt: number | null): string {
  const clock = (ms: number) => new Date(ms).toISOString().slice(11, 16);
  const axis = [...' '.repeat(width + 5)];
  const put = (at: number, text: string) => axis.splice(at, text.length, ...text);
  put(0, clock(startMs));
  put(width - 2, clock(endMs));
  if (limitMs !== null && limitAt !== null && limitAt > 6 && limitAt < width - 9) {
    put(limitAt, clock(limitMs));
  }
  return axis.join('').trimEnd();
}
