/**
 * What may stand where the cursor is: commands, flags, paths of nodes, words that the table names.
 *
 * In: the line up to the cursor. Out: what could replace its last word, best first. A prefix comes before
 * a fuzzy match, and every name on the way may be fuzzy: `/br/to` finds `/brokers/topics`. Names that a
 * terminal could trip over are never offered.
 */

import type { Client } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import {
  type ArgKind,
  type Command,
  type CommandOption,
  type CommandTable,
  findCommand,
} from './command.ts';
import { longOf, optionsOf } from './parse.ts';
import { resolvePath } from './paths.ts';
import { connectionOptions } from './target.ts';
import { quotedWord, tokens } from './tokens.ts';
import { unprintable } from './words.ts';

export interface Candidate {
  readonly value: string;
  readonly about: string;
}

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** What they replace: the end of the line. */
  readonly word: string;
}

export interface Surroundings {
  readonly commands: CommandTable;
  readonly cwd: string;
  /** Null where no server answers: then paths are not completed. */
  client(): Promise<Client | null>;
  contexts(): Promise<readonly string[]>;
}

const candidatesMax = 200;
/** Ways that a fuzzy name in the middle of a path may be followed. */
const waysMax = 8;

export async function complete(line: string, around: Surroundings): Promise<Completion> {
  const { commands } = around;
  const word = lastWord(line);
  const before = tokens(line.slice(0, line.length - word.length));
  const bare = word.replace(/^["']/, '');
  const at = commandAt(before);
  if (at === undefined) {
    const all = Object.entries(commands).map(([value, { about }]) => ({ value, about }));
    return { word, candidates: await ranked(all, bare) };
  }
  const command = findCommand(commands, before[at]!);
  if (command === undefined) return { word, candidates: [] };
  const { own, shared } = optionsOf(command);
  const options = [...own, ...shared];
  const previous = before.at(-1);
  const asking = options.find((option) => takesValue(option, previous));
  if (asking !== undefined) return { word, candidates: await ofKind(asking.value, bare, around) };
  if (bare.startsWith('-')) {
    const flags = options.map(({ flags, about }) => ({
      value: longOf(flags) ?? flags.split(/[ ,]/, 1)[0]!,
      about,
    }));
    return { word, candidates: await ranked(flags, bare) };
  }
  const index = positionals(before.slice(at + 1), options).length;
  return { word, candidates: await ofKind(kindAt(command, index), bare, around) };
}

/** The end of the line from its last word's beginning, an opening quote included. */
function lastWord(line: string): string {
  const quote = /(?:^|\s)(["'][^"']*)$/.exec(line)?.[1];
  if (quote !== undefined && tokens(line.slice(0, line.length - quote.length) || ' ')) {
    const opened = quote[0]!;
    if (line.split(opened).length % 2 === 0) return quote;
  }
  return /\S*$/.exec(line)![0];
}

/** Which word is the command: the first that is neither an option nor the value of one. */
function commandAt(words: readonly string[]): number | undefined {
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (!word.startsWith('-')) return i;
    if (word === '-server' || connectionOptions.some((option) => takesValue(option, word))) i += 1;
  }
  return undefined;
}

function takesValue({ flags }: CommandOption, word: string | undefined): boolean {
  if (word === undefined || !flags.includes('<')) return false;
  return flags.replace(/<.*/, '').split(/[ ,]+/).includes(word);
}

function positionals(words: readonly string[], options: readonly CommandOption[]): string[] {
  return words.filter((word, i) => {
    if (word.startsWith('-')) return false;
    return !options.some((option) => takesValue(option, words[i - 1]));
  });
}

function kindAt({ args = [] }: Command, index: number): ArgKind | undefined {
  if (index < args.length) return args[index];
  const last = args.at(-1);
  return last === 'path' || last === 'file' ? last : undefined;
}

async function ofKind(
  kind: ArgKind | undefined,
  word: string,
  around: Surroundings,
): Promise<Candidate[]> {
  const words = (values: readonly string[]) => values.map((value) => ({ value, about: '' }));
  if (kind === 'path') return paths(word, around);
  if (kind === 'context') {
    return ranked(words(await around.contexts().catch(() => [])), word); // their file may be damaged
  }
  if (kind === 'command') {
    const all = Object.entries(around.commands).map(([value, { about }]) => ({ value, about }));
    return ranked(all, word);
  }
  return typeof kind === 'object' ? ranked(words(kind), word) : [];
}

/** What begins with the word, in the order of the names; else what matches it somehow, best first. */
export async function ranked(all: readonly Candidate[], word: string): Promise<Candidate[]> {
  const safe = all.filter(({ value }) => value.search(unprintable) === -1);
  const begun = safe.filter(({ value }) => value.startsWith(word));
  if (begun.length > 0 || word === '') {
    return begun.sort((a, b) => (a.value < b.value ? -1 : 1)).slice(0, candidatesMax);
  }
  // What it gives to `require` is empty, and the built command is CommonJS.
  const { Fzf } = await import('fzf');
  const finder = new Fzf(safe, { selector: ({ value }: Candidate) => value, limit: candidatesMax });
  return finder.find(word).map(({ item }: { item: Candidate }) => item);
}

async function paths(word: string, around: Surroundings): Promise<Candidate[]> {
  const client = await around.client();
  if (client === null) return [];
  const slash = word.lastIndexOf('/');
  const [folder, name] = [word.slice(0, slash + 1), word.slice(slash + 1)];
  const found: Candidate[] = [];
  for (const { shown, path } of await ways(client, folder, around.cwd)) {
    const children = await childrenOf(client, path);
    const all = children.map((child) => ({ value: child, about: '' }));
    for (const { value } of await ranked(all, name)) {
      const full = `${shown}${value}`;
      // At the beginning of a word a dash would make an option of it, as --server=elsewhere.
      if (full.startsWith('-') || quotedWord(full).includes('\n')) continue;
      found.push({ value: quotedWord(full), about: '' });
    }
  }
  return found.slice(0, candidatesMax);
}

interface Way {
  /** As it is written on the line, with the slash at its end. */
  readonly shown: string;
  readonly path: string;
}

/** The folders that may be meant: the one that is written, or those that match it name by name. */
async function ways(client: Client, folder: string, cwd: string): Promise<Way[]> {
  const asWritten = resolvePath(cwd, folder);
  if (folder === '' || (await exists(client, asWritten))) {
    return [{ shown: folder, path: asWritten }];
  }
  const isAbsolute = folder.startsWith('/');
  let all: Way[] = [{ shown: isAbsolute ? '/' : '', path: isAbsolute ? '/' : cwd }];
  for (const name of folder.split('/').filter(Boolean)) {
    const next: Way[] = [];
    for (const way of all) {
      if (name === '.' || name === '..') {
        next.push({ shown: `${way.shown}${name}/`, path: resolvePath(way.path, name) });
        continue;
      }
      const children = await childrenOf(client, way.path);
      const same = children.filter((child) => child === name);
      const candidates = same.length > 0 ? same : children;
      const fitting = await ranked(
        candidates.map((value) => ({ value, about: '' })),
        name,
      );
      for (const { value } of fitting.slice(0, waysMax)) {
        next.push({ shown: `${way.shown}${value}/`, path: childOf(way.path, value) });
      }
    }
    all = next.slice(0, waysMax);
  }
  return all;
}

async function exists(client: Client, path: string): Promise<boolean> {
  return (await client.exists(path, { timeoutMs: askTimeoutMs }).catch(() => null)) !== null;
}

/** Nobody waits for a completion. */
const askTimeoutMs = 2_000;

async function childrenOf(client: Client, path: string): Promise<string[]> {
  return client.children(path, { timeoutMs: askTimeoutMs }).catch(() => []);
}
