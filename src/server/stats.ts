/**
 * What the server counts about itself, for whoever shows it: four-letter words, metrics, a console.
 * Counting is a few additions for each request; whatever costs more is worked out when asked for.
 */

import { TextMap } from '../support/index.ts';

/** Upper bounds in milliseconds; one more bucket takes the rest. */
export const latencyBoundsMs = [
  0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000,
] as const;

/** How long something took: what each link keeps of its requests. */
export class Timing {
  count = 0;
  sumMs = 0;
  lastMs = 0;
  minMs = Infinity;
  maxMs = 0;

  record(ms: number, times = 1): void {
    this.count += times;
    this.sumMs += ms * times;
    this.lastMs = ms;
    if (ms < this.minMs) this.minMs = ms;
    if (ms > this.maxMs) this.maxMs = ms;
  }

  get averageMs(): number {
    return this.count === 0 ? 0 : this.sumMs / this.count;
  }

  reset(): void {
    this.count = 0;
    this.sumMs = 0;
    this.lastMs = 0;
    this.minMs = Infinity;
    this.maxMs = 0;
  }
}

export class Latency extends Timing {
  readonly buckets = new Float64Array(latencyBoundsMs.length + 1);

  override record(ms: number, times = 1): void {
    super.record(ms, times);
    let bucket = 0;
    while (bucket < latencyBoundsMs.length && ms > latencyBoundsMs[bucket]!) bucket += 1;
    this.buckets[bucket]! += times;
  }

  /** The value that this part of all stay below, as well as the buckets tell: a line within each. */
  quantileMs(part: number): number {
    let left = part * this.count;
    for (const [i, inBucket] of this.buckets.entries()) {
      if (inBucket === 0 || inBucket < left) {
        left -= inBucket;
        continue;
      }
      const from = Math.max(i === 0 ? 0 : latencyBoundsMs[i - 1]!, this.minMs);
      const to = Math.min(latencyBoundsMs[i] ?? this.maxMs, this.maxMs);
      return from + Math.max(0, to - from) * (left / inBucket);
    }
    return this.count === 0 ? 0 : this.maxMs;
  }

  override reset(): void {
    super.reset();
    this.buckets.fill(0);
  }
}

/** Room for every op's number, from closeSession's -11 on. */
const codeShift = 16;
const codes = 128;

/**
 * Latencies op by op. Reads are answered many at a time and timed together: each is one addition, and
 * the clock is looked at once for all.
 */
export class OpLatencies {
  readonly #byCode: (Latency | undefined)[] = new Array<Latency | undefined>(codes).fill(undefined);
  readonly #answered = new Int32Array(codes);
  /** Those of which some were answered, each once; and how many they are. */
  readonly #touched = new Int32Array(codes);
  #touchedCount = 0;

  /** A read has its answer; how long it took is told by `took`. */
  answered(code: number): void {
    const at = (code + codeShift) & (codes - 1);
    if (this.#answered[at] === 0) this.#touched[this.#touchedCount++] = at;
    this.#answered[at]! += 1;
  }

  /** Of all that were answered since the last time. */
  took(ms: number): void {
    for (let i = 0; i < this.#touchedCount; i++) {
      const at = this.#touched[i]!;
      this.#of(at).record(ms, this.#answered[at]!);
      this.#answered[at] = 0;
    }
    this.#touchedCount = 0;
  }

  record(code: number, ms: number, times = 1): void {
    this.#of((code + codeShift) & (codes - 1)).record(ms, times);
  }

  /** By the op's number; only those that were asked for. */
  *entries(): IterableIterator<[code: number, latency: Latency]> {
    for (const [at, latency] of this.#byCode.entries()) {
      if (latency !== undefined) yield [at - codeShift, latency];
    }
  }

  reset(): void {
    for (const latency of this.#byCode) latency?.reset();
  }

  #of(at: number): Latency {
    let latency = this.#byCode[at];
    if (latency === undefined) {
      latency = new Latency();
      this.#byCode[at] = latency;
    }
    return latency;
  }
}

/** How often something came up, and how much of it each time. */
export class Tally {
  count = 0;
  sum = 0;
  min = Infinity;
  max = 0;

  add(amount: number): void {
    this.count += 1;
    this.sum += amount;
    if (amount < this.min) this.min = amount;
    if (amount > this.max) this.max = amount;
  }

  reset(): void {
    this.count = 0;
    this.sum = 0;
    this.min = Infinity;
    this.max = 0;
  }
}

/** Of frames to clients, each without its length; -1 before the first. */
export class Sizes {
  last = -1;
  min = -1;
  max = -1;

  add(bytes: number): void {
    this.last = bytes;
    if (bytes > this.max) this.max = bytes;
    if (bytes < this.min || this.min < 0) this.min = bytes;
  }

  reset(): void {
    this.last = -1;
    this.min = -1;
    this.max = -1;
  }
}

/** Anybody may make quotas, and so names to count by. */
const namespacesMax = 1_000;

/** A batch that takes the log longer is counted, and said: `fsync.warningthresholdms`. */
export const slowAppendMs = 1_000;

export class ServerStats {
  readonly startedWallMs: number;
  packetsReceived = 0;
  packetsSent = 0;
  bytesReceived = 0;
  /** Of replies and of events, each without its length, as Apache counts them. */
  responseBytes = 0;
  eventBytes = 0;
  /** All of them, and pings and proofs. */
  readonly responses = new Sizes();
  readonly reads = new Latency();
  readonly writes = new Latency();
  readonly byOp = new OpLatencies();
  connectionsAccepted = 0;
  connectionsRefused = 0;
  sessionsCreated = 0;
  sessionsExpired = 0;
  /** Sessions that were asked for on a new link, whether it was their owner or not. */
  revalidations = 0;
  authFailures = 0;
  /** Proofs that were not looked at: their address had failed too often. */
  authRefusals = 0;
  /** Writes that were refused because the disk was nearly full. */
  writesRefused = 0;
  /** Txns that made another tree than they said; the server stops at the first of its own. */
  digestMismatches = 0;
  tlsFailures = 0;
  /** Of snapshots that the admin server was asked for. */
  snapshotErrors = 0;
  snapshotsRefused = 0;
  /** Links that their peer ended. */
  connectionsDropped = 0;
  /** Links without TLS, from this machine and from others. */
  plainLocal = 0;
  plainRemote = 0;
  /** First frames of links, whatever came of them. */
  connectRequests = 0;
  /** Links that asked for no session in time. */
  greetingsTimedOut = 0;
  batches = 0;
  batchTxnsMax = 0;
  /** Txns in each batch. */
  readonly batchTxns = new Tally();
  /** Time that the log took for each batch. */
  readonly appends = new Latency();
  slowAppends = 0;

  /** Writes that a hard limit of a quota forbade, by the first name of its path. */
  readonly quotaErrors = new TextMap<number>();

  readonly #slowMs: number;
  /** Writes of the batch at hand that are not noted yet. */
  readonly #wrote = { code: 0, ms: 0, times: 0 };

  constructor(startedWallMs: number, slowMs: number = slowAppendMs) {
    this.startedWallMs = startedWallMs;
    this.#slowMs = slowMs;
  }

  /** The log holds a batch. True where that took too long. */
  appended(tookMs: number, txns: number): boolean {
    this.batches += 1;
    this.batchTxnsMax = Math.max(this.batchTxnsMax, txns);
    this.batchTxns.add(txns);
    this.appends.record(tookMs);
    const isSlow = tookMs > this.#slowMs;
    if (isSlow) this.slowAppends += 1;
    return isSlow;
  }

  /** Writes that came in one chunk and land in one batch take the same time: they are noted together. */
  wrote(code: number, ms: number): void {
    const wrote = this.#wrote;
    if (wrote.code !== code || wrote.ms !== ms) {
      this.noteWrites();
      wrote.code = code;
      wrote.ms = ms;
    }
    wrote.times += 1;
  }

  /** At the end of a batch: none is left out any more. */
  noteWrites(): void {
    const { code, ms, times } = this.#wrote;
    if (times === 0) return;
    this.writes.record(ms, times);
    this.byOp.record(code, ms, times);
    this.#wrote.times = 0;
  }

  /** Proofs of whatever kind that did not hold: passwords, tokens and certificates. */
  get proofsFailed(): number {
    return this.authFailures + this.tlsFailures;
  }

  quotaExceeded(namespace: string): void {
    const { quotaErrors } = this;
    const before = quotaErrors.get(namespace) ?? 0;
    if (before > 0 || quotaErrors.size < namespacesMax) quotaErrors.set(namespace, before + 1);
  }

  /** A frame that is no reply to a request for data: an event, a ping, the answer to a proof. */
  said(bytes: number): void {
    this.packetsSent += 1;
    this.responses.add(bytes);
  }

  /** What `srst` does: latencies and packets, not what counts over the server's life. */
  reset(): void {
    this.packetsReceived = 0;
    this.packetsSent = 0;
    this.responses.reset();
    this.reads.reset();
    this.writes.reset();
    this.byOp.reset();
    this.batchTxns.reset();
    this.appends.reset();
  }
}

/** Of one link, as `cons` shows it. */
export interface ConnectionStats {
  readonly address: string;
  readonly port: number;
  readonly secure: boolean;
  readonly sessionId: bigint;
  readonly sessionTimeoutMs: number;
  readonly establishedWallMs: number;
  readonly packetsReceived: number;
  readonly packetsSent: number;
  readonly inFlight: number;
  readonly queuedBytes: number;
  readonly watches: number;
  /** Of the last op answered: its number in the table of ops. */
  readonly lastCode: number | undefined;
  readonly lastXid: number;
  readonly lastZxid: number;
  readonly lastReplyMs: number;
  readonly latency: { lastMs: number; minMs: number; averageMs: number; maxMs: number };
}
