/** For who operates servers: how they are, how fast, and which of them we mean. */

import type { Command } from '../command.ts';

// biome-ignore format: a table is read down its columns
export const operatorCommands: Readonly<Record<string, Command>> = {
  status: {
    usage: 'status',
    about: 'shows all servers side by side, and who lags',
    group: 'operate',
    options: [],
    run: async (context) => (await import('../status.ts')).status(context),
  },
  doctor: {
    usage: 'doctor',
    about: 'finds what is wrong, worst first; ends with 0, 1 for warnings, 2 for worse',
    group: 'operate',
    options: [],
    run: async (context) => (await import('../doctor.ts')).doctor(context),
  },
  top: {
    usage: 'top',
    about: 'shows what the servers do, second by second',
    group: 'operate',
    options: [
      { flags: '--interval <seconds>', about: 'from one look to the next; 1' },
      { flags: '--count <number>',     about: 'how often; without a terminal once' },
    ],
    run: async (context, args, options) => (await import('../top.ts')).top(context, args, options),
  },
  latency: {
    usage: 'latency',
    about: 'measures how long each server takes to answer, from here',
    group: 'operate',
    options: [
      { flags: '--count <number>', about: 'requests to each; 100' },
      { flags: '--interval <ms>',  about: 'from one to the next; 10' },
    ],
    run: async (context, args, options) => (await import('../latency.ts')).latency(context, args, options),
  },
  bench: {
    usage: 'bench',
    about: 'puts load on the servers and measures it; not where others depend on them',
    group: 'operate',
    options: [
      { flags: '--seconds <number>',   about: 'of each kind; 5' },
      { flags: '--sessions <number>',  about: 'at once; 4' },
      { flags: '--in-flight <number>', about: 'requests of each session; 16' },
      { flags: '--bytes <number>',     about: 'of data; 100' },
      { flags: '--only <kind>',        about: 'get, set or create alone', value: ['get', 'set', 'create'] },
      { flags: '--under <path>',       about: 'where its nodes stand for as long; /', value: 'path' },
    ],
    writes: true,
    run: async (context, args, options) => (await import('../bench.ts')).bench(context, args, options),
  },
  '4lw': {
    usage: '4lw <word>',
    about: 'asks a four-letter word: ruok, srvr, mntr, conf, cons, wchs …',
    group: 'operate',
    options: [{ flags: '--all', about: 'all servers at once' }],
    args: [['conf', 'cons', 'dirs', 'dump', 'envi', 'isro', 'mntr', 'ruok', 'srvr', 'stat', 'wchc', 'wchp', 'wchs']],
    run: async (context, args, options) => (await import('../four-letter-command.ts')).fourLetter(context, args, options),
  },
  context: {
    usage: 'context [action] [name] [servers]',
    about: 'names places: add NAME HOSTS, use NAME, list, remove NAME',
    group: 'operate',
    options: [
      { flags: '--read-only',           about: 'add: refuses every command that writes there' },
      { flags: '--select',              about: 'add: and use it from now on' },
      { flags: '--tls',                 about: 'add: by TLS' },
      { flags: '--tls-ca <file>',       about: 'add: trusts these certificates', value: 'file' },
      { flags: '--tls-cert <file>',     about: 'add: our own certificate', value: 'file' },
      { flags: '--tls-key <file>',      about: 'add: and its key', value: 'file' },
      { flags: '--tls-name <host>',     about: 'add: the name in the server’s certificate' },
      { flags: '--sasl-user <name>',    about: 'add: its password stays in DROVER_SASL_PASSWORD' },
      { flags: '--store-auth <scheme:auth>', about: 'add: keeps a password in clear text in the file', many: true },
    ],
    args: [['add', 'use', 'list', 'remove'], 'context'],
    isLocal: true,
    run: async (context, args, options) => (await import('../context-commands.ts')).contextCommand(context, args, options),
  },
};
