/**
 * A fair election: candidates stand in a line, and the first leads until it goes.
 *
 *   <path>/_c_<uuid>-latch-0000000003    ephemeral sequential; data: the candidate's id
 *
 * The layout of Curator's LeaderLatch, or with `layout: 'selector'` that of its LeaderSelector, so that
 * Java processes stand in the same line. Each candidate watches one or two ahead of it and its own node:
 * a hand-over wakes three candidates at most and costs a fixed number of requests, however long the line is.
 *
 * What always holds: a term is given only for a node that is first in the list and belongs to the
 * session that the client has now; a candidate that does not find itself in the list joins anew. Epochs
 * grow from term to term, whoever wins them. While candidates have their links there is a leader, or
 * one is being elected: after a leader's death that takes its session timeout and a few requests.
 *
 * NOT promised: that two processes never believe to lead at the same moment on the wall clock. One that
 * was paused past its session's end learns of it when it wakes. See `Term`.
 */

import type { Client } from '../client/index.ts';
import { checkClient } from '../client/index.ts';
import { checkOptions, unlessAborted } from '../support/index.ts';
import type { Appointed } from './appointment.ts';
import { Candidate, type CandidateOptions } from './candidate.ts';
import { type Contender, describe } from './contenders.ts';
import type { Grant } from './grant.ts';
import { Line, oneAtATime, type Place } from './line.ts';
import { electionTable } from './option-tables.ts';

export type ElectionLayout = 'latch' | 'selector';

export interface ElectionOptions extends CandidateOptions {
  /** Curator's LeaderLatch, unless it is to be its LeaderSelector. */
  readonly layout?: ElectionLayout;
}

/** What stands in a name between the mark and the number. */
export const electionPrefixes: Readonly<Record<ElectionLayout, string>> = {
  latch: 'latch-',
  selector: 'lock-',
};

export class Election extends Candidate {
  protected override readonly canGuard = true;
  readonly #line: Line;
  #place: Place | undefined;

  constructor(client: Client, path: string, options: ElectionOptions = {}) {
    checkClient('Election', client);
    checkOptions('Election', options, electionTable);
    super(client, path, options);
    this.#line = new Line(client, path, {
      prefixes: [electionPrefixes[options.layout ?? 'latch']],
      ...(options.acl && { acl: options.acl }),
    });
  }

  /** Everyone in line with id, session and age: the leader first. A snapshot. */
  async candidates(): Promise<(Contender & { readonly id: string })[]> {
    const found = await describe(this.#line, await this.#line.names(), this.clock.wallMs());
    return found.map((one) => ({ ...one, id: one.data.toString('utf8') }));
  }

  protected override async stand(signal: AbortSignal): Promise<Grant> {
    const place = await this.#line.join({ data: this.id, signal });
    this.#place = place;
    if (this.isAppointable) {
      if ((await place.ahead(oneAtATime, signal)) !== null) await this.claimAppointment();
      await this.reconsider();
    }
    const grant = await place.turn(oneAtATime, signal);
    // The leader of before may have gone because somebody was appointed, of which we were to hear first.
    if (this.isAppointable) await unlessAborted(this.lookAgain(), signal, grant.signal);
    signal.throwIfAborted();
    return grant;
  }

  protected override async leave(): Promise<void> {
    const place = this.#place;
    this.#place = undefined;
    await place?.leave();
  }

  protected override async isInTheWay(appointed: Appointed): Promise<boolean> {
    const place = this.#place;
    if (place === undefined) return false;
    const names = await this.#line.names();
    const at = names.indexOf(place.name);
    if (at === -1) return false; // we learn of that anyway, and join anew
    const found = await describe(this.#line, names, this.clock.wallMs());
    const first = found.find(({ data }) => data.toString('utf8') === appointed.id);
    return first !== undefined && names.indexOf(first.name) > at;
  }
}
