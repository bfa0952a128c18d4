/** Real Apache servers: starting them, moving to them, backups on the way. */

import type { Command } from '../command.ts';

// biome-ignore format: a table is read down its columns
export const ensembleCommands: Readonly<Record<string, Command>> = {
  ensemble: {
    usage: 'ensemble <action> [id]',
    about: 'runs Apache ZooKeeper servers on this machine: up, import, status, start N, kill N, down; config prints files for others',
    group: 'ensemble',
    options: [
      { flags: '--size <number>',          about: 'up, import: how many servers; 3' },
      { flags: '--dir <dir>',              about: 'where they are; ./drover-ensemble', value: 'file' },
      { flags: '--port <number>',          about: 'the first clientPort, the others follow; 2181, 0 takes any that are free' },
      { flags: '--quorum-port <number>',   about: 'likewise, where the leader listens; 2888' },
      { flags: '--election-port <number>', about: 'likewise, for elections; 3888' },
      { flags: '--heap <mib>',             about: 'memory of each; 512' },
      { flags: '--set <key=value>',        about: 'any other key of zoo.cfg', many: true },
      { flags: '--from <dir>',             about: 'import: the dataDir of the server that becomes an ensemble', value: 'file' },
      { flags: '--from-log <dir>',         about: 'import: its dataLogDir, if that is another', value: 'file' },
      { flags: '--hosts <list>',           about: 'config: zoo1,zoo2,zoo3' },
    ],
    args: [['up', 'import', 'status', 'start', 'kill', 'down', 'config'], 'text'],
    isLocal: true,
    run: async (context, args, options) => (await import('../ensemble-commands.ts')).ensembleCommand(context, args, options),
  },
  backup: {
    usage: 'backup <file> [path]',
    about: 'writes all nodes into a file as of one moment, or copies the files of a server',
    group: 'ensemble',
    options: [
      { flags: '--overwrite',       about: 'replaces a file that is there' },
      { flags: '--fuzzy',           about: 'content with a backup that is not of one moment' },
      { flags: '--no-acl',          about: 'leaves ACLs out' },
      { flags: '--skip-unreadable', about: 'leaves out nodes that may not be read, names them, and exits with 1' },
      { flags: '-d, --data <dir>',  about: 'the dataDir of a server, stopped or running, into a new folder: exact, with Stats and sessions', value: 'file' },
      { flags: '--data-log <dir>',  about: 'its dataLogDir, if that is another', value: 'file' },
      { flags: '--admin <url>',     about: 'a snapshot by the admin server of a running one, into a new folder' },
    ],
    args: ['file', 'path'],
    run: async (context, args, options) => (await import('../backup-commands.ts')).backup(context, args, options),
  },
  restore: {
    usage: 'restore <file> [path]',
    about: 'brings a backup back: a file into a server, a folder into a new data directory',
    group: 'ensemble',
    options: [
      { flags: '--dry-run',         about: 'shows what it would do' },
      { flags: '--overwrite',       about: 'changes nodes that are there and differ' },
      { flags: '--merge',           about: 'leaves them as they are' },
      { flags: '--delete',          about: 'deletes what is not in the backup' },
      { flags: '--no-acl',          about: 'leaves ACLs alone' },
      { flags: '-d, --data <dir>',  about: 'a new dataDir, for backups that are folders', value: 'file' },
      { flags: '-y, --yes',         about: 'does not ask' },
    ],
    args: ['file', 'path'],
    writes: true,
    run: async (context, args, options) => (await import('../backup-commands.ts')).restore(context, args, options),
  },
};
