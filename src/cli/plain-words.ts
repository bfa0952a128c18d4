/**
 * Reads the words of a command where they are plain, so that `drover ls /` need not load commander.
 *
 * In: the options of a command and its words. Out: what commander would make of them, or undefined where
 * that takes more than a look: a word with a dash that is no option by its own name (`-sR`, `--json=x`,
 * help), a value that is missing, too few or too many arguments. Whoever gets undefined asks commander,
 * which also knows how to complain. A test holds both against each other.
 */

import type { CommandOption, OptionValues } from './command.ts';

export interface PlainWords {
  readonly args: readonly string[];
  readonly options: OptionValues;
}

interface Shape {
  readonly key: string;
  readonly hasValue: boolean;
  readonly many: boolean;
  /** What it says where it has no value of its own: false for --no-…, which is true until it is said. */
  readonly says: boolean;
}

export function readPlainWords(
  usage: string,
  options: readonly CommandOption[],
  tokens: readonly string[],
): PlainWords | undefined {
  const shapes = new Map<string, Shape>();
  const keys = new Set<string>();
  const values: Record<string, string | boolean | readonly string[]> = {};
  for (const option of options) {
    const names = option.flags.match(/(?<=^|[ ,])--?[\w-]+/g) ?? [];
    const long = names.find((name) => name.startsWith('--'));
    // What may have a value is commander's to understand.
    if (option.flags.includes('[') || option.flags.includes('...')) return undefined;
    const isNo = long?.startsWith('--no-') === true;
    const key = camelCase((long ?? names[0]!).replace(isNo ? '--no-' : /^--?/, ''));
    // And so is what turns another off.
    if (keys.has(key)) return undefined;
    keys.add(key);
    const hasValue = option.flags.includes('<');
    const shape = { key, hasValue, many: option.many === true, says: !isNo };
    for (const name of names) shapes.set(name, shape);
    if (shape.many) values[key] = [];
    else if (isNo) values[key] = true;
  }
  const args: string[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (!token.startsWith('-')) {
      args.push(token);
      continue;
    }
    const shape = shapes.get(token);
    if (shape === undefined) return undefined;
    if (!shape.hasValue) values[shape.key] = shape.says;
    else {
      i += 1;
      const value = tokens[i];
      if (value === undefined) return undefined;
      const before = values[shape.key];
      values[shape.key] = shape.many ? [...(before as readonly string[]), value] : value;
    }
  }
  const places = usage.split(' ').slice(1);
  const needed = places.filter((place) => place.startsWith('<')).length;
  const isOpen = places.at(-1)?.includes('...') === true;
  if (args.length < needed || (args.length > places.length && !isOpen)) return undefined;
  return { args, options: values };
}

function camelCase(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
