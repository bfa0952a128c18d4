/**
 * Who led when, told from who joined and who left an election's line. Pure: it is told the time.
 *
 * In: the line as it was first seen, then each candidate that came or went, in order. Out: terms, oldest
 * first, the last of which is the one that runs. The lowest number leads, from the moment that all lower
 * ones are gone; of the first term that was seen nobody knows when it began. Bounded: the oldest go.
 */

/** What is known of a candidate. */
export interface Candidate {
  readonly id: string | null;
  readonly session: string | null;
  /** The czxid of its node: the epoch of its term. */
  readonly epoch: string | null;
}

export interface BookedTerm extends Candidate {
  readonly name: string;
  /** Null: it led already when the first look was taken. */
  readonly sinceMs: number | null;
  /** Null: it leads. */
  readonly untilMs: number | null;
}

const termsMax = 200;
const nobody: Candidate = { id: null, session: null, epoch: null };

export class TermBook {
  readonly #line = new Map<string, Candidate>();
  readonly #terms: BookedTerm[] = [];
  #dropped = 0;

  constructor(line: Iterable<readonly [name: string, candidate: Candidate]>) {
    for (const [name, candidate] of line) this.#line.set(name, candidate);
    this.#settle(null);
  }

  get terms(): readonly BookedTerm[] {
    return this.#terms;
  }

  /** There were more, and they were let go. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The first few of the line of whom nothing is known. */
  strangers(most: number): string[] {
    const first = [...this.#line].sort(([a], [b]) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
    return first.slice(0, most).flatMap(([name, { epoch }]) => (epoch === null ? [name] : []));
  }

  /** Who leads now, if anybody does. */
  get leader(): BookedTerm | null {
    const last = this.#terms.at(-1);
    return last?.untilMs === null ? last : null;
  }

  joined(name: string, atMs: number, candidate: Candidate = nobody): void {
    if (this.#line.has(name)) return;
    this.#line.set(name, candidate);
    this.#settle(atMs);
  }

  left(name: string, atMs: number): void {
    if (this.#line.delete(name)) this.#settle(atMs);
  }

  /** Somebody looked at it meanwhile. */
  known(name: string, candidate: Candidate): void {
    if (this.#line.has(name)) this.#line.set(name, candidate);
    const at = this.#terms.findLastIndex((term) => term.name === name);
    if (at !== -1) this.#terms[at] = { ...this.#terms[at]!, ...candidate };
  }

  /** The line as it is now, after changes that nobody saw: who is in it still, and who is new. */
  compare(names: ReadonlySet<string>, atMs: number): void {
    for (const name of [...this.#line.keys()]) if (!names.has(name)) this.#line.delete(name);
    for (const name of names) if (!this.#line.has(name)) this.#line.set(name, nobody);
    this.#settle(atMs);
  }

  #settle(atMs: number | null): void {
    const running = this.leader;
    const first = [...this.#line.keys()].reduce<string | null>(
      (low, name) => (low === null || name.slice(-10) < low.slice(-10) ? name : low),
      null,
    );
    if (running?.name === first) return;
    if (running) this.#terms[this.#terms.length - 1] = { ...running, untilMs: atMs };
    if (first === null) return;
    this.#terms.push({ name: first, ...this.#line.get(first)!, sinceMs: atMs, untilMs: null });
    if (this.#terms.length > termsMax) {
      this.#terms.shift();
      this.#dropped += 1;
    }
  }
}
