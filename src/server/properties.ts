/**
 * Java's properties format, in which a zoo.cfg is written: `key=value`, `key: value` or `key value`,
 * one a line, with `#` and `!` for comments, a backslash at the end to go on, and escapes.
 */

export interface Property {
  readonly key: string;
  readonly value: string;
  /** Counted from 1. */
  readonly line: number;
}

/** In order. A key that stands twice stands twice here. */
export function readProperties(text: string): Property[] {
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/);
  const properties: Property[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = at + 1;
    let logical = lines[at]!.replace(/^[ \t\f]+/, '');
    if (logical === '' || logical.startsWith('#') || logical.startsWith('!')) continue;
    while (goesOn(logical) && at + 1 < lines.length) {
      at += 1;
      logical = logical.slice(0, -1) + lines[at]!.replace(/^[ \t\f]+/, '');
    }
    const end = keyEnd(logical);
    const rest = logical.slice(end).replace(/^[ \t\f]*[=:]?[ \t\f]*/, '');
    properties.push({ key: unescaped(logical.slice(0, end)), value: unescaped(rest), line });
  }
  return properties;
}

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

const escapes: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f' };

function unescaped(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|([\s\S])|$)/g, (_, hex?: string, one?: string) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    return one === undefined ? '' : (escapes[one] ?? one);
  });
}
