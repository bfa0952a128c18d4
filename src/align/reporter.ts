/**
 * A member's own node: an ephemeral node that says where each of its partitions is.
 *
 *   members/[id]@[session]     made anew in every session, so nothing of an old one is ever adopted
 *   members/[id]@[session].1   what does not fit into the first
 *
 * In: `report`, as often as there is something new. Out: writes, one at a time; what comes while one is
 * under way goes out with the next, as one; after a large one it waits a while, so that thousands of
 * partitions that come one by one are not told of one by one. A write whose reply was lost is made again: it says the same.
 */

import { isZkError, type StatView } from '../client/index.ts';
import { connected, ensurePath } from '../kafka/index.ts';
import { Backoff, type Clock, pause, Wakeup } from '../support/index.ts';
import { memberNode } from './layout.ts';
import { type AlignClient, isPassing } from './session.ts';

export interface ReporterOptions {
  readonly id: string;
  /** The folder of members. */
  readonly folder: string;
  /** What to write now: a text for each node, one at least. */
  readonly content: () => readonly string[];
  readonly clock: Clock;
  readonly random?: (() => number) | undefined;
  readonly onFailure: (error: unknown) => void;
  /** The node was made, at this zxid: whatever is told of later was told with us in the group. */
  readonly onJoined: (zxid: bigint) => void;
}

/** A member of a hundred partitions waits for some milliseconds, one of ten thousand for half a second. */
const bytesPerMs = 2_000;

export class Reporter {
  readonly #client: AlignClient;
  readonly #options: ReporterOptions;
  readonly #bell = new Wakeup();
  readonly #life = new AbortController();
  readonly #backoff: Backoff;
  #isNew = true;
  #made: { readonly sessionId: bigint; parts: number } | undefined;
  #running: Promise<void> | undefined;
  #writes = 0;
  /** What the last write held; nothing where there was nothing to write. */
  #bytes = 0;

  constructor(client: AlignClient, options: ReporterOptions) {
    this.#client = client;
    this.#options = options;
    const { random = Math.random } = options;
    this.#backoff = new Backoff({ firstMs: 20, maxMs: 2_000, random });
  }

  get writes(): number {
    return this.#writes;
  }

  start(): void {
    this.#bell.ring();
    this.#running ??= this.#run();
  }

  report(): void {
    this.#isNew = true;
    this.#bell.ring();
  }

  async #run(): Promise<void> {
    const { signal } = this.#life;
    const stopHearing = this.#hearState();
    while (!signal.aborted) {
      try {
        await this.#bell.rung(signal);
        const sessionId = await connected(this.#client, signal);
        if (sessionId === undefined) break;
        await this.#write(sessionId);
        this.#backoff.reset();
        const waitMs = Math.floor(this.#bytes / bytesPerMs);
        if (waitMs > 0) await pause(this.#options.clock, waitMs, signal);
      } catch (error) {
        if (signal.aborted) break;
        this.#isNew = true;
        this.#bell.ring();
        if (!isPassing(error)) {
          this.#options.onFailure(error);
          break;
        }
        await pause(this.#options.clock, this.#backoff.next(), signal);
      }
    }
    stopHearing();
  }

  /** A new session has no node yet. */
  #hearState(): () => void {
    const heard = () => this.#bell.ring();
    this.#client.on('state', heard);
    return () => this.#client.off('state', heard);
  }

  async #write(sessionId: bigint): Promise<void> {
    this.#bytes = 0;
    if (this.#made?.sessionId !== sessionId) return this.#make(sessionId);
    if (!this.#isNew) return;
    this.#isNew = false;
    this.#writes += 1;
    const [first, ...more] = this.#content();
    try {
      await this.#client.set(this.#path(sessionId, 0), first!);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
      this.#made = undefined; // somebody took it away
      return this.#make(sessionId);
    }
    await this.#writeMore(this.#made, more);
  }

  #content(): readonly string[] {
    const texts = this.#options.content();
    this.#bytes = texts.reduce((sum, text) => sum + text.length, 0);
    return texts;
  }

  #path(sessionId: bigint, part: number): string {
    const { id, folder } = this.#options;
    return `${folder}/${memberNode(id, sessionId, part)}`;
  }

  /** The further nodes: set, made, or taken away. A failure is made good with the next write. */
  async #writeMore(made: { sessionId: bigint; parts: number }, more: readonly string[]) {
    for (const [i, data] of more.entries()) {
      const path = this.#path(made.sessionId, i + 1);
      made.parts = Math.max(made.parts, i + 2); // also if the reply is lost
      try {
        await this.#client.set(path, data);
      } catch (error) {
        if (!isZkError(error, 'NO_NODE')) throw error;
        await this.#client.create(path, data, { mode: 'ephemeral' });
      }
    }
    while (made.parts > more.length + 1) {
      await this.#client.discard(this.#path(made.sessionId, made.parts - 1));
      made.parts -= 1;
    }
  }

  async #make(sessionId: bigint): Promise<void> {
    const { folder, onJoined } = this.#options;
    const path = this.#path(sessionId, 0);
    this.#isNew = false;
    this.#writes += 1;
    const [first, ...more] = this.#content();
    let stat: StatView | null;
    try {
      ({ stat } = await this.#client.create(path, first!, { mode: 'ephemeral' }));
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) {
        await ensurePath(this.#client, folder);
        return this.#bell.ring();
      }
      // A create whose reply was lost: the name has our session in it, so it is ours.
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
      this.report();
      stat = await this.#client.exists(path);
    }
    if (stat === null || stat.ephemeralOwner !== sessionId) return this.#bell.ring();
    const made = { sessionId, parts: 1 };
    this.#made = made;
    onJoined(stat.czxid);
    await this.#writeMore(made, more);
  }

  /** Takes the node away: without a link it is not waited for, and goes with the next, or its session. */
  async close(): Promise<void> {
    this.#life.abort();
    await this.#running;
    const made = this.#made;
    this.#made = undefined;
    if (made === undefined || this.#client.sessionId !== made.sessionId) return;
    const isLinked = this.#client.state.name === 'connected';
    const leaving = this.#leave(made);
    if (isLinked) await leaving;
    else leaving.catch(() => {}); // nobody is left to be told
  }

  /** For certain: what a member that is gone has said would count for as long as its session lasts. */
  async #leave({ sessionId, parts }: { sessionId: bigint; parts: number }): Promise<void> {
    for (let part = parts - 1; part >= 0; part--) {
      try {
        await this.#client.discard(this.#path(sessionId, part));
      } catch (error) {
        if (!isPassing(error)) throw error;
      }
    }
  }
}
