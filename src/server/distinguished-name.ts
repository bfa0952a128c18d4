/**
 * Which texts name the subject of a certificate, and so may stand in an ACL as an `x509` id: those that
 * Java's X500Principal takes.
 *
 *   CN=ann,O="Foo, Bar"+OU=b; 1.2.840.113549.1.9.1=#1603614062
 *
 * In: a text that any client may have sent. Out: whether it is one. Each character is looked at once.
 */

// biome-ignore format: a table is read as one
const keywords = new Set([
  'CN', 'C', 'L', 'S', 'ST', 'O', 'OU', 'T', 'IP', 'STREET', 'DC', 'DNQUALIFIER', 'DNQ', 'SURNAME', 'GIVENNAME',
  'INITIALS', 'GENERATION', 'EMAILADDRESS', 'EMAIL', 'UID', 'SERIALNUMBER',
]);
/** Of the first two arcs that X.660 has. */
const objectId = /^(OID\.)?(0*[01]\.0*[0-3]?\d|0*2\.\d+)(\.\d+)*$/;
const hexDigit = /^[0-9a-fA-F]$/;

export function isDistinguishedName(text: string): boolean {
  if (text === '') return true;
  for (let at = 0; ; at += 1) {
    const equals = text.indexOf('=', at);
    if (equals === -1 || !isKeyword(text.slice(at, equals))) return false;
    at = valueEnd(text, pastBlanks(text, equals + 1));
    if (at === text.length) return true;
    if (at === -1 || !',;+'.includes(text[at]!)) return false;
  }
}

function isKeyword(text: string): boolean {
  const name = trimmed(text).toUpperCase();
  return keywords.has(name) || objectId.test(name);
}

/** As by Java's trim: everything up to the space goes, and no other blank does. */
function trimmed(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && text[from]! <= ' ') from += 1;
  while (from < to && text[to - 1]! <= ' ') to -= 1;
  return text.slice(from, to);
}

function pastBlanks(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\n') at += 1;
  return at;
}

/** Behind the value that begins at `at`, or -1 where there is none. */
function valueEnd(text: string, at: number): number {
  if (text[at] === '#') return encodedEnd(text, at + 1);
  const isQuoted = text[at] === '"';
  for (let end = isQuoted ? at + 1 : at; end < text.length; end += 1) {
    const char = text[end]!;
    if (char === '\\') {
      const length = escapeLength(text, end + 1);
      if (length === 0) return -1;
      end += length;
    } else if (isQuoted) {
      if (char === '"') return pastBlanks(text, end + 1);
    } else if (',;+'.includes(char)) {
      return end;
    } else if ('"<>'.includes(char)) {
      return -1;
    }
  }
  return isQuoted ? -1 : text.length;
}

/** Of what stands behind a backslash: a character that would mean something, or two digits for a byte. */
function escapeLength(text: string, at: number): number {
  if (' ,+"\\<>;#='.includes(text[at] ?? '?')) return 1;
  return hexDigit.test(text[at] ?? '') && hexDigit.test(text[at + 1] ?? '') ? 2 : 0;
}

/** A value as its bytes: one piece of DER, whole. */
function encodedEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && hexDigit.test(text[end]!)) end += 1;
  if ((end - start) % 2 !== 0) return -1;
  const [tag = 0x1f, first = 0x80, ...rest] = Buffer.from(
    text.slice(start, Math.min(end, start + 20)),
    'hex',
  );
  const isLong = first > 0x80;
  const width = isLong ? first & 0x7f : 0;
  const length = isLong ? rest.slice(0, width).reduce((sum, byte) => sum * 256 + byte, 0) : first;
  const isWhole = first !== 0x80 && 2 + width + length === (end - start) / 2;
  return (tag & 0x1f) !== 0x1f && isWhole ? end : -1;
}
