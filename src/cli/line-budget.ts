/**
 * What one line may cost a process that also serves others: nodes, bytes and matching. Time is bounded
 * by the line's signal. A terminal has no such budget: its person can press Ctrl-C.
 */

import { CommandError } from './exit-codes.ts';

export interface LineLimits {
  readonly nodesMax: number;
  readonly bytesMax: number;
  readonly timeMs: number;
  /** Work of a pattern: see `PatternOptions.stepsMax`. */
  readonly patternStepsMax: number;
}

export const consoleLineLimits: LineLimits = {
  nodesMax: 100_000,
  bytesMax: 64 * 1024 * 1024,
  timeMs: 30_000,
  patternStepsMax: 5_000_000,
};

export class LineBudget {
  readonly limits: LineLimits;
  #nodes = 0;
  #bytes = 0;

  constructor(limits: LineLimits) {
    this.limits = limits;
  }

  /** Counts a node that was read. Throws once there were too many. */
  spend(bytes: number): void {
    this.#nodes += 1;
    this.#bytes += bytes;
    const { nodesMax, bytesMax } = this.limits;
    if (this.#nodes > nodesMax) throw usedUp(`${nodesMax} nodes`);
    if (this.#bytes > bytesMax) throw usedUp(`${bytesMax} bytes`);
  }
}

/** What a line hears that was stopped. */
export function usedUp(limit: string): CommandError {
  return new CommandError(
    'refused',
    `stopped: a line here may take ${limit}; name a smaller part of the tree, or run it in a terminal`,
  );
}
