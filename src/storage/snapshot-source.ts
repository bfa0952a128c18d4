/**
 * A snapshot file as a stream of its plain bytes, inflated where it is compressed.
 *
 * What inflates is not trusted: a few kilobytes can claim to be terabytes. So there is a cap on the
 * size, and one on how many times its own size a file may become.
 */

import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Compression, SnapshotFile } from './file-names.ts';
import type { StoredFile } from './file-system.ts';
import { unsnappy } from './snappy.ts';
import { StorageError } from './storage-error.ts';

export interface InflateLimits {
  /** The most that a snapshot may hold; ten times what a server's memory usually does. */
  readonly snapshotBytesMax?: number;
  /** The most that a byte may become. Real trees compress three to thirty times, nodes full of zeros 1,030 times. */
  readonly inflateRatioMax?: number;
}

const snapshotBytesMaxDefault = 64 * 1024 ** 3;
/** Above what deflate can do: what lies in the directory may be our own, and must be read back whatever is in it. */
const inflateRatioMaxDefault = 1_100;
/** A ratio says little about a small file, and a small file does little harm. */
const ratioCountsFromBytes = 64 * 1024 ** 2;
const chunkBytes = 1024 * 1024;

/** How a file is compressed by its first eight bytes, whatever its name says. */
export function compressionOf(head: Buffer): Compression {
  if (head.toString('latin1', 0, 2) === '\x1f\x8b') return 'gzip';
  return head.toString('latin1', 1, 7) === 'SNAPPY' ? 'snappy' : 'none';
}

export async function* snapshotBytes(
  snapshot: SnapshotFile,
  file: StoredFile,
  limits: InflateLimits,
): AsyncGenerator<Buffer> {
  const { snapshotBytesMax = snapshotBytesMaxDefault } = limits;
  const { inflateRatioMax = inflateRatioMaxDefault } = limits;
  const size = await file.size();
  const bytesMax =
    snapshot.compression === 'none'
      ? snapshotBytesMax
      : Math.min(snapshotBytesMax, Math.max(ratioCountsFromBytes, size * inflateRatioMax));
  let total = 0;
  for await (const chunk of inflated(snapshot, stored(file, size))) {
    total += chunk.length;
    if (total > bytesMax) {
      const what = `more than ${bytesMax} bytes once inflated, from ${size}`;
      throw new StorageError('DAMAGED_SNAPSHOT', what, { file: snapshot.path });
    }
    yield chunk;
  }
}

function inflated({ compression }: SnapshotFile, chunks: AsyncGenerator<Buffer>) {
  if (compression === 'snappy') return unsnappy(chunks);
  if (compression === 'none') return chunks;
  const source = Readable.from(chunks);
  const gunzip = createGunzip({ chunkSize: chunkBytes });
  source.on('error', (error) => gunzip.destroy(error));
  gunzip.on('close', () => source.destroy());
  return source.pipe(gunzip) as AsyncIterable<Buffer>;
}

/** The next piece is read while somebody is busy with the one before. */
async function* stored(file: StoredFile, size: number): AsyncGenerator<Buffer> {
  const read = async (position: number) => {
    const chunk = Buffer.allocUnsafeSlow(Math.min(chunkBytes, size - position));
    return chunk.subarray(0, await file.read(chunk, position));
  };
  let position = 0;
  let reading = read(position);
  try {
    for (;;) {
      const chunk = await reading;
      if (chunk.length === 0) return;
      position += chunk.length;
      reading = read(position);
      reading.catch(() => {}); // told to whoever asks for it; nobody may, and the file is closed then
      yield chunk;
    }
  } finally {
    await reading.catch(() => {});
  }
}
