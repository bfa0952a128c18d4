import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { adler32 } from './adler32.ts';

/** zlib's own: the last four bytes of what deflate makes. */
const trailer = (bytes: Uint8Array) =>
  deflateSync(bytes).readUInt32BE(deflateSync(bytes).length - 4);

test('the checksum is the one that ends a zlib stream', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20_000 }), (bytes) => {
      expect(adler32(bytes)).toBe(trailer(bytes));
    }),
    { numRuns: 300 },
  );
});

test('bytes of 255 without end do not overflow the sums', () => {
  const bytes = Buffer.alloc(3_000_000, 0xff);

  expect(adler32(bytes)).toBe(trailer(bytes));
});

test('a checksum goes on where it was left', () => {
  const bytes = Buffer.from('the quick brown fox jumps over the lazy dog'.repeat(999));

  expect(adler32(bytes, 12_345, bytes.length, adler32(bytes, 0, 12_345))).toBe(trailer(bytes));
});
