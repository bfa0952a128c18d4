/**
 * Reads the bytes of a znode: which of text, JSON, hex, base64 and gzip suits them, and how each looks.
 *
 * In: bytes. Out: text, to be shown as a text node and never as markup. Every view is bounded
 * (`shownMax`), since a znode may hold a megabyte, and so is what gzip unfolds to.
 */
import { type Charset, decodeText, guessCharset } from './charset.ts';
import { visible } from './format.ts';

export const views = ['text', 'json', 'hex', 'base64', 'gzip'] as const;
export type View = (typeof views)[number];

const shownMax = 256 * 1024;
const hexBytesMax = 16 * 1024;
const unfoldedBytesMax = 4 * 1024 * 1024;

export interface Shown {
  readonly text: string;
  /** What was left out or went wrong, as a sentence. */
  readonly note: string | null;
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(binary);
}

export function asText(bytes: Uint8Array): string | null {
  return decodeText(bytes, 'utf-8');
}

const isGzip = (bytes: Uint8Array) => bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 8;

/** The view that fits: gzip by its mark, JSON if it is an object or a list, text if it is readable. */
export function guess(bytes: Uint8Array): View {
  if (isGzip(bytes)) return 'gzip';
  const text = decodeText(bytes, guessCharset(bytes));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what tells text from binary
  if (text === null || /[\u0000-\u0008\u000e-\u001a]/.test(text.slice(0, 4096))) return 'hex';
  if (/^\s*[[{]/.test(text)) {
    try {
      JSON.parse(text);
      return 'json';
    } catch {
      return 'text'; // Looks like JSON and is none: shown as it stands.
    }
  }
  return 'text';
}

/** Views that make sense for these bytes, the best first. */
export async function show(
  bytes: Uint8Array<ArrayBuffer>,
  view: View,
  charset: Charset = guessCharset(bytes),
): Promise<Shown> {
  switch (view) {
    case 'text':
      return text(bytes, charset);
    case 'json':
      return json(bytes, charset);
    case 'hex':
      return { text: hex(bytes), note: cut(bytes.length, hexBytesMax) };
    case 'base64':
      return bounded(toBase64(bytes).replace(/(.{100})/g, '$1\n'));
    case 'gzip':
      return gzip(bytes);
  }
}

function text(bytes: Uint8Array, charset: Charset): Shown {
  const exact = decodeText(bytes, charset);
  const inexact = () =>
    new TextDecoder(charset === 'latin-1' ? 'utf-8' : charset, { ignoreBOM: true }).decode(bytes);
  const shown = bounded(lines(exact ?? inexact()));
  return exact === null
    ? { ...shown, note: `Not ${charset.toUpperCase()}: marks stand for what is not text.` }
    : shown;
}

const lines = (value: string) => value.split(/\r?\n/).map(keepTabs).join('\n');
const keepTabs = (line: string) => line.split('\t').map(visible).join('\t');

function json(bytes: Uint8Array, charset: Charset): Shown {
  // A byte order mark is none of JSON's.
  const source = decodeText(bytes, charset)?.replace(/^\ufeff/, '') ?? null;
  if (source === null) {
    return { text: '', note: `Not ${charset.toUpperCase()}, so not JSON.` };
  }
  try {
    // Numbers beyond 2^53 would change under JSON.parse: then the text stands as it is.
    const value: unknown = JSON.parse(source);
    const pretty = JSON.stringify(value, null, 2);
    const isExact = !/\d{16,}/.test(source);
    return isExact
      ? bounded(lines(pretty))
      : { ...bounded(lines(source)), note: 'Holds long numbers: shown as written, not laid out.' };
  } catch (error) {
    return { ...text(bytes, charset), note: `Not JSON: ${visible((error as Error).message)}` };
  }
}

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Shown> {
  if (!isGzip(bytes)) return { text: '', note: 'Not gzip: the first bytes are not 1f 8b 08.' };
  try {
    const unfolded = await unfold(bytes);
    const inner = guess(unfolded);
    const shown = await show(unfolded, inner === 'gzip' ? 'hex' : inner);
    return { ...shown, note: shown.note ?? `Unfolded to ${unfolded.length} bytes of ${inner}.` };
  } catch (error) {
    return {
      text: hex(bytes),
      note: `The gzip can't be unfolded: ${visible((error as Error).message)}`,
    };
  }
}

async function unfold(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([bytes])
    .stream()
    .pipeThrough(new DecompressionStream('gzip'))
    .getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    parts.push(value);
    if (size > unfoldedBytesMax) {
      await reader.cancel();
      break;
    }
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function hex(bytes: Uint8Array): string {
  const rows: string[] = [];
  const end = Math.min(bytes.length, hexBytesMax);
  for (let at = 0; at < end; at += 16) {
    const row = bytes.subarray(at, Math.min(at + 16, end));
    const digits = Array.from(row, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const ascii = Array.from(row, (byte) =>
      byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.',
    );
    rows.push(`${at.toString(16).padStart(6, '0')}  ${digits.padEnd(47)}  ${ascii.join('')}`);
  }
  return rows.join('\n');
}

function bounded(value: string): Shown {
  return { text: value.slice(0, shownMax), note: cut(value.length, shownMax) };
}

function cut(size: number, max: number): string | null {
  return size > max
    ? `Only the first ${max / 1024} K of ${Math.ceil(size / 1024)} K are shown.`
    : null;
}
