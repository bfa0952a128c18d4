/** Servers of our own, and the files that servers leave. */

import type { Command, CommandOption } from '../command.ts';

// biome-ignore format: a table is read down its columns
const serveOptions: readonly CommandOption[] = [
  { flags: '-p, --port <number>',        about: 'where to listen (clientPort); 0 takes any that is free' },
  { flags: '-a, --address <host>',       about: 'on which address (clientPortAddress); this machine alone unless told otherwise' },
  { flags: '-d, --data <dir>',           about: 'where the data is (dataDir); ./drover-data', value: 'file' },
  { flags: '--data-log <dir>',           about: 'where the logs are (dataLogDir)', value: 'file' },
  { flags: '--set <key=value>',          about: 'any key of a zoo.cfg', many: true },
  { flags: '-D <name=value>',            about: 'the same, as Java has it: -Dzookeeper.enforceQuota=true', many: true },
  { flags: '--limit <name=number>',      about: 'one of the limits in docs/server.md; 0 is none', many: true },
  { flags: '--users <file>',             about: 'who may authenticate by SASL, a name: password a line', value: 'file' },
  { flags: '--words <list>',             about: 'four-letter words to answer (4lw.commands.whitelist); * is all' },
  { flags: '--admin-port <number>',      about: 'switches the admin server on' },
  { flags: '--metrics-port <number>',    about: 'switches /metrics for Prometheus on' },
  { flags: '--console-port <number>',    about: 'switches the web console on, for this machine alone; 4180 is usual' },
  { flags: '--console-brokers <hosts>',  about: 'brokers of Kafka that the console asks for the ends of partitions: host:port,…, or registered for those in ZooKeeper; none are asked by default' },
  { flags: '--console-contexts <names>', about: 'saved contexts that its page may switch to: all, or names with commas; none unless said' },
  { flags: '--console-write',            about: 'lets the console change things; it is read-only otherwise' },
  { flags: '--no-console',               about: 'no console, whatever else was said' },
  { flags: '--audit <file>',             about: 'writes down who changed what; - is standard output', value: 'file' },
  { flags: '--log-level <level>',        about: 'silent, error, warn, info or debug', value: ['silent', 'error', 'warn', 'info', 'debug'] },
  { flags: '--insecure-bind',            about: 'allows listening beyond this machine without authentication' },
  { flags: '--in-memory',                about: 'keeps nothing: all is gone with the process' },
  { flags: '--unsafe-no-fsync',          about: 'acknowledges what a loss of power takes away again' },
  { flags: '--salvage',                  about: 'goes on where files are damaged, knowingly, from the longest whole prefix' },
];

// biome-ignore format: a table is read down its columns
export const serverCommands: Readonly<Record<string, Command>> = {
  serve: {
    usage: 'serve [zoo.cfg]',
    about: 'runs a ZooKeeper server',
    group: 'ensemble',
    options: serveOptions,
    args: ['file'],
    isLocal: true, only: 'argv', ownsSignals: true,
    run: async (context, args, options) => (await import('../serve.ts')).serve(context, args, options),
  },
  'test-server': {
    usage: 'test-server [command...]',
    about: 'runs a command beside a server in memory, whose address it finds in ZK_SERVERS',
    group: 'ensemble',
    options: [{ flags: '-p, --port <number>', about: 'where to listen; any that is free' }],
    passesThrough: true,
    isLocal: true, only: 'argv', ownsSignals: true,
    run: async (_, args, options) => (await import('../test-server.ts')).testServer(args, options),
  },
  log: {
    usage: 'log <action> [what]',
    about: 'reads transaction logs: dump FILE|DIR, verify DIR, history PATH --data DIR',
    group: 'files',
    options: [
      { flags: '-d, --data <dir>', about: 'history: the dataDir, or its version-2', value: 'file' },
      { flags: '--data-log <dir>', about: 'verify, history: where the logs are, if not in the dataDir', value: 'file' },
      { flags: '--full',           about: 'dump, history: all of the data, however long' },
    ],
    args: [['dump', 'verify', 'history'], 'file'],
    isLocal: true, ownsSignals: true,
    run: async (context, args, options) => (await import('../log.ts')).log(context, args, options),
  },
  snapshot: {
    usage: 'snapshot <action> [file] [other]',
    about: 'reads snapshots: dump FILE, verify FILE|DIR, diff FILE FILE',
    group: 'files',
    options: [{ flags: '--full', about: 'dump: all of the data, however long' }],
    args: [['dump', 'verify', 'diff'], 'file'],
    isLocal: true, ownsSignals: true,
    run: async (context, args, options) => (await import('../snapshot.ts')).snapshot(context, args, options),
  },
  version: {
    usage: 'version',
    about: 'says which drover this is, and which ZooKeeper it is like',
    group: 'ensemble',
    options: [],
    isLocal: true,
    run: async (context) => (await import('../version.ts')).version(context),
  },
};
