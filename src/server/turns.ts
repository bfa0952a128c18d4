/**
 * What waits on one link for its turn, the first first.
 *
 * In: reads that stand behind a write, writes that the log has, answers and barriers, and writes that were
 * held back. Out: the head of the line, how much there is, and how much there is to say to it all. A write
 * that was held back is handed on in its place: whatever comes of it stands where it stood.
 */

import type { Id } from '../protocol/index.ts';
import type { Call } from './call.ts';

/** A request that reads, or a write that was held back, and when it came. */
export interface Frame {
  readonly kind: 'frame';
  readonly bytes: Buffer;
  readonly ids: readonly Id[];
  readonly startMs: number;
  /** About how long its reply will be. */
  readonly replyBytes: number;
  /** About how much work it is: see `Reads.work`. */
  readonly work: number;
  readonly writes: boolean;
}

export type Turn =
  /** A write: its reply comes when its batch has landed. */
  | Call
  | Frame
  | { readonly kind: 'answer'; readonly run: () => void }
  /** Nothing more until this zxid is applied: a sync, or a session that moved with writes under way. */
  | { readonly kind: 'barrier'; readonly zxid: number };

/** So much work for reads is done in one go (see `Reads.work`): one to three milliseconds. Others come in between. */
export const readWorkMax = 50_000;

/** In the place of what is not answered. */
const nothing: Turn = { kind: 'answer', run: () => {} };
/** Gone through, and not yet given back. */
const passedMax = 1024;

export class Turns {
  #all: (Turn | undefined)[] = [];
  #at = 0;
  /** Of the requests. */
  #bytes = 0;
  #owedBytes = 0;
  #owedWork = 0;
  #heldWrites = 0;
  /** Where the write stands that is being handed on. */
  #handedAt = -1;

  get length(): number {
    return this.#all.length - this.#at;
  }

  get head(): Turn | undefined {
    return this.#all[this.#at];
  }

  /** Of all the requests. */
  get bytes(): number {
    return this.#bytes;
  }

  /** About how much there is to say to the reads. */
  get owedBytes(): number {
    return this.#owedBytes;
  }

  /** About how much work the reads are. */
  get owedWork(): number {
    return this.#owedWork;
  }

  /** A write was held back, so that the next one is as well: writes keep their order. */
  get holdsWrites(): boolean {
    return this.#heldWrites > 0;
  }

  /** The write that comes now was held back before. */
  get isHanding(): boolean {
    return this.#handedAt >= 0;
  }

  add(turn: Turn): void {
    if (this.#handedAt < 0) {
      this.#all.push(turn);
    } else {
      this.#all[this.#handedAt] = turn;
      this.#handedAt = -1;
    }
    this.#weigh(turn, 1);
  }

  /** The head has had its turn. */
  shift(): void {
    const turn = this.#all[this.#at];
    this.#all[this.#at++] = undefined; // or the list would keep all it had alive
    if (turn !== undefined) this.#weigh(turn, -1);
    if (this.#at === this.#all.length) {
      this.#all = [];
      this.#at = 0;
    } else if (this.#at > passedMax && this.#at * 2 > this.#all.length) {
      this.#all.splice(0, this.#at);
      this.#at = 0;
    }
  }

  /** The writes that were held back at the head, up to the next read, for as long as `run` says: they share a sync. */
  handOn(run: (frame: Frame) => boolean): void {
    for (let at = this.#at; ; at += 1) {
      const frame = this.#all[at];
      if (frame?.kind !== 'frame' || !frame.writes) return;
      this.#weigh(frame, -1);
      this.#handedAt = at;
      if (!run(frame)) return;
      if (this.#handedAt === at) this.add(nothing); // its session is at its end: there is no reply
    }
  }

  clear(): void {
    this.#all = [];
    this.#at = 0;
    this.#bytes = 0;
    this.#owedBytes = 0;
    this.#owedWork = 0;
    this.#heldWrites = 0;
    this.#handedAt = -1;
  }

  #weigh(turn: Turn, sign: 1 | -1): void {
    if (turn.kind === 'call') {
      this.#bytes += sign * turn.bytes;
    } else if (turn.kind === 'frame') {
      this.#bytes += sign * turn.bytes.length;
      this.#owedBytes += sign * turn.replyBytes;
      this.#owedWork += sign * turn.work;
      if (turn.writes) this.#heldWrites += sign;
    }
  }
}
