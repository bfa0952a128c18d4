/**
 * Every limit that the server sets on those who use it, with its default and its reason. 0 means
 * none. Who runs into one of ours, where Apache has none, is answered QUOTA_EXCEEDED.
 */

import { getHeapStatistics } from 'node:v8';
import { frameBytesMax } from '../protocol/index.ts';

// biome-ignore format: a table is read down its columns
export const defaultLimits = {
  /** `jute.maxbuffer`: a longer frame closes the link. */
  frameBytesMax:             frameBytesMax,
  /** A link that has not asked for a session by then is closed: half-open and dribbling peers. */
  handshakeTimeoutMs:        10_000,
  /** `maxClientCnxns`. */
  connectionsPerAddressMax:  60,
  /** `maxCnxns`: below what a process may open by default on most systems. */
  connectionsMax:            20_000,
  /** A session outlives its link, so a flood of them costs memory for a whole timeout. */
  sessionsMax:               1_000_000,
  /** Above, the link is not read until replies have gone out. */
  requestsInFlightMax:       1_000,
  /** The same, by size: large values in flight. */
  requestBytesInFlightMax:   16 * 1024 * 1024,
  /** Replies that a client does not take: above the first the link is not read, above the second closed. */
  outputBytesSoftMax:        1024 * 1024,
  outputBytesMax:            64 * 1024 * 1024,
  /** The same over all links: see output-total.ts for which of them wait and which are closed. */
  outputBytesTotalMax:       512 * 1024 * 1024,
  /** What a client may re-register after a reconnect, and more. */
  watchesPerConnectionMax:   200_000,
  watchesMax:                10_000_000,
  /** The same, by size: about 200 bytes each, and the path, which may be as long as a frame and need not exist. */
  watchBytesPerConnectionMax: 64 * 1024 * 1024,
  /** A quarter of what the heap of this process may grow to: more would end it. */
  watchBytesMax:             Math.floor(getHeapStatistics().heap_size_limit / 4),
  ephemeralsPerSessionMax:   100_000,
  /** Their paths stand in one txn when the session ends, and Apache must be able to read it (ZOOKEEPER-4306). */
  ephemeralPathBytesMax:     2_000_000,
  /** Apache refuses to read a longer one back: twice `jute.maxbuffer`. It can be less, not more. */
  txnBytesMax:               2 * frameBytesMax - 1024,
  childrenPerNodeMax:        5_000_000,
  multiOpsMax:               50_000,
  pathBytesMax:              frameBytesMax,
  pathDepthMax:              10_000,
  aclEntriesMax:             1_000,
  distinctAclsMax:           1_000_000,
  /** Of the limits and the usage of a quota: read, and usage written anew, with each change below it. */
  quotaTextBytesMax:         4096,
  /** Ids that one link may prove: each is looked at by every ACL check. */
  authIdsMax:                100,
  /** Failed proofs of one address, over all links, within the window below: then none is looked at for as long. */
  authFailuresMax:           100,
  authWindowMs:              60_000,
  /** Addresses whose failures are remembered. */
  authAddressesMax:          10_000,
  /** With less free on the disk of the log or the snapshots, writes are refused; below half of it deletes are too. A full disk ends the server. */
  diskFreeBytesMin:          64 * 1024 * 1024,
} as const satisfies Record<string, number>;

/** The default of a limit, for pages: not the number of this machine. */
export function limitDefaultText(name: LimitName): string {
  return name === 'watchBytesMax' ? 'a quarter of the heap limit' : String(defaultLimits[name]);
}

export type LimitName = keyof typeof defaultLimits;
export type Limits = { readonly [N in LimitName]: number };

/** A table of V8 takes 2^24 entries, and one more would end the server: nobody is let so far, whatever is said here. */
const tableEntriesMax = 16_000_000;
const tableLimits = [
  'sessionsMax',
  'watchesPerConnectionMax',
  'watchesMax',
  'ephemeralsPerSessionMax',
  'distinctAclsMax',
] as const satisfies readonly LimitName[];

/**
 * The defaults, with some of them set otherwise. 0 becomes infinity, so that it is compared as any other. With
 * what is no number nothing would ever be too much, and one that is misspelt would limit nothing.
 */
export function limitsOf(changes: { readonly [N in LimitName]?: number | undefined } = {}): Limits {
  const limits: Record<string, number> = { ...defaultLimits };
  for (const [name, value] of Object.entries(changes)) {
    if (!Object.hasOwn(defaultLimits, name)) throw new TypeError(`there is no limit ${name}`);
    if (value === undefined) continue;
    if (typeof value !== 'number' || !(value >= 0)) {
      throw new TypeError(`the limit ${name} has to be a number, 0 for none, and is ${value}`);
    }
    limits[name] = value;
  }
  for (const name of Object.keys(limits)) if (limits[name] === 0) limits[name] = Infinity;
  // The log takes no more, whatever is said here, and ends the server that tries.
  limits.txnBytesMax = Math.min(limits.txnBytesMax!, defaultLimits.txnBytesMax);
  for (const name of tableLimits) limits[name] = Math.min(limits[name]!, tableEntriesMax);
  limits.ephemeralPathBytesMax = Math.min(limits.ephemeralPathBytesMax!, limits.txnBytesMax);
  return limits as Limits;
}
