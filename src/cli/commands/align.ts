/** Many consumers, one clock. */

import type { Command, CommandOption } from '../command.ts';

// biome-ignore format: a table is read down its columns
export const alignInputOptions: readonly CommandOption[] = [
  { flags: '--input <topic=dir>',      about: 'plan, run: a topic, as a folder with a file a partition; may be given often', many: true },
  { flags: '--brokers <list>',         about: 'plan, run: from Kafka instead, host:port,host:port' },
  { flags: '--topics <list>',          about: 'plan, run: Kafka’s topics, as orders,payments' },
  { flags: '--event-time <field>',     about: 'plan, run: the field that says when it happened, as ts or meta.ts; timestamp' },
  { flags: '--unit <unit>',            about: 'plan, run: what a number there counts; ms', value: ['ms', 's'] },
  { flags: '--period <duration>',      about: 'plan, run: how far all go together, as 60s or 5m' },
  { flags: '--from <date>',            about: 'plan, run: only records of then and later' },
  { flags: '--to <date>',              about: 'plan, run: only records of before; watch: up to where the time left is counted, now' },
  { flags: '--out-of-order <duration>', about: 'plan, run: how much later than its place a record may come; 0' },
  { flags: '--future <duration>',      about: 'plan, run: how much later than now a time can be believed; 5m' },
  { flags: '--max-ahead <duration>',   about: 'plan, run: how far ahead of all others a record can be believed, or off; 7d' },
];

// biome-ignore format: a table is read down its columns
export const alignCommands: Readonly<Record<string, Command>> = {
  align: {
    usage: 'align <action> [words...]',
    about: 'reads many partitions in step with event time: plan, run, watch G, set-period G DURATION, pause G, step G [PERIODS], continue G, stop G, rewind G [DATE], forget G',
    group: 'kafka',
    options: [
      ...alignInputOptions,
      { flags: '--group <name>',        about: 'run and the rest: who reads together' },
      { flags: '--out <dir>',           about: 'run: a file for each period, named by its start in milliseconds' },
      { flags: '--look-ahead <periods>', about: 'run, set-period: how many periods the first may be ahead; 0' },
      { flags: '--idle-after <duration>', about: 'run: with --follow, when a partition without records holds nobody back; 30s' },
      { flags: '--quarantine <policy>', about: 'run: what becomes of records whose time cannot be believed; skip', value: ['skip', 'stop', 'clamp', 'deliver'] },
      { flags: '--allow-skipped <count>', about: 'run: how many records may be left out before it ends with exit code 1; 0' },
      { flags: '--follow',              about: 'run: waits for more at the end of the data' },
      { flags: '--name <text>',         about: 'run: who we are to others; host and process unless said' },
      { flags: '--layout <kind>',       about: 'run, watch: beside who keeps the nodes of the coordinator’s document, or of the Java program', value: ['seed', 'java'] },
      { flags: '--layout-root <path>',  about: 'run, watch: with --layout, where those nodes are; /kafka-consumer-coordinator' },
      { flags: '--layout-start <date>', about: 'run: with --layout, where the first period begins, the same for all; that of the first record' },
      { flags: '--others <topic=list>', about: 'run: with --layout, partitions that others read, as clicks=0,1; may be given often', many: true },
      { flags: '--interval <seconds>',  about: 'watch: from one look to the next; 1' },
      { flags: '--count <number>',      about: 'watch: how often; without a terminal once' },
      { flags: '-y, --yes',             about: 'rewind, forget: does not ask' },
    ],
    args: [['plan', 'run', 'watch', 'set-period', 'pause', 'step', 'continue', 'stop', 'rewind', 'forget'], 'text'],
    run: async (context, args, options) => (await import('../align-commands.ts')).align(context, args, options),
  },
};
