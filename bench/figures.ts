/** Figures: the middle of several, ratios, and tables for people to read. */

export interface Try {
  readonly opsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Of the process that is measured, for each op. */
  readonly cpuUs: number;
  /** The share of the machine that others took meanwhile. */
  readonly others: number;
}

export interface Figure extends Try {
  readonly tries: readonly Try[];
  /** Every try was disturbed, so that even the middle of them says little. */
  readonly isDisturbed: boolean;
}

/** A try during which others took more than this is left out, as long as there is another. */
const othersMax = 0.1;

export const disturbedMark = '~';
export const disturbedLegend = `a figure with ${disturbedMark}: others took more than a tenth of the machine in every try of it`;

export function figureOf(tries: readonly Try[]): Figure {
  const calm = tries.filter(({ others }) => !(others > othersMax));
  const isDisturbed = calm.length === 0;
  const counted = isDisturbed ? tries : calm;
  const middle = (pick: (one: Try) => number) => median(counted.map(pick));
  return {
    opsPerSecond: middle((one) => one.opsPerSecond),
    p50Us: middle((one) => one.p50Us),
    p99Us: middle((one) => one.p99Us),
    cpuUs: middle((one) => one.cpuUs),
    others: middle((one) => one.others),
    tries,
    isDisturbed,
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** Three digits that count: 1,230 or 12.3 or 0.123. */
export function short(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return '-';
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** Columns as wide as their widest cell; the first to the left, the others to the right. */
export function tableText(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) =>
        i === 0 || i === row.length - 1 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!),
      )
      .join('  ')
      .trimEnd();
  return [
    line(rows[0]!),
    line(widths.map((width) => '-'.repeat(width))),
    ...rows.slice(1).map(line),
  ].join('\n');
}
