/**
 * Matches regular expressions and globs in time that grows linearly with the text.
 *
 * JavaScript's own engine tries every way a pattern can match, one after the other: `(a+)+b` on forty
 * letters keeps the event loop busy for hours. Patterns that come from a node, a request or a flag
 * therefore run here. All ways are followed at once, a character at a time (Thompson's construction),
 * and each set of positions that was reached is kept with what follows from it, so that most characters
 * cost one look into a table. JavaScript's engine is asked one thing only: whether a single character
 * belongs to a class.
 *
 * Bounds: the pattern's length, the size it compiles to, what is kept, and, with `stepsMax`, the work.
 */

import { type Assertion, PatternError, type PatternNode, parsePattern } from './pattern-syntax.ts';

export interface PatternOptions {
  /** Upper and lower case are the same. @default false */
  readonly ignoreCase?: boolean;
  /** The whole text must match, not a part of it. @default false */
  readonly whole?: boolean;
  /**
   * The work that all calls of `test` together may do, in positions looked at, about 10 ns each; past it
   * `test` throws a PatternError. @default Infinity: the pattern's size times the text's length
   */
  readonly stepsMax?: number;
}

/** A regular expression, in the syntax that JavaScript and Java share. Throws a PatternError. */
export function expression(pattern: string, options: PatternOptions = {}): Pattern {
  return new Pattern(parsePattern(pattern), options);
}

/** `*` is any text and `?` any character; everything else is itself, and the whole text must match. */
export function glob(pattern: string, options: Omit<PatternOptions, 'whole'> = {}): Pattern {
  const parts = [...pattern].map((char): PatternNode => {
    if (char === '*')
      return { kind: 'repeat', part: any, least: 0, most: Number.POSITIVE_INFINITY };
    return char === '?' ? any : { kind: 'code', code: char.codePointAt(0)! };
  });
  return new Pattern({ kind: 'sequence', parts }, { ...options, whole: true });
}

/** The text itself, anywhere. */
export function literal(text: string, options: Omit<PatternOptions, 'whole'> = {}): Pattern {
  const parts = [...text].map(
    (char): PatternNode => ({ kind: 'code', code: char.codePointAt(0)! }),
  );
  return new Pattern({ kind: 'sequence', parts }, options);
}

const any: PatternNode = { kind: 'set', source: '[^]' };

// ── compiling ───────────────────────────────────────────────────────────────────────────────────

/** Steps that a pattern may compile to: what one character may cost. */
const sizeMax = 10_000;

function sizeOf(node: PatternNode): number {
  if (node.kind === 'repeat') {
    const { part, least, most } = node;
    return 1 + (sizeOf(part) + 1) * (most === Number.POSITIVE_INFINITY ? least + 1 : most);
  }
  if (node.kind !== 'sequence' && node.kind !== 'either') return 1;
  return node.parts.reduce((sum, part) => sum + sizeOf(part), 1);
}

type Includes = (code: number) => boolean;

const asciiCount = 128;

type Step =
  | { readonly kind: 'one'; readonly includes: Includes; readonly next: number }
  | { readonly kind: 'assert'; readonly assertion: Assertion; readonly next: number }
  | { readonly kind: 'split'; next: readonly number[] }
  | { readonly kind: 'match' };

class Compiler {
  readonly steps: Step[] = [{ kind: 'match' }];
  readonly #flags: string;
  readonly #sets = new Map<string, Includes>();

  constructor(flags: string) {
    this.#flags = flags;
  }

  /** From its end to its beginning: each part is given the step that follows it. */
  compile(node: PatternNode, next: number): number {
    switch (node.kind) {
      case 'code':
        return this.#add({ kind: 'one', includes: this.#codeSet(node.code), next });
      case 'set':
        return this.#add({ kind: 'one', includes: this.#set(node.source), next });
      case 'assert':
        return this.#add({ kind: 'assert', assertion: node.assertion, next });
      case 'sequence':
        return node.parts.reduceRight((after, part) => this.compile(part, after), next);
      case 'either':
        return this.#add({
          kind: 'split',
          next: node.parts.map((part) => this.compile(part, next)),
        });
      case 'repeat':
        return this.#repeat(node, next);
    }
  }

  #repeat({ part, least, most }: PatternNode & { kind: 'repeat' }, next: number): number {
    let entry = next;
    if (most === Number.POSITIVE_INFINITY) {
      const loop: Step = { kind: 'split', next: [] };
      entry = this.#add(loop);
      loop.next = [this.compile(part, entry), next];
    } else {
      for (let i = least; i < most; i++) {
        entry = this.#add({ kind: 'split', next: [this.compile(part, entry), next] });
      }
    }
    for (let i = 0; i < least; i++) entry = this.compile(part, entry);
    return entry;
  }

  #add(step: Step): number {
    return this.steps.push(step) - 1;
  }

  #codeSet(code: number): Includes {
    if (this.#flags.includes('i')) return this.#set(`\\u{${code.toString(16)}}`);
    return (other) => other === code;
  }

  #set(source: string): Includes {
    const known = this.#sets.get(source);
    if (known !== undefined) return known;
    const one = new RegExp(`^${source}$`, this.#flags); // is given one character at a time
    const ask: Includes = (code) => one.test(String.fromCodePoint(code));
    const ascii = Array.from({ length: asciiCount }, (_, code) => ask(code));
    const includes: Includes = (code) => ascii[code] ?? ask(code);
    this.#sets.set(source, includes);
    return includes;
  }
}

// ── matching ────────────────────────────────────────────────────────────────────────────────────

/** What lies on one side of a position: the text's edge, a letter, digit or underscore, or another. */
type Side = 'edge' | 'word' | 'other';

/** Everything that can be true after some part of a text, and what follows from it. */
interface State {
  readonly positions: readonly number[];
  readonly left: Side;
  readonly ascii: (State | undefined)[];
  readonly others: Map<number, State>;
  /** Known without reading on. */
  readonly verdict: boolean | undefined;
  atEnd: boolean | undefined;
}

/** Positions and transitions that are kept: a few megabytes. Past it all are forgotten, and found again. */
const keptMax = 300_000;
/** So often. Where positions multiply that fast, keeping them costs more than it saves. */
const forgottenMax = 2;

export class Pattern {
  readonly #steps: readonly Step[];
  readonly #entry: number;
  readonly #isWhole: boolean;
  readonly #stepsMax: number;
  readonly #word: RegExp;
  readonly #hasBoundary: boolean;
  readonly #start: State;
  readonly #states = new Map<string, State>();
  #kept = 0;
  #forgotten = 0;
  #stepsDone = 0;
  /** The round in which a step was last visited. */
  readonly #visited: Uint32Array;
  #round = 0;

  /** @internal Patterns are made by `expression`, `glob` and `literal`. */
  constructor(node: PatternNode, options: PatternOptions) {
    const { ignoreCase = false, whole = false, stepsMax = Number.POSITIVE_INFINITY } = options;
    if (sizeOf(node) > sizeMax) {
      throw new PatternError(`it is too large: repetitions make more than ${sizeMax} steps of it`);
    }
    const flags = ignoreCase ? 'iu' : 'u';
    const compiler = new Compiler(flags);
    this.#entry = compiler.compile(node, 0);
    this.#steps = compiler.steps;
    this.#isWhole = whole;
    this.#stepsMax = stepsMax;
    this.#word = new RegExp('\\w', flags);
    this.#hasBoundary = compiler.steps.some(
      (step) => step.kind === 'assert' && /boundary/i.test(step.assertion),
    );
    this.#visited = new Uint32Array(compiler.steps.length);
    this.#start = stateOf([this.#entry], 'edge');
  }

  /** Whether the text matches. Throws a PatternError once `stepsMax` is used up. */
  test(text: string): boolean {
    let state = this.#start;
    for (let at = 0; at < text.length; ) {
      const code = text.codePointAt(at)!;
      at += code > 0xffff ? 2 : 1;
      state =
        (code < asciiCount ? state.ascii[code] : state.others.get(code)) ??
        this.#advance(state, code);
      if (state.verdict !== undefined) return state.verdict;
    }
    state.atEnd ??= this.#reach(state, 'edge').isMatch;
    return state.atEnd;
  }

  #advance(state: State, code: number): State {
    const side = this.#sideOf(code);
    const { ones, isMatch } = this.#reach(state, side);
    const next = isMatch && !this.#isWhole ? matched : this.#after(ones, code, side);
    if (this.#forgotten < forgottenMax) this.#keep(state, code, next);
    return next;
  }

  #after(ones: readonly number[], code: number, side: Side): State {
    const positions: number[] = [];
    this.#round += 1;
    const add = (at: number) => {
      if (this.#visited[at] !== this.#round) positions.push(at);
      this.#visited[at] = this.#round;
    };
    for (const at of ones) {
      const step = this.#steps[at]!;
      if (step.kind === 'one' && step.includes(code)) add(step.next);
    }
    if (!this.#isWhole) add(this.#entry); // a match may begin here too
    if (positions.length === 0) return failed;
    const left = this.#hasBoundary ? side : 'other';
    if (this.#forgotten >= forgottenMax) return stateOf(positions, left);
    positions.sort((a, b) => a - b);
    const key = `${left} ${positions.join()}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const state = stateOf(positions, left);
    this.#states.set(key, state);
    this.#kept += positions.length;
    return state;
  }

  /** The steps that take a character, and whether the end is among what can be reached without one. */
  #reach(
    { positions, left }: State,
    right: Side,
  ): { readonly ones: readonly number[]; readonly isMatch: boolean } {
    this.#round += 1;
    const ones: number[] = [];
    let isMatch = false;
    const open = [...positions];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (this.#visited[at] === this.#round) continue;
      this.#visited[at] = this.#round;
      this.#stepsDone += 1;
      const step = this.#steps[at]!;
      if (step.kind === 'one') ones.push(at);
      else if (step.kind === 'split') for (const next of step.next) open.push(next);
      else if (step.kind === 'match') isMatch = true;
      else if (holds(step.assertion, left, right)) open.push(step.next);
    }
    if (this.#stepsDone > this.#stepsMax) {
      throw new PatternError('it takes too much work to match; make it simpler');
    }
    return { ones, isMatch };
  }

  #sideOf(code: number): Side {
    if (!this.#hasBoundary) return 'other';
    return this.#word.test(String.fromCodePoint(code)) ? 'word' : 'other';
  }

  #keep(state: State, code: number, next: State): void {
    this.#kept += 1;
    if (this.#kept > keptMax) {
      this.#kept = 0;
      this.#forgotten += 1;
      for (const known of [this.#start, ...this.#states.values()]) {
        known.ascii.length = 0;
        known.others.clear();
      }
      this.#states.clear();
    }
    if (code < asciiCount) state.ascii[code] = next;
    else state.others.set(code, next);
  }
}

function stateOf(positions: readonly number[], left: Side, verdict?: boolean): State {
  return { positions, left, ascii: [], others: new Map(), verdict, atEnd: verdict };
}

const matched = stateOf([], 'other', true);
const failed = stateOf([], 'other', false);

function holds(assertion: Assertion, left: Side, right: Side): boolean {
  if (assertion === 'start') return left === 'edge';
  if (assertion === 'end') return right === 'edge';
  const isBoundary = (left === 'word') !== (right === 'word');
  return isBoundary === (assertion === 'boundary');
}
