/**
 * Finds the name that was probably meant, for "Did you mean …?". Ignores case. Returns undefined when
 * no known name is within `distanceMax` edits.
 *
 * @default distanceMax a third of the known name's length, at least 1
 */
export function nearest(
  name: string,
  known: Iterable<string>,
  distanceMax?: number,
): string | undefined {
  let best: { key: string; distance: number } | undefined;
  for (const key of known) {
    const most = distanceMax ?? Math.max(1, Math.floor(key.length / 3));
    // A distance is at least the difference in length, so a long name costs nothing.
    if (Math.abs(name.length - key.length) > most) continue;
    const distance = editDistance(name.toLowerCase(), key.toLowerCase());
    if (distance > most || (best !== undefined && distance >= best.distance)) continue;
    best = { key, distance };
  }
  return best?.key;
}

/** The number of letters to add, drop, change or swap. */
function editDistance(a: string, b: string): number {
  let above: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, above[j - 2]! + 1);
      }
      next.push(least);
    }
    above = row;
    row = next;
  }
  return row[b.length]!;
}
