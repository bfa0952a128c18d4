/**
 * What must hold of an aligned group, looked at whenever something happens:
 *   - no record is handed out at or beyond the limit and the allowance
 *   - the limit, the cut and its offsets never go back; only the first in the election's line writes them,
 *     with an epoch not below the one before
 *   - where people hold the group, neither limit nor cut goes beyond, and it is never at its end
 *   - a cut holds nothing that is not done, and nothing at or beyond its boundary and the allowance
 *   - nobody begins a partition after what is done of it (that would be a loss), nor before the cut that
 *     was stored when it got the partition (that would be a duplicate outside the window)
 *   - in the end every record was worked off, and every boundary's callback was called
 *
 * In: what happens. Out: the first violation, and a fingerprint of all that happened.
 */

import { alignPaths, parseCut, parseLimit, type StoredLimit } from '../../src/align/index.ts';
import type { ModelServer } from '../kafka-simulation/server.ts';
import type { Log } from './source.ts';

export class Violation extends Error {}

export interface JudgeOptions {
  readonly group: string;
  readonly server: ModelServer;
  readonly logs: ReadonlyMap<string, Log>;
  readonly allowanceMs: number;
  readonly changesRule: boolean;
  /** Seed and time, for who has to look. */
  readonly where: () => string;
}

export class Judge {
  readonly #options: JudgeOptions;
  readonly #paths: ReturnType<typeof alignPaths>;
  /** By partition: everything before it was worked off by somebody. */
  readonly #done = new Map<string, number>();
  readonly #calls: { start: number; end: number }[] = [];
  readonly #begun = new Map<bigint, (first: number, next: number) => void>();
  readonly #epochs = new Set<bigint>();
  #limit: StoredLimit | null = null;
  #cutOffsets = new Map<string, bigint>();
  #stepMaxMs = 0;
  #firstCut: number | null = null;
  #cuts = 0;
  #handed = 0;
  #hash = 0;
  #violation: Violation | undefined;

  constructor(options: JudgeOptions) {
    this.#options = options;
    this.#paths = alignPaths(options.group);
    options.server.onChange = (path, _, data, session) => {
      if (path === this.#paths.limit && data !== null) this.#checkLimit(data, session);
    };
  }

  get limit(): StoredLimit | null {
    return this.#limit;
  }

  get violation(): Violation | undefined {
    return this.#violation;
  }

  get counts() {
    const [handed, cuts, calls] = [this.#handed, this.#cuts, this.#calls.length];
    return { handed, cuts, calls, epochs: this.#epochs.size };
  }

  get fingerprint(): string {
    return (this.#hash >>> 0).toString(16);
  }

  violate(what: string): void {
    this.#violation ??= new Violation(`${this.#options.where()}: ${what}`);
  }

  mix(text: string): void {
    for (let i = 0; i < text.length; i++)
      this.#hash = (Math.imul(this.#hash, 31) + text.charCodeAt(i)) | 0;
  }

  // ── what members do ───────────────────────────────────────────────────────────────────────────

  handed(
    name: string,
    key: string,
    batch: {
      readonly timesMs: readonly (number | null)[];
      readonly records: readonly { readonly offset: bigint }[];
      readonly epoch: bigint;
      readonly nextOffset: bigint;
    },
  ): void {
    this.#handed += batch.records.length;
    const limitMs = this.#limit?.limitMs;
    for (const timeMs of batch.timesMs) {
      if (limitMs == null || timeMs! >= limitMs + this.#options.allowanceMs) {
        this.violate(`${name} was handed ${key} at ${timeMs}, and the limit is ${limitMs}`);
      }
    }
    this.#begun.get(batch.epoch)?.(Number(batch.records[0]!.offset), Number(batch.nextOffset));
  }

  done(key: string, nextOffset: bigint): void {
    this.#done.set(key, Math.max(this.#doneOf(key), Number(nextOffset)));
  }

  #doneOf(key: string): number {
    return this.#done.get(key) ?? 0;
  }

  /** Looks at where the ownership begins, and that it goes on without a hole. */
  assigned(key: string, epoch: bigint): void {
    const cutOffset = Number(this.#cutOffsets.get(key) ?? 0n);
    let expected: number | undefined;
    this.#begun.set(epoch, (first, next) => {
      if (expected === undefined && first < cutOffset) {
        this.violate(`${key}: begun at ${first}, and the cut was at ${cutOffset}`);
      }
      // What is left out for its time is done too; more than that would be lost.
      const from = expected ?? Math.min(first, Math.max(this.#doneOf(key), cutOffset));
      for (let at = from; at < first; at++) {
        if (!this.#isLeftOut(key, at)) this.violate(`${key}: ${at} was passed over (${first})`);
      }
      expected = next;
    });
  }

  ended(epoch: bigint): void {
    this.#begun.delete(epoch);
  }

  called(period: { readonly start: number; readonly end: number }): void {
    this.#calls.push({ start: period.start, end: period.end });
  }

  #isLeftOut(key: string, at: number): boolean {
    return this.#options.logs.get(key)!.junk.has(at);
  }

  // ── what is written ───────────────────────────────────────────────────────────────────────────

  #checkLimit(data: string, session: bigint): void {
    const { nodes } = this.#options.server;
    const { limit: path, election } = this.#paths;
    const limit = parseLimit(Buffer.from(data), path);
    const before = this.#limit;
    this.mix(data);
    this.#epochs.add(limit.epoch);
    this.#stepMaxMs = Math.max(this.#stepMaxMs, limit.rule.stepMs);
    const first = [...(nodes.get(election)?.children ?? [])].sort(
      (a, b) => Number(a.slice(-10)) - Number(b.slice(-10)),
    )[0];
    const leader = nodes.get(`${election}/${first}`);
    if (leader?.stat.ephemeralOwner !== session || leader.stat.czxid !== limit.epoch) {
      this.violate(`the limit was written by session ${session}, which does not lead`);
    }
    if (before !== null) {
      if (limit.epoch < before.epoch) this.violate(`epoch ${limit.epoch} after ${before.epoch}`);
      if ((limit.limitMs ?? -1) < (before.limitMs ?? -1)) {
        this.violate(`the limit went back from ${before.limitMs} to ${limit.limitMs}`);
      }
      if ((limit.cut?.end ?? -1) < (before.cut?.end ?? -1)) this.violate('the cut went back');
    }
    this.#checkHold(limit, before);
    this.#limit = limit;
    const { cut } = limit;
    if (cut === null || cut.node === before?.cut?.node) return;
    // Its node comes later in the same transaction: look when that is over.
    queueMicrotask(() => this.#checkCut(cut.end, cut.start, this.#paths.cut(cut.node)));
  }

  #checkHold(limit: StoredLimit, before: StoredLimit | null): void {
    const { holdMs } = limit.rule;
    if (holdMs === undefined) return;
    const ceilingMs = Math.max(holdMs, before?.limitMs ?? 0);
    if ((limit.limitMs ?? 0) > ceilingMs) {
      this.violate(`the limit went to ${limit.limitMs}, and it is held at ${ceilingMs}`);
    }
    if (limit.cut?.node !== before?.cut?.node && limit.cut!.end > ceilingMs) {
      this.violate(`a cut at ${limit.cut!.end} was made, and it is held at ${ceilingMs}`);
    }
    if (limit.isFinished) this.violate('it came to its end, and it is held');
  }

  #checkCut(end: number, start: number | null, path: string): void {
    const { logs, server, allowanceMs } = this.#options;
    const node = server.nodes.get(path);
    if (node === undefined) {
      this.violate(`${path} is missing`);
      return;
    }
    this.#cuts += 1;
    if (start === null) this.#firstCut = end;
    const { offsets } = parseCut(node.data, path);
    if (offsets.size !== logs.size) this.violate(`${path}: ${offsets.size} partitions`);
    for (const [key, offset] of offsets) {
      const before = this.#cutOffsets.get(key) ?? 0n;
      if (offset < before) this.violate(`${key}: the cut went back from ${before} to ${offset}`);
      let done = this.#doneOf(key);
      while (done < offset && this.#isLeftOut(key, done)) done += 1;
      if (offset > done) this.violate(`${key}: the cut is at ${offset}, and ${done} are done`);
      const { timesMs } = logs.get(key)!;
      for (let at = Number(before); at < offset; at++) {
        const isBeyond = timesMs[at]! >= end + allowanceMs + this.#slackMs;
        if (isBeyond && !this.#isLeftOut(key, at)) {
          this.violate(`${key}: ${timesMs[at]} at ${at} is in the cut at ${end}`);
        }
      }
    }
    this.#cutOffsets = new Map(offsets);
  }

  /** After a change of the period some have passed boundaries that others never had. */
  get #slackMs(): number {
    return this.#options.changesRule ? this.#stepMaxMs : 0;
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  checkEnd(): void {
    for (const [key, { timesMs }] of this.#options.logs) {
      let done = this.#doneOf(key);
      while (done < timesMs.length && this.#isLeftOut(key, done)) done += 1;
      if (done !== timesMs.length) this.violate(`${key}: ${done} of ${timesMs.length} are done`);
    }
    let reachedMs = this.#firstCut;
    for (const { start, end } of [...this.#calls].sort((a, b) => a.start - b.start)) {
      if (reachedMs === null || start > reachedMs) {
        this.violate(`nobody was called for ${reachedMs} to ${start}`);
      } else reachedMs = Math.max(reachedMs, end);
    }
    const end = this.#limit?.cut?.end ?? null;
    if (reachedMs !== end) this.violate(`called up to ${reachedMs}, and the cut is at ${end}`);
  }
}
