import { expect, test, vi } from 'vitest';
import type { KafkaRecord, OwnedPartition, PartitionReader, RecordBatch } from '../kafka/index.ts';
import { type Deferred, deferred, ManualClock } from '../support/index.ts';
import { Lane } from './lane.ts';
import type { LaneOptions } from './lane-options.ts';

/** A reader that is fed by the test. */
class FedReader implements PartitionReader {
  readonly topic = 't';
  readonly partition = '0';
  position = 0n;
  highWatermark: bigint | null = null;
  isPaused = false;
  isClosed = false;
  asked = 0;
  toggles = 0;
  #end = 0n;
  #waiting: Deferred<IteratorResult<RecordBatch, undefined>> | undefined;
  readonly #ready: RecordBatch[] = [];

  /** Offsets without a record, as compaction leaves them. */
  gap(offsets: bigint): void {
    this.#end += offsets;
  }

  feed(...timesMs: number[]): void {
    const from = this.#end;
    const records = timesMs.map((timestampMs, i): KafkaRecord => {
      return { offset: from + BigInt(i), timestampMs, key: null, value: null };
    });
    this.#end = from + BigInt(records.length);
    this.highWatermark = this.#end;
    const { topic, partition } = this;
    const batch = { topic, partition, records, nextOffset: this.#end, highWatermark: this.#end };
    this.#ready.push(batch);
    this.#serve();
  }

  #serve(): void {
    const waiting = this.#waiting;
    const batch = this.#ready[0];
    if (waiting === undefined || batch === undefined) return;
    this.#ready.shift();
    this.#waiting = undefined;
    this.position = batch.nextOffset;
    waiting.resolve({ done: false, value: batch });
  }

  end(): void {
    this.#waiting?.resolve({ done: true, value: undefined });
    this.#waiting = undefined;
  }

  fail(error: Error): void {
    this.#waiting?.reject(error);
  }

  async next(): Promise<IteratorResult<RecordBatch, undefined>> {
    this.asked += 1;
    this.highWatermark ??= this.#end;
    const waiting = deferred<IteratorResult<RecordBatch, undefined>>();
    this.#waiting = waiting;
    this.#serve();
    return waiting.promise;
  }

  pause(): void {
    this.isPaused = true;
    this.toggles += 1;
  }

  resume(): void {
    this.isPaused = false;
    this.toggles += 1;
  }

  seek(offset: bigint): void {
    this.position = offset;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async close(): Promise<void> {
    this.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** As much of an owned partition as a lane looks at. */
function owned() {
  const ended = new AbortController();
  const one = { topic: 't', partition: '0', epoch: 1n, signal: ended.signal };
  return { owned: one as unknown as OwnedPartition, lose: () => ended.abort() };
}

function start(options: Partial<LaneOptions> = {}) {
  const reader = new FedReader();
  const clock = new ManualClock();
  const told = {
    quarantined: [] as string[],
    ahead: [] as string[],
    trouble: [] as unknown[],
    failures: [] as unknown[],
  };
  const { owned: partition, lose } = owned();
  const lane = new Lane(partition, {
    open: async () => ({ reader, from: null }),
    readTime: ({ timestampMs }) => timestampMs ?? Number.NaN,
    allowanceMs: 0,
    stepMs: 60,
    idleAfterMs: 1_000,
    fromMs: null,
    toMs: null,
    quarantine: 'skip',
    futureToleranceMs: 0,
    maxAheadMs: Number.POSITIVE_INFINITY,
    clock,
    onQuarantined: (_, record, reason) => told.quarantined.push(`${record.offset} ${reason}`),
    onAhead: (_, record, timeMs) => told.ahead.push(`${record.offset} ${timeMs}`),
    onChange: () => {},
    onTrouble: (_, error) => told.trouble.push(error),
    onFailure: (error) => told.failures.push(error),
    ...options,
  });
  return { lane, reader, clock, told, lose };
}

const settled = () => new Promise((resolve) => void setImmediate(resolve));
const times = (lane: Lane) => {
  const handed = lane.take(100);
  return { handed, timesMs: handed.timesMs };
};

test('stops at the first record at the limit, and begins with it when the limit has moved', async () => {
  const { lane, reader } = start();
  reader.feed(10, 59, 60, 20, 130);
  await settled();
  expect(lane.isReady).toBe(false); // no limit is known

  lane.limitMs = 60;
  const { handed, timesMs } = times(lane);
  expect(timesMs).toEqual([10, 59]);
  expect(lane.isHeldBack).toBe(true);
  lane.finish(handed);
  expect(lane.report()).toMatchObject({ positionMs: 60, offset: 2n });

  lane.limitMs = 120;
  expect(times(lane).timesMs).toEqual([60, 20]);
});

test('a record behind offsets that hold none tells where the partition stands, as any other does', async () => {
  const { lane, reader } = start();
  lane.limitMs = 60;
  reader.feed(10);
  reader.gap(2n);
  reader.feed(130);
  await settled();
  const { handed } = times(lane);
  await settled();
  expect(lane.isHeldBack).toBe(true);

  lane.finish(handed);

  expect(lane.report()).toMatchObject({ positionMs: 130, offset: 3n });
});

test('pauses its reader while it is held back, and only then', async () => {
  const { lane, reader } = start();
  lane.limitMs = 60;
  reader.feed(10, 100);
  await settled();
  lane.finish(times(lane).handed);

  expect(reader.isPaused).toBe(true);
  for (const limitMs of [70, 80, 90]) lane.limitMs = limitMs;
  expect(reader.toggles).toBe(1);
  lane.limitMs = 120;
  expect(reader.isPaused).toBe(false);
});

test('holds one batch and asks for no other while it is held back', async () => {
  const { lane, reader } = start();
  lane.limitMs = 60;
  reader.feed(100, 101);
  reader.feed(102);
  await settled();

  expect(reader.asked).toBe(1);
});

test('a partition that is held back is not idle, however long', async () => {
  const { lane, reader, clock } = start();
  lane.limitMs = 60;
  reader.feed(100);
  await settled();

  clock.advance(3_600_000);
  await settled();

  expect(lane.state).toBe('reading');
});

test('idle comes exactly after its time, and not while work is under way', async () => {
  const { lane, reader, clock } = start();
  lane.limitMs = 60;
  reader.feed(10);
  await settled();
  const { handed } = times(lane);
  await settled();
  clock.advance(5_000);
  expect(lane.state).toBe('reading');

  lane.finish(handed);
  clock.advance(999);
  await settled();
  expect(lane.state).toBe('reading');
  clock.advance(1);
  expect(lane.state).toBe('idle');

  reader.feed(20);
  await settled();
  expect(lane.state).toBe('reading');
});

test('time in which people hold the group does not make a partition idle', async () => {
  const { lane, reader, clock } = start();
  lane.limitMs = 60;
  reader.feed(10);
  await settled();
  lane.finish(times(lane).handed);
  await settled();
  clock.advance(600);
  lane.isPaused = true;
  clock.advance(10_500);
  expect(lane.state).toBe('reading');

  lane.isPaused = false;
  clock.advance(999);
  expect(lane.state).toBe('reading');
  clock.advance(1);
  expect(lane.state).toBe('idle');
});

test('a partition that lags is not idle, though nothing comes', async () => {
  const { lane, reader, clock } = start();
  reader.highWatermark = 7n;
  await settled();

  clock.advance(10_000);
  expect(lane.state).toBe('reading');

  reader.highWatermark = 0n;
  clock.advance(1_000);
  expect(lane.state).toBe('idle');
});

test('its end comes when everything is done, and not when everything is read', async () => {
  const { lane, reader } = start();
  lane.limitMs = 60;
  reader.feed(10);
  await settled();
  const { handed } = times(lane);
  await settled();
  reader.end();
  await settled();
  expect(lane.state).toBe('reading');

  lane.finish(handed);
  expect(lane.state).toBe('finished');
  expect(lane.report()).toMatchObject({ state: 'finished', positionMs: 10, offset: 1n });
});

test('ends at the time that was asked for, and leaves out what lies before the first', async () => {
  const { lane, reader } = start({ fromMs: 20, toMs: 50, allowanceMs: 10 });
  lane.limitMs = 600;
  reader.feed(5, 25, 52, 45, 61, 30);
  await settled();

  const { handed, timesMs } = times(lane);
  expect(timesMs).toEqual([25, 45]);
  lane.finish(handed);
  expect(lane.state).toBe('finished');
});

const future = 5_000_000_000_000;

test('what cannot be believed is left out and told', async () => {
  const { lane, reader, told } = start();
  lane.limitMs = 60;
  reader.feed(10, future, 20, Number.NaN, -5, 30);
  await settled();

  const { handed, timesMs } = times(lane);
  lane.finish(handed);

  expect(timesMs).toEqual([10, 20, 30]);
  expect(told.quarantined).toEqual(['1 future', '3 missing', '4 negative']);
  expect(lane.report()).toMatchObject({ offset: 6n, positionMs: 30 });
});

test('clamp hands it out as of the latest before it; deliver hands it out without a time', async () => {
  const clamp = start({ quarantine: 'clamp' });
  clamp.lane.limitMs = 60;
  clamp.reader.feed(10, future, 20);
  await settled();
  expect(times(clamp.lane).timesMs).toEqual([10, 10, 20]);

  const deliver = start({ quarantine: 'deliver' });
  deliver.lane.limitMs = 60;
  deliver.reader.feed(10, future, 20);
  await settled();
  expect(times(deliver.lane).timesMs).toEqual([10, null, 20]);
});

test('a record without a time is handed out before any limit is known, which those behind it tell', async () => {
  const { lane, reader } = start({ quarantine: 'deliver' });
  reader.feed(Number.NaN, 20);
  await settled();

  const { handed, timesMs } = times(lane);
  lane.finish(handed);

  expect(timesMs).toEqual([null]);
  expect(lane.report()).toMatchObject({ positionMs: 20, offset: 1n });
});

test('stop holds the partition before it, with all before it done, and says why', async () => {
  const { lane, reader, told } = start({ quarantine: 'stop' });
  lane.limitMs = 60;
  reader.feed(10, future, 20);
  await settled();
  const { handed, timesMs } = times(lane);
  expect(timesMs).toEqual([10]);
  lane.finish(handed);
  await settled();

  expect(lane.state).toBe('stopped');
  expect(lane.report()).toMatchObject({ state: 'stopped', offset: 1n, positionMs: 10 });
  expect(String(told.trouble[0])).toMatch(/t\/0 stops at offset 1.*in the future/);
});

test('a batch that was given back comes again', async () => {
  const { lane, reader } = start();
  lane.limitMs = 600;
  reader.feed(10, 20);
  await settled();
  const seek = vi.spyOn(reader, 'seek');

  lane.giveBack(times(lane).handed);

  expect(seek).toHaveBeenCalledWith(0n);
  expect(lane.report()).toMatchObject({ offset: 0n });
});

test.for([
  ['its source', {}, [10]],
  ['what was asked for', { toMs: 50 }, [10, 61]],
] as const)(
  'a batch that was given back at the end of %s comes again',
  async ([, options, fed]) => {
    const { lane, reader } = start(options);
    lane.limitMs = 60;
    reader.feed(...fed);
    await settled();
    const { handed, timesMs } = times(lane);
    expect(timesMs).toEqual([10]);
    await settled();
    reader.end();
    await settled();

    lane.giveBack(handed);
    reader.feed(10);
    await settled();

    expect([lane.state, lane.isReady]).toEqual(['reading', true]);
    lane.finish(times(lane).handed);
    await settled();
    reader.end();
    await settled();
    expect(lane.state).toBe('finished');
  },
);

test('an end that is heard of together with a batch given back is not the end', async () => {
  const { lane, reader } = start();
  lane.limitMs = 60;
  reader.feed(10);
  await settled();
  const { handed } = times(lane);
  await settled();

  reader.end();
  lane.giveBack(handed);
  await settled();

  expect(lane.state).toBe('reading');
});

test('a batch given back before a record that is refused comes again before the partition stops', async () => {
  const { lane, reader } = start({ quarantine: 'stop' });
  lane.limitMs = 60;
  reader.feed(10, future);
  await settled();
  const { handed } = times(lane);
  await settled();

  lane.giveBack(handed);
  reader.feed(10, future);
  await settled();

  expect(lane.isReady).toBe(true);
  lane.finish(times(lane).handed);
  await settled();
  expect(lane.state).toBe('stopped');
});

test('a batch given back while its reader is opened again comes again', async () => {
  const opening = deferred<void>();
  const readers = [new FedReader(), new FedReader()];
  let opened = 0;
  const { lane, clock } = start({
    open: async (_, __, at) => {
      const reader = readers[opened++]!;
      if (at !== undefined) await opening.promise;
      reader.position = at ?? 0n;
      return { reader, from: null };
    },
  });
  lane.limitMs = 60;
  readers[0]!.feed(10);
  await settled();
  const { handed } = times(lane);
  await settled();
  readers[0]!.fail(new Error('the broker is gone'));
  await settled();
  clock.advance(10_000);
  await settled();
  expect(opened).toBe(2);

  lane.giveBack(handed);
  opening.resolve();
  await settled();

  expect(readers[1]!.position).toBe(0n);
  expect(lane.report()).toMatchObject({ offset: 0n });
});

test('a reader that can not even be closed is told of, and its partition opened again', async () => {
  const readers = [new FedReader(), new FedReader()];
  let opened = 0;
  const { lane, clock, told } = start({
    open: async () => ({ reader: readers[opened++]!, from: null }),
  });
  const [lost, refused] = [new Error('the broker is gone'), new Error('no link to say so')];
  readers[0]!.close = () => Promise.reject(refused);
  lane.limitMs = 60;
  await settled();

  readers[0]!.fail(lost);
  await settled();
  clock.advance(10_000);
  await settled();

  expect([opened, told.trouble]).toEqual([2, [lost, refused]]);
});

test('a source that is closed is no end of its partitions', async () => {
  const { lane, reader, told } = start();
  lane.limitMs = 60;
  reader.feed(1);
  await settled();
  lane.finish(lane.take(10));
  await settled();

  reader.isClosed = true;
  reader.end();
  await settled();

  expect([lane.state, lane.report()!.state]).toEqual(['reading', 'reading']);
  expect(told.trouble).toMatchObject([{ code: 'CLOSED' }]);
});

test('a partition that stops stays so, though its reader can not be closed', async () => {
  const { lane, reader, told } = start({ quarantine: 'stop' });
  const refused = new Error('no link to say so');
  reader.close = () => Promise.reject(refused);
  lane.limitMs = 60;

  reader.feed(Number.NaN);
  await settled();

  expect(lane.state).toBe('stopped');
  expect(told.trouble).toHaveLength(2);
  expect(told.trouble[1]).toBe(refused);
});

test('what is done after the partition was lost counts for nothing', async () => {
  const { lane, reader, lose } = start();
  lane.limitMs = 60;
  reader.feed(10);
  await settled();
  const { handed } = times(lane);

  lose();

  expect(lane.finish(handed)).toBe(false);
});

test('a callback that throws is told, and its boundary does not count', async () => {
  const { lane, reader, told } = start({
    onPartitionPeriod: () => {
      throw new Error('disk full');
    },
  });
  lane.limitMs = 600;
  reader.feed(10, 70);
  await settled();
  lane.finish(times(lane).handed);
  await settled();

  expect(String(told.failures[0])).toMatch('disk full');
  expect(lane.report()!.positionMs).toBe(59);
});

type Call = 'pause' | 'resume' | 'seek';

/** A reader that is told to do this, and then to read on from where it stands. */
const calls: readonly [Call, (lane: Lane, reader: FedReader) => void][] = [
  ['pause', () => {}],
  [
    'resume',
    (lane) => {
      lane.limitMs = 120;
    },
  ],
  [
    'seek',
    (lane) => {
      lane.giveBack(lane.take(10));
    },
  ],
];

test.for(
  calls.flatMap(([call, act]) => [
    [call, 'throws', act] as const,
    [call, 'rejects later', act] as const,
  ]),
)(
  'a reader whose %s %s ends nothing: it is told, and its partition opened again where it stood',
  async ([call, how, act]) => {
    const readers = [new FedReader(), new FedReader()];
    const lost = new Error('the broker is gone');
    const openedAt: (bigint | undefined)[] = [];
    const { lane, clock, told } = start({
      open: async (_, __, at) => {
        const reader = readers[openedAt.length]!;
        openedAt.push(at);
        reader.position = at ?? 0n;
        return { reader, from: null };
      },
    });
    const fail = () => {
      if (how === 'throws') throw lost;
      return Promise.reject(lost);
    };
    Object.assign(readers[0]!, { [call]: fail });
    lane.limitMs = 60;
    readers[0]!.feed(10, 100);
    await settled();
    if (call !== 'seek') lane.finish(lane.take(10));
    await settled();

    act(lane, readers[0]!);
    await settled();
    if (call === 'pause') lane.limitMs = 120;
    if (lane.isReady) lane.finish(lane.take(10));
    await settled();
    clock.advance(10_000);
    await settled();

    expect(told.trouble).toEqual([lost]);
    expect(openedAt).toEqual([undefined, call === 'seek' ? 0n : 2n]);
    expect(lane.state).toBe('reading');
  },
);

test('a reader that fails again and again is opened again in ever longer waits, ten seconds at most', async () => {
  let opened = 0;
  const { clock, told } = start({
    open: async () => {
      opened += 1;
      throw new Error('the broker is gone');
    },
  });
  await settled();
  for (let second = 0; second < 120; second++) {
    clock.advance(1_000);
    await settled();
  }

  expect(opened).toBeLessThan(40);
  expect(opened).toBeGreaterThan(12);
  expect(told.trouble).toHaveLength(opened);
});

test('a reader that never closes keeps nobody waiting for more than some seconds', async () => {
  const { lane, reader, clock, told } = start();
  reader.close = () => new Promise(() => {});
  await settled();
  let isStopped = false;

  const stopped = lane.stop().then(() => {
    isStopped = true;
  });
  await settled();
  expect(isStopped).toBe(false);
  clock.advance(5_000);
  await stopped;

  expect(String(told.trouble[0])).toMatch(/t\/0 was not closed within 5000 ms/);
});

const day = 86_400_000;
const guarded = { maxAheadMs: 7 * day, idleAfterMs: 1_000 };

/** A lane that has come to 50, with the group, and goes on reading. */
async function underWay(options: Partial<LaneOptions> = {}) {
  const started = start({ ...guarded, ...options });
  const { lane, reader } = started;
  lane.limitMs = 60;
  reader.feed(50);
  await settled();
  lane.finish(lane.take(10));
  await settled();
  return started;
}

test('a record far ahead with nothing behind it moves no clock, and its partition counts as idle', async () => {
  const { lane, reader, clock, told } = await underWay();
  reader.feed(300 * day);
  await settled();

  expect(lane.report()).toMatchObject({ state: 'reading', positionMs: 50, aheadMs: 300 * day });
  expect(lane.report()!.reached.at(-1)?.end).toBe(0);
  clock.advance(1_000);
  expect(lane.report()).toMatchObject({ state: 'idle', positionMs: 50, aheadMs: 300 * day });
  expect([told.ahead, told.quarantined]).toEqual([[`1 ${300 * day}`], []]);
  expect([lane.isReady, reader.isPaused]).toEqual([false, false]);
});

test('a record far ahead is refused when the one behind it is back, and that one counts', async () => {
  const { lane, reader, told } = await underWay();
  reader.feed(300 * day);
  await settled();
  reader.feed(55, 70);
  await settled();

  expect(told.quarantined).toEqual(['1 ahead']);
  expect(lane.report()!.aheadMs).toBeUndefined();
  const { handed, timesMs } = times(lane);
  expect(timesMs).toEqual([55]);
  lane.finish(handed);
  expect(lane.report()).toMatchObject({ state: 'reading', positionMs: 70, offset: 3n });
  expect(lane.report()!.reached.at(-1)).toEqual({ end: 60, offset: 3n });
});

test('records that are ahead together are a gap, and are believed', async () => {
  const { lane, reader, told, clock } = await underWay();
  clock.advance(1_000);
  expect(lane.state).toBe('idle');
  reader.feed(300 * day);
  await settled();
  reader.feed(300 * day + 1, 300 * day + 2);
  await settled();
  expect([lane.state, lane.aheadMs]).toEqual(['idle', 300 * day]);

  reader.feed(300 * day + 3);
  await settled();

  expect(lane.report()).toMatchObject({ state: 'reading', positionMs: 300 * day });
  expect([told.quarantined, reader.isPaused]).toEqual([[], true]);
  lane.limitMs = 301 * day;
  expect(times(lane).timesMs).toHaveLength(4);
});

test('a record that is ahead is believed once the group has come near', async () => {
  const { lane, reader, clock } = await underWay();
  reader.feed(300 * day);
  await settled();
  clock.advance(1_000);

  lane.limitMs = 294 * day;

  expect(lane.report()).toMatchObject({ state: 'reading', positionMs: 300 * day });
  expect(lane.report()!.aheadMs).toBeUndefined();
});

test('a partition whose record was believed becomes idle again when that one is done', async () => {
  const { lane, reader, clock } = await underWay();
  reader.feed(300 * day);
  await settled();
  clock.advance(1_000);
  lane.limitMs = 301 * day;
  lane.finish(times(lane).handed);
  await settled();
  expect(lane.state).toBe('reading');

  clock.advance(1_000);

  expect(lane.report()).toMatchObject({ state: 'idle', positionMs: 300 * day, offset: 2n });
});

test('the last record of a partition is believed, as nothing behind it could tell', async () => {
  const { lane, reader } = await underWay();
  reader.feed(300 * day);
  await settled();

  reader.end();
  await settled();

  expect(lane.report()).toMatchObject({ state: 'reading', positionMs: 300 * day });
  lane.limitMs = 301 * day;
  lane.finish(times(lane).handed);
  await settled();
  expect(lane.state).toBe('finished');
});

test('a first record that is far ahead of the first limit is not believed any more', async () => {
  const { lane, reader, told } = start(guarded);
  reader.feed(300 * day);
  await settled();
  expect(lane.report()).toMatchObject({ positionMs: 300 * day });

  lane.limitMs = 60;
  expect(lane.report()).toMatchObject({ positionMs: null, aheadMs: 300 * day, reached: [] });

  reader.feed(10, 20);
  await settled();
  expect(told.quarantined).toEqual(['0 ahead']);
  expect(times(lane).timesMs).toEqual([10, 20]);
});

test.for([
  ['clamp', [50, 55]],
  ['deliver', [null, 55]],
] as const)(
  '%s hands out a record that is ahead of those behind it',
  async ([quarantine, handed]) => {
    const { lane, reader } = await underWay({ quarantine });
    reader.feed(300 * day, 55);
    await settled();

    expect(times(lane).timesMs).toEqual(handed);
  },
);

test('stop holds the partition at a record that is ahead of those behind it', async () => {
  const { lane, reader, told } = await underWay({ quarantine: 'stop' });
  reader.feed(55, 300 * day, 56, 57);
  await settled();
  lane.finish(lane.take(10));
  await settled();

  expect(lane.report()).toMatchObject({ state: 'stopped', offset: 2n, positionMs: 55 });
  expect(String(told.trouble[0])).toMatch(/t\/0 stops at offset 2.*far ahead/);
});

test('a batch given back while the next record is in doubt comes again, and so does the record', async () => {
  const { lane, reader } = start(guarded);
  lane.limitMs = 60;
  reader.feed(50, 300 * day);
  await settled();
  const { handed } = times(lane);
  await settled();
  expect(lane.aheadMs).toBe(300 * day);

  lane.giveBack(handed);
  expect(lane.aheadMs).toBeNull();
  expect(lane.report()).toMatchObject({ offset: 0n });
});

test('a reader that fails while a record is in doubt is opened at that record', async () => {
  const readers = [new FedReader(), new FedReader()];
  const openedAt: (bigint | undefined)[] = [];
  const { lane, clock } = start({
    ...guarded,
    open: async (_, __, at) => {
      openedAt.push(at);
      const reader = readers[openedAt.length - 1]!;
      reader.position = at ?? 0n;
      return { reader, from: null };
    },
  });
  lane.limitMs = 60;
  readers[0]!.feed(50, 300 * day);
  await settled();
  lane.finish(times(lane).handed);
  await settled();

  readers[0]!.fail(new Error('the broker is gone'));
  await settled();
  clock.advance(1_000);
  await settled();

  expect(openedAt).toEqual([undefined, 1n]);
  expect(lane.aheadMs).toBeNull();
});
