/** Kafka clusters that keep themselves in ZooKeeper, and a cluster to play with. */

import type { Command } from '../command.ts';

// biome-ignore format: a table is read down its columns
export const kafkaCommands: Readonly<Record<string, Command>> = {
  kafka: {
    usage: 'kafka <action> [words...]',
    about: 'shows a Kafka cluster, 0.7 to 3.9: brokers, topics, topic T, controller, groups, group G, owners, lag, doctor; and offsets reset G, elect, reassign with --write',
    group: 'kafka',
    options: [
      { flags: '--watch',             about: 'looks again and again, until Ctrl-C' },
      { flags: '--interval <seconds>', about: '--watch: from one look to the next; 2' },
      { flags: '--count <number>',    about: '--watch: how often' },
      { flags: '--write',             about: 'offsets reset, elect, reassign: does it, and not only shows it' },
      { flags: '-y, --yes',           about: '--write: does not ask' },
      { flags: '--to <offset>',       about: 'offsets reset: to an offset, earliest or latest' },
      { flags: '--shift <records>',   about: 'offsets reset: so many on, or back with --shift=-100' },
      { flags: '--time <date>',       about: 'offsets reset: to the first record that is not older' },
      { flags: '--topic <name>',      about: 'offsets reset: these topics alone', many: true },
      { flags: '--partitions <list>', about: 'offsets reset: these partitions alone, as 0,3' },
      { flags: '--file <json>',       about: 'reassign: from a file, as kafka-reassign-partitions has it', value: 'file' },
      { flags: '--brokers <list>',    about: 'lag, doctor: asks these brokers, host:port,host:port' },
      { flags: '--ndjson <dir>',      about: 'lag, doctor: asks files instead, one a partition', value: 'file' },
      { flags: '--no-ask',            about: 'lag, doctor: asks no broker' },
      { flags: '--generation <name>', about: '0.7, or 0.8 for all after it; as the nodes say unless given', value: ['0.7', '0.8'] },
    ],
    args: [['brokers', 'topics', 'topic', 'controller', 'groups', 'group', 'owners', 'lag', 'offsets', 'elect', 'reassign', 'doctor'], 'text'],
    run: async (context, args, options) => (await import('../kafka-commands.ts')).kafka(context, args, options),
  },
  demo: {
    usage: 'demo <what>',
    about: 'plays on a server of its own: kafka, a living cluster whose controller dies; align, partitions that are read in step',
    group: 'kafka',
    options: [
      { flags: '-p, --port <number>',  about: 'where its ZooKeeper listens; any that is free' },
      { flags: '--pace <seconds>',     about: 'from one scene to the next; 4. align: milliseconds for a record' },
      { flags: '--rounds <number>',    about: 'how often the scenes are played; until Ctrl-C' },
    ],
    args: [['kafka', 'align']],
    isLocal: true, only: 'argv',
    run: async (context, args, options) =>
      args[0] === 'align'
        ? (await import('../demo-align.ts')).demoAlign(context, options)
        : (await import('../demo-kafka.ts')).demo(context, args, options),
  },
};
