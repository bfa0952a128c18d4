/**
 * A machine under watch: an ephemeral node named for it, and, if asked for, a sign of life in it.
 *
 *   /clusterServers/<hostname>    ephemeral; data: whatever the machine says of itself
 *
 * The node comes back by itself after the session was renewed. A machine that was restarted takes its
 * name over from the process before it. With `beatMs` the data is written again that often, so that a
 * monitor notices sooner than by the session timeout when the machine hangs or is cut off; each beat
 * is a write, and every monitor hears of it. A beat that cannot be sent is skipped, not queued.
 */

import { hostname } from 'node:os';
import { ArgumentError, type Client, checkClient, type DataInput } from '../client/index.ts';
import { type Clock, checkOptions, systemClock, type Timer } from '../support/index.ts';
import { joinAs } from './membership.ts';
import { machineTable } from './option-tables.ts';
import type { PersistentNode } from './persistent-node.ts';

export const machinesPath = '/clusterServers';

export interface MachineOptions {
  /** `/clusterServers` unless said. */
  readonly path?: string;
  /** The host's name unless said. */
  readonly name?: string;
  readonly data?: DataInput;
  /** How often it gives a sign of life. Never, unless said: then its session alone speaks for it. */
  readonly beatMs?: number;
  readonly clock?: Clock;
}

export class Machine {
  readonly name: string;
  readonly #client: Client;
  readonly #node: PersistentNode;
  readonly #clock: Clock;
  #timer: Timer | undefined;
  #isBeating = false;
  #isClosed = false;

  constructor(client: Client, options: MachineOptions = {}) {
    checkClient('Machine', client);
    checkOptions('Machine', options, machineTable);
    const { path = machinesPath, name = hostname(), data = '', beatMs } = options;
    if (beatMs !== undefined && !(beatMs > 0)) {
      throw new ArgumentError('beatMs', 'a number of milliseconds above 0 is wanted');
    }
    this.name = name;
    this.#client = client;
    this.#clock = options.clock ?? systemClock;
    this.#node = joinAs(client, path, name, { data, whenTaken: 'replace' });
    if (beatMs !== undefined) this.#schedule(beatMs);
  }

  get ready(): Promise<void> {
    return this.#node.ready;
  }

  get state(): PersistentNode['state'] {
    return this.#node.state;
  }

  /** What it says of itself from now on. */
  async set(data: DataInput): Promise<void> {
    await this.#node.set(data);
  }

  /** Leaves: monitors see it down at once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#node.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #schedule(beatMs: number): void {
    const beat = () => {
      if (this.#isClosed) return;
      this.#timer = this.#clock.after(beatMs, beat, true);
      void this.#beat();
    };
    this.#timer = this.#clock.after(beatMs, beat, true);
  }

  async #beat(): Promise<void> {
    const isAble = this.#client.state.name === 'connected' && this.#node.state.name === 'present';
    if (!isAble || this.#isBeating) return;
    this.#isBeating = true;
    try {
      await this.#node.set(this.#node.data);
    } catch {
      // That the beat is missing is what it would have said: the monitor sees it.
    } finally {
      this.#isBeating = false;
    }
  }
}
