/**
 * Who held what when, told by the holders themselves, Java's and ours: History.java writes the same lines.
 *
 *   enter|leave  kind  who  token
 *
 * In: a file that all append to. Out: what of it must not have happened. Without faults nobody enters
 * before the one before has left, so that overlaps are errors and not only a matter of tokens.
 */

import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type HeldKind = 'lock' | 'term' | 'write' | 'read' | 'lease';

export interface HistoryFile {
  readonly path: string;
  enter(kind: HeldKind, who: string, token: bigint): void;
  leave(kind: HeldKind, who: string, token: bigint): void;
  lines(): string[];
  [Symbol.dispose](): void;
}

export function historyFile(): HistoryFile {
  const folder = mkdtempSync(join(tmpdir(), 'drover-history-'));
  const path = join(folder, 'history');
  writeFileSync(path, '');
  const write = (what: string) => (kind: HeldKind, who: string, token: bigint) =>
    appendFileSync(path, `${what} ${kind} ${who} ${token}\n`);
  return {
    path,
    enter: write('enter'),
    leave: write('leave'),
    lines: () => readFileSync(path, 'utf8').split('\n').slice(0, -1),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Everything that is wrong with it; `leasesMax` is how many leases there are. */
export function faultsOf(lines: readonly string[], leasesMax = 1): string[] {
  const faults: string[] = [];
  const inside = new Map<string, HeldKind>();
  const tokens = new Set<string>();
  let last = -1n;
  for (const line of lines) {
    const [what, kind, who, token] = line.split(' ') as [string, HeldKind, string, string];
    const key = `${who} ${token}`;
    if (what === 'leave') {
      if (!inside.delete(key)) faults.push(`${line}: was not inside`);
      continue;
    }
    const others = [...inside.values()];
    const isShared = kind === 'read' ? others.every((one) => one === 'read') : others.length === 0;
    const isFree = kind === 'lease' ? others.length < leasesMax : isShared;
    if (!isFree) faults.push(`${line}: with ${[...inside.keys()].join(', ')} inside`);
    if (kind !== 'read' && tokens.has(token)) faults.push(`${line}: the token was given before`);
    if (kind !== 'read' && kind !== 'lease') {
      if (BigInt(token) <= last) faults.push(`${line}: the token is not above ${last}`);
      last = BigInt(token);
    }
    tokens.add(token);
    inside.set(key, kind);
  }
  for (const key of inside.keys()) faults.push(`${key} never left`);
  return faults;
}

/** How often the history goes from one language to the other. */
export function handOversOf(lines: readonly string[]): number {
  const entered = lines
    .filter((line) => line.startsWith('enter'))
    .map((line) => line.split(' ')[2]!);
  const side = (who: string) => who.startsWith('java');
  return entered.filter((who, i) => i > 0 && side(who) !== side(entered[i - 1]!)).length;
}
