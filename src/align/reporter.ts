/**
 * A member's own node: one ephemeral node that says where each of its partitions is.
 *
 *   members/[id]@[session]     made anew in every session, so nothing of an old one is ever adopted
 *
 * In: `report`, as often as there is something new. Out: writes, one at a time; what comes while one is
 * under way goes out with the next, as one. A write whose reply was lost is made again: it says the same.
 */

import { isZkError, type StatView } from '../client/index.ts';
import { Backoff, type Clock } from '../support/index.ts';
import { type AlignClient, Bell, connected, ensurePath, isPassing, pause } from './session.ts';

export interface ReporterOptions {
  readonly id: string;
  /** The folder of members. */
  readonly folder: string;
  /** What to write now. */
  readonly content: () => string;
  readonly clock: Clock;
  readonly random?: (() => number) | undefined;
  readonly onFailure: (error: unknown) => void;
  /** The node was made, at this zxid: whatever is told of later was told with us in the group. */
  readonly onJoined: (zxid: bigint) => void;
}

export class Reporter {
  readonly #client: AlignClient;
  readonly #options: ReporterOptions;
  readonly #bell = new Bell();
  readonly #life = new AbortController();
  readonly #backoff: Backoff;
  #isNew = true;
  #made: { readonly sessionId: bigint; readonly path: string } | undefined;
  #running: Promise<void> | undefined;
  #writes = 0;

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
    if (this.#made?.sessionId !== sessionId) return this.#make(sessionId);
    if (!this.#isNew) return;
    this.#isNew = false;
    this.#writes += 1;
    try {
      await this.#client.set(this.#made.path, this.#options.content());
    } catch (error) {
      if (!isZkError(error, 'NO_NODE')) throw error;
      this.#made = undefined; // somebody took it away
      await this.#make(sessionId);
    }
  }

  async #make(sessionId: bigint): Promise<void> {
    const { id, folder, content, onJoined } = this.#options;
    const path = `${folder}/${id}@${sessionId.toString(16)}`;
    this.#isNew = false;
    this.#writes += 1;
    let stat: StatView | null;
    try {
      ({ stat } = await this.#client.create(path, { mode: 'ephemeral', data: content() }));
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
    this.#made = { sessionId, path };
    onJoined(stat.czxid);
  }

  /** Takes the node away, where there is a link to do it by; else it goes with its session. */
  async close(): Promise<void> {
    this.#life.abort();
    await this.#running;
    const made = this.#made;
    this.#made = undefined;
    if (made === undefined || this.#client.sessionId !== made.sessionId) return;
    if (this.#client.state.name !== 'connected') return;
    try {
      await this.#client.delete(made.path);
    } catch (error) {
      if (!isZkError(error, 'NO_NODE') && !isPassing(error)) throw error;
    }
  }
}
