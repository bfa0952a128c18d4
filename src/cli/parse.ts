/**
 * A command's words, after its name, as arguments and options: commander reads the table's entry, and
 * plain-words.ts those words that need no commander.
 *
 * zkCli's habits come first: `-server HOSTS` and its like have one dash, and `-?` asks for help. What is
 * behind `--` is never touched.
 */

import { Option, Command as Program } from 'commander';
import type { Command, CommandOption, OptionValues } from './command.ts';
import { readPlainWords } from './plain-words.ts';
import { connectionOptions } from './target.ts';
import { escapedLines } from './words.ts';

export interface Parsed {
  readonly args: readonly string[];
  readonly options: OptionValues;
}

export interface HelpStreams {
  out(text: string): void;
  err(text: string): void;
}

/** zkCli's words with one dash, wherever a server may be named. `-waitforconnection` is what we always do. */
const oneDashWords: Readonly<Record<string, string | null>> = {
  '-server': '--server',
  '-timeout': '--session-timeout',
  '-client-configuration': '--client-configuration',
  '-waitforconnection': null,
};

const json: CommandOption = { flags: '--json', about: 'JSON instead of text, an object a line' };
const debug: CommandOption = {
  flags: '--debug',
  about: 'shows the stack trace of an internal error',
};

export function nameOf(command: Command): string {
  return command.usage.split(' ', 1)[0]!;
}

/** All that a command takes: its own options, then what every command has. */
export function optionsOf(command: Command): { own: CommandOption[]; shared: CommandOption[] } {
  const own = [...command.options];
  const isTaken = (flags: string) => own.some((each) => longOf(each.flags) === longOf(flags));
  for (const option of [json, debug]) if (!isTaken(option.flags)) own.push(option);
  const shared = command.isLocal ? [] : connectionOptions.filter(({ flags }) => !isTaken(flags));
  return { own, shared };
}

export function longOf(flags: string): string | undefined {
  return /--[\w-]+/.exec(flags)?.[0];
}

/** Rewrites zkCli's spellings, up to `--`, and for commands that run another up to that one's name. */
export function normalised(tokens: readonly string[], command?: Command): string[] {
  const end = tokens.indexOf('--');
  const reach = end === -1 ? tokens.length : end;
  const ours = new Set((command?.oneDash ?? []).map((word) => `-${word}`));
  const result: string[] = [];
  let isPassed = false;
  for (const [i, token] of tokens.entries()) {
    if (i >= reach || isPassed) result.push(token);
    else if (token === '-?') result.push('--help');
    else if (Object.hasOwn(oneDashWords, token)) {
      const long = oneDashWords[token];
      if (long != null) result.push(long);
    } else if (ours.has(token)) result.push(`-${token}`);
    else result.push(token);
    if (command?.passesThrough && !token.startsWith('-') && !takesValue(tokens[i - 1], command)) {
      isPassed = true;
    }
  }
  return result;
}

function takesValue(token: string | undefined, command: Command): boolean {
  if (token === undefined || !token.startsWith('-')) return false;
  const { own, shared } = optionsOf(command);
  return [...own, ...shared].some(({ flags }) => {
    const names = flags.replace(/<.*/, '').split(/[ ,]+/);
    return flags.includes('<') && (names.includes(token) || oneDashWords[token] === longOf(flags));
  });
}

/** Throws commander's errors, whose `exitCode` is 0 for help; what they say has been printed by then. */
export function parse(command: Command, tokens: readonly string[], streams: HelpStreams): Parsed {
  const words = normalised(tokens, command);
  const plain = command.passesThrough ? undefined : plainWordsOf(command, words);
  if (plain !== undefined) return plain;
  const program = programOf(command, streams);
  program.parse(words, { from: 'user' });
  return { args: program.args, options: program.opts() };
}

function plainWordsOf(command: Command, words: readonly string[]): Parsed | undefined {
  const { own, shared } = optionsOf(command);
  return readPlainWords(command.usage, [...own, ...shared], words);
}

/** Commander's own word on it, which `parse` is to agree with. */
export function parseByCommander(command: Command, tokens: readonly string[]): Parsed {
  const program = programOf(command, { out() {}, err() {} });
  program.parse(normalised(tokens, command), { from: 'user' });
  return { args: program.args, options: program.opts() };
}

export function helpOf(command: Command): string {
  return programOf(command, { out() {}, err() {} }).helpInformation();
}

function programOf(command: Command, { out, err }: HelpStreams): Program {
  const name = nameOf(command);
  const program = new Program(`drover ${name}`)
    .description(command.about)
    .exitOverride()
    .configureOutput({
      writeOut: out,
      writeErr: err,
      outputError: (text, write) => write(escapedLines(text.replace(/^error: /, 'drover: '))),
    })
    .showHelpAfterError(`it is drover ${command.usage}; drover help ${name} says more`);
  const positional = command.usage.slice(name.length).trim();
  if (positional !== '') program.arguments(positional);
  if (command.passesThrough) program.passThroughOptions();
  if (command.aliases !== undefined) {
    program.addHelpText('after', `\nAlso: ${command.aliases.join(', ')}`);
  }
  const { own, shared } = optionsOf(command);
  for (const option of own) program.addOption(commanderOption(option));
  for (const option of shared) {
    program.addOption(commanderOption(option).helpGroup('Where and who:'));
  }
  return program;
}

function commanderOption({ flags, about, many }: CommandOption): Option {
  const option = new Option(flags, about);
  // The list is empty unless given, and made anew for every line.
  if (many) option.default([], 'none').argParser((value, all: string[]) => [...all, value]);
  return option;
}
