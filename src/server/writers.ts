/**
 * Writers that are kept for the next link that has something to say: hundreds may have at once, when a batch
 * lands. Bounded in all, and one that has grown too far is not kept.
 */

import { Writer } from '../jute/index.ts';

const kept: Writer[] = [];
let keptBytes = 0;
const keptBytesMax = 16 * 1024 * 1024;
const writerBytes = 4 * 1024;
const writerBytesMax = 1024 * 1024;

export function takeWriter(): Writer {
  const writer = kept.pop();
  if (writer === undefined) return new Writer(writerBytes);
  keptBytes -= writer.capacity;
  return writer;
}

export function keepWriter(writer: Writer): void {
  const { capacity } = writer;
  if (capacity > writerBytesMax || keptBytes + capacity > keptBytesMax) return;
  writer.truncate(0);
  keptBytes += capacity;
  kept.push(writer);
}
