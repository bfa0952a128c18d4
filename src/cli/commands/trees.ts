/** Whole subtrees, and watching them. */

import type { Command, CommandOption } from '../command.ts';

const depth: CommandOption = { flags: '--depth <n>', about: 'so many levels down' };
const yes: CommandOption = { flags: '-y, --yes', about: 'does not ask' };
const ignoreCase: CommandOption = { flags: '-i', about: 'upper and lower case are the same' };

const load = () => import('../trees.ts');

// biome-ignore format: a table is read down its columns
export const treeCommands: Readonly<Record<string, Command>> = {
  tree: {
    usage: 'tree [path]',
    about: 'draws a subtree',
    group: 'trees',
    options: [
      depth,
      { flags: '--size', about: 'the bytes of each node' },
      { flags: '--stat', about: 'its version and last change' },
    ],
    args: ['path'],
    run: async (context, args, options) => (await load()).tree(context, args, options),
  },
  find: {
    usage: 'find [path] [pattern]',
    about: 'finds nodes by name, owner, age and size',
    group: 'trees',
    options: [
      ignoreCase,
      { flags: '-E',                 about: 'the pattern is a regular expression over the path' },
      { flags: '--ephemeral',        about: 'ephemeral nodes alone' },
      { flags: '--owner <session>',  about: 'those of one session, as 0x1000a2b3c4d0001' },
      { flags: '--leaf',             about: 'those without children' },
      { flags: '--min-bytes <n>',    about: 'with at least so much data' },
      { flags: '--max-bytes <n>',    about: 'with at most so much data' },
      { flags: '--min-children <n>', about: 'with at least so many children' },
      { flags: '--newer <time>',     about: 'changed within 30s, 15m, 2h, 7d' },
      { flags: '--older <time>',     about: 'not changed within it' },
      { flags: '--count',            about: 'how many, and not which' },
      depth,
    ],
    args: ['path', 'text'],
    run: async (context, args, options) => (await load()).find(context, args, options),
  },
  grep: {
    usage: 'grep <pattern> [path]',
    about: 'finds text in the data of nodes; ends with 1 where there is none',
    group: 'trees',
    options: [
      ignoreCase,
      { flags: '-F', about: 'the pattern is text, and no regular expression' },
      { flags: '-l', about: 'the paths alone' },
      depth,
    ],
    args: ['text', 'path'],
    run: async (context, args, options) => (await load()).grep(context, args, options),
  },
  du: {
    usage: 'du [path]',
    about: 'shows which children hold the most data',
    group: 'trees',
    options: [{ flags: '--top <n>', about: 'so many of them; 20' }],
    args: ['path'],
    run: async (context, args, options) => (await load()).du(context, args, options),
  },
  diff: {
    usage: 'diff <left> <right>',
    about: 'compares two subtrees: /path, zk://host:port/path, json://file or file://folder; ends with 1 where they differ',
    group: 'trees',
    options: [{ flags: '--acl', about: 'the ACLs too' }],
    args: ['path'],
    run: async (context, args, options) => (await import('../diff.ts')).diff(context, args, options),
  },
  deleteall: {
    usage: 'deleteall <path>',
    about: 'deletes a node and all below it',
    group: 'trees',
    options: [
      { flags: '-b <size>', about: 'deletes in one request; 1000, and one by one where it is 0' },
      { flags: '--dry-run', about: 'only says how many' },
      yes,
    ],
    aliases: ['rmr'],
    args: ['path'],
    writes: true,
    run: async (context, args, options) => (await import('../delete-all.ts')).deleteAll(context, args, options),
  },
  watch: {
    usage: 'watch [path]',
    about: 'prints every change of a node as it happens, and what has changed in it',
    group: 'watching',
    options: [
      { flags: '-r, --recursive', about: 'all below it too' },
      { flags: '--no-data',       about: 'does not read what has changed' },
      { flags: '--count <n>',     about: 'ends after so many changes' },
    ],
    args: ['path'],
    run: async (context, args, options) => (await import('../watch.ts')).watch(context, args, options),
  },
  addWatch: {
    usage: 'addWatch <path>',
    about: 'sets a watch that stays; its events are printed',
    group: 'watching',
    options: [{ flags: '-m <mode>', about: 'PERSISTENT or PERSISTENT_RECURSIVE, which it is unless said', value: ['PERSISTENT', 'PERSISTENT_RECURSIVE'] }],
    args: ['path'],
    run: async (context, args, options) => (await import('../watching.ts')).addWatch(context, args, options),
  },
  removewatches: {
    usage: 'removewatches <path>',
    about: 'takes the watches of this session at a node away',
    group: 'watching',
    options: [
      { flags: '-c', about: 'those of its children' },
      { flags: '-d', about: 'those of its data' },
      { flags: '-p', about: 'those that stay' },
      { flags: '-r', about: 'those that stay and reach below it' },
      { flags: '-a', about: 'any, as without a letter' },
      { flags: '-l', about: 'here, even if the server can not be asked' },
    ],
    args: ['path'],
    run: async (context, args, options) => (await import('../watching.ts')).removeWatches(context, args, options),
  },
};
