import { expect, test } from 'vitest';
import { deferred, ManualClock } from '../support/index.ts';
import { PartitionFlow } from './consumer-flow.ts';
import type { OwnedPartition } from './owned-partition.ts';
import type { PartitionReader, RecordBatch, RecordSource, StartOffset } from './reader.ts';

/** A reader with one record at each offset, whose calls fail when the test says so. */
function readerAt(offset: bigint, failing: Partial<PartitionReader>): PartitionReader {
  const end = deferred<IteratorResult<RecordBatch, undefined>>();
  let position = offset;
  let isRead = false;
  const reader: PartitionReader = {
    topic: 't',
    partition: '0',
    get position() {
      return position;
    },
    highWatermark: 100n,
    isPaused: false,
    next: async () => {
      if (isRead) return end.promise;
      isRead = true;
      const record = { offset: position, timestampMs: 1, key: null, value: null };
      position += 1n;
      const records = [record];
      const batch = { topic: 't', partition: '0', records, highWatermark: 100n };
      return { done: false, value: { ...batch, nextOffset: position } };
    },
    pause() {},
    resume() {},
    seek(to) {
      position = to;
    },
    close: async () => end.resolve({ done: true, value: undefined }),
    [Symbol.asyncIterator]: () => reader,
    [Symbol.asyncDispose]: async () => {},
    ...failing,
  };
  return reader;
}

const settled = () => new Promise((resolve) => void setImmediate(resolve));

test.for(['pause', 'resume', 'seek'] as const)(
  'a reader that throws at %s ends nothing: it is told, and its partition opened again',
  async (call) => {
    const lost = new Error('the broker is gone');
    const openedAt: StartOffset[] = [];
    const clock = new ManualClock();
    const trouble: unknown[] = [];
    const refuse = () => {
      throw lost;
    };
    const open = async (_: unknown, from: StartOffset) => {
      openedAt.push(from);
      return readerAt(BigInt(from), openedAt.length === 1 ? { [call]: refuse } : {});
    };
    const flow = new PartitionFlow({ topic: 't', partition: '0' } as OwnedPartition, {
      source: { open } as unknown as RecordSource,
      start: async () => 7n,
      startFrom: 'earliest',
      isPaused: false,
      clock,
      onReady: () => {},
      onTrouble: (_, error) => trouble.push(error),
    });
    await settled();

    flow.pause();
    flow.resume();
    if (call === 'seek') flow.seek(3n);
    else flow.finish(flow.take());
    await settled();
    clock.advance(10_000);
    await settled();

    expect(trouble).toEqual([lost]);
    expect(openedAt).toEqual([7n, call === 'seek' ? 3n : 8n]);
    expect(flow.take().records[0]!.offset).toBe(call === 'seek' ? 3n : 8n);
  },
);
