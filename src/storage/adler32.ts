/**
 * Adler-32, the checksum of both of ZooKeeper's file formats: two sums, one of the bytes and one of the
 * sums, each modulo the largest prime under 2^16. By hand, since Node has it only inside of deflate.
 */

const modulus = 65521;
/** As many bytes as the second sum takes before it could pass 2^31, beyond which numbers get slow. */
const runMax = 3800;

/** Of nothing at all: where a running checksum starts. */
export const adlerStart = 1;

/** The checksum of what `value` stands for with `bytes` from `start` to `end` behind it; unsigned. */
export function adler32(
  bytes: Uint8Array,
  start = 0,
  end: number = bytes.length,
  value: number = adlerStart,
): number {
  let a = value & 0xffff;
  let b = value >>> 16;
  let at = start;
  while (at < end) {
    const until = Math.min(at + runMax, end);
    // Eight at a time: the loop itself costs as much as the sums.
    for (; at + 8 <= until; at += 8) {
      a += bytes[at]!;
      b += a;
      a += bytes[at + 1]!;
      b += a;
      a += bytes[at + 2]!;
      b += a;
      a += bytes[at + 3]!;
      b += a;
      a += bytes[at + 4]!;
      b += a;
      a += bytes[at + 5]!;
      b += a;
      a += bytes[at + 6]!;
      b += a;
      a += bytes[at + 7]!;
      b += a;
    }
    for (; at < until; at++) {
      a += bytes[at]!;
      b += a;
    }
    a %= modulus;
    b %= modulus;
  }
  return ((b << 16) | a) >>> 0;
}
