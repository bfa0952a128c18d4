/**
 * Reads a regular expression into a tree.
 *
 * The syntax is what JavaScript and Java read alike: characters, `.`, classes, groups, `|`, counted
 * repetition, `^`, `$`, `\b`. Everything else is refused by name: what no engine can match in linear
 * time (back-references, look-around, possessive and atomic groups), and what the two languages read
 * differently (a class inside a class, `\v`, `\0`).
 */

/** Says what is wrong with a pattern. The message does not repeat the pattern. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

export type PatternNode =
  /** One character: this code point. */
  | { readonly kind: 'code'; readonly code: number }
  /** One character of a set, written as JavaScript's own class or escape. */
  | { readonly kind: 'set'; readonly source: string }
  | { readonly kind: 'assert'; readonly assertion: Assertion }
  | { readonly kind: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'either'; readonly parts: readonly PatternNode[] }
  | {
      readonly kind: 'repeat';
      readonly part: PatternNode;
      readonly least: number;
      readonly most: number;
    };

export type Assertion = 'start' | 'end' | 'boundary' | 'noBoundary';

/** Far beyond what a person writes; a list of several hundred topics still fits. */
export const patternCharsMax = 10_000;
const groupDepthMax = 100;
const repeatMax = 1_000;

export function parsePattern(pattern: string): PatternNode {
  if (pattern.length > patternCharsMax) {
    throw new PatternError(
      `it has ${pattern.length} characters; at most ${patternCharsMax} are allowed`,
    );
  }
  return new Parser(pattern).whole();
}

const anyButLineEnd: PatternNode = { kind: 'set', source: '[^\\n\\r\\u2028\\u2029]' };
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, r: 13, f: 12 };
const assertions: Readonly<Record<string, Assertion>> = { b: 'boundary', B: 'noBoundary' };
const unsupported: Readonly<Record<string, string>> = {
  Q: 'quotation (\\Q)',
  k: 'a back-reference (\\k)',
  0: 'an octal escape (\\0)',
};
const groups: readonly (readonly [string, string])[] = [
  ['(?=', 'look-ahead'],
  ['(?!', 'look-ahead'],
  ['(?<=', 'look-behind'],
  ['(?<!', 'look-behind'],
  ['(?>', 'an atomic group'],
];

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): PatternNode {
    const all = this.#either();
    if (this.#at < this.#text.length) throw new PatternError('a ) has no (');
    return all;
  }

  #either(): PatternNode {
    const parts = [this.#sequence()];
    while (this.#take('|')) parts.push(this.#sequence());
    return parts.length === 1 ? parts[0]! : { kind: 'either', parts };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#text.length && !this.#sees('|') && !this.#sees(')')) {
      parts.push(this.#repeated(this.#atom()));
    }
    return { kind: 'sequence', parts };
  }

  #repeated(part: PatternNode): PatternNode {
    const times = this.#times();
    if (times === null) return part;
    const [least, most] = times;
    if (part.kind === 'assert') throw new PatternError('^, $ and \\b cannot be repeated');
    if (this.#sees('+')) throw unsupportedError('a possessive quantifier (*+, ++, ?+ or }+)');
    this.#take('?'); // lazy or not: the same texts match
    return { kind: 'repeat', part, least, most };
  }

  #times(): readonly [number, number] | null {
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY];
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY];
    if (this.#take('?')) return [0, 1];
    if (!this.#sees('{')) return null;
    const counted = this.#match(/\{(\d{1,9})(?:(,)(\d{1,9})?)?\}/y);
    if (counted === null) throw new PatternError('a { has no count, as {2} or {1,3}; \\{ is text');
    const [, first, comma, last] = counted;
    const least = Number(first);
    const most =
      comma === undefined ? least : last === undefined ? Number.POSITIVE_INFINITY : Number(last);
    if (most < least) throw new PatternError(`the counts in ${counted[0]} are out of order`);
    if (least > repeatMax || (most > repeatMax && most !== Number.POSITIVE_INFINITY)) {
      throw new PatternError(`${counted[0]} repeats more than ${repeatMax} times`);
    }
    return [least, most];
  }

  #atom(): PatternNode {
    if (this.#sees('(')) return this.#group();
    if (this.#sees('[')) return this.#class();
    if (this.#sees('\\')) return this.#escape();
    const code = this.#code();
    const char = String.fromCodePoint(code);
    if (char === '.') return anyButLineEnd;
    if (char === '^') return { kind: 'assert', assertion: 'start' };
    if (char === '$') return { kind: 'assert', assertion: 'end' };
    if ('*+?{'.includes(char)) throw new PatternError(`a ${char} has nothing before it to repeat`);
    return { kind: 'code', code };
  }

  #group(): PatternNode {
    for (const [opening, name] of groups) {
      if (this.#sees(opening)) throw unsupportedError(`${name} (${opening}…))`);
    }
    if (!this.#take('(?:') && this.#match(/\(\?<[A-Za-z][A-Za-z0-9]*>/y) === null) {
      if (this.#sees('(?')) throw unsupportedError('a group that begins with (? and sets flags');
      this.#take('(');
    }
    this.#depth += 1;
    if (this.#depth > groupDepthMax) {
      throw new PatternError(`its groups are nested more than ${groupDepthMax} deep`);
    }
    const inner = this.#either();
    this.#depth -= 1;
    if (!this.#take(')')) throw new PatternError('a ( has no )');
    return inner;
  }

  #escape(): PatternNode {
    const asserted = /[bB]/.exec(this.#text[this.#at + 1] ?? '')?.[0];
    if (asserted !== undefined) {
      this.#at += 2;
      return { kind: 'assert', assertion: assertions[asserted]! };
    }
    const escaped = this.#escaped();
    return typeof escaped === 'number'
      ? { kind: 'code', code: escaped }
      : { kind: 'set', source: escaped };
  }

  /** What stands behind a backslash: one code point, or the source of a set. */
  #escaped(): number | string {
    this.#at += 1;
    if (this.#at >= this.#text.length) throw new PatternError('a \\ has nothing after it');
    const set = this.#match(/[dDwWsS]/y);
    if (set !== null) return `\\${set[0]}`;
    const property = this.#match(/[pP]\{[\w=]{1,60}\}/y);
    if (property !== null) return propertySource(`\\${property[0]}`);
    const hex = this.#match(/x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})/y);
    if (hex !== null) {
      const code = Number.parseInt(hex[1] ?? hex[2]!, 16);
      const low = code >= 0xd800 && code <= 0xdbff && this.#match(/\\u(d[c-f][0-9a-f]{2})/iy);
      return low ? 0x10000 + ((code - 0xd800) << 10) + Number.parseInt(low[1]!, 16) - 0xdc00 : code;
    }
    const code = this.#code();
    const char = String.fromCodePoint(code);
    if (!/[A-Za-z0-9]/.test(char)) return code;
    if (controls[char] !== undefined) return controls[char];
    if (/[1-9]/.test(char)) throw unsupportedError(`a back-reference (\\${char})`);
    throw unsupportedError(unsupported[char] ?? `the escape \\${char}`);
  }

  /** `[…]`, written anew with every character by its number, so that nothing in it is special. */
  #class(): PatternNode {
    this.#take('[');
    let source = this.#take('^') ? '[^' : '[';
    if (this.#sees(']')) throw unsupportedError('an empty class ([] or [^])');
    while (!this.#take(']')) {
      const first = this.#classItem();
      const isRange = this.#sees('-') && this.#text[this.#at + 1] !== ']';
      if (!isRange) {
        source += itemSource(first);
        continue;
      }
      this.#take('-');
      const last = this.#classItem();
      if (typeof first === 'string' || typeof last === 'string') {
        throw new PatternError('a range in a class needs a character at both ends; \\- is a dash');
      }
      if (last < first) throw new PatternError('a range in a class is out of order');
      source += `${itemSource(first)}-${itemSource(last)}`;
    }
    return { kind: 'set', source: `${source}]` };
  }

  #classItem(): number | string {
    if (this.#at >= this.#text.length) throw new PatternError('a [ has no ]');
    if (this.#sees('[')) throw unsupportedError('a class inside a class ([ in […]; \\[ is text)');
    if (this.#sees('&&')) throw unsupportedError('an intersection of classes (&&)');
    return this.#sees('\\') ? this.#escaped() : this.#code();
  }

  #code(): number {
    const code = this.#text.codePointAt(this.#at)!;
    this.#at += code > 0xffff ? 2 : 1;
    return code;
  }

  #sees(text: string): boolean {
    return this.#text.startsWith(text, this.#at);
  }

  #take(text: string): boolean {
    if (!this.#sees(text)) return false;
    this.#at += text.length;
    return true;
  }

  #match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.#text);
    if (found !== null) this.#at += found[0].length;
    return found;
  }
}

function unsupportedError(what: string): PatternError {
  return new PatternError(`${what} is not supported`);
}

function itemSource(item: number | string): string {
  return typeof item === 'string' ? item : `\\u{${item.toString(16)}}`;
}

function propertySource(source: string): string {
  try {
    new RegExp(source, 'u');
    return source;
  } catch {
    throw unsupportedError(`the property ${source}`);
  }
}
