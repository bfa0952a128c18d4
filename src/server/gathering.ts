/**
 * Who was just answered, and is likely to ask for the next thing at once: a write that comes meanwhile
 * waits a moment for theirs, and shares its sync.
 *
 * Where a few links write and wait in turn, the first of them to be back would start a sync that all the
 * others miss, and wait for; two links then take turns at the disk for ever. To wait for all who had their
 * answer costs a tenth of a millisecond at most, and nothing where one link writes alone.
 *
 * Links that come at the same time are such a case too: Node takes one of them a turn, each of which is
 * about to ask for a session, which is a write. While they come, turn after turn, their sessions share a
 * sync (5,000 links, 40 at a time: twice as fast).
 *
 * Where no disk holds up writes, those who were told that a watch of theirs is spent get a moment to look and to
 * watch again. A client hands events to another thread than replies, which is woken later; meanwhile others would
 * change dozens of times what it is about to look at (Curator's bounded queue grew to 46 items in place of 10).
 *
 * In: the links that came or were answered, each that has spoken since, the time. Out: whether more is to
 * come.
 */

import type { Connection } from './connection.ts';

/** What a client takes that is close: it is woken, works for a moment, and is heard. */
const waitMaxMs = 0.1;
/** What it takes beside that until its thread for events is awake. */
const lookMaxMs = 0.3;
/** As many turns of the event loop as fit into that, for a clock that somebody has stopped. */
const looksMax = 200;
/** More links than these are a load: enough of them come back in time. */
const linksMax = 64;
/** So many turns in which a link came are waited for: those who come and say nothing hold up nobody. */
const comingMax = 40;

export class Gathering {
  /** The time it is about: a link that is awaited bears its number, any other a lower one. */
  #round = 1;
  #awaited = 0;
  /** Links that were told of an event and have read nothing since. */
  #lookers = 0;
  #answeredMs = 0;
  #looks = 0;
  readonly #waitsForLooks: boolean;
  /** A link came since it was last asked. */
  #hasCome = false;
  /** How often in a row that was so. */
  #coming = 0;

  constructor(options: { readonly waitsForLooks?: boolean } = {}) {
    this.#waitsForLooks = options.waitsForLooks ?? false;
  }

  /** A link has come. */
  came(): void {
    this.#hasCome = true;
  }

  /** Replies and events have just left on these links. */
  answered(links: readonly Connection[], nowMs: number): void {
    this.#round += 1;
    this.#awaited = 0;
    this.#lookers = 0;
    this.#looks = 0;
    this.#answeredMs = nowMs;
    if (links.length > linksMax) return;
    for (const link of links) {
      if (link.hasSpentWatch && this.#waitsForLooks && link.isLive) {
        link.lookRound = this.#round;
        this.#lookers += 1;
      }
      link.hasSpentWatch = false;
      if (!link.isLive || link.inFlight > 0) continue; // it may well wait for the rest of its own
      link.awaitedRound = this.#round;
      this.#awaited += 1;
    }
  }

  /** The link has asked for something. */
  heard(link: Connection): void {
    if (link.awaitedRound !== this.#round) return;
    link.awaitedRound = 0;
    this.#awaited -= 1;
  }

  /** The link has asked for something that changes nothing. */
  looked(link: Connection): void {
    if (link.lookRound !== this.#round) return;
    link.lookRound = 0;
    this.#lookers -= 1;
  }

  /** Asked once a turn, by who has something to write. */
  isOn(nowMs: number): boolean {
    if (this.#isComing()) return true;
    const isWithin = (ms: number) => nowMs < this.#answeredMs + ms;
    const isAwaited = this.#awaited > 0 && isWithin(waitMaxMs);
    if (!isAwaited && (this.#lookers === 0 || !isWithin(lookMaxMs))) return false;
    this.#looks += 1;
    return this.#looks < looksMax;
  }

  #isComing(): boolean {
    const isComing = this.#hasCome && this.#coming < comingMax;
    this.#coming = isComing ? this.#coming + 1 : 0;
    this.#hasCome = false;
    return isComing;
  }
}
