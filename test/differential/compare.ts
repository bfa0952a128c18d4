/** Two servers' lines side by side: the first that differ and are not allowed to. */

import { allowed } from './allowed.ts';
import { type Line, normalise } from './normalise.ts';
import type { Transcript } from './play.ts';
import type { Script } from './script.ts';

export interface Difference {
  readonly link: number;
  readonly command: number;
  readonly apache: string;
  readonly ours: string;
}

export interface Comparison {
  readonly difference: Difference | undefined;
  readonly lines: number;
  /** How often each allowed difference was met. */
  readonly allowed: ReadonlyMap<string, number>;
  /** How often Apache answered which op with which code, and told of which event. */
  readonly tally: ReadonlyMap<string, number>;
}

const nothing: Line = { text: 'nothing', command: -1 };

export function compare(script: Script, apache: Transcript, ours: Transcript): Comparison {
  return compareLines(script, normalise(apache), normalise(ours));
}

/** The lines of each link, as `normalise` has them. */
export function compareLines(
  script: Script,
  theirs: readonly (readonly Line[])[],
  own: readonly (readonly Line[])[],
): Comparison {
  const met = new Map<string, number>();
  const tally = new Map<string, number>();
  let lines = 0;
  const found: Difference[] = [];
  for (let link = 0; link < Math.max(theirs.length, own.length); link++) {
    const a = theirs[link] ?? [];
    const b = own[link] ?? [];
    for (let at = 0; at < Math.max(a.length, b.length); at++) {
      lines += 1;
      const left = a[at] ?? nothing;
      const right = b[at] ?? nothing;
      if (left.command !== -1) count(tally, kindOf(left.text));
      if (left.text === right.text) continue;
      const command = left.command !== -1 ? left.command : right.command;
      const rule = allowed.find((one) =>
        one.applies(script.commands[command], left.text, right.text),
      );
      if (rule === undefined) {
        found.push({ link, command, apache: left.text, ours: right.text });
        break;
      }
      count(met, rule.name);
    }
  }
  // The earliest is the cause, or nearest to it; those around the script come last.
  const when = ({ command }: Difference) => (command === -1 ? Number.POSITIVE_INFINITY : command);
  found.sort((a, b) => when(a) - when(b));
  return { difference: found[0], lines, allowed: met, tally };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function kindOf(text: string): string {
  const reply = /^reply to ([^:]+): .*? err (-?\d+)/.exec(text);
  if (reply !== null) return `${reply[1]} ${reply[2]}`;
  return /^event .*?type \d/.exec(text)?.[0].replace(/xid.*type/, 'type') ?? text.split(' ')[0]!;
}
