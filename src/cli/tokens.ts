/**
 * A line as words, by zkCli's rules and no others.
 *
 * A word is a run of what is no space, or stands between two quotes of one kind. Quotes are quotes only
 * at a word's beginning, and there is no way to write one inside itself; a backslash is a backslash.
 * A quote that is never closed is dropped, as zkCli drops it.
 */
// Java's \s, which knows ASCII alone: a no-break space is part of a word.
const word = /[ \t\n\v\f\r]*([^"'][^ \t\n\v\f\r]*|"[^"]*"|'[^']*')[ \t\n\v\f\r]*/g;
const quoted = /^(['"])(.*)\1$/s;

export function tokens(line: string): string[] {
  return [...line.matchAll(word)].map(([, found = '']) => found.replace(quoted, '$2'));
}

/** Whether `tokens` would give these words back: what holds both kinds of quotes and spaces can't be written. */
export function quotedWord(text: string): string {
  if (text !== '' && !/^["']|\s/.test(text)) return text;
  return text.includes('"') ? `'${text}'` : `"${text}"`;
}
