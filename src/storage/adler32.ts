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
    // Eight at a time, summed up among themselves: so they need not wait for the eight before them.
    for (; at + 8 <= until; at += 8) {
      const s1 = bytes[at]!;
      const s2 = (s1 + bytes[at + 1]!) | 0;
      const s3 = (s2 + bytes[at + 2]!) | 0;
      const s4 = (s3 + bytes[at + 3]!) | 0;
      const s5 = (s4 + bytes[at + 4]!) | 0;
      const s6 = (s5 + bytes[at + 5]!) | 0;
      const s7 = (s6 + bytes[at + 6]!) | 0;
      const s8 = (s7 + bytes[at + 7]!) | 0;
      const sums = (s1 + s2 + (s3 + s4) + (s5 + s6) + (s7 + s8)) | 0;
      b = (b + (a << 3) + sums) | 0;
      a = (a + s8) | 0;
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
