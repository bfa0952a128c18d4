/** Nodes one by one, as zkCli has them. */

import type { Command, CommandOption } from '../command.ts';

const stat: CommandOption = { flags: '-s', about: 'the Stat too' };
const watch: CommandOption = {
  flags: '-w',
  about: 'and watch it: a shell prints the event, by itself it is waited for',
};
const version: CommandOption = { flags: '-v <version>', about: 'only if the version is this one' };
const file: CommandOption = {
  flags: '--file <file>',
  about: 'the data out of a file; - is standard input',
  value: 'file',
};

const load = () => import('../nodes.ts');

// biome-ignore format: a table is read down its columns
export const nodeCommands: Readonly<Record<string, Command>> = {
  ls: {
    usage: 'ls [path] [watch]',
    about: 'lists the children of a node',
    group: 'nodes',
    options: [stat, watch, { flags: '-R', about: 'all that is below it' }],
    args: ['path'],
    run: async (context, args, options) => (await load()).ls(context, args, options),
  },
  ls2: {
    usage: 'ls2 [path] [watch]',
    about: 'is ls -s',
    group: 'nodes',
    options: [watch],
    args: ['path'],
    run: async (context, args, options) => (await load()).ls(context, args, { ...options, s: true }),
  },
  get: {
    usage: 'get <path> [watch]',
    about: 'prints the data of a node; into a pipe, its very bytes',
    group: 'nodes',
    options: [
      stat, watch,
      { flags: '-b',          about: 'as base64' },
      { flags: '-x',          about: 'as a hex dump' },
      { flags: '--at <keys>', about: 'a value inside its JSON: servers.0.port' },
    ],
    args: ['path'],
    run: async (context, args, options) => (await load()).get(context, args, options),
  },
  stat: {
    usage: 'stat <path> [watch]',
    about: 'prints the Stat of a node',
    group: 'nodes',
    options: [watch],
    args: ['path'],
    run: async (context, args, options) => (await load()).stat(context, args, options),
  },
  create: {
    usage: 'create <path> [data] [acl]',
    about: 'makes a node',
    group: 'nodes',
    options: [
      { flags: '-s', about: 'sequential: a number is appended to its name' },
      { flags: '-e', about: 'ephemeral: it goes with the session' },
      { flags: '-c', about: 'container: it goes once its last child has gone' },
      { flags: '-t <ms>', about: 'time to live: it goes once it was left alone for so long' },
      { flags: '-p, --parents', about: 'makes missing parents too' },
      file,
    ],
    args: ['path'],
    writes: true,
    run: async (context, args, options) => (await load()).create(context, args, options),
  },
  set: {
    usage: 'set <path> [data] [version]',
    about: 'sets the data of a node',
    group: 'nodes',
    options: [
      stat, version,
      { flags: '-b', about: 'the data is base64' },
      file,
      { flags: '--at <keys=value>', about: 'sets one value inside its JSON; --at keys value too' },
    ],
    args: ['path'],
    writes: true,
    run: async (context, args, options) => (await load()).set(context, args, options),
  },
  delete: {
    usage: 'delete <path> [version]',
    about: 'deletes a node that has no children',
    group: 'nodes',
    options: [version],
    args: ['path'],
    writes: true,
    run: async (context, args, options) => (await load()).deleteOne(context, args, options),
  },
  edit: {
    usage: 'edit <path>',
    about: 'opens the data in $EDITOR and writes it back, unless somebody else has changed it',
    group: 'nodes',
    options: [stat, { flags: '--force', about: 'writes it back whoever has changed it' }],
    args: ['path'],
    writes: true,
    run: async (context, args, options) => (await import('../edit.ts')).edit(context, args, options),
  },
  txn: {
    usage: 'txn <op...>',
    about: "does several things or none: txn 'create /a x' 'set -v 3 /b y' 'check /c 1' 'delete /d'",
    group: 'nodes',
    options: [],
    args: ['text'],
    writes: true,
    run: async (context, args) => (await import('../txn.ts')).txn(context, args),
  },
  sync: {
    usage: 'sync [path]',
    about: 'brings the server up to all that was written before',
    group: 'nodes',
    options: [],
    args: ['path'],
    run: async (context, args) => (await load()).sync(context, args),
  },
  getEphemerals: {
    usage: 'getEphemerals [path]',
    about: 'lists the ephemeral nodes of this session',
    group: 'nodes',
    options: [],
    args: ['path'],
    run: async (context, args) => (await load()).getEphemerals(context, args),
  },
  getAllChildrenNumber: {
    usage: 'getAllChildrenNumber <path>',
    about: 'counts all nodes below a node',
    group: 'nodes',
    options: [],
    args: ['path'],
    run: async (context, args) => (await load()).getAllChildrenNumber(context, args),
  },
};
