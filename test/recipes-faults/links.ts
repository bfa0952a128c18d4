/**
 * A worker's ways to its servers: a link for each, and whatever is done is done to all of them.
 *
 * A client goes from one to the other by itself, so that a cut moves it to another server of an ensemble.
 */

import { type FrameHook, Link } from '../../src/testing/index.ts';

export class Links {
  /** As clients write it: all of them. */
  readonly address: string;
  readonly #all: readonly Link[];

  private constructor(all: readonly Link[]) {
    this.#all = all;
    this.address = all.map(({ address }) => address).join(',');
  }

  static async to(ports: readonly number[]): Promise<Links> {
    const all = ports.map((port) => Link.to({ host: '127.0.0.1', port }));
    return new Links(await Promise.all(all));
  }

  /** One hook for all: connections have other numbers, so that no two are the same. */
  set onFrame(hook: FrameHook | undefined) {
    for (const [i, link] of this.#all.entries()) {
      link.onFrame =
        hook &&
        ((frame) => hook({ ...frame, connection: frame.connection * this.#all.length + i }));
    }
  }

  cut(options: { readonly reset?: boolean } = {}): void {
    for (const link of this.#all) link.cut(options);
  }

  refuse(): void {
    for (const link of this.#all) link.refuse();
  }

  async accept(): Promise<void> {
    await Promise.all(this.#all.map((link) => link.accept()));
  }

  heal(): void {
    for (const link of this.#all) link.heal();
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((link) => link.close()));
  }
}
