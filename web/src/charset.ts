/**
 * Text in and out of bytes, by the charset that somebody chose: UTF-8, Latin-1, UTF-16 in either order.
 *
 * In: bytes or text. Out: the other, exactly, or null where it can't be said exactly: bytes that are no text
 * in this charset, characters that it does not have. Latin-1 is ISO 8859-1, byte by byte, and not the
 * Windows page that browsers take for it. A byte order mark is kept as a character.
 */

export const charsets = ['utf-8', 'latin-1', 'utf-16le', 'utf-16be'] as const;
export type Charset = (typeof charsets)[number];

export function decodeText(bytes: Uint8Array, charset: Charset): string | null {
  if (charset === 'latin-1') {
    let text = '';
    for (let at = 0; at < bytes.length; at += 0x8000) {
      text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    }
    return text;
  }
  try {
    return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null; // a fact about the bytes, which the caller shows another way
  }
}

export function encodeText(text: string, charset: Charset): Uint8Array<ArrayBuffer> | null {
  if (charset === 'utf-8') return isWhole(text) ? new TextEncoder().encode(text) : null;
  if (charset === 'latin-1') {
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code > 0xff) return null;
      bytes[at] = code;
    }
    return bytes;
  }
  if (!isWhole(text)) return null;
  const bytes = new Uint8Array(text.length * 2);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < text.length; at += 1) {
    view.setUint16(at * 2, text.charCodeAt(at), charset === 'utf-16le');
  }
  return bytes;
}

/** Half of a pair has no bytes of its own. */
const isWhole = (text: string) => !/\p{Surrogate}/u.test(text);

/** By its byte order mark; UTF-8 without one. */
export function guessCharset(bytes: Uint8Array): Charset {
  if (bytes.length >= 4 && bytes.length % 2 === 0) {
    if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
    if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  }
  return 'utf-8';
}
