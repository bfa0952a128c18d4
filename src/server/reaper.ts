/**
 * Takes away containers that have become empty and nodes whose time to live is over
 * (ContainerManager): looked for once in a while, never more of them in a minute than is said.
 */

import { clearImmediate, setImmediate } from 'node:timers';
import type { Clock, Timer } from '../support/index.ts';
import { noNode, type Tree, ttlOfOwner } from '../tree/index.ts';

export interface ReaperOptions {
  readonly intervalMs: number;
  readonly perMinuteMax: number;
  /** A container that never had a child goes after this long; 0 keeps it. */
  readonly neverUsedMs: number;
}

/**
 * What could go now, and for whatever stays from when on it may, unless it is changed. Children that are under
 * way are seen when each is asked for.
 */
export function* reapable(
  tree: Tree,
  wallMs: number,
  neverUsedMs: number,
): Generator<string | number, void, void> {
  const { nodes } = tree;
  const empty = (path: string): number => {
    const node = tree.find(path);
    return node === noNode || nodes.childCount(node) > 0 ? noNode : node;
  };
  /** Whole milliseconds: it goes when more than `keptMs` of them are over. */
  const judged = (path: string, node: number, keptMs: number): string | number => {
    const fromMs = nodes.mtimeMs(node) + keptMs + 1;
    return wallMs >= fromMs ? path : fromMs;
  };
  for (const path of tree.containers) {
    const node = empty(path);
    if (node !== noNode && nodes.cversion(node) > 0) yield path;
    else if (node === noNode || neverUsedMs === 0) yield Infinity;
    else yield judged(path, node, neverUsedMs);
  }
  for (const path of tree.ttls) {
    const node = empty(path);
    if (node === noNode) yield Infinity;
    else yield judged(path, node, Number(ttlOfOwner(nodes.ownerOf(node))));
  }
}

/** So many are looked at in one go: a million would hold up everybody for half a second. */
const lookedAtMax = 10_000;

export class Reaper {
  readonly #tree: Tree;
  readonly #clock: Clock;
  readonly #options: ReaperOptions;
  readonly #reap: (path: string) => unknown;
  #timer: Timer | undefined;
  #goOn: NodeJS.Immediate | undefined;
  #allowance = 0;
  /** As long as the tree is as it was at this zxid, there is nothing to be found before this moment. */
  #quiet = { zxid: -1, untilWallMs: 0 };

  /** `reap` says false where it does not ask for it now. */
  constructor(tree: Tree, clock: Clock, options: ReaperOptions, reap: (path: string) => unknown) {
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
        const { lastZxid } = this.#tree;
        const wallMs = this.#clock.wallMs();
        if (lastZxid === this.#quiet.zxid && wallMs < this.#quiet.untilWallMs) {
          this.start();
          return;
        }
        this.#quiet = { zxid: lastZxid, untilWallMs: Infinity };
        this.#look(reapable(this.#tree, wallMs, neverUsedMs), Math.floor(this.#allowance));
      },
      true,
    );
  }

  #look(found: Iterator<string | number, void>, atMost: number): void {
    const quiet = this.#quiet;
    let left = atMost;
    for (let looked = 0; looked < lookedAtMax; looked += 1) {
      if (left === 0) quiet.zxid = -1; // what it did not come to may be due
      const next = left === 0 ? undefined : found.next();
      if (next === undefined || next.done) {
        this.start();
        return;
      }
      if (typeof next.value === 'number') {
        quiet.untilWallMs = Math.min(quiet.untilWallMs, next.value);
        continue;
      }
      if (this.#reap(next.value) === false) quiet.zxid = -1;
      left -= 1;
    }
    this.#goOn = setImmediate(() => this.#look(found, left));
  }

  stop(): void {
    this.#timer?.cancel();
    clearImmediate(this.#goOn);
  }
}
