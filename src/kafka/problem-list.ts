/** The last few things that went wrong, each once, with the time when it was last seen. */

import type { LayoutProblem } from './layout.ts';

export interface SeenProblem extends LayoutProblem {
  readonly atMs: number;
}

/** More than anybody reads; a group that is that ill shows it elsewhere too. */
const problemsMax = 20;

export class ProblemList {
  readonly #byText = new Map<string, SeenProblem>();

  /** Oldest first. */
  get all(): SeenProblem[] {
    return [...this.#byText.values()];
  }

  add(problem: LayoutProblem, atMs: number): void {
    const text = `${problem.path} ${problem.why}`;
    this.#byText.delete(text);
    this.#byText.set(text, { ...problem, atMs });
    if (this.#byText.size <= problemsMax) return;
    const [oldest] = this.#byText.keys();
    this.#byText.delete(oldest!);
  }
}
