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

/** What could go now. Children that are under way are seen when each is asked for. */
export function reapable(tree: Tree, wallMs: number, neverUsedMs: number): string[] {
  const { nodes } = tree;
  const empty = (path: string): number => {
    const node = tree.find(path);
    return node === noNode || nodes.childCount(node) > 0 ? noNode : node;
  };
  const found: string[] = [];
  for (const path of tree.containers) {
    const node = empty(path);
    if (node === noNode) continue;
    const isUsed = nodes.cversion(node) > 0;
    if (isUsed || (neverUsedMs !== 0 && wallMs - nodes.mtimeMs(node) > neverUsedMs)) {
      found.push(path);
    }
  }
  for (const path of tree.ttls) {
    const node = empty(path);
    if (node === noNode) continue;
    if (wallMs - nodes.mtimeMs(node) > Number(ttlOfOwner(nodes.ownerOf(node)))) found.push(path);
  }
  return found;
}

export class Reaper {
  readonly #tree: Tree;
  readonly #clock: Clock;
  readonly #options: ReaperOptions;
  readonly #reap: (path: string) => void;
  #timer: Timer | undefined;

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
        const atMost = Math.max(1, Math.floor((perMinuteMax * intervalMs) / 60_000));
        const found = reapable(this.#tree, this.#clock.wallMs(), neverUsedMs);
        for (const path of found.slice(0, atMost)) this.#reap(path);
        this.start();
      },
      true,
    );
  }

  stop(): void {
    this.#timer?.cancel();
  }
}
