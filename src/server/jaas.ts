/**
 * A JAAS file, by the grammar and the letters of Java's own reader (ConfigFile, StreamTokenizer):
 *
 *   file     (name '{' module* '}' ';')*
 *   module   class flag (key '=' value)* ';'         a text in double quotes, or a word, for each of these
 *   comment  behind // to the end of the line, behind / as well, or as in C
 *
 * In: the text. Out: modules by section. What Java can't read is a `ConfigError` with the line, and never
 * with what stands there: who put a # before a user has to hear that this takes nobody out.
 */

import { ConfigError } from './config.ts';

interface JaasModule {
  readonly className: string;
  readonly options: ReadonlyMap<string, string>;
}

type Jaas = ReadonlyMap<string, readonly JaasModule[]>;

/** A mark stands for itself, a text does not: `"{"` is no brace. */
interface Token {
  readonly mark?: string;
  readonly text?: string;
  readonly line: number;
}

/** Line ends are blanks, too. A quoted text ends with its line at the latest, and then lacks its end. */
const pieces =
  /[\0-\x20]+|\/\*[\s\S]*?\*\/|\/(?!\*)[^\r\n]*|"((?:[^"\\\r\n]|\\[^\r\n])*)"|([A-Za-z_$*\u00a0-\uffff][\w$*.\-\u00a0-\uffff]*)|([{};=])/y;

export function parseJaas(text: string, file: string): Jaas {
  const reader = new JaasReader(tokens(text.replace(/^\ufeff/, ''), file), file);
  return reader.sections();
}

class JaasReader {
  readonly #tokens: readonly Token[];
  readonly #file: string;
  #at = 0;

  constructor(read: readonly Token[], file: string) {
    this.#tokens = read;
    this.#file = file;
  }

  sections(): Jaas {
    const sections = new Map<string, readonly JaasModule[]>();
    while (this.#at < this.#tokens.length) {
      const name = this.#text('the name of a section');
      if (sections.has(name)) throw this.#wrong('another section of this name');
      this.#mark('{');
      const modules: JaasModule[] = [];
      while (!this.#isMark('}')) modules.push(this.#module());
      this.#mark('}');
      this.#mark(';');
      sections.set(name, modules);
    }
    return sections;
  }

  #module(): JaasModule {
    const className = this.#text('a login module');
    const flag = this.#text('required, requisite, sufficient or optional');
    if (!/^(required|requisite|sufficient|optional)$/i.test(flag)) {
      this.#at -= 1;
      throw this.#wrong('something else than required, requisite, sufficient or optional');
    }
    const options = new Map<string, string>();
    while (!this.#isMark(';')) {
      const key = this.#text('an option, or ;');
      this.#mark('=');
      options.set(key, this.#value());
    }
    this.#mark(';');
    return { className, options };
  }

  #value(): string {
    const value = this.#text('a value');
    if (!/\$\{[^}]*\}/.test(value)) return value;
    this.#at -= 1;
    throw this.#wrong('a value that names a property of Java, which is not known here');
  }

  #text(wanted: string): string {
    const text = this.#tokens[this.#at]?.text;
    if (text === undefined) throw this.#missing(wanted);
    this.#at += 1;
    return text;
  }

  #isMark(mark: string): boolean {
    return this.#tokens[this.#at]?.mark === mark;
  }

  #mark(mark: string): void {
    if (!this.#isMark(mark)) throw this.#missing(mark);
    this.#at += 1;
  }

  #missing(wanted: string): ConfigError {
    const line = this.#tokens[this.#at]?.line;
    const where = line === undefined ? 'at its end' : `line ${line}`;
    return new ConfigError(`${this.#file} ${where}: ${wanted} is missing`);
  }

  #wrong(what: string): ConfigError {
    return new ConfigError(`${this.#file} line ${this.#tokens[this.#at]!.line}: ${what}`);
  }
}

function tokens(text: string, file: string): Token[] {
  const found: Token[] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    pieces.lastIndex = at;
    const match = pieces.exec(text);
    if (match === null) throw unreadable(text, at, `${file} line ${line}`);
    const [whole, quoted, word, mark] = match;
    if (quoted !== undefined) found.push({ text: unescaped(quoted), line });
    else if (word !== undefined) found.push({ text: word, line });
    else if (mark !== undefined) found.push({ mark, line });
    line += whole.match(/\r\n|\r|\n/g)?.length ?? 0;
    at += whole.length;
  }
  return found;
}

function unreadable(text: string, at: number, where: string): ConfigError {
  const why: Record<string, string> = {
    '#': 'a # begins no comment in a JAAS file; // does',
    '"': 'a " has no other on its line',
    "'": 'values stand in double quotes',
    '/': 'a comment has no end',
  };
  return new ConfigError(
    `${where}: ${why[text[at]!] ?? 'values of other letters stand in double quotes'}`,
  );
}

const escapes: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
};

function unescaped(text: string): string {
  return text.replace(/\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)/gs, (_, one: string) =>
    /^[0-7]/.test(one) ? String.fromCharCode(Number.parseInt(one, 8)) : (escapes[one] ?? one),
  );
}
