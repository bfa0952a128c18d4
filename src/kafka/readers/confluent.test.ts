import { expect, test } from 'vitest';
import { ManualClock } from '../../support/index.ts';
import {
  ConfluentSource,
  type RdKafkaConsumer,
  type RdKafkaMessage,
  type RdKafkaPartition,
} from './confluent.ts';

type Callback = (error: Error | null, result?: never) => void;

/** Stands for librdkafka's binding, of the kind that is told everything at once. */
class FakeConsumer implements RdKafkaConsumer {
  static last: FakeConsumer;
  readonly config: Record<string, unknown>;
  readonly calls: string[] = [];
  readonly log: RdKafkaMessage[] = [];
  readonly positions = new Map<number, number>();
  readonly paused = new Set<number>();
  error: Error | null = null;
  low = 10;
  high = 100;
  /** A call for records that is under way ends when the test says so. */
  hold: Promise<void> | undefined;

  constructor(config: Record<string, unknown>) {
    this.config = config;
    FakeConsumer.last = this;
  }

  connect(_: object, done: Callback): void {
    done(this.config['bootstrap.servers'] === 'nowhere' ? new Error('no broker') : null);
  }

  disconnect(done: Callback): void {
    this.calls.push('gone');
    done(null);
  }

  assign(partitions: RdKafkaPartition[]): void {
    this.positions.clear();
    this.give('assign', partitions);
  }

  protected give(call: string, partitions: RdKafkaPartition[]): void {
    this.calls.push(`${call} ${partitions.map((one) => `${one.partition}@${one.offset}`)}`);
    for (const { partition, offset } of partitions) {
      this.positions.set(partition, offset!); // and paused it stays, if it was
    }
  }

  consume(count: number, done: (error: Error | null, messages: RdKafkaMessage[]) => void): void {
    const { error } = this;
    this.error = null;
    const some: RdKafkaMessage[] = [];
    for (const message of this.log) {
      const { partition, offset } = message;
      const position = this.positions.get(partition);
      if (position === undefined || this.paused.has(partition) || offset < position) continue;
      if (error !== null || some.length === count) break;
      some.push(message);
      this.positions.set(partition, offset + 1);
    }
    const end = () => done(error, error ? (undefined as never) : some);
    if (this.hold === undefined) setImmediate(end);
    else void this.hold.then(end);
  }

  setDefaultConsumeTimeout(): void {}

  pause(partitions: RdKafkaPartition[]): void {
    this.calls.push(`pause ${partitions.map(({ partition }) => partition)}`);
    for (const { partition } of partitions) {
      if (!this.positions.has(partition)) throw new Error('not assigned');
      this.paused.add(partition);
    }
  }

  resume(partitions: RdKafkaPartition[]): void {
    const was = partitions.filter(({ partition }) => this.paused.has(partition));
    if (was.length > 0) this.calls.push(`resume ${was.map(({ partition }) => partition)}`);
    for (const { partition } of partitions) this.paused.delete(partition);
  }

  getWatermarkOffsets() {
    return { lowOffset: -1001, highOffset: -1001 };
  }

  queryWatermarkOffsets(
    _: string,
    partition: number,
    __: number,
    done: (error: Error | null, result: { lowOffset: number; highOffset: number }) => void,
  ): void {
    const error =
      partition > 1 ? Object.assign(new Error('unknown partition'), { code: -190 }) : null;
    done(error, { lowOffset: this.low, highOffset: this.high });
  }

  offsetsForTimes(
    [asked]: RdKafkaPartition[],
    _: number,
    done: (error: Error | null, found: RdKafkaPartition[]) => void,
  ): void {
    done(null, [{ ...asked!, offset: asked!.offset! > 1000 ? -1 : 42 }]);
  }

  put(partition: number, from: number, count: number): void {
    for (let i = 0; i < count; i++) {
      const offset = from + i;
      const value = Buffer.from(`v${offset}`);
      this.log.push({ topic: 't', partition, offset, timestamp: offset, key: 'k', value });
    }
  }
}

/** Of the kind that takes and gives one by one. */
class IncrementalConsumer extends FakeConsumer {
  override assign(): void {
    throw new Error('everything was given anew');
  }

  incrementalAssign(partitions: RdKafkaPartition[]): void {
    for (const { partition } of partitions) {
      if (this.positions.has(partition)) throw new Error(`${partition} is assigned already`);
    }
    this.give('give', partitions);
  }

  incrementalUnassign(partitions: RdKafkaPartition[]): void {
    this.calls.push(`take ${partitions.map(({ partition }) => partition)}`);
    for (const { partition } of partitions) {
      if (!this.positions.delete(partition)) throw new Error(`${partition} is not assigned`);
    }
  }
}

const kinds = [
  ['all at once', FakeConsumer],
  ['one by one', IncrementalConsumer],
] as const;
const t = (partition: number) => ({ topic: 't', partition: String(partition) });
const make = (options = {}, servers = 'somewhere', Kind: typeof FakeConsumer = FakeConsumer) =>
  new ConfluentSource(Kind, { 'bootstrap.servers': servers }, options);
const fake = () => FakeConsumer.last;
const assigned = (...calls: string[]) => expect.poll(() => fake().calls).toEqual(calls);

test('partitions are assigned with their offsets, and nothing is ever committed', async () => {
  await using source = make();
  const first = await source.open(t(0), 20n);
  fake().put(0, 20, 3);

  const { value } = await first.next();
  await source.open(t(1), 'earliest');

  await assigned('assign 0@20', 'assign 0@23,1@10');
  expect(fake().config).toMatchObject({ 'enable.auto.commit': false });
  expect(value).toMatchObject({ partition: '0', nextOffset: 23n, highWatermark: 23n });
  expect(value!.records[0]).toEqual({
    offset: 20n,
    timestampMs: 20,
    key: Buffer.from('k'),
    value: Buffer.from('v20'),
  });
});

test('one by one, the others are left where they are', async () => {
  await using source = make({}, '', IncrementalConsumer);
  const first = await source.open(t(0), 20n);
  await assigned('give 0@20');

  const second = await source.open(t(1), 'earliest');
  await assigned('give 0@20', 'give 1@10');
  second.seek(50n);
  await assigned('give 0@20', 'give 1@10', 'take 1', 'give 1@50');
  await first.close();
  await expect.poll(() => fake().calls.at(-1)).toBe('take 0');
});

test('a full buffer pauses its partition alone, and room resumes it', async () => {
  await using source = make({ bufferedRecordsMax: 4, consumeMax: 2 });
  const full = await source.open(t(0), 20n);
  const other = await source.open(t(1), 20n);
  await expect.poll(() => fake().positions.size).toBe(2);
  fake().calls.length = 0;

  fake().put(0, 20, 9);
  await assigned('pause 0');
  fake().put(1, 20, 1);
  expect((await other.next()).value!.records).toHaveLength(1);
  await full.next();
  await full.next();

  expect(fake().calls.slice(0, 2)).toEqual(['pause 0', 'resume 0']);
});

test('one that is let go while it is moved is not forgotten, nor one that was closed', async () => {
  await using source = make({}, '', IncrementalConsumer);
  const reader = await source.open(t(0), 20n);
  await assigned('give 0@20');
  fake().put(0, 20, 40);

  reader.pause();
  reader.seek(50n);
  reader.resume();
  expect((await reader.next()).value!.records[0]!.offset).toBe(50n);
  reader.pause();
  await reader.close();
  const again = await source.open(t(0), 30n);

  expect((await again.next()).value!.records[0]!.offset).toBe(30n);
});

test('one that is paused stays so when it is moved', async () => {
  await using source = make({}, '', IncrementalConsumer);
  const reader = await source.open(t(0), 20n);
  await assigned('give 0@20');

  reader.pause();
  reader.seek(50n);
  await assigned('give 0@20', 'pause 0', 'take 0', 'give 0@50', 'pause 0');
  fake().put(0, 50, 1);
  const next = reader.next();
  reader.resume();

  expect((await next).value!.records[0]!.offset).toBe(50n);
});

test.for(kinds)(
  '%s: a seek, back or ahead, drops what was asked for before it',
  async ([, Kind]) => {
    await using source = make({}, '', Kind);
    const reader = await source.open(t(0), 20n);
    fake().put(0, 20, 60);
    const offsets = async () => (await reader.next()).value!.records.map(({ offset }) => offset);
    expect((await offsets())[0]).toBe(20n);

    for (const [at, more] of [
      [30, 80],
      [70, 90],
      [25, 95],
    ] as const) {
      let go = () => {};
      fake().hold = new Promise((resolve) => {
        go = resolve;
      });
      fake().put(0, more, 5);
      // A call is under way, and will bring what lies ahead of the old place.
      await expect.poll(() => fake().positions.get(0)).toBe(more + 5);
      reader.seek(BigInt(at));
      fake().hold = undefined;
      go();

      expect((await offsets())[0]).toBe(BigInt(at));
      while (reader.position < BigInt(more + 5)) await reader.next();
    }
  },
);

test('an error of the client fails the readers, with its cause', async () => {
  await using source = make();
  const reader = await source.open(t(0), 20n);
  fake().error = new Error('all brokers down');

  await expect(reader.next()).rejects.toMatchObject({
    code: 'SOURCE_FAILED',
    cause: { message: 'all brokers down' },
  });
});

test.for(kinds)(
  '%s: an offset that is gone fails its own reader, whoever was told',
  async ([, Kind]) => {
    await using source = make({}, '', Kind);
    const gone = await source.open(t(0), 20n);
    const well = await source.open(t(1), 60n);
    await expect.poll(() => fake().positions.size).toBe(2);
    fake().low = 50;

    fake().error = Object.assign(new Error('out of range'), { code: -140 });

    await expect(gone.next()).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
    fake().put(1, 60, 1);
    expect((await well.next()).value!.records[0]!.offset).toBe(60n);
    expect((await gone.next()).done).toBe(true);
  },
);

test('an error that the client kept for itself is found by looking at who is silent', async () => {
  const clock = new ManualClock();
  await using source = make({ clock, silenceMs: 5_000 });
  const reader = await source.open(t(0), 20n);
  let failure: unknown;
  const next = reader.next().catch((error) => {
    failure = error;
  });
  fake().low = 50;

  await expect
    .poll(() => {
      clock.advance(100);
      return failure;
    })
    .toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
  await next;

  // Not by the first look: a broker that has just come back may not know yet what it has.
  expect(clock.nowMs()).toBeGreaterThanOrEqual(15_000);
});

test('bounds and times are asked of the broker, and failures say of what', async () => {
  await using source = make();

  expect(await source.bounds(t(0))).toEqual({ earliest: 10n, latest: 100n });
  expect(await source.offsetForTime(t(0), 5)).toBe(42n);
  expect(await source.offsetForTime(t(0), 5_000)).toBe(100n);
  await expect(source.bounds(t(7))).rejects.toMatchObject({ code: 'NO_PARTITION' });
  await expect(source.bounds(t(7))).rejects.toThrow(/t\/7/);
  await expect(source.open(t(0), 5n)).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
  await source.open(t(0), 50n);
  await expect(source.open(t(0), 50n)).rejects.toThrow(/open already/);
});

test('a client that could not connect is let go of, and the next who asks tries anew', async () => {
  await using source = make({}, 'nowhere');

  await expect(source.bounds(t(0))).rejects.toMatchObject({ code: 'SOURCE_FAILED' });
  const first = fake();
  await expect(source.bounds(t(0))).rejects.toMatchObject({ code: 'SOURCE_FAILED' });

  expect(first.calls).toEqual(['gone']);
  expect(fake()).not.toBe(first);
});

test('closed, a waiting next ends and the client is let go of', async () => {
  const source = make();
  const reader = await source.open(t(0), 20n);
  const waiting = reader.next();

  await source.close();

  expect((await waiting).done).toBe(true);
  expect(fake().calls.at(-1)).toBe('gone');
  await expect(source.open(t(0), 20n)).rejects.toMatchObject({ code: 'CLOSED' });
});
