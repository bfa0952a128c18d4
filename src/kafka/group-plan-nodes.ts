/**
 * The nodes of a planned group, beside Kafka's own:
 *
 *   /consumers/[group]/plan                    persistent, the epoch of the planner, decimal
 *   /consumers/[group]/plan/election/…         ephemeral sequential: who plans next
 *   /consumers/[group]/plan/members/[consumer] persistent, what that member is to read
 *
 *   {"version":1,"epoch":3,"partitions":{"topic":{"0":[[0,9],12],"1":["29-0"]}}}
 *
 * By topic and thread: numbers, runs of numbers as [first, last], and names that are no numbers. Who
 * plans writes only the nodes that change, each in a multi that checks the version of /plan.
 */

import { type Content, row } from './layout.ts';
import { nothing } from './layout-admin.ts';
import {
  intOf,
  isObject,
  PartitionSum,
  parseObject,
  toInt,
  toJson,
  toName,
} from './layout-fields.ts';
import { keyOf, partitionOf, sortPartitions } from './partition.ts';

/** One member's part of a plan: partition keys, and the number of the thread for each. */
export interface MemberPlan {
  readonly epoch: number;
  readonly partitions: ReadonlyMap<string, number>;
}

const epochContent: Content<number> = {
  schema: 'decimal',
  parse: (text) => (text === null || text === '' ? 0 : toInt(text, 'epoch')),
  format: (epoch) => String(epoch),
};

export const memberPlanContent: Content<MemberPlan> = {
  schema: '{"version":1,"epoch":3,"partitions":{"topic":{"0":[[0,9],12]}}}',
  parse(text) {
    const json = parseObject(text);
    const partitions = new Map<string, number>();
    const sum = new PartitionSum();
    if (!isObject(json.partitions)) throw new Error('partitions: an object is wanted');
    for (const [topic, threads] of Object.entries(json.partitions)) {
      toName(topic, 'topic');
      if (!isObject(threads)) throw new Error(`partitions.${topic}: an object is wanted`);
      for (const [thread, names] of Object.entries(threads)) {
        for (const partition of namesOf(names, topic, sum)) {
          partitions.set(keyOf({ topic, partition }), toInt(thread, 'thread'));
        }
      }
    }
    return { epoch: intOf(json, 'epoch'), partitions };
  },
  format({ epoch, partitions }) {
    const byTopic = new Map<string, Map<number, string[]>>();
    for (const [key, thread] of partitions) {
      const { topic, partition } = partitionOf(key);
      const threads = byTopic.get(topic) ?? new Map<number, string[]>();
      byTopic.set(topic, threads);
      threads.set(thread, [...(threads.get(thread) ?? []), partition]);
    }
    const text = [...byTopic].map(([topic, threads]) => [
      topic,
      Object.fromEntries([...threads].map(([thread, names]) => [thread, runsOf(names)])),
    ]);
    return toJson({ version: 1, epoch, partitions: Object.fromEntries(text) });
  },
};

function namesOf(value: unknown, topic: string, sum: PartitionSum): string[] {
  if (!Array.isArray(value)) throw new Error(`partitions.${topic}: a list is wanted`);
  return value.flatMap((one: unknown) => {
    if (typeof one === 'string') return [toName(one, `partitions.${topic}`)];
    if (typeof one === 'number') return [String(one)];
    if (!Array.isArray(one)) throw new Error(`partitions.${topic}: a name or a run is wanted`);
    const [first, last] = [toInt(one[0], 'first'), toInt(one[1], 'last')];
    if (first < 0 || last < first) throw new Error(`partitions.${topic}: no such run`);
    sum.add(last - first + 1, `partitions.${topic}`);
    return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
  });
}

function runsOf(names: readonly string[]): (string | number | [number, number])[] {
  const runs: (string | [number, number])[] = [];
  for (const name of sortPartitions(names)) {
    if (!/^\d+$/.test(name)) {
      runs.push(name);
      continue;
    }
    const number = Number(name);
    const last = runs.at(-1);
    if (Array.isArray(last) && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map((run) => (Array.isArray(run) && run[0] === run[1] ? run[0] : run));
}

const persistent = 'persistent';

// biome-ignore format: a table is read down its columns
export const planLayout = {
  plan:       row({ path: '/consumers/[group]/plan',                    kind: persistent, content: epochContent,      writer: 'who plans', watcher: '' }),
  election:   row({ path: '/consumers/[group]/plan/election',           kind: persistent, content: nothing,           writer: 'members',   watcher: '' }),
  members:    row({ path: '/consumers/[group]/plan/members',            kind: persistent, content: nothing,           writer: 'who plans', watcher: '' }),
  memberPlan: row({ path: '/consumers/[group]/plan/members/[consumer]', kind: persistent, content: memberPlanContent, writer: 'who plans', watcher: 'that member (data)' }),
} as const;
