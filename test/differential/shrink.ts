/** The shortest script that still shows a difference: what can be left out is. */

import type { Command, Script } from './script.ts';

/**
 * `fails` plays a script and says whether it shows a difference. Larger stretches go first, then ever
 * smaller ones, down to single commands.
 */
export async function shrink(
  script: Script,
  fails: (script: Script) => Promise<boolean>,
  attemptsMax = 400,
): Promise<Script> {
  let commands: readonly Command[] = script.commands;
  let attempts = 0;
  const without = async (rest: readonly Command[]): Promise<boolean> => {
    attempts += 1;
    if (!(await fails({ ...script, commands: rest }))) return false;
    commands = rest;
    return true;
  };
  for (let size = Math.ceil(commands.length / 2); size >= 1; ) {
    let hasShrunk = false;
    for (let at = commands.length - size; at > -size && attempts < attemptsMax; at -= size) {
      const start = Math.max(0, at);
      const rest = [...commands.slice(0, start), ...commands.slice(at + size)];
      if (await without(rest)) hasShrunk = true;
    }
    if (attempts >= attemptsMax) break;
    if (size === 1 && !hasShrunk) break;
    if (size > 1) size = Math.ceil(size / 2);
  }
  return { ...script, commands };
}
