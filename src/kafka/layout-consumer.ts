/**
 * What consumers of a group leave in ZooKeeper: who they are, what they own, how far they have read.
 *
 *   0.7 ids     { "t1": 2, "t2": 1 }   or  *threads*regex  or  !threads!regex
 *   0.8+ ids    {"version":1,"subscription":{"t":2},"pattern":"static","timestamp":"ms"}
 *   owners      consumerId-thread
 *   offsets     decimal; MetaQ 1.4+: messageId-offset
 *
 * Other clients wrote other things, and all of it is read: kafka-node a white list of plain names,
 * kazoo-go owners without a thread and a time in seconds, pykafka a bare topic. A registration that
 * says nothing we know is a problem with its path, and that member counts as subscribed to nothing.
 */

import type { Content } from './layout.ts';
import {
  isObject,
  type JsonObject,
  parseDecimal,
  parseJson,
  parseObject,
  timestampOf,
  toCount,
  toInt,
  toJson,
  toName,
} from './layout-fields.ts';

export type SubscriptionPattern = 'static' | 'white_list' | 'black_list';

export interface ConsumerRegistration {
  readonly pattern: SubscriptionPattern;
  /** Topic, or for a list regular expression, and its number of threads. In the order written. */
  readonly subscription: ReadonlyMap<string, number>;
  readonly timestampMs: number | null;
}

/** More would be a mistake: each is a stream of its own, and whoever shares out counts them all. */
export const threadsMax = 10_000;

const patterns: readonly string[] = ['static', 'white_list', 'black_list'];

export const consumerContent: Content<ConsumerRegistration> = {
  schema: '{"version":1,"subscription":{"topic":2},"pattern":"static","timestamp":"ms"}',
  parse(text) {
    if (text !== null && /^[a-zA-Z0-9._-]+$/.test(text) && !/^\d+$/.test(text)) {
      return {
        pattern: 'static',
        subscription: topicsOf({ [text]: 1 }),
        timestampMs: null,
      };
    }
    const json = parseObject(text);
    const pattern = json.pattern ?? 'static';
    if (typeof pattern !== 'string' || !patterns.includes(pattern)) {
      throw new Error('pattern: static, white_list or black_list is wanted');
    }
    if (!isObject(json.subscription)) throw new Error('subscription: an object is wanted');
    return {
      pattern: pattern as SubscriptionPattern,
      subscription: (pattern === 'static' ? topicsOf : threadsOf)(json.subscription),
      timestampMs: timestampOf(json),
    };
  },
  format: ({ pattern, subscription, timestampMs }) =>
    toJson({
      version: 1,
      subscription: Object.fromEntries(subscription),
      pattern,
      timestamp: String(timestampMs ?? 0),
    }),
};

const markOf = { white_list: '*', black_list: '!' } as const;

export const consumerContent07: Content<ConsumerRegistration> = {
  schema: '{ "topic": 2 } or *threads*regex or !threads!regex',
  parse(text) {
    const found = /^([*!])(\d+)\1([\s\S]*)$/.exec(text ?? '');
    if (found !== null) {
      const pattern = found[1] === '*' ? 'white_list' : 'black_list';
      const subscription = threadsOf({ [found[3]!]: found[2] });
      return { pattern, subscription, timestampMs: null };
    }
    const subscription = topicsOf(parseObject(text));
    return { pattern: 'static', subscription, timestampMs: null };
  },
  format({ pattern, subscription }) {
    if (pattern === 'static') {
      const fields = [...subscription].map(([topic, n]) => `${JSON.stringify(topic)}: ${n}`);
      return `{ ${fields.join(',')} }`;
    }
    const [regex, threads] = [...subscription][0] ?? ['', 1];
    const mark = markOf[pattern];
    return `${mark}${threads}${mark}${regex}`;
  },
};

/** MetaQ: topics between commas, one thread each. */
export const consumerContentMetaq: Content<ConsumerRegistration> = {
  schema: 'topic1,topic2',
  parse(text) {
    const topics = (text ?? '').split(',').filter((topic) => topic !== '');
    const subscription = new Map(topics.map((topic) => [toName(topic, 'topic'), 1]));
    return { pattern: 'static', subscription, timestampMs: null };
  },
  format: ({ subscription }) => [...subscription.keys()].join(','),
};

export interface Owner {
  readonly consumerId: string;
  /** Null where the writer knows no threads. */
  readonly thread: number | null;
}

/** The whole text of an owner node is its identity: what claims compare. */
export const ownerContent: Content<string> = {
  schema: 'consumerId-thread',
  parse(text) {
    if (text === null || text === '') throw new Error('the id of a consumer is wanted');
    return text;
  },
  format: (value) => value,
};

/** Splits an owner's text. `consumerIds`: the members known, since an id may itself end in -number. */
export function ownerOf(text: string, consumerIds: ReadonlySet<string> = new Set()): Owner {
  if (consumerIds.has(text)) return { consumerId: text, thread: null };
  const found = /^(.+)-(\d+)$/.exec(text);
  if (found === null) return { consumerId: text, thread: null };
  return { consumerId: found[1]!, thread: Number(found[2]) };
}

export function formatOwner({ consumerId, thread }: Owner): string {
  return thread === null ? consumerId : `${consumerId}-${thread}`;
}

export const offsetContent: Content<bigint> = {
  schema: 'decimal',
  parse: (text) => parseDecimal(text, 'offset'),
  format: (value) => String(value),
};

export interface MetaqOffset {
  /** Null before 1.4. */
  readonly messageId: bigint | null;
  readonly offset: bigint;
}

export const metaqOffsetContent: Content<MetaqOffset> = {
  schema: 'messageId-offset',
  parse(text) {
    const found = /^(-?\d+)-(-?\d+)$/.exec(text?.trim() ?? '');
    if (found === null) return { messageId: null, offset: parseDecimal(text, 'offset') };
    const [messageId, offset] = [found[1]!, found[2]!];
    return {
      messageId: parseDecimal(messageId, 'messageId'),
      offset: parseDecimal(offset, 'offset'),
    };
  },
  format: ({ messageId, offset }) => (messageId === null ? `${offset}` : `${messageId}-${offset}`),
};

/** A partition's name where brokers number their own: `broker-partition`, in 0.7 and in MetaQ. */
export interface BrokerPartition {
  readonly broker: number;
  readonly partition: number;
}

export function parseBrokerPartition(name: string): BrokerPartition {
  const found = /^(\d+)-(\d+)$/.exec(name);
  if (found === null) throw new Error(`"${name}" is not broker-partition`);
  return { broker: Number(found[1]), partition: Number(found[2]) };
}

export function formatBrokerPartition({ broker, partition }: BrokerPartition): string {
  return `${broker}-${partition}`;
}

/** How many partitions of a topic a broker has: a bare number in 0.7, JSON in MetaQ. */
export const partitionCountContent: Content<number> = {
  schema: 'decimal',
  parse(text) {
    const value = parseJson(text ?? '');
    return toCount(isObject(value) ? value.numParts : value, 'numParts');
  },
  format: (count) => String(count),
};

function threadsOf(json: JsonObject): Map<string, number> {
  const entries = Object.entries(json).map(([topic, threads]): [string, number] => {
    const count = toInt(threads, `threads of ${topic}`);
    if (count < 1 || count > threadsMax) {
      throw new Error(`threads of ${topic}: 1 to ${threadsMax} are wanted`);
    }
    return [topic, count];
  });
  return new Map(entries);
}

/** As `threadsOf`, where topics stand by name, and not expressions. */
function topicsOf(json: JsonObject): Map<string, number> {
  const topics = threadsOf(json);
  for (const topic of topics.keys()) toName(topic, 'topic');
  return topics;
}
