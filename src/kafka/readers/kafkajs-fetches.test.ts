import { expect, test } from 'vitest';
import {
  type FetchAnswer,
  type FetchedMessage,
  type FetchedPartition,
  type FetchRequest,
  type KafkaJsCluster,
  repairFetches,
} from './kafkajs-fetches.ts';

const record = (offset: number, producerId: string, key = 'k'): FetchedMessage => ({
  offset: String(offset),
  key: Buffer.from(key),
  isControlRecord: false,
  batchContext: {
    firstOffset: String(offset),
    lastOffsetDelta: 0,
    producerId,
    inTransaction: true,
  },
});

const mark = (offset: number, producerId: string, kind: 'abort' | 'commit'): FetchedMessage => ({
  ...record(offset, producerId),
  key: Buffer.from([0, 0, 0, kind === 'abort' ? 0 : 1]),
  isControlRecord: true,
});

const part = (messages: FetchedMessage[], more: Partial<FetchedPartition> = {}) => ({
  partition: 0,
  highWatermark: '100',
  lastStableOffset: '100',
  abortedTransactions: [],
  messages,
  ...more,
});

/** What kafkajs sees of what a broker answers: `c` before a mark, and offsets. */
async function seen(
  from: number,
  answers: FetchedPartition[][],
  { isCompacted = true }: { isCompacted?: boolean } = {},
) {
  const requests: FetchRequest[] = [];
  const broker = {
    fetch: async (request: FetchRequest): Promise<FetchAnswer> => {
      const partitions = answers[requests.push(request) - 1]!;
      return { responses: [{ topicName: 't', partitions }] };
    },
  };
  const cluster: KafkaJsCluster = { findBroker: async () => broker };
  repairFetches(cluster, { isCompacted: async () => isCompacted, onOutOfRange: () => {} });
  await cluster.findBroker({ nodeId: '1' });
  const partitions = [0, 1].map((partition) => ({ partition, fetchOffset: String(from) }));
  const found = await (await cluster.findBroker({ nodeId: '1' })).fetch({
    topics: [{ topic: 't', partitions }],
  });
  const [first] = found.responses[0]!.partitions;
  return {
    messages: first!.messages.map((one) => `${one.isControlRecord ? 'c' : ''}${one.offset}`),
    aborted: first!.abortedTransactions,
    asked: requests.map(({ topics }) => topics[0]!.partitions.map(({ partition }) => partition)),
  };
}

test('aborted records are marks, in whatever order their transactions ended', async () => {
  const messages = [
    ...[record(0, 'a'), record(1, 'b'), record(2, 'c'), mark(3, 'b', 'abort'), record(4, 'b')],
    ...[record(5, 'a'), mark(6, 'a', 'abort'), mark(7, 'b', 'commit'), mark(8, 'c', 'commit')],
  ];
  const abortedTransactions = [
    { producerId: 'b', firstOffset: '1' },
    { producerId: 'a', firstOffset: '0' },
  ];

  const { messages: left, aborted } = await seen(0, [[part(messages, { abortedTransactions })]]);

  expect(left).toEqual(['c0', 'c1', '2', 'c3', '4', 'c5', 'c6', 'c7', 'c8']);
  expect(aborted).toEqual([]); // kafkajs has nothing left to decide
});

test('all that was aborted before reading began counts, and a key of zeros is no mark', async () => {
  const messages = [record(7, 'b', '\0\0\0\0'), record(8, 'b'), record(9, 'a'), record(10, 'c')];
  const abortedTransactions = [
    { producerId: 'a', firstOffset: '2' },
    { producerId: 'b', firstOffset: '3' },
  ];

  const { messages: left } = await seen(7, [[part(messages, { abortedTransactions })]]);

  expect(left).toEqual(['c7', 'c8', 'c9', '10']);
});

test('where the first offsets, or the last of a batch, hold nothing, marks say how far it reaches', async () => {
  const batchContext = { ...record(0, 'a').batchContext!, lastOffsetDelta: 9 };
  const left = (...offsets: number[]) =>
    offsets.map((offset) => ({ ...record(offset, 'a'), batchContext }));

  expect((await seen(0, [[part(left(2, 5))]])).messages).toEqual(['c0', '2', '5', 'c9']);
  expect((await seen(5, [[part(left(2, 5))]])).messages).toEqual(['2', '5', 'c9']);
  // Those before what was asked for kafkajs leaves out itself.
  expect((await seen(6, [[part(left(2, 5))]])).messages).toEqual(['c6', '2', '5', 'c9']);
});

test('where nothing comes, the partition is asked for alone; then its offset holds nothing', async () => {
  const nothing = part([]);
  const other = part([record(6, 'a')], { partition: 1 });

  expect(await seen(6, [[nothing, other], [part([record(6, 'b')])]])).toMatchObject({
    messages: ['6'],
    asked: [[0, 1], [0]],
  });
  expect((await seen(6, [[nothing, other], [nothing]])).messages).toEqual(['c6']);
});

test('nothing is passed over unless it is sure to hold nothing', async () => {
  const nothing = part([]);
  const elsewhere = part([], { preferredReadReplica: 2 });

  expect((await seen(6, [[nothing], [nothing]], { isCompacted: false })).messages).toEqual([]);
  expect(await seen(6, [[elsewhere]])).toMatchObject({ messages: [], asked: [[0, 1]] });
  expect((await seen(6, [[nothing], [elsewhere]])).messages).toEqual([]);
  // At the end, or where a transaction is open.
  expect(await seen(100, [[nothing]])).toMatchObject({ messages: [], asked: [[0, 1]] });
  const open = part([], { lastStableOffset: '6' });
  expect(await seen(6, [[open]])).toMatchObject({ messages: [], asked: [[0, 1]] });
});

test('an offset that is gone is told, with the partition that it was asked of', async () => {
  const error = Object.assign(new Error('gone'), {
    name: 'KafkaJSOffsetOutOfRange',
    topic: 't',
    partition: 1,
  });
  const failing = [error, Object.assign(new Error('busy'), { topic: 't', partition: 1 })];
  const broker = { fetch: async (): Promise<FetchAnswer> => Promise.reject(failing.shift()) };
  const cluster: KafkaJsCluster = { findBroker: async () => broker };
  const told: string[] = [];
  repairFetches(cluster, {
    isCompacted: async () => true,
    onOutOfRange: (topic, partition, offset) => told.push(`${topic}/${partition} ${offset}`),
  });
  const { fetch } = await cluster.findBroker({ nodeId: '1' });
  const request = { topics: [{ topic: 't', partitions: [{ partition: 1, fetchOffset: '7' }] }] };

  await expect(fetch(request)).rejects.toThrow('gone');
  await expect(fetch(request)).rejects.toThrow('busy');

  expect(told).toEqual(['t/1 7']);
});
