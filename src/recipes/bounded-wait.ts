/**
 * Looking until something is so, within what the caller allows.
 *
 * In: a look, which reads through a `Watching`, and the caller's limits. Out: what a look has found. An
 * event alone proves nothing: after each, and after the end of a session, the look is made again, and
 * only what it found counts.
 *
 * A read that sets a watch is never abandoned on its way: its reply would set the watch all the same,
 * and nobody would take it away. So the wait for it is given up, and once it is there it is undone.
 */

import type { Client, DataAndStat, StatView, WatchEvent } from '../client/index.ts';
import { type Clock, deferred, onAbort, unlessAborted } from '../support/index.ts';
import { Deadline, type WaitOptions } from './deadline.ts';
import { type Watched, watchChildren, watchExists, watchNode } from './node-watch.ts';

export interface WaitSetting {
  readonly clock?: Clock | undefined;
  /** What the wait rejects with when its time is over. */
  readonly timedOut: () => Error | Promise<Error>;
  /** The end of the recipe itself, whose reason then is the error. */
  readonly ended?: AbortSignal | undefined;
}

/** Runs `work` under one signal that stands for all that may end it. Leaves no timer or listener. */
export async function bounded<T>(
  options: WaitOptions,
  { clock, timedOut, ended }: WaitSetting,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new Deadline(options, clock);
  const control = new AbortController();
  const pass = (signal: AbortSignal) => () => control.abort(signal.reason);
  const signals = ended === undefined ? [deadline.signal] : [deadline.signal, ended];
  const undo = signals.map((signal) => onAbort(signal, pass(signal)));
  try {
    for (const signal of signals) signal.throwIfAborted();
    return await work(control.signal);
  } catch (error) {
    const isLate = deadline.isLate && error === deadline.signal.reason;
    throw isLate ? await timedOut() : error;
  } finally {
    deadline.stop();
    for (const stopHearing of undo) stopHearing();
  }
}

/** The watches of one look, taken away together. */
export class Watching {
  readonly #client: Client;
  readonly #all: Promise<Watched<unknown> | null>[] = [];

  constructor(client: Client) {
    this.#client = client;
  }

  /** The names below a node; null, and no watch, when there is no such node. */
  async children(path: string): Promise<readonly string[] | null> {
    return (await this.#keep(watchChildren(this.#client, path)))?.found ?? null;
  }

  /** As `children`, for a node's data. */
  async node(path: string): Promise<DataAndStat | null> {
    return (await this.#keep(watchNode(this.#client, path)))?.found ?? null;
  }

  /** Null when there is none; then the watch tells of its creation. */
  async exists(path: string): Promise<StatView | null> {
    return (await this.#keep(watchExists(this.#client, path)))?.found.stat ?? null;
  }

  /** Counts as a change when so much time is over, though nothing may have changed. */
  wakeAfter(ms: number, clock: Clock): void {
    const due = deferred<WatchEvent>();
    const timer = clock.after(ms, () => due.resolve({ type: 'none', path: '', zxid: null }));
    const stop = async () => timer.cancel();
    void this.#keep(Promise.resolve({ found: null, changed: due.promise, stop }));
  }

  /** Resolves with the first change of whatever is watched; with nothing watched, at once. */
  async changed(): Promise<void> {
    const all = (await Promise.all(this.#all)).filter((one) => one !== null);
    if (all.length > 0) await Promise.race(all.map((one) => one.changed));
  }

  async stop(): Promise<void> {
    const all = await Promise.allSettled(this.#all); // what could not be read is not watched
    await Promise.all(all.map((one) => one.status === 'fulfilled' && one.value?.stop()));
  }

  #keep<T>(watched: Promise<Watched<T> | null>): Promise<Watched<T> | null> {
    this.#all.push(watched);
    return watched;
  }
}

/**
 * Looks, and again after each change, until the look gives something other than undefined. What a look
 * gives after the wait was called off goes to `late`, to be undone.
 */
export async function lookUntil<T>(
  client: Client,
  signal: AbortSignal,
  look: (watching: Watching) => Promise<T | undefined>,
  late: (found: T) => unknown = () => {},
): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    const watching = new Watching(client);
    const looking = look(watching);
    let isWanted = true;
    try {
      const found = await unlessAborted(looking, signal);
      if (found !== undefined) return found;
      await unlessAborted(watching.changed(), signal);
    } catch (error) {
      isWanted = false;
      throw error;
    } finally {
      const stopped = looking.then(
        (found) => {
          if (!isWanted && found !== undefined) late(found);
          return watching.stop();
        },
        () => watching.stop(),
      );
      // Without a link a look may take long, and who called it off does not wait for that.
      if (signal.aborted) stopped.catch(() => {});
      else await stopped;
    }
  }
}
