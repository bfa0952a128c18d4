/**
 * A member as the Java program behaves, by what is known of it: exists and then create, ephemeral shared
 * nodes, equality of seconds, polling. For tests of whether ours gets along with it, and written so that
 * its faults are there too.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { type Client, isZkError } from '../src/client/index.ts';

export interface JavaMemberOptions {
  readonly root: string;
  readonly plan: Readonly<Record<string, readonly number[]>>;
  readonly start: number;
  readonly period: number;
}

export class JavaMember {
  readonly client: Client;
  readonly #options: JavaMemberOptions;
  readonly #share: string;
  /** In seconds. */
  currentMaxTimestamp: number;
  isLeading = false;

  constructor(client: Client, options: JavaMemberOptions) {
    this.client = client;
    this.#options = options;
    this.#share = `${options.root}/share`;
    this.currentMaxTimestamp = options.start + options.period;
  }

  async start(): Promise<void> {
    const { root, plan, start } = this.#options;
    await this.#make(root);
    await this.#make(`${root}/leader`);
    await this.#make(this.#share);
    await this.#make(`${this.#share}/coordinator`, 'ephemeral');
    await this.#make(`${this.#share}/topic-partitions`, 'ephemeral');
    await this.#make(`${this.#share}/progress`);
    const mode = 'ephemeralSequential';
    const { path } = await this.client.create(`${root}/leader/electing`, '', { mode });
    const [first] = (await this.client.children(`${root}/leader`)).sort();
    this.isLeading = path.endsWith(`/${first}`);
    if (!this.isLeading) return;
    const text = Object.entries(plan).map(([topic, all]) => `${topic}:${all.join(',')};`);
    await this.client.set(`${this.#share}/topic-partitions`, text.join(''));
    await this.client.set(`${this.#share}/coordinator`, String(start));
  }

  checkLimit(seconds: number): boolean {
    return seconds < this.currentMaxTimestamp;
  }

  async currentPeriodComplete(names: readonly string[], signal?: AbortSignal): Promise<void> {
    for (const name of names) {
      const path = `${this.#share}/progress/${name}`;
      await this.#make(path, 'ephemeral');
      await this.client.set(path, String(this.currentMaxTimestamp));
    }
    const { period } = this.#options;
    if (this.isLeading) {
      while (!(await this.#isComplete())) await delay(50, undefined, { signal });
      this.currentMaxTimestamp += period;
      await this.client.set(`${this.#share}/coordinator`, String(this.currentMaxTimestamp));
      return;
    }
    for (;;) {
      const value = await this.#seconds(`${this.#share}/coordinator`);
      if (value === this.currentMaxTimestamp + period) break;
      await delay(10, undefined, { signal });
    }
    this.currentMaxTimestamp += period;
  }

  async #isComplete(): Promise<boolean> {
    const total = Object.values(this.#options.plan).flat().length;
    const names = await this.client.children(`${this.#share}/progress`);
    if (names.length !== total) return false;
    for (const name of names) {
      const value = await this.#seconds(`${this.#share}/progress/${name}`);
      if (value !== this.currentMaxTimestamp) return false;
    }
    return true;
  }

  async #seconds(path: string): Promise<number> {
    try {
      return Number.parseInt((await this.client.get(path)).data?.toString() ?? '', 10) | 0;
    } catch (error) {
      if (isZkError(error, 'NO_NODE')) return -1;
      throw error;
    }
  }

  async #make(path: string, mode: 'persistent' | 'ephemeral' = 'persistent'): Promise<void> {
    if ((await this.client.exists(path)) !== null) return;
    try {
      await this.client.create(path, mode === 'ephemeral' ? '0' : '', { mode });
    } catch (error) {
      if (!isZkError(error, 'NODE_EXISTS')) throw error;
    }
  }
}
