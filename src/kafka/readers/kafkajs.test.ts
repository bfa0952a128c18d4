import { expect, test } from 'vitest';
import { ManualClock } from '../../support/index.ts';
import { KafkaJsSource } from './kafkajs.ts';
import type {
  KafkaJs,
  KafkaJsAdmin,
  KafkaJsAssigner,
  KafkaJsBatch,
  KafkaJsBatchEnd,
  KafkaJsConsumer,
  KafkaJsMetadata,
} from './kafkajs-face.ts';
import { boundedSource } from './kafkajs-open.ts';

/** Stands for kafkajs: a topic of two partitions, fetched when the test says so. */
class FakeKafka implements KafkaJs {
  /** What happens in the place of joining the group at once. */
  onRun: (() => void) | undefined;
  readonly calls: string[] = [];
  readonly bounds = [
    { partition: 0, low: '0', high: '100' },
    { partition: 1, low: '50', high: '100' },
  ];
  config: Parameters<KafkaJs['consumer']>[0] | undefined;
  known = [0, 1];
  /** It is away from its brokers, and refuses what is asked of it, as kafkajs does then. */
  isAway = false;
  readonly cluster: KafkaJsMetadata = {
    findTopicPartitionMetadata: () => this.known.map((partitionId) => ({ partitionId })),
    findBroker: async () => ({ fetch: async () => ({ responses: [] }) }),
    refreshMetadata: async () => void this.calls.push('refresh'),
  };
  assigner: KafkaJsAssigner | undefined;
  #join: (() => void) | undefined;
  #crash: ((event: { payload: { error: Error; restart: boolean } }) => void) | undefined;
  #batchEnded: ((event: { payload: KafkaJsBatchEnd }) => void) | undefined;
  #eachBatch: Parameters<KafkaJsConsumer['run']>[0]['eachBatch'] | undefined;

  admin(): KafkaJsAdmin {
    return {
      connect: async () => {},
      disconnect: async () => void this.calls.push('admin gone'),
      fetchTopicOffsets: async () => this.bounds,
      fetchTopicOffsetsByTimestamp: async (_, ms = 0) => [
        { partition: 0, offset: ms > 1000 ? '-1' : '42' },
      ],
      describeConfigs: async () => ({
        resources: [{ configEntries: [{ configValue: 'delete' }] }],
      }),
    };
  }

  consumer(config: Parameters<KafkaJs['consumer']>[0]): KafkaJsConsumer {
    this.config = config;
    this.assigner = config.partitionAssigners[0];
    this.assigner!({ cluster: this.cluster });
    const list = (partitions: { partitions: number[] }[]) => partitions[0]!.partitions.join();
    return {
      events: {
        GROUP_JOIN: 'consumer.group_join',
        CRASH: 'consumer.crash',
        END_BATCH_PROCESS: 'consumer.end_batch_process',
      },
      on: (event: string, listener: (event: never) => void) => {
        if (event === 'consumer.crash') this.#crash = listener as never;
        else if (event === 'consumer.end_batch_process') this.#batchEnded = listener as never;
        else this.#join = () => listener({ payload: { memberAssignment: { t: [0, 1] } } } as never);
      },
      connect: async () => {},
      disconnect: async () => void this.calls.push('consumer gone'),
      subscribe: async () => {},
      run: async ({ eachBatch }) => {
        this.#eachBatch = eachBatch;
        (this.onRun ?? this.#join!)();
      },
      pause: (partitions) => this.calls.push(`pause ${list(partitions)}`),
      resume: (partitions) => this.calls.push(`resume ${list(partitions)}`),
      seek: ({ partition, offset }) => {
        if (this.isAway) throw new Error('Consumer group was not initialized');
        this.calls.push(`seek ${partition} ${offset}`);
      },
    };
  }

  /** As if kafkajs had fetched so many at this offset. */
  async fetched(partition: number, at: number, count: number): Promise<string | undefined> {
    const messages = Array.from({ length: count }, (_, i) => ({
      offset: String(at + i),
      timestamp: String(1000 + at + i),
      key: null,
      value: Buffer.from(`v${at + i}`),
    }));
    const batch: KafkaJsBatch = {
      topic: 't',
      partition,
      highWatermark: '100',
      messages,
      fetchedOffset: String(at),
      lastOffset: () => String(at + count - 1),
    };
    let resolved: string | undefined;
    await this.#eachBatch!({
      batch,
      resolveOffset: (offset) => {
        resolved = offset;
      },
    });
    return resolved;
  }

  /** As if kafkajs had fetched what nobody is to see, such as the mark of a transaction, and gone on. */
  leftOut(partition: number, first: number, last: number): void {
    const offsets = { firstOffset: String(first), lastOffset: String(last) };
    const of = { topic: 't', partition, highWatermark: '100' };
    this.#batchEnded!({ payload: { ...of, ...offsets, batchSize: 0 } });
  }

  rejoin(): void {
    this.#join!();
  }

  crash(restart: boolean): void {
    this.#crash!({ payload: { error: new Error('no broker'), restart } });
  }

  taken(): string[] {
    return this.calls.splice(0);
  }
}

const t = (partition: number) => ({ topic: 't', partition: String(partition) });

test('a partition is opened by seek and resume; all others stay paused', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);

  const reader = await source.open(t(1), 60n);

  expect(kafka.taken()).toEqual(['pause 0,1', 'seek 1 60', 'resume 1']);
  expect([reader.position, reader.highWatermark]).toEqual([60n, 100n]);
});

test('a partition that kafkajs refuses to seek in is not open, and can be opened later', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  kafka.isAway = true;
  await expect(source.open(t(1), 60n)).rejects.toMatchObject({ code: 'SOURCE_FAILED' });

  kafka.isAway = false;
  const reader = await source.open(t(1), 60n);

  expect(reader.position).toBe(60n);
});

test('what was fetched is handed out and never committed, and kafkajs told where to go on', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  const reader = await source.open(t(0), 'earliest');

  expect(await kafka.fetched(0, 0, 3)).toBe('2');
  expect(await kafka.fetched(1, 50, 3)).toBeUndefined(); // nobody reads it
  const { value } = await reader.next();

  expect(value).toMatchObject({ topic: 't', partition: '0', nextOffset: 3n, highWatermark: 100n });
  expect(value!.records[2]).toEqual({
    offset: 2n,
    timestampMs: 1002,
    key: null,
    value: Buffer.from('v2'),
  });
});

test('a full buffer pauses the partition, and half of it taken resumes it', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka, { bufferedRecordsMax: 10 });
  const reader = await source.open(t(0), 0n);
  kafka.taken();

  for (let at = 0; at < 12; at += 4) await kafka.fetched(0, at, 4);
  expect(kafka.taken()).toEqual(['pause 0']);
  await reader.next();
  expect(kafka.taken()).toEqual([]);
  await reader.next();
  expect(kafka.taken()).toEqual(['resume 0']);
});

test('what was under way before a seek is dropped, and asked for again where it should be', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  const reader = await source.open(t(0), 0n);
  await kafka.fetched(0, 0, 5);
  kafka.taken();

  reader.seek(40n);
  await kafka.fetched(0, 5, 5);
  await kafka.fetched(0, 40, 2);

  expect(kafka.taken()).toEqual(['seek 0 40', 'seek 0 40']);
  expect((await reader.next()).value!.records[0]!.offset).toBe(40n);
});

test('offsets that hold nothing for a reader are passed, and it is at the end behind them', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  const reader = await source.open(t(0), 0n);
  await kafka.fetched(0, 0, 5);
  kafka.taken();

  kafka.leftOut(0, 5, 59);
  kafka.leftOut(0, 0, 3); // of before a seek
  const { value } = await reader.next();
  await kafka.fetched(0, 60, 39);
  await reader.next();
  kafka.leftOut(0, 99, 99);
  const waiting = reader.next();

  expect(kafka.taken()).toEqual([]);
  expect([value!.records.length, value!.nextOffset]).toEqual([5, 60n]);
  expect(reader.position).toBe(reader.highWatermark);
  await reader.close();
  expect((await waiting).done).toBe(true);
});

test('offsets that hold nothing for a reader move it only once what came before is seen', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  const reader = await source.open(t(0), 0n);
  await kafka.fetched(0, 0, 5);

  const next = reader.next();
  kafka.leftOut(0, 5, 9);

  expect((await next).value!.nextOffset).toBe(reader.position);
});

test('bounded, a partition ends behind the last offset, whether that holds a record or not', async () => {
  const kafka = new FakeKafka();
  await using source = boundedSource(new KafkaJsSource(kafka));
  const reader = await source.open(t(0), 95n);
  await kafka.fetched(0, 95, 4);
  const first = await reader.next();
  const waiting = reader.next();

  kafka.leftOut(0, 99, 99);

  expect(first.value!.records).toHaveLength(4);
  expect((await waiting).done).toBe(true);
  reader.seek(95n);
  await kafka.fetched(0, 95, 4);
  expect((await reader.next()).value!.records).toHaveLength(4);
});

test('fetched elsewhere again and again means that the offset is gone', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  const reader = await source.open(t(0), 3n);

  for (let i = 0; i < 6; i++) await kafka.fetched(0, 20, 1);

  await expect(reader.next()).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
  expect((await reader.next()).done).toBe(true);
});

test('an offset that a broker says is gone ends its reader, unless it was asked for before a seek', async () => {
  const kafka = new FakeKafka();
  const error = Object.assign(new Error(), { topic: 't', partition: 0 });
  error.name = 'KafkaJSOffsetOutOfRange';
  kafka.cluster.findBroker = async () => ({ fetch: () => Promise.reject(error) });
  await using source = new KafkaJsSource(kafka);
  const reader = await source.open(t(0), 3n);
  const { fetch } = await kafka.cluster.findBroker({ nodeId: '1' });
  const ask = (fetchOffset: string) =>
    fetch({ topics: [{ topic: 't', partitions: [{ partition: 0, fetchOffset }] }] });
  kafka.taken();

  await expect(ask('2')).rejects.toBe(error);
  expect(kafka.taken()).toEqual([]);
  await expect(ask('3')).rejects.toBe(error);

  expect(kafka.taken()).toEqual(['pause 0']);
  await expect(reader.next()).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
  expect((await source.open(t(0), 5n)).position).toBe(5n);
});

test('when the group is joined again every reader goes on where it stood', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  await source.open(t(0), 0n);
  await kafka.fetched(0, 0, 5);
  kafka.taken();

  kafka.rejoin();

  expect(kafka.taken()).toEqual(['pause 1', 'seek 0 5']);
});

test('kafkajs looks for what was resumed after half a second, unless it is told otherwise', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  await source.open(t(0), 0n);
  expect(kafka.config!.maxWaitTimeInMs).toBe(500);

  await using other = new KafkaJsSource(kafka, { consumer: { maxWaitTimeInMs: 50 } });
  await other.open(t(0), 0n);
  expect(kafka.config!.maxWaitTimeInMs).toBe(50);
});

test('kafkajs is told of a partition that was added, as soon as that is opened', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  await source.open(t(0), 0n);
  expect(kafka.taken()).not.toContain('refresh');

  kafka.bounds.push({ partition: 2, low: '0', high: '5' });
  await expect(source.open(t(2), 0n)).rejects.toMatchObject({ code: 'SOURCE_FAILED' });
  kafka.known.push(2);
  const reader = await source.open(t(2), 0n);
  await kafka.fetched(2, 0, 5);

  expect(kafka.taken()).toEqual(['refresh', 'refresh', 'seek 2 0', 'resume 2']);
  expect((await reader.next()).value!.records).toHaveLength(5);
});

test('a crash that kafkajs does not mend fails the readers; the next open begins anew', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  const reader = await source.open(t(0), 0n);
  const waiting = reader.next();

  kafka.crash(false);

  await expect(waiting).rejects.toMatchObject({ code: 'SOURCE_FAILED' });
  expect((await source.open(t(0), 0n)).position).toBe(0n);
});

test('a group that is not let in at once is tried again, for as long as kafkajs does and half a minute at most', async () => {
  const kafka = new FakeKafka();
  const clock = new ManualClock();
  await using source = new KafkaJsSource(kafka, { clock });
  kafka.onRun = () => kafka.crash(true);

  const opening = source.open(t(0), 0n);
  await new Promise(setImmediate);
  clock.advance(29_999);
  kafka.crash(true);
  kafka.rejoin();
  expect((await opening).position).toBe(0n);
  kafka.crash(false);

  const failing = source.open(t(0), 0n);
  await new Promise(setImmediate);
  clock.advance(30_000);
  kafka.crash(true);
  await expect(failing).rejects.toThrow('kafkajs gave up on t: no broker');
});

test('who calls it off, or closes the source, does not wait for a group to be joined', async () => {
  const kafka = new FakeKafka();
  const source = new KafkaJsSource(kafka);
  kafka.onRun = () => kafka.crash(true);
  const over = new AbortController();

  const called = source.open(t(0), 0n, { signal: over.signal });
  const waiting = source.open(t(1), 50n);
  await new Promise(setImmediate);
  over.abort(new Error('enough'));
  await expect(called).rejects.toThrow('enough');
  const closing = source.close();

  await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' });
  await closing;
  expect(kafka.taken()).toEqual(['consumer gone', 'consumer gone', 'admin gone']);
});

test('bounds and times are asked of the broker; what is out of range or not there is refused', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);

  expect(await source.bounds(t(1))).toEqual({ earliest: 50n, latest: 100n });
  expect(await source.offsetForTime(t(0), 5)).toBe(42n);
  expect(await source.offsetForTime(t(0), 5_000)).toBe(100n);
  await expect(source.open(t(1), 49n)).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
  await expect(source.open(t(7), 0n)).rejects.toMatchObject({ code: 'NO_PARTITION' });
  expect((await source.open(t(1), 'latest')).position).toBe(100n);
  await expect(source.open(t(1), 60n)).rejects.toThrow(/open already/);
});

test('closed, everything is let go of, and a waiting next ends', async () => {
  const kafka = new FakeKafka();
  const source = new KafkaJsSource(kafka);
  const reader = await source.open(t(0), 0n);
  const waiting = reader.next();

  await source.close();

  expect([(await waiting).done, reader.isClosed]).toEqual([true, true]);
  expect(kafka.calls.slice(-2)).toEqual(['consumer gone', 'admin gone']);
  await expect(source.open(t(0), 0n)).rejects.toMatchObject({ code: 'CLOSED' });
});

test('the assigner gives everything to the one member there is, in Kafka’s own encoding', async () => {
  const kafka = new FakeKafka();
  await using source = new KafkaJsSource(kafka);
  await source.open(t(0), 0n);

  const assigner = kafka.assigner!({ cluster: kafka.cluster });
  const [assigned] = await assigner.assign({ members: [{ memberId: 'me' }], topics: ['t'] });

  expect(assigner.protocol({ topics: ['t'] }).metadata.toString('hex')).toBe(
    '0001' + '00000001' + '0001' + '74' + '00000000',
  );
  expect(assigned!.memberAssignment.toString('hex')).toBe(
    `0001${'00000001'}000174${'00000002'}0000000000000001${'00000000'}`,
  );
});
