import { expect, test } from 'vitest';
import {
  ConfluentSource,
  type RdKafkaConsumer,
  type RdKafkaMessage,
  type RdKafkaPartition,
} from './confluent.ts';

type Callback = (error: Error | null, result?: never) => void;

/** Stands for librdkafka's binding: hands over what the test has put in, for what is assigned. */
class FakeConsumer implements RdKafkaConsumer {
  static last: FakeConsumer;
  readonly config: Record<string, unknown>;
  readonly calls: string[] = [];
  readonly waiting: RdKafkaMessage[] = [];
  error: Error | null = null;
  assigned: RdKafkaPartition[] = [];

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
    this.assigned = partitions;
    this.calls.push(`assign ${partitions.map((one) => `${one.partition}@${one.offset}`)}`);
  }

  consume(count: number, done: (error: Error | null, messages: RdKafkaMessage[]) => void): void {
    const { error } = this;
    this.error = null;
    setImmediate(() => done(error, error ? [] : this.waiting.splice(0, count)));
  }

  setDefaultConsumeTimeout(): void {}

  pause(partitions: RdKafkaPartition[]): void {
    this.calls.push(`pause ${partitions.map(({ partition }) => partition)}`);
  }

  resume(partitions: RdKafkaPartition[]): void {
    this.calls.push(`resume ${partitions.map(({ partition }) => partition)}`);
  }

  seek(_: RdKafkaPartition, __: number, done: Callback): void {
    done(null);
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
    const error = partition > 1 ? new Error('unknown partition') : null;
    done(error, { lowOffset: 10, highOffset: 100 });
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
      this.waiting.push({ topic: 't', partition, offset, timestamp: offset, key: 'k', value });
    }
  }
}

const t = (partition: number) => ({ topic: 't', partition: String(partition) });
const make = (options = {}, servers = 'somewhere') =>
  new ConfluentSource(FakeConsumer, { 'bootstrap.servers': servers }, options);

test('partitions are assigned with their offsets, and nothing is ever committed', async () => {
  await using source = make();
  const first = await source.open(t(0), 20n);
  const fake = FakeConsumer.last;
  fake.put(0, 20, 3);

  const { value } = await first.next();
  await source.open(t(1), 'earliest');

  expect(fake.calls).toEqual(['assign 0@20', 'assign 0@23,1@10']);
  expect(fake.config).toMatchObject({ 'enable.auto.commit': false });
  expect(value).toMatchObject({ partition: '0', nextOffset: 23n, highWatermark: 23n });
  expect(value!.records[0]).toEqual({
    offset: 20n,
    timestampMs: 20,
    key: Buffer.from('k'),
    value: Buffer.from('v20'),
  });
});

test('a full buffer pauses its partition alone, and room resumes it', async () => {
  await using source = make({ bufferedRecordsMax: 4, consumeMax: 2 });
  const full = await source.open(t(0), 20n);
  const other = await source.open(t(1), 20n);
  const fake = FakeConsumer.last;
  fake.calls.length = 0;

  fake.put(0, 20, 4);
  await expect.poll(() => fake.calls).toEqual(['pause 0']);
  fake.put(1, 20, 1);
  expect((await other.next()).value!.records).toHaveLength(1);
  await full.next();
  await full.next();

  expect(fake.calls).toEqual(['pause 0', 'resume 0']);
});

test('a seek assigns anew, and what came for before is dropped', async () => {
  await using source = make();
  const reader = await source.open(t(0), 20n);
  const fake = FakeConsumer.last;

  reader.seek(50n);
  fake.put(0, 20, 2);
  fake.put(0, 50, 2);

  expect((await reader.next()).value!.records.map(({ offset }) => offset)).toEqual([50n, 51n]);
  expect(fake.calls.at(-1)).toBe('assign 0@50');
});

test('an error of the client fails the readers, with its cause', async () => {
  await using source = make();
  const reader = await source.open(t(0), 20n);
  FakeConsumer.last.error = new Error('all brokers down');

  await expect(reader.next()).rejects.toMatchObject({
    code: 'SOURCE_FAILED',
    cause: { message: 'all brokers down' },
  });
});

test('bounds and times are asked of the broker, and failures say of what', async () => {
  await using source = make();

  expect(await source.bounds(t(0))).toEqual({ earliest: 10n, latest: 100n });
  expect(await source.offsetForTime(t(0), 5)).toBe(42n);
  expect(await source.offsetForTime(t(0), 5_000)).toBe(100n);
  await expect(source.bounds(t(7))).rejects.toThrow(/t\/7/);
  await expect(source.open(t(0), 5n)).rejects.toMatchObject({ code: 'OFFSET_OUT_OF_RANGE' });
  await expect(make({}, 'nowhere').bounds(t(0))).rejects.toMatchObject({ code: 'SOURCE_FAILED' });
});

test('closed, a waiting next ends and the client is let go of', async () => {
  const source = make();
  const reader = await source.open(t(0), 20n);
  const waiting = reader.next();

  await source.close();

  expect((await waiting).done).toBe(true);
  expect(FakeConsumer.last.calls.at(-1)).toBe('gone');
  await expect(source.open(t(0), 20n)).rejects.toMatchObject({ code: 'CLOSED' });
});
