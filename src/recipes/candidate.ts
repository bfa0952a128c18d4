/**
 * A candidate: what both forms of election share. It stands, leads while its loop body runs, and stands
 * again, through lost links and renewed sessions, until it is closed.
 *
 *   for await (const term of election) { work until term.signal aborts }
 *
 * One loop at a time, and one term at a time: the next term begins only after the body of the one
 * before has ended, so that slow work never meets itself. A body that throws gives the node back and
 * ends the loop. Without `renew` on the client, the end of the session is the end of the loop.
 */

import { type Acl, ArgumentError, type Client, isZkError } from '../client/index.ts';
import {
  Backoff,
  type Clock,
  checkOptions,
  onAbort,
  systemClock,
  unlessAborted,
} from '../support/index.ts';
import { defaultData } from './acquire.ts';
import { type Appointed, appointmentPath, parseAppointed } from './appointment.ts';
import type { Grant } from './grant.ts';
import { linked } from './linked.ts';
import { watchNode } from './node-watch.ts';
import { standTable } from './option-tables.ts';
import { withParents } from './parents.ts';
import { isPassing } from './passing.ts';
import { pause } from './pause.ts';
import type { SteppedDownReason } from './stepped-down-error.ts';
import { Term } from './term.ts';
import { whileLinked } from './while-linked.ts';

export interface CandidateOptions {
  /** Who we are to others. `host:pid` unless said. */
  readonly id?: string;
  readonly acl?: readonly Acl[];
  /** Heed an operator's appointment, which costs a persistent node and a watch for each candidate. */
  readonly appointable?: boolean;
  /** How long work may go on after it was asked to stop before the node is given back anyway. 10 s. */
  readonly graceMs?: number;
  readonly clock?: Clock;
}

export interface StandOptions {
  /** Ends the loop, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
}

export abstract class Candidate implements AsyncIterable<Term> {
  readonly path: string;
  readonly id: string;
  protected readonly client: Client;
  protected readonly acl: readonly Acl[] | undefined;
  protected readonly clock: Clock;
  protected readonly isAppointable: boolean;
  readonly #graceMs: number;
  readonly #life = new AbortController();
  #isStanding = false;
  #term: Term | undefined;
  #appointed: (Appointed & { readonly zxid: bigint }) | null = null;
  /** Aborts to have a candidate that waits leave the line and join it again. */
  #aside = new AbortController();
  #loopOver: Promise<void> = Promise.resolve();

  constructor(client: Client, path: string, options: CandidateOptions) {
    this.client = client;
    this.path = path;
    this.id = options.id ?? defaultData;
    if (typeof this.id !== 'string') throw new ArgumentError('id', 'text is wanted');
    this.acl = options.acl;
    this.clock = options.clock ?? systemClock;
    this.isAppointable = options.appointable ?? false;
    this.#graceMs = options.graceMs ?? 10_000;
  }

  /** Whether a node's name is one term's alone, so that a check on it is a check on the term. */
  protected abstract readonly canGuard: boolean;
  /** Waits until we lead, leaving what `leave` takes away when it is aborted. */
  protected abstract stand(signal: AbortSignal): Promise<Grant>;
  /** Takes back whatever `stand` has made. Called after it failed, and before it is called again. */
  protected abstract leave(): Promise<void>;
  /** Whether we are in the way of the one who was appointed, who is somebody else and alive. */
  protected abstract isInTheWay(appointed: Appointed & { zxid: bigint }): Promise<boolean>;

  /** The term that runs now, if we lead. */
  get term(): Term | undefined {
    return this.#term;
  }

  get isLeading(): boolean {
    return this.#term?.isLeading ?? false;
  }

  [Symbol.asyncIterator](): AsyncGenerator<Term, void, undefined> {
    return this.terms();
  }

  /** Every term that we win, one after the other. */
  async *terms(options: StandOptions = {}): AsyncGenerator<Term, void, undefined> {
    checkOptions('terms', options, standTable);
    const { signal } = options;
    if (this.#isStanding) {
      throw new Error(`${this.id} stands for ${this.path} already; one loop at a time`);
    }
    if (this.#life.signal.aborted) return;
    signal?.throwIfAborted();
    const stop = new AbortController();
    const stopHearing = [
      onAbort(this.#life.signal, () => stop.abort(this.#life.signal.reason)),
      signal && onAbort(signal, () => stop.abort(signal.reason)),
    ];
    this.#isStanding = true;
    let isOver!: () => void;
    this.#loopOver = new Promise((resolve) => {
      isOver = resolve;
    });
    const failed = new AbortController();
    const following = this.isAppointable
      ? this.#follow(stop.signal).catch((error) => failed.abort(error))
      : undefined;
    try {
      for (;;) {
        const term = await this.#elected(stop.signal, failed.signal);
        if (term === undefined) break;
        const letGo = onAbort(stop.signal, () => term.stepDown('closed'));
        try {
          yield term;
        } finally {
          letGo();
          this.#term = undefined;
          try {
            await term.end();
          } finally {
            await this.leave();
          }
        }
      }
      if (signal?.aborted && !this.#life.signal.aborted) throw signal.reason;
    } finally {
      stop.abort();
      for (const stopOne of stopHearing) stopOne?.();
      await following;
      this.#isStanding = false;
      isOver();
    }
  }

  /** Stands until elected, does `work` in that one term, and gives it back. */
  async lead<T>(work: (term: Term) => Promise<T>, options: StandOptions = {}): Promise<T> {
    for await (const term of this.terms(options)) return await work(term);
    throw new Error(`${this.path}: the election was closed before ${this.id} was elected`);
  }

  /** Gives the present term up, if we lead: its signal aborts, and once its work is done we requeue. */
  resign(reason: SteppedDownReason = 'resigned'): void {
    this.#term?.stepDown(reason);
  }

  /** Stands no more. A loop in the middle of its work is told by the term's signal; wait for it yourself. */
  async close(): Promise<void> {
    this.#life.abort(new Error(`the election at ${this.path} was closed`));
    if (this.#term === undefined) await this.#loopOver;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // ── standing ──────────────────────────────────────────────────────────────────────────────────

  async #elected(signal: AbortSignal, failed: AbortSignal): Promise<Term | undefined> {
    const backoff = new Backoff({ firstMs: 20, maxMs: 2_000 });
    while (!signal.aborted) {
      this.#aside = new AbortController();
      const any = anyOf([signal, failed, this.#aside.signal]);
      try {
        await linked(this.client, any.signal);
        const grant = await this.#stood(any.signal);
        if (grant !== undefined) {
          this.#term = new Term(this.id, grant, this.clock, this.#graceMs, this.canGuard);
          return this.#term;
        }
      } catch (error) {
        if (!any.signal.aborted) throw error;
      } finally {
        any.stop();
      }
      failed.throwIfAborted();
      if (!this.#aside.signal.aborted) await pause(this.clock, backoff.next(), signal);
    }
    return undefined;
  }

  /** Undefined when the place was lost, and it is worth standing again. */
  async #stood(signal: AbortSignal): Promise<Grant | undefined> {
    try {
      const grant = await this.stand(signal);
      if (!signal.aborted) return grant;
      await this.#leave(signal);
    } catch (error) {
      await this.#leave(signal);
      if (!isPassing(error)) throw error;
    }
    return undefined;
  }

  /** Who gave up does not wait for a link: what is left goes as soon as there is one. */
  #leave(signal: AbortSignal): Promise<void> {
    return signal.aborted ? whileLinked(this.client, this.leave()) : this.leave();
  }

  // ── appointments ──────────────────────────────────────────────────────────────────────────────

  protected get appointed(): Appointed | null {
    return this.#appointed;
  }

  /** Looks at the appointment, and again whenever it changes. */
  async #follow(signal: AbortSignal): Promise<void> {
    const path = appointmentPath(this.path);
    while (!signal.aborted) {
      try {
        await linked(this.client, signal);
        const asked = watchNode(this.client, path);
        void asked.then((late) => (signal.aborted ? late?.stop() : undefined)).catch(() => {});
        const watched = await unlessAborted(asked, signal);
        if (watched === null) {
          await this.#makeAppointmentNode(path);
          continue;
        }
        const { data, stat } = watched.found;
        const appointed = parseAppointed(data);
        this.#appointed = appointed && { ...appointed, zxid: stat.mzxid };
        try {
          await this.reconsider();
          await unlessAborted(watched.changed, signal);
        } finally {
          await whileLinked(this.client, watched.stop());
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!isPassing(error)) throw error;
        await pause(this.clock, 50, signal);
      }
    }
  }

  /** As `reconsider`, by what the server says now. Our session has seen all that led to our turn. */
  protected async lookAgain(): Promise<void> {
    try {
      const { data, stat } = await this.client.get(appointmentPath(this.path));
      const appointed = parseAppointed(data);
      this.#appointed = appointed && { ...appointed, zxid: stat.mzxid };
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
      this.#appointed = null;
    }
    await this.reconsider();
  }

  /** Steps aside if we are in the way of the one who was appointed. */
  protected async reconsider(): Promise<void> {
    const appointed = this.#appointed;
    if (appointed === null || appointed.id === this.id) return;
    if (!(await this.isInTheWay(appointed))) return;
    if (this.#term !== undefined) this.#term.stepDown('appointed');
    else this.#aside.abort(new Error(`${appointed.id} was appointed`));
  }

  /** We are the one who was appointed, and not the first: says so, that the others look again. */
  protected async claimAppointment(): Promise<void> {
    const path = appointmentPath(this.path);
    try {
      const { data, stat } = await this.client.get(path);
      if (parseAppointed(data)?.id !== this.id) return;
      await this.client.set(path, data, { version: stat.version });
    } catch (error) {
      // Somebody has changed it: then all look again anyway.
      if (!isZkError(error, 'NO_NODE', 'BAD_VERSION')) throw error;
    }
  }

  async #makeAppointmentNode(path: string): Promise<void> {
    await withParents(this.client, path, this.acl, async () => {
      try {
        await this.client.create(path, '', { ...(this.acl && { acl: this.acl }) });
      } catch (error) {
        if (!isZkError(error, 'NODE_EXISTS')) throw error;
      }
    });
  }
}

function anyOf(signals: readonly AbortSignal[]): { signal: AbortSignal; stop: () => void } {
  const any = new AbortController();
  const stops = signals.map((one) => {
    if (one.aborted) any.abort(one.reason);
    return onAbort(one, () => any.abort(one.reason));
  });
  return { signal: any.signal, stop: () => stops.forEach((stop) => void stop()) };
}
