/**
 * What the owner field of a node says: nobody, a session, a container, or a time to live
 * (EphemeralType). TTLs exist only where extended types are switched on; elsewhere the same bits are
 * a session's id.
 */

import { ttlMaxMs } from '../protocol/index.ts';

export type OwnerKind = 'none' | 'session' | 'container' | 'ttl';

/** Long.MIN_VALUE. */
export const containerOwner = -(1n << 63n);

const extendedMask = 0xff00_0000_0000_0000n;
const reservedMask = 0x00ff_ff00_0000_0000n;

export function ttlOwner(ttlMs: bigint): bigint {
  return BigInt.asIntN(64, extendedMask | ttlMs);
}

export function ttlOfOwner(owner: bigint): bigint {
  return owner & ttlMaxMs;
}

export function isTtl(ttlMs: bigint): boolean {
  return ttlMs > 0n && ttlMs <= ttlMaxMs;
}

export function ownerKind(owner: bigint, extendedTypes: boolean): OwnerKind {
  if (owner === 0n) return 'none';
  if (owner === containerOwner) return 'container';
  const bits = BigInt.asUintN(64, owner);
  // Apache throws where the reserved bits are not zero: no kind but TTL is known. We call it a session.
  if (extendedTypes && (bits & extendedMask) === extendedMask && (bits & reservedMask) === 0n) {
    return 'ttl';
  }
  return 'session';
}
