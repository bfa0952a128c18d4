const textMax = 256;

/** Text from outside, made safe to print: no control or bidi characters, and not without end. */
export function printable(text: string): string {
  return escaped(
    text.length > textMax ? `${text.slice(0, textMax)}… (${text.length} characters)` : text,
  );
}

/** As `printable`, and whole: where it matters which text it was. */
export function escaped(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be printed
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
