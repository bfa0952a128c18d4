/**
 * All commands, in one table: argv, the shell, help, completion and the console read it. A command's
 * code is loaded when it is run, so that no command pays for another's dependencies.
 */

import type { CommandTable } from './command.ts';
import { accessCommands } from './commands/access.ts';
import { alignCommands } from './commands/align.ts';
import { consoleCommands } from './commands/console.ts';
import { copyCommands } from './commands/copy.ts';
import { ensembleCommands } from './commands/ensemble.ts';
import { kafkaCommands } from './commands/kafka.ts';
import { nodeCommands } from './commands/nodes.ts';
import { operatorCommands } from './commands/operators.ts';
import { recipeCommands } from './commands/recipes.ts';
import { serverCommands } from './commands/servers.ts';
import { shellCommands } from './commands/shell.ts';
import { treeCommands } from './commands/trees.ts';

export const commands: CommandTable = {
  ...nodeCommands,
  ...treeCommands,
  ...accessCommands,
  ...serverCommands,
  ...shellCommands,
  ...copyCommands,
  ...ensembleCommands,
  ...operatorCommands,
  ...recipeCommands,
  ...kafkaCommands,
  ...alignCommands,
  ...consoleCommands,
};
