/** The web console. */

import type { Command } from '../command.ts';

// biome-ignore format: a table is read down its columns
export const consoleCommands: Readonly<Record<string, Command>> = {
  console: {
    usage: 'console',
    about: 'opens a web console for any ZooKeeper, read-only unless --write',
    group: 'operate',
    options: [
      { flags: '-p, --port <number>',    about: 'where to listen; 4180, and 0 takes any that is free' },
      { flags: '-a, --address <host>',   about: 'on which address; this machine alone unless told otherwise, and others need a token' },
      { flags: '--write',                about: 'lets the page change things' },
      { flags: '--token <text>',         about: 'what a browser has to know; better in DROVER_CONSOLE_TOKEN or --token-file' },
      { flags: '--token-file <file>',    about: 'the same, from a file', value: 'file' },
      { flags: '--allow-host <name>',    about: 'a name by which the console may be called, as behind a proxy', many: true },
      { flags: '--contexts <names>',     about: 'saved contexts that the page may switch to: all, none, or names with commas; all on this machine alone, none beyond it' },
      { flags: '--brokers <hosts>',      about: 'brokers of Kafka to ask for the ends of partitions: host:port,…, or registered for those in ZooKeeper, whose addresses any client that may write there chooses; none are asked by default' },
      { flags: '--admin-port <port>',    about: 'asks the AdminServers of the servers too, for what their four-letter words do not tell; 8080 is usual, or one for each with commas' },
      { flags: '--open',                 about: 'opens a browser' },
    ],
    only: 'argv',
    run: async (context, _, options) => (await import('../console.ts')).consoleCommand(context, options),
  },
};
