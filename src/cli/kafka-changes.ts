/**
 * What `drover kafka` can change: offsets of a group, leaders, and where replicas are.
 *
 * Each shows first what it would do, and does it only with --write; a person is asked then, unless --yes.
 * Leaders and replicas are asked of the cluster's controller, in the nodes in which it looks for that:
 * resolved means asked, not done.
 */

import { ArgumentError, type Client } from '../client/index.ts';
import {
  checkRequestsAreRead,
  electPreferred,
  keyOf,
  type OffsetSource,
  type PartitionId,
  type Reassignment,
  type ResetRule,
  reassignPartitions,
  resetOffsets,
  TopicError,
  type TopicPartition,
} from '../kafka/index.ts';
import { readPlainFile } from '../support/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { type Cluster, readCluster } from './kafka-cluster.ts';
import type { ViewOptions } from './kafka-cluster-views.ts';
import { readGroup } from './kafka-groups.ts';
import { listText, offsetJson, print, type View } from './kafka-view.ts';
import { escaped, foundCode } from './output.ts';

/** True: go ahead. A code: what the command ends with instead. */
async function mayWrite(
  context: Context,
  options: OptionValues,
  question: string,
): Promise<true | number> {
  if (options.write !== true) {
    context.output.tell('nothing was changed: --write does it');
    return exitCodes.ok;
  }
  const target = await context.target();
  if (target.readOnly) {
    throw new CommandError('refused', `kafka --write writes, and ${target.origin} is read-only`);
  }
  return (await context.confirm(question, options)) || exitCodes.declined;
}

// ── offsets ─────────────────────────────────────────────────────────────────────────────────────

export function ruleOf(options: OptionValues): ResetRule {
  const { to, shift, time } = options;
  const given = [to, shift, time].filter((one) => one !== undefined);
  if (given.length !== 1) {
    throw new CommandError('usage', 'one of --to, --shift and --time says where to reset to');
  }
  if (to === 'earliest' || to === 'latest') return { to };
  if (typeof to === 'string' && /^\d+$/.test(to)) return { to: BigInt(to) };
  if (to !== undefined) {
    throw new CommandError('usage', '--to: an offset, earliest or latest is wanted');
  }
  if (typeof shift === 'string' && /^[+-]?\d+$/.test(shift)) return { shiftBy: BigInt(shift) };
  if (shift !== undefined) {
    throw new CommandError('usage', '--shift: a number of records is wanted, as --shift=-100');
  }
  const toTimeMs = /^\d+$/.test(String(time)) ? Number(time) : Date.parse(String(time));
  if (Number.isFinite(toTimeMs)) return { toTimeMs };
  throw new CommandError('usage', '--time: a date as 2026-01-31T12:00:00Z, or milliseconds');
}

export async function resetGroup(
  context: Context,
  client: Client,
  group: string,
  source: OffsetSource | null,
  options: OptionValues,
  viewOptions: ViewOptions,
): Promise<number> {
  const rule = ruleOf(options);
  const partitions = await partitionsOf(client, group, options, viewOptions);
  const run = (dryRun: boolean) =>
    refusing(() =>
      resetOffsets(client, { group, partitions, rule, dryRun, ...(source && { source }) }),
    );
  const planned = await run(true);
  const isOwned = await ownedNow(client, group, viewOptions);
  const shown = planned.map((one) => ({
    ...one,
    outcome: isOwned.has(keyOf(one)) ? ('owned' as const) : one.outcome,
  }));
  if (options.write !== true) {
    print(context.output, resetView(group, shown));
    const code = await mayWrite(context, options, '');
    return shown.some(({ outcome }) => outcome === 'owned') ? foundCode : (code as number);
  }
  if (!context.output.isJson) print(context.output, resetView(group, shown));
  const question = `set ${planned.length} offsets of group ${escaped(group)}?`;
  const answer = await mayWrite(context, options, question);
  if (answer !== true) return answer;
  const done = await run(false);
  print(context.output, resetView(group, done));
  if (!done.some(({ outcome }) => outcome === 'owned')) return exitCodes.ok;
  context.output.tell('what a member owns was left alone: stop the group, then reset');
  return exitCodes.refused;
}

function resetView(
  group: string,
  resets: readonly (PartitionId & {
    readonly before: bigint | null;
    readonly after: bigint;
    readonly outcome: string;
  })[],
): View {
  const words: Readonly<Record<string, string>> = {
    set: 'set',
    unchanged: 'as it was',
    owned: 'owned by a member !',
    wouldSet: 'would be set',
  };
  return {
    parts: [
      {
        heads: ['TOPIC', 'PARTITION', 'FROM', 'TO', ''],
        rows: resets.map(({ topic, partition, before, after, outcome }) => [
          escaped(topic),
          escaped(partition),
          before === null ? '-' : String(before),
          String(after),
          words[outcome] ?? outcome,
        ]),
      },
    ],
    records: resets.map(({ topic, partition, before, after, outcome }) => ({
      group,
      topic,
      partition,
      before: offsetJson(before),
      after: offsetJson(after),
      outcome,
    })),
  };
}

async function ownedNow(
  client: Client,
  group: string,
  options: ViewOptions,
): Promise<ReadonlySet<string>> {
  const cluster = await readCluster(client, { ...options, only: [] });
  const { partitions } = await readGroup(client, group, cluster);
  return new Set(partitions.filter(({ owner }) => owner !== null).map(keyOf));
}

/** What the group has offsets or owners for, and the topics named; less what was not named. */
async function partitionsOf(
  client: Client,
  group: string,
  options: OptionValues,
  viewOptions: ViewOptions,
): Promise<PartitionId[]> {
  const topics = (options.topic ?? []) as readonly string[];
  const cluster = await readCluster(client, { ...viewOptions, only: topics });
  const known = (await readGroup(client, group, cluster)).partitions;
  const named = cluster.topics.flatMap(({ topic, partitions }) =>
    partitions.map(({ name }) => ({ topic, partition: name })),
  );
  const byKey = new Map([...known, ...named].map((one) => [keyOf(one), one]));
  const numbers = typeof options.partitions === 'string' ? options.partitions.split(',') : null;
  const chosen = [...byKey.values()].filter(
    ({ topic, partition }) =>
      (topics.length === 0 || topics.includes(topic)) &&
      (numbers === null || numbers.includes(partition)),
  );
  if (chosen.length > 0) return chosen.map(({ topic, partition }) => ({ topic, partition }));
  const why = `group ${escaped(group)} has no such partitions; --topic names topics it never read`;
  throw new CommandError('refused', why);
}

// ── leaders ─────────────────────────────────────────────────────────────────────────────────────

/** `orders` or `orders/3`; all that are not led by their preferred replica unless named. */
export async function elect(
  context: Context,
  client: Client,
  words: readonly string[],
  options: OptionValues,
  viewOptions: ViewOptions,
): Promise<number> {
  const cluster = await readCluster(client, viewOptions);
  refuse07(cluster);
  // Before the question: nobody should say yes to what is refused afterwards.
  if (options.write === true) await refusing(() => checkRequestsAreRead(client));
  const wanted = words.map((word) => partitionOf(word, cluster));
  const live = new Set(cluster.brokers.map(({ id }) => id));
  const candidates = cluster.topics.flatMap(({ topic, partitions }) =>
    partitions
      .filter(({ leader, replicas }) => leader !== replicas[0])
      .filter(({ name }) => {
        const isNamed = wanted.some(
          (one) => one.topic === topic && (one.partition === null || one.partition === name),
        );
        return words.length === 0 || isNamed;
      })
      .map(({ name, leader, replicas, isr }) => {
        const to = replicas[0]!;
        const can = live.has(to) && isr.includes(to);
        return { topic, partition: Number(name), leader, to, can };
      }),
  );
  const able = candidates.filter(({ can }) => can);
  const view: View = {
    parts: [
      {
        heads: ['TOPIC', 'PARTITION', 'LED BY', 'PREFERRED', ''],
        rows: candidates.map(({ topic, partition, leader, to, can }) => [
          escaped(topic),
          String(partition),
          leader === null ? 'nobody' : String(leader),
          String(to),
          can ? '' : 'is not in sync !',
        ]),
      },
    ],
    records: [
      ...candidates.map(({ topic, partition, leader, to, can }) => ({
        topic,
        partition,
        leader,
        preferred: to,
        isElectable: can,
      })),
    ],
  };
  if (candidates.length > 0) print(context.output, view);
  if (able.length === 0) {
    context.output.tell('every partition that can be is led by its preferred replica');
    if (context.output.isJson && candidates.length === 0) context.output.record({ elected: 0 });
    return exitCodes.ok;
  }
  const answer = await mayWrite(context, options, `elect leaders of ${able.length} partitions?`);
  if (answer !== true) return answer;
  await refusing(() =>
    electPreferred(
      client,
      able.map(({ topic, partition }): TopicPartition => ({ topic, partition })),
    ),
  );
  context.output.tell(`asked the controller for ${able.length}; drover kafka controller says when`);
  return exitCodes.ok;
}

function partitionOf(word: string, cluster: Cluster): { topic: string; partition: string | null } {
  const [topic = '', partition = null] = word.split('/');
  const found = cluster.topics.find((one) => one.topic === topic);
  if (found === undefined) {
    throw new CommandError('refused', `there is no topic ${escaped(topic)}`);
  }
  if (partition !== null && !found.partitions.some(({ name }) => name === partition)) {
    throw new CommandError(
      'refused',
      `topic ${escaped(topic)} has no partition ${escaped(partition)}`,
    );
  }
  return { topic, partition };
}

// ── replicas ────────────────────────────────────────────────────────────────────────────────────

/** `orders/3=1,2,4`, or a file as kafka-reassign-partitions has it. Nothing: what moves now. */
export async function reassign(
  context: Context,
  client: Client,
  words: readonly string[],
  options: OptionValues,
  viewOptions: ViewOptions,
): Promise<number> {
  const cluster = await readCluster(client, viewOptions);
  refuse07(cluster);
  const wanted = [
    ...words.map(reassignmentOf),
    ...(typeof options.file === 'string' ? await fromFile(options.file) : []),
  ];
  if (wanted.length === 0) {
    print(context.output, movingView(cluster));
    return exitCodes.ok;
  }
  // Before the question: nobody should say yes to what is refused afterwards.
  if (options.write === true) await refusing(() => checkRequestsAreRead(client));
  const live = new Set(cluster.brokers.map(({ id }) => id));
  const rows = wanted.map(({ topic, partition, replicas }) => {
    partitionOf(`${topic}/${partition}`, cluster);
    const dead = replicas.filter((id) => !live.has(id));
    if (dead.length > 0) {
      throw new CommandError('refused', `${topic}/${partition}: brokers ${dead} do not live`);
    }
    const now = cluster.topics
      .find((one) => one.topic === topic)!
      .partitions.find(({ name }) => name === String(partition))!;
    return { topic, partition, from: now.replicas, to: replicas };
  });
  print(context.output, {
    parts: [
      {
        heads: ['TOPIC', 'PARTITION', 'FROM', 'TO'],
        rows: rows.map(({ topic, partition, from, to }) => [
          escaped(topic),
          String(partition),
          listText(from),
          listText(to),
        ]),
      },
    ],
    records: rows,
  });
  const answer = await mayWrite(context, options, `move ${rows.length} partitions?`);
  if (answer !== true) return answer;
  await refusing(() => reassignPartitions(client, wanted));
  context.output.tell(
    `asked the controller for ${rows.length}; drover kafka reassign says how far`,
  );
  return exitCodes.ok;
}

function movingView({ topics }: Cluster): View {
  const moving = topics.flatMap(({ topic, partitions }) =>
    partitions
      .filter(({ adding, removing }) => adding.length + removing.length > 0)
      .map(({ name, replicas, adding, removing, isr }) => {
        const missing = adding.filter((id) => !isr.includes(id));
        return { topic, partition: name, replicas, adding, removing, missing };
      }),
  );
  return {
    parts:
      moving.length === 0
        ? ['nothing moves']
        : [
            {
              heads: ['TOPIC', 'PARTITION', 'REPLICAS', 'ADDS', 'REMOVES', 'WAITS FOR'],
              rows: moving.map((one) => [
                escaped(one.topic),
                one.partition,
                listText(one.replicas),
                listText(one.adding),
                listText(one.removing),
                listText(one.missing),
              ]),
            },
          ],
    records: [...moving, { moving: moving.length }],
  };
}

function reassignmentOf(word: string): Reassignment {
  const found = /^([^/=]+)\/(\d+)=(\d+(?:,\d+)*)$/.exec(word);
  if (found === null) {
    throw new CommandError('usage', `topic/partition=1,2,3 is wanted, not ${escaped(word)}`);
  }
  const [, topic, partition, replicas] = found as unknown as [string, string, string, string];
  return { topic, partition: Number(partition), replicas: replicas.split(',').map(Number) };
}

async function fromFile(path: string): Promise<Reassignment[]> {
  let text: string;
  try {
    text = (await readPlainFile(path)).toString('utf8');
  } catch (cause) {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException;
    throw new CommandError('usage', `--file ${escaped(path)} can't be read (${code})`, { cause });
  }
  const { layout08 } = await import('../kafka/index.ts');
  try {
    return [...layout08.reassign.parse(Buffer.from(text), path)];
  } catch (cause) {
    throw new CommandError('usage', `--file ${(cause as Error).message}`, { cause });
  }
}

function refuse07({ generation }: Cluster): void {
  if (generation !== '0.7') return;
  throw new CommandError('refused', 'Kafka 0.7 has neither replicas nor a controller');
}

async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TopicError || error instanceof ArgumentError) {
      throw new CommandError('refused', error.message, { cause: error });
    }
    throw error;
  }
}
