/** What changed between two texts, line by line, bounded in time and in what it shows. */

import { isUtf8 } from 'node:buffer';
import { dataText, escaped } from './words.ts';

/** Beyond this the whole is said to have changed: the table below has so many cells, squared. */
const linesMax = 400;

export interface LineChange {
  readonly sign: '-' | '+';
  readonly text: string;
}

/** The longest common lines are kept; all else goes or comes. */
export function diffLines(before: readonly string[], after: readonly string[]): LineChange[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let [endA, endB] = [before.length, after.length];
  while (endA > start && endB > start && before[endA - 1] === after[endB - 1]) {
    endA--;
    endB--;
  }
  const a = before.slice(start, endA);
  const b = after.slice(start, endB);
  if (a.length > linesMax || b.length > linesMax) {
    return [
      { sign: '-', text: `${a.length} lines` },
      { sign: '+', text: `${b.length} lines` },
    ];
  }
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const same = a[i] === b[j];
      common[i]![j] = same
        ? common[i + 1]![j + 1]! + 1
        : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
    }
  }
  const changes: LineChange[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      i++;
      j++;
    } else if (i < a.length && (j === b.length || common[i + 1]![j]! >= common[i]![j + 1]!)) {
      changes.push({ sign: '-', text: a[i++]! });
    } else changes.push({ sign: '+', text: b[j++]! });
  }
  return changes;
}

const shownMax = 40;
const lineCharsMax = 200;

/** As lines for a person, escaped; empty where nothing changed. Binary data as one line each. */
export function diffData(before: Buffer | null, after: Buffer | null): string[] {
  if (before === after || (before !== null && after !== null && before.equals(after))) return [];
  const isText = (data: Buffer | null) => data === null || isUtf8(data);
  if (!isText(before) || !isText(after) || before === null || after === null) {
    return [`- ${dataText(before)}`, `+ ${dataText(after)}`];
  }
  const changes = diffLines(
    before.toString('utf8').split('\n'),
    after.toString('utf8').split('\n'),
  );
  const shown = changes.slice(0, shownMax).map(({ sign, text }) => {
    const safe = escaped(text.slice(0, lineCharsMax));
    return `${sign} ${safe}${text.length > lineCharsMax ? '…' : ''}`;
  });
  if (changes.length > shownMax) shown.push(`… and ${changes.length - shownMax} lines more`);
  return shown;
}
