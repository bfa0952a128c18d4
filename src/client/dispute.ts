/**
 * Finds out whether another client has taken the session over by its identity.
 *
 * A server closes a connection without a reason when its session comes by another one. A client that
 * connects again takes the session back, so two clients with one identity would take turns for ever.
 * A network that cuts connections looks nearly the same, and a session must never end for that.
 *
 *   calm ──some quick closes in a row──▶ opening ──the witness answers──▶ watching ──enough proofs──▶ taken
 *     ▲                                     └────────────┬──────────────────┘
 *     └────── after a while ────── resting ◀──── no proof ┘
 *
 * So a suspicion alone ends nothing. It opens a *witness*: a second connection to the same address, with a
 * session of its own. While the witness is open, the session's connections are *probes*, on which nothing but
 * a ping leaves, so that no request of ours can be the reason for a close. A close is a proof if the probe's
 * ping was answered, the server closed the probe, and the witness, which is older than the probe, answers a
 * ping sent a moment later. A witness that is lost, a connection that lasts, or an attempt that fails ends
 * the suspicion, and nothing of it counts later.
 *
 * How many proofs: a network that cuts single connections at random hits the probe and spares the witness at
 * most once in two cuts. So the limits below make a false end rarer than one in a million such disputes even
 * then, and a dispute takes place at most every half a minute.
 */

import { type Clock, pause, type Timer } from '../support/index.ts';
import { type Host, hostText } from './connection-string.ts';
import type { Endpoint, Transport } from './transport.ts';
import type { Witness } from './witness.ts';

/** A connection that lived this long is not disputed, and neither is one that took this long to come back. */
const momentMs = 2_000;
const suspicionsMin = 5;
/** In a dispute, a connection that lasts this long ends it. Java's client is back within a second. */
const lastsMs = 1_500;
const disputeMaxMs = 120_000;
const restMs = 30_000;
/** A network that cuts both connections does so within this time. The other client has it to get its ping answered. */
const takeBackMs = 100;
/** How long the witness may take to answer. */
const answerMaxMs = 1_000;
/** Of the session timeout: neither of the two may take more, as the session has no connection meanwhile. */
const timeoutShareMax = 1 / 20;

/**
 * How many proofs end the session. The client that had the session first is cut off first, and has to be the
 * one that ends: the client that took it over by an identity bears more.
 */
export const proofsMax = { owner: 20, heir: 60 } as const;

export interface DisputeOptions {
  readonly clock: Clock;
  readonly proofsMax: number;
  /** The session's. */
  readonly timeoutMs: () => number;
  /** The signal closes the witness. */
  readonly openWitness: (endpoint: Endpoint, signal: AbortSignal) => Promise<Witness>;
  /** The suspicion was dropped: a probe may be used as any other connection. */
  readonly onOver: () => void;
}

interface Opening {
  readonly name: 'opening';
  readonly over: AbortController;
}

interface Watching {
  readonly name: 'watching';
  readonly over: AbortController;
  readonly witness: Witness;
  readonly sinceMs: number;
  proofs: number;
}

type Stage =
  | { readonly name: 'calm'; suspicions: number }
  | Opening
  | Watching
  | { readonly name: 'resting'; readonly untilMs: number }
  | { readonly name: 'over' };

/** What became of a connection of the session. */
export interface Closed {
  readonly transport: Transport;
  /** The other side closed it. */
  readonly byPeer: boolean;
  /** It had brought an answer. */
  readonly hadAnswer: boolean;
}

export class Dispute {
  readonly #options: DisputeOptions;
  #stage: Stage = { name: 'calm', suspicions: 0 };
  #timer: Timer | undefined;
  #isProbe = false;
  #welcomedMs = Number.NEGATIVE_INFINITY;
  #lostMs = Number.NEGATIVE_INFINITY;

  constructor(options: DisputeOptions) {
    this.#options = options;
  }

  get stage(): Stage['name'] {
    return this.#stage.name;
  }

  /** Where the session's next connection can prove something. */
  get host(): Host | undefined {
    return this.#stage.name === 'watching' ? this.#stage.witness.endpoint.host : undefined;
  }

  /** A server has welcomed the session. Returns whether the connection is a probe. */
  welcomed({ endpoint }: Transport, readOnly: boolean): boolean {
    const nowMs = this.#options.clock.nowMs();
    if (nowMs - this.#lostMs > momentMs || readOnly) this.drop();
    // A server without a quorum closes connections for reasons of its own.
    this.#welcomedMs = readOnly ? Number.NEGATIVE_INFINITY : nowMs;
    const stage = this.#stage;
    this.#isProbe = stage.name === 'watching' && isSame(stage.witness.endpoint, endpoint);
    if (stage.name === 'watching') this.#dropAfter(lastsMs);
    return this.#isProbe;
  }

  /** The session's connection is over. Resolves, in a dispute after a moment, to whether another client has the session. */
  async closed({ transport, byPeer, hadAnswer }: Closed): Promise<boolean> {
    const nowMs = this.#options.clock.nowMs();
    const isProbe = this.#isProbe;
    this.#isProbe = false;
    this.#lostMs = nowMs;
    if (!byPeer || nowMs - this.#welcomedMs > momentMs) {
      this.drop();
      return false;
    }
    const stage = this.#stage;
    if (stage.name === 'resting' && nowMs >= stage.untilMs) {
      this.#stage = { name: 'calm', suspicions: 1 };
    } else if (stage.name === 'calm') {
      stage.suspicions += 1;
      if (stage.suspicions >= suspicionsMin) void this.#open(transport.endpoint);
    } else if (stage.name === 'watching' && isProbe) {
      return this.#isTaken(stage, hadAnswer);
    }
    return false;
  }

  /** Nothing of what was seen so far counts: an attempt to connect failed, or a connection lasted. */
  drop(): void {
    const stage = this.#stage;
    if (stage.name === 'calm') stage.suspicions = 0;
    if (stage.name !== 'opening' && stage.name !== 'watching') return;
    this.#end({ name: 'resting', untilMs: this.#options.clock.nowMs() + restMs });
  }

  /** The session is closed, or over. */
  stop(): void {
    this.#end({ name: 'over' });
  }

  #end(next: Stage): void {
    const stage = this.#stage;
    this.#stage = next;
    this.#timer?.cancel();
    this.#isProbe = false;
    if (stage.name !== 'opening' && stage.name !== 'watching') return;
    stage.over.abort(new Error('the dispute is over'));
    this.#options.onOver();
  }

  #dropAfter(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(ms, () => this.drop());
  }

  async #open(endpoint: Endpoint): Promise<void> {
    const over = new AbortController();
    const opening: Opening = { name: 'opening', over };
    this.#stage = opening;
    try {
      const witness = await this.#options.openWitness(endpoint, over.signal);
      if (this.#stage !== opening) return; // its signal has closed it
      const sinceMs = this.#options.clock.nowMs();
      this.#stage = { name: 'watching', over, witness, sinceMs, proofs: 0 };
      this.#dropAfter(lastsMs);
      void witness.ended.then(() => this.#lose(witness));
    } catch {
      if (this.#stage === opening) this.drop();
    }
  }

  #lose(witness: Witness): void {
    if (this.#stage.name === 'watching' && this.#stage.witness === witness) this.drop();
  }

  async #isTaken(stage: Watching, hadAnswer: boolean): Promise<boolean> {
    const { clock, timeoutMs } = this.#options;
    const shareMs = timeoutMs() * timeoutShareMax;
    const waitMs = Math.min(takeBackMs, shareMs);
    this.#dropAfter(waitMs + Math.min(answerMaxMs, shareMs));
    await pause(clock, waitMs, stage.over.signal);
    const isAlive = this.#stage === stage && (await stage.witness.answers());
    if (this.#stage !== stage) return false;
    if (!isAlive || clock.nowMs() - stage.sinceMs > disputeMaxMs) {
      this.drop();
      return false;
    }
    if (hadAnswer) stage.proofs += 1;
    this.#dropAfter(momentMs);
    return stage.proofs >= this.#options.proofsMax;
  }
}

function isSame(one: Endpoint, other: Endpoint): boolean {
  return one.address === other.address && hostText(one.host) === hostText(other.host);
}
