/**
 * Java's properties format, in which a zoo.cfg is written: `key=value`, `key: value` or `key value`,
 * one a line, with `#` and `!` for comments, a backslash at the end to go on, and escapes.
 */

export interface Property {
  readonly key: string;
  readonly value: string;
  /** Counted from 1. */
  readonly line: number;
  /** A \u without its four digits is in it, for which Java refuses the whole file. */
  readonly isBroken?: true;
}

/** In order. A key that stands twice stands twice here. */
export function readProperties(text: string): Property[] {
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/);
  const properties: Property[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = at + 1;
    let logical = lines[at]!.replace(blanks, '');
    while (goesOn(logical) && !saysNothing(logical) && at + 1 < lines.length) {
      const begun = logical.slice(0, -1);
      at += 1;
      logical = begun + lines[at]!.replace(blanks, '');
      if (begun === '' && saysNothing(logical)) break; // a comment goes on nowhere
    }
    if (saysNothing(logical)) continue;
    const end = keyEnd(logical);
    const rest = logical.slice(end).replace(/^[ \t\f]*[=:]?[ \t\f]*/, '');
    properties.push({
      key: unescaped(logical.slice(0, end)),
      value: unescaped(rest),
      line,
      ...(brokenEscape.test(logical) ? { isBroken: true } : {}),
    });
  }
  return properties;
}

const blanks = /^[ \t\f]+/;

const saysNothing = (line: string) => line === '' || line.startsWith('#') || line.startsWith('!');

/** An odd number of backslashes: the last of them escapes the line's end. */
function goesOn(line: string): boolean {
  return (/\\+$/.exec(line)?.[0].length ?? 0) % 2 === 1;
}

/** Where the first separator stands that no backslash escapes. */
function keyEnd(line: string): number {
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '\\') at += 1;
    else if (/[=: \t\f]/.test(line[at]!)) return at;
  }
  return line.length;
}

const brokenEscape = /(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})/;

const escapes: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f' };

function unescaped(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|([\s\S])|$)/g, (_, hex?: string, one?: string) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    return one === undefined ? '' : (escapes[one] ?? one);
  });
}
