#!/usr/bin/env node
/** The `drover` command: argv in, an exit code out. */

import { Command as Program } from 'commander';
import { type Command, type CommandOption, commands, type OptionValues } from './commands.ts';
import { CommandError, exitCodes } from './exit-codes.ts';

function addOption(program: Program, { flags, about, many }: CommandOption): void {
  if (!many) program.option(flags, about);
  else program.option(flags, about, (value: string, all: string[]) => [...all, value], []);
}

function addCommand(program: Program, command: Command, ended: (code: number) => void): void {
  // What a command passes through would be taken for its own arguments.
  const name = command.passesThrough ? command.usage.split(' ')[0]! : command.usage;
  const added = program.command(name).description(command.about);
  for (const option of command.options) addOption(added, option);
  if (command.passesThrough) {
    added.argument('[command...]').passThroughOptions().usage('[options] [-- command…]');
  }
  added.action(async (...given: unknown[]) => {
    const options = given.at(-2) as OptionValues;
    const args = given
      .slice(0, -2)
      .flat()
      .filter((each) => each !== undefined) as string[];
    ended(await command.run(args, options));
  });
}

async function run(argv: readonly string[]): Promise<number> {
  let code: number = exitCodes.ok;
  const program = new Program('drover')
    .description('The ZooKeeper of the TypeScript world.')
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .exitOverride((end) => {
      throw end;
    });
  for (const command of Object.values(commands)) {
    addCommand(program, command, (ended) => {
      code = ended;
    });
  }
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommandError) {
      process.stderr.write(`drover: ${error.message}\n`);
      return error.exitCode;
    }
    const { code: kind, exitCode } = error as { code?: unknown; exitCode?: unknown };
    if (typeof kind === 'string' && kind.startsWith('commander.')) {
      return exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    }
    throw error;
  }
}

// A reader that went away (`drover … | head`) is no fault of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

process.exitCode = await run(process.argv.slice(2));
