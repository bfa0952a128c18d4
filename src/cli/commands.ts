/**
 * All commands, in one table: argv, help and completion read it. A command's code is loaded when it
 * is run, so that no command pays for another's dependencies.
 */

export interface CommandOption {
  /** As commander has it: `-p, --port <number>`. */
  readonly flags: string;
  readonly about: string;
  /** May be given more than once. */
  readonly many?: boolean;
}

export type OptionValues = Readonly<
  Record<string, string | boolean | readonly string[] | undefined>
>;

export interface Command {
  /** What stands behind `drover`. */
  readonly usage: string;
  readonly about: string;
  readonly options: readonly CommandOption[];
  /** Everything behind the first word that is no option belongs to another program. */
  readonly passesThrough?: boolean;
  /** Resolves with the exit code. */
  readonly run: (args: readonly string[], options: OptionValues) => Promise<number>;
}

const json: CommandOption = { flags: '--json', about: 'data instead of text' };

// biome-ignore format: a table is read down its columns
const serveOptions: readonly CommandOption[] = [
  { flags: '-p, --port <number>',        about: 'where to listen (clientPort); 0 takes any that is free' },
  { flags: '-a, --address <host>',       about: 'on which address (clientPortAddress); this machine alone unless told otherwise' },
  { flags: '-d, --data <dir>',           about: 'where the data is (dataDir); ./drover-data' },
  { flags: '--data-log <dir>',           about: 'where the logs are (dataLogDir)' },
  { flags: '--set <key=value>',          about: 'any key of a zoo.cfg', many: true },
  { flags: '-D <name=value>',            about: 'the same, as Java has it: -Dzookeeper.enforceQuota=true', many: true },
  { flags: '--limit <name=number>',      about: 'one of the limits in docs/server.md; 0 is none', many: true },
  { flags: '--users <file>',             about: 'who may authenticate by SASL, a name: password a line' },
  { flags: '--words <list>',             about: 'four-letter words to answer (4lw.commands.whitelist); * is all' },
  { flags: '--admin-port <number>',      about: 'switches the admin server on' },
  { flags: '--metrics-port <number>',    about: 'switches /metrics for Prometheus on' },
  { flags: '--audit <file>',             about: 'writes down who changed what; - is standard output' },
  { flags: '--log-level <level>',        about: 'silent, error, warn, info or debug' },
  { flags: '--insecure-bind',            about: 'listens beyond this machine although nobody has to prove who they are' },
  { flags: '--in-memory',                about: 'keeps nothing: all is gone with the process' },
  { flags: '--unsafe-no-fsync',          about: 'acknowledges what a loss of power takes away again' },
  { flags: '--salvage',                  about: 'goes on where files are damaged, knowingly, from the longest whole prefix' },
  json,
];

// biome-ignore format: a table is read down its columns
export const commands: Readonly<Record<string, Command>> = {
  serve: {
    usage: 'serve [zoo.cfg]',
    about: 'runs a ZooKeeper server',
    options: serveOptions,
    run: async (args, options) => (await import('./serve.ts')).serve(args, options),
  },
  'test-server': {
    usage: 'test-server [-- command…]',
    about: 'runs a command beside a server in memory, whose address it finds in ZK_SERVERS',
    options: [{ flags: '-p, --port <number>', about: 'where to listen; any that is free' }],
    passesThrough: true,
    run: async (args, options) => (await import('./test-server.ts')).testServer(args, options),
  },
  log: {
    usage: 'log <dump|verify|history> [file|dir|path]',
    about: 'reads transaction logs: dump FILE|DIR, verify DIR, history PATH --data DIR',
    options: [
      { flags: '-d, --data <dir>', about: 'history: the dataDir, or its version-2' },
      { flags: '--data-log <dir>', about: 'verify, history: where the logs are, if not in the dataDir' },
      { flags: '--full',           about: 'dump, history: all of the data, however long' },
      json,
    ],
    run: async (args, options) => (await import('./log.ts')).log(args, options),
  },
  snapshot: {
    usage: 'snapshot <dump|verify|diff> [file|dir] [file]',
    about: 'reads snapshots: dump FILE, verify FILE|DIR, diff FILE FILE',
    options: [{ flags: '--full', about: 'dump: all of the data, however long' }, json],
    run: async (args, options) => (await import('./snapshot.ts')).snapshot(args, options),
  },
  version: {
    usage: 'version',
    about: 'says which drover this is, and which ZooKeeper it is like',
    options: [json],
    run: async (_, options) => (await import('./version.ts')).version(options),
  },
};
