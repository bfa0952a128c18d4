/**
 * Notices that another client has taken the session over by its identity.
 *
 * A server closes a link without a word when its session comes by another one. A client that dials again
 * takes the session back, so two clients with one identity would take turns for ever. This counts the
 * closes that nothing else explains: links that lived for a moment only, one right after the other, and
 * from the second on with nothing but a ping on them (a probe), so that no request of ours is to blame.
 *
 * The client that had the session before is cut off first, and so gives up first. One that took the
 * session over by an identity bears more closes, so that of the two it is the one that stays.
 */

/** A link that lived this long is not disputed, and a server that was away this long was away. */
const momentMs = 2_000;
const probesFrom = 2;
/** How long a probe carries nothing but its ping. The other client needs less to dial again. */
export const probeMs = 200;
/** Before the session is taken back: time in which the other client's ping is answered, so that its link counts. */
export const takeBackMs = 50;
export const closesMax = { owner: 6, heir: 9 } as const;

/** What a link must show before it is used as any other. */
export type Shown = 'nothing' | 'answers' | 'lasts';

export class Dispute {
  readonly #closesMax: number;
  #closes = 0;
  #welcomedMs = Number.NEGATIVE_INFINITY;
  #lostMs = Number.NEGATIVE_INFINITY;

  constructor(closesMax: number) {
    this.#closesMax = closesMax;
  }

  /** Whether the session is in dispute: it is taken back only after a moment. */
  get isOpen(): boolean {
    return this.#closes >= probesFrom;
  }

  /** A server took us in. What this link must show first: nothing, that it answers, or that it lasts. */
  welcomed(nowMs: number): Shown {
    if (nowMs - this.#lostMs > momentMs) this.#closes = 0;
    this.#welcomedMs = nowMs;
    if (this.#closes === 0) return 'nothing';
    return this.#closes < probesFrom ? 'answers' : 'lasts';
  }

  /** A link was closed by the server. Returns whether another client must have the session. */
  closed(nowMs: number, hadAnswer: boolean): boolean {
    this.#lostMs = nowMs;
    const wasProbe = this.#closes >= probesFrom;
    if (nowMs - this.#welcomedMs > momentMs) this.#closes = 1;
    else if (!wasProbe || hadAnswer) this.#closes += 1;
    return this.#closes >= this.#closesMax;
  }

  /** A link was lost for a reason of its own. */
  lost(): void {
    this.#closes = 0;
  }
}
