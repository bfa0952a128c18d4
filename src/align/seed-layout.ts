/**
 * The document's layout: three nodes, and plain text in each.
 *
 *   root/coordinator        1700000060                              the end of the present period
 *   root/topic-partitions   t1:0,1,2;\nt2:0,1;                      a line a topic
 *   root/progress           t1.0:1700000060;t1.1:0;\nt2.0:0;t2.1:0; a line a topic
 *   root/leader/electing…   who leads: the lowest number            (the document names no place for it)
 *
 * Times are whole seconds since 1970. What is read may lack the line breaks and the last `;`, and names
 * of partitions are taken as they are. Everybody writes to the one progress node, so each write is one
 * on a version, and tried again when somebody else was first. What it holds outlives who wrote it.
 */

import { ArgumentError, type Client, isZkError } from '../client/index.ts';
import { keyOf, type PartitionId, partitionOf } from '../kafka/index.ts';

/** Which partitions there are, topic by topic, in the order in which they were named. */
export type PartitionPlan = ReadonlyMap<string, readonly string[]>;

/** Where each partition stands, in seconds, by the key of the partition. */
export type SeedProgress = ReadonlyMap<string, number>;

export interface SeedPaths {
  readonly leader: string;
  readonly coordinator: string;
  readonly topicPartitions: string;
  readonly progress: string;
  /** Nodes that hold nothing, parents first. */
  readonly folders: readonly string[];
}

/** What is known of the tree: a cache of it, or whatever has its face. */
export interface SeedTree {
  get(path: string): { readonly data: Buffer | null } | undefined;
  children(path: string): readonly string[];
}

/** What the document's layout and the Java program's have in common. */
export interface SeedLayout {
  readonly name: 'seed' | 'java';
  /** The first limit is written as it is, or, as the Java program does, as the start of the first period. */
  readonly beginsAtStart: boolean;
  /** The latest time that others can read. */
  readonly secondsMax: number;
  paths(root: string): SeedPaths;
  formatPlan(plan: PartitionPlan): string;
  readProgress(tree: SeedTree, paths: SeedPaths): SeedProgress;
  /** Sets these and leaves the others. */
  writeProgress(client: Client, paths: SeedPaths, progress: SeedProgress): Promise<void>;
}

export const seedLayout: SeedLayout = {
  name: 'seed',
  beginsAtStart: false,
  secondsMax: Number.MAX_SAFE_INTEGER,
  paths: (root) => ({
    leader: `${root}/leader`,
    coordinator: `${root}/coordinator`,
    topicPartitions: `${root}/topic-partitions`,
    progress: `${root}/progress`,
    folders: [root, `${root}/leader`, `${root}/progress`],
  }),
  formatPlan: (plan) => formatTopicPartitions(plan, '\n'),
  readProgress: (tree, { progress }) => parseProgress(textOf(tree.get(progress)?.data)),
  writeProgress: writeFlat,
};

export function textOf(data: Buffer | null | undefined): string {
  return data?.toString('utf8') ?? '';
}

/** `t1:0,1,2;t2:0,1;`, with `between` topics. */
export function formatTopicPartitions(plan: PartitionPlan, between: '' | '\n'): string {
  const topics = [...plan].map(([topic, partitions]) => {
    refuse(topic, /[:;,\s]/, 'topic');
    for (const partition of partitions) refuse(partition, /[:;,.\s]/, 'partition');
    return `${topic}:${partitions.join(',')};`;
  });
  return topics.join(between);
}

function refuse(name: string, reserved: RegExp, argument: string): void {
  if (name !== '' && !reserved.test(name)) return;
  throw new ArgumentError(argument, `${JSON.stringify(name)} cannot be written in this layout`);
}

/** What cannot be understood is left out: a plan is for showing, and ours is in the options. */
export function parseTopicPartitions(text: string): PartitionPlan {
  const plan = new Map<string, readonly string[]>();
  for (const part of parts(text, ';')) {
    const colon = part.lastIndexOf(':');
    if (colon > 0) plan.set(part.slice(0, colon), parts(part.slice(colon + 1), ','));
  }
  return plan;
}

/** `t1.0:60;t1.1:60;`, a line a topic. */
export function formatProgress(progress: SeedProgress): string {
  const lines = new Map<string, string>();
  for (const [key, seconds] of progress) {
    const { topic, partition } = partitionOf(key);
    lines.set(topic, `${lines.get(topic) ?? ''}${topic}.${partition}:${seconds};`);
  }
  return [...lines.values()].join('\n');
}

export function parseProgress(text: string): SeedProgress {
  const progress = new Map<string, number>();
  for (const part of parts(text, ';')) {
    const colon = part.lastIndexOf(':');
    const id = progressName(part.slice(0, Math.max(0, colon)));
    const seconds = parseSeconds(part.slice(colon + 1));
    if (id !== null && seconds !== null) progress.set(keyOf(id), seconds);
  }
  return progress;
}

/** `topic.partition`; a topic may hold dots, a partition none. */
export function progressName(name: string): PartitionId | null {
  const dot = name.lastIndexOf('.');
  if (dot <= 0 || dot === name.length - 1) return null;
  return { topic: name.slice(0, dot), partition: name.slice(dot + 1) };
}

/** Null where it is no time at all. */
export function parseSeconds(text: string): number | null {
  const seconds = /^\s*\d+\s*$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(seconds) ? seconds : null;
}

function parts(text: string, separator: string): string[] {
  const all = text.split(separator).map((part) => part.trim());
  return all.filter((part) => part !== '');
}

/** What the layout can say. */
export function wholeSeconds(argument: string, ms: number): number {
  if (Number.isSafeInteger(ms) && ms >= 0 && ms % 1_000 === 0) return ms / 1_000;
  throw new ArgumentError(
    argument,
    `whole seconds are wanted: the layout has no less, not ${ms} ms`,
  );
}

/** Two members at a time collide now and then; so many times in a row, something else is wrong. */
const triesMax = 1_000;

async function writeFlat(
  client: Client,
  { progress: path }: SeedPaths,
  progress: SeedProgress,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    const { data, stat } = await client.get(path);
    const before = textOf(data);
    const text = formatProgress(new Map([...parseProgress(before), ...progress]));
    if (text === before) return;
    try {
      await client.set(path, text, { version: stat.version });
      return;
    } catch (error) {
      if (!isZkError(error, 'BAD_VERSION') || tries === triesMax) throw error;
    }
  }
}
