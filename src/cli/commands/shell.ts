/** The shell, and what means something in it. */

import type { Command } from '../command.ts';

const load = () => import('../shell-commands.ts');
const shells = ['bash', 'zsh', 'fish'] as const;

// biome-ignore format: a table is read down its columns
export const shellCommands: Readonly<Record<string, Command>> = {
  shell: {
    usage: 'shell [script]',
    about: 'opens a prompt, or runs the lines of a script or of standard input',
    group: 'shell',
    options: [
      { flags: '-c <line>',       about: 'runs this line and ends', many: true },
      { flags: '--stop-on-error', about: 'a script ends at the first line that fails' },
    ],
    args: ['file'],
    only: 'argv', ownsSignals: true,
    run: async (context, args, options) => (await import('../terminal.ts')).shell(context, args, options),
  },
  help: {
    usage: 'help [command]',
    about: 'lists all commands, or explains one',
    group: 'shell',
    options: [],
    args: ['command'],
    isLocal: true,
    run: async (context, args) => (await load()).help(context, args),
  },
  completion: {
    usage: 'completion <shell>',
    about: 'prints a script that completes drover in bash, zsh or fish',
    group: 'shell',
    options: [],
    args: [shells],
    isLocal: true,
    run: async (context, args) => (await import('../completion-scripts.ts')).completion(context, args),
  },
  complete: {
    usage: 'complete [line]',
    about: 'prints what could stand at the end of a line; the completion scripts ask it',
    group: 'shell',
    options: [],
    run: async (context, args) => (await import('../completion-scripts.ts')).completeLine(context, args),
  },
  cd: {
    usage: 'cd [path]',
    about: 'goes to a node; cd - goes back',
    group: 'shell',
    options: [],
    args: ['path'],
    only: 'shell',
    run: async (context, args) => (await load()).cd(context, args),
  },
  pwd: {
    usage: 'pwd',
    about: 'says which node we are at',
    group: 'shell',
    options: [],
    isLocal: true,
    run: async (context) => (await load()).pwd(context),
  },
  history: {
    usage: 'history',
    about: 'shows the last lines by their numbers',
    group: 'shell',
    options: [],
    isLocal: true, only: 'shell',
    run: async (context) => (await load()).history(context),
  },
  redo: {
    usage: 'redo <number>',
    about: 'runs a line again',
    group: 'shell',
    options: [],
    isLocal: true, only: 'shell',
    run: async (context, args) => (await load()).redo(context, args),
  },
  printwatches: {
    usage: 'printwatches [on-or-off]',
    about: 'says whether events are printed, or switches that',
    group: 'shell',
    options: [],
    args: [['on', 'off']],
    isLocal: true, only: 'shell',
    run: async (context, args) => (await load()).printWatches(context, args),
  },
  connect: {
    usage: 'connect [servers]',
    about: 'begins a new session, perhaps elsewhere',
    group: 'shell',
    options: [],
    isLocal: true, only: 'shell',
    run: async (context, args) => (await load()).connect(context, args),
  },
  close: {
    usage: 'close',
    about: 'ends the session, and its ephemeral nodes with it',
    group: 'shell',
    options: [],
    isLocal: true, only: 'shell',
    run: async (context) => (await load()).close(context),
  },
  quit: {
    usage: 'quit',
    about: 'leaves the shell',
    group: 'shell',
    options: [],
    aliases: ['exit'],
    isLocal: true, only: 'shell',
    run: async (context) => (await load()).quit(context),
  },
};
