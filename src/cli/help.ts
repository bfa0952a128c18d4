/** Help, out of the table: all commands in their groups, or one of them. */

import { nearest } from '../support/index.ts';
import { type CommandTable, commandNames, findCommand, groups } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { helpOf, longOf, nameOf, optionsOf } from './parse.ts';
import { escaped } from './words.ts';

export function overview(commands: CommandTable): string {
  const names = Object.entries(commands);
  const width = Math.max(...names.map(([name]) => name.length));
  const sections = Object.entries(groups).map(([group, title]) => {
    const lines = names
      .filter(([, command]) => command.group === group)
      .map(([name, { about }]) => `  ${name.padEnd(width)}  ${about}`);
    return lines.length === 0 ? '' : `${title}:\n${lines.join('\n')}\n\n`;
  });
  return `Usage: drover [--server HOSTS[/chroot]] command [options] [arguments]
       drover shell

${sections.join('')}drover help COMMAND says more of one. --json works with all of them.
`;
}

export function helpText(commands: CommandTable, name?: string): string {
  if (name === undefined) return overview(commands);
  const command = findCommand(commands, name);
  if (command === undefined) throw new CommandError('usage', unknownCommand(commands, name));
  return helpOf(command);
}

/** The table itself, for programs. */
export function tableJson(commands: CommandTable, name?: string): object[] {
  const chosen = name === undefined ? Object.values(commands) : [findCommand(commands, name)!];
  return chosen.map((command) => {
    const { usage, about, group, aliases = [], writes = false } = command;
    const { own, shared } = optionsOf(command);
    const options = [...own, ...shared].map((option) => ({
      flags: option.flags,
      about: option.about,
    }));
    return { name: nameOf(command), usage, about, group, aliases, writes, options };
  });
}

/** One sentence, with the name that was probably meant. */
export function unknownCommand(commands: CommandTable, name: string): string {
  const near = nearest(name, commandNames(commands));
  const shown = `"${escaped(name).slice(0, 60)}"`;
  return `Command not found: ${shown}; ${near ? `is ${near} meant?` : 'help lists them all'}`;
}

/** The same of an option before the command, where no command has it: the word behind it may be its value. */
export function unknownOption(
  commands: CommandTable,
  before: readonly string[],
): string | undefined {
  const known = Object.values(commands).flatMap((command) => {
    const { own, shared } = optionsOf(command);
    return [...own, ...shared].flatMap(({ flags }) => longOf(flags) ?? []);
  });
  const option = before.at(-1);
  if (option === undefined || !/^--[\w-]+$/.test(option) || known.includes(option))
    return undefined;
  if (option === '--help' || option === '--version') return undefined;
  const near = nearest(option, known);
  return `unknown option '${option}'; ${near ? `is ${near} meant?` : 'help lists them all'}`;
}
