/**
 * Takes away containers that have become empty and nodes whose time to live is over
 * (ContainerManager): looked for once in a while, never more of them in a minute than is said.
 */

import type { Clock, Timer } from '../support/index.ts';
import { noNode, type Tree, ttlOfOwner } from '../tree/index.ts';

export interface ReaperOptions {
  readonly intervalMs: number;
  readonly perMinuteMax: number;
  /** A container that never had a child goes after this long; 0 keeps it. */
  readonly neverUsedMs: number;
}

/** What could go now, and undefined for whatever stays. Children that are under way are seen when each is asked for. */
export function* reapable(
  tree: Tree,
  wallMs: number,
  neverUsedMs: number,
): Generator<string | undefined, void, void> {
  const { nodes } = tree;
  const empty = (path: string): number => {
    const node = tree.find(path);
    return node === noNode || nodes.childCount(node) > 0 ? noNode : node;
  };
  for (const path of tree.containers) {
    const node = empty(path);
    const isUsed = node !== noNode && nodes.cversion(node) > 0;
    const isOld = () => neverUsedMs !== 0 && wallMs - nodes.mtimeMs(node) > neverUsedMs;
    yield node !== noNode && (isUsed || isOld()) ? path : undefined;
  }
  for (const path of tree.ttls) {
    const node = empty(path);
    const ttlMs = () => Number(ttlOfOwner(nodes.ownerOf(node)));
    yield node !== noNode && wallMs - nodes.mtimeMs(node) > ttlMs() ? path : undefined;
  }
}

/** So many are looked at in one go: a million would hold up everybody for half a second. */
const lookedAtMax = 10_000;

export class Reaper {
  readonly #tree: Tree;
  readonly #clock: Clock;
  readonly #options: ReaperOptions;
  readonly #reap: (path: string) => void;
  #timer: Timer | undefined;
  #goOn: NodeJS.Immediate | undefined;
  #allowance = 0;

  constructor(tree: Tree, clock: Clock, options: ReaperOptions, reap: (path: string) => void) {
    this.#tree = tree;
    this.#clock = clock;
    this.#options = options;
    this.#reap = reap;
  }

  start(): void {
    const { intervalMs, perMinuteMax, neverUsedMs } = this.#options;
    this.#timer = this.#clock.after(
      intervalMs,
      () => {
        // What a look may not take whole is the next one's.
        this.#allowance = Math.min(
          perMinuteMax,
          (this.#allowance % 1) + (perMinuteMax * intervalMs) / 60_000,
        );
        const atMost = Math.floor(this.#allowance);
        this.#look(reapable(this.#tree, this.#clock.wallMs(), neverUsedMs), atMost);
      },
      true,
    );
  }

  #look(paths: Iterator<string | undefined, void>, atMost: number): void {
    let left = atMost;
    for (let looked = 0; looked < lookedAtMax; looked += 1) {
      const next = left === 0 ? undefined : paths.next();
      if (next === undefined || next.done) {
        this.start();
        return;
      }
      if (next.value === undefined) continue;
      this.#reap(next.value);
      left -= 1;
    }
    this.#goOn = setImmediate(() => this.#look(paths, left));
  }

  stop(): void {
    this.#timer?.cancel();
    clearImmediate(this.#goOn);
  }
}
