/** Copying subtrees between servers, files and folders. */

import type { Command, CommandOption } from '../command.ts';

// biome-ignore format: a table is read down its columns
const copyOptions: readonly CommandOption[] = [
  { flags: '--dry-run',              about: 'shows what it would do' },
  { flags: '--on-conflict <choice>', about: 'a node that is there and differs: fail (cp), overwrite (mirror) or skip', value: ['fail', 'overwrite', 'skip'] },
  { flags: '--no-acl',               about: 'leaves ACLs alone' },
  { flags: '-y, --yes',              about: 'does not ask' },
];

const skipUnreadable: CommandOption = {
  flags: '--skip-unreadable',
  about: 'leaves out nodes that may not be read, names them, and exits with 1',
};

// What they write to need not be the server that the command goes to: they look for themselves.
// biome-ignore format: a table is read down its columns
export const copyCommands: Readonly<Record<string, Command>> = {
  cp: {
    usage: 'cp <from> <to>',
    about: 'copies a subtree: /path, zk://host:port/path, json://file, file://folder',
    group: 'trees',
    options: [...copyOptions, skipUnreadable],
    args: ['path'],
    run: async (context, args, options) => (await import('../copy-commands.ts')).cp(context, args, options),
  },
  mirror: {
    usage: 'mirror <from> <to>',
    about: 'the same, and deletes what is not in the source',
    group: 'trees',
    options: copyOptions,
    args: ['path'],
    run: async (context, args, options) => (await import('../copy-commands.ts')).mirror(context, args, options),
  },
};
