/**
 * Who waits for whom in a line of readers and writers.
 *
 * A writer waits for everyone ahead, and so for the one just before it. A reader waits for writers ahead
 * alone, and so for the nearest of them: once that one is gone, those ahead of it are looked at again. A
 * reader that stands at a writer's own number is that writer's: it was let in by it, and stays when
 * the writer goes.
 */

import type { Rule } from './line.ts';

export const writePrefix = '__WRIT__';
export const readPrefix = '__READ__';

/** At one number the writer stands before the reader that it let in. */
export const readWritePrefixes = [writePrefix, readPrefix] as const;

const numberBehind = (name: string, prefix: string) => {
  const at = name.lastIndexOf(prefix);
  return at === -1 ? undefined : name.slice(at + prefix.length);
};

export const readersOrOneWriter: Rule = (line, at) => {
  const number = numberBehind(line[at]!, readPrefix);
  if (number === undefined) return at === 0 ? null : line[at - 1]!;
  for (let ahead = at - 1; ahead >= 0; ahead--) {
    const writer = numberBehind(line[ahead]!, writePrefix);
    if (writer !== undefined && writer !== number) return line[ahead]!;
  }
  return null;
};
