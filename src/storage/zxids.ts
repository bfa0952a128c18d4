/**
 * Which zxid may follow which.
 *
 * A zxid is an epoch (32 bits) and a counter (32 bits). A standalone server, ours or Apache's, counts
 * every write, failed ones too, and logs each (a failed one as an error txn), and after a restart goes
 * on from the last one in its files: so its zxids are consecutive without exception.
 *
 * In an ensemble each new leader starts an epoch, whose counter 0 is the election itself and is never
 * logged. So a log may jump to counter 1 of a later epoch, and nowhere else. Members that were far
 * behind are sent a whole snapshot instead of the txns they missed: that gap is legal too, but then a
 * snapshot beyond it is on disk, and recovery starts from there and never sees the gap.
 *
 * What can't be told: txns missing from the end of an epoch, just before such a jump.
 */

const counterBits = 32n;
const counterMask = 0xffff_ffffn;

export function epochOf(zxid: bigint): bigint {
  return BigInt.asUintN(64, zxid) >> counterBits;
}

export function counterOf(zxid: bigint): bigint {
  return zxid & counterMask;
}

export function mayFollow(next: bigint, last: bigint): boolean {
  if (next === last + 1n) return true;
  return epochOf(next) > epochOf(last) && counterOf(next) === 1n;
}
