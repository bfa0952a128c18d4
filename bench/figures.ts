/** Figures: the middle of several, ratios, and tables for people to read. */

export interface Try {
  readonly opsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Where a row is judged by it. */
  readonly p999Us?: number;
  /** Of the process that is measured, for each op. */
  readonly cpuUs: number;
  /** The share of the machine that others took meanwhile. */
  readonly others: number;
  /** In which turn, where several are measured in turns. */
  readonly round?: number;
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
  const calm = tries.filter(isCalm);
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

export function isCalm({ others }: Try): boolean {
  return !(others > othersMax);
}

/** The middle of several ratios, and how far they are apart. */
export interface Ratio {
  readonly middle: number;
  readonly least: number;
  readonly most: number;
}

/**
 * Round by round: a machine that others share is twice as fast in one minute as in the next, and what was
 * measured within seconds is what compares. Rounds in which either was disturbed count only if all were.
 */
export function ratioOf(ours: Figure, theirs: Figure, pick: (one: Try) => number): Ratio {
  const pairs = ours.tries.flatMap((one) => {
    const other = theirs.tries.find(({ round }) => round === one.round);
    if (other === undefined) return [];
    return { ratio: pick(one) / pick(other), isCalm: isCalm(one) && isCalm(other) };
  });
  const calm = pairs.filter((pair) => pair.isCalm);
  return middleOf((calm.length > 0 ? calm : pairs).map(({ ratio }) => ratio));
}

export function middleOf(ratios: readonly number[]): Ratio {
  return { middle: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
}

export function ratioText({ middle, least, most }: Ratio): string {
  return least === most
    ? `${short(middle)}x`
    : `${short(middle)}x (${short(least)} to ${short(most)})`;
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
