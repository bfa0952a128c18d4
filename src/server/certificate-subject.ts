/**
 * The subject of a certificate as Java prints it (X500Principal.getName, RFC 2253), since by this text ACLs
 * name who has it.
 *
 *   C=DE, O=Foo, CN=ann, emailAddress=a@b   1.2.840.113549.1.9.1=#1603614062,CN=ann,O=Foo,C=DE
 *
 * In: the bytes of a certificate that OpenSSL has read and believed (DER). Only the names of RFC 2253 are
 * written as names; anything else is its number and the bytes of its value, where OpenSSL has a name too.
 * What stands in a value and would be taken for the next entry is escaped, or CN="a,O=b" were CN=a of O=b.
 */

import { isUtf8 } from 'node:buffer';

interface Piece {
  readonly tag: number;
  /** With its head. */
  readonly bytes: Buffer;
  readonly content: Buffer;
}

const names = new Map([
  ['2.5.4.3', 'CN'],
  ['2.5.4.6', 'C'],
  ['2.5.4.7', 'L'],
  ['2.5.4.8', 'ST'],
  ['2.5.4.9', 'STREET'],
  ['2.5.4.10', 'O'],
  ['2.5.4.11', 'OU'],
  ['0.9.2342.19200300.100.1.1', 'UID'],
  ['0.9.2342.19200300.100.1.25', 'DC'],
]);

const tags = {
  utf8: 0x0c,
  printable: 0x13,
  t61: 0x14,
  ia5: 0x16,
  general: 0x1b,
  bmp: 0x1e,
} as const;
/** [0], which a certificate of version 1 has not. */
const versionTag = 0xa0;
/** Before the subject, behind the version: serial number, algorithm, issuer, validity. */
const piecesBefore = 4;

export function subjectOf(certificate: Buffer): string {
  const [whole] = piecesOf(certificate);
  const [signed] = piecesOf(whole!.content);
  const pieces = piecesOf(signed!.content);
  const first = pieces[0]!.tag === versionTag ? 1 : 0;
  return subjectName(pieces[first + piecesBefore]!.content);
}

/** Of the entries of a name, the first first. */
export function subjectName(entries: Buffer): string {
  return piecesOf(entries)
    .reverse()
    .map(({ content }) => piecesOf(content).map(attribute).join('+'))
    .join(',');
}

function attribute({ content }: Piece): string {
  const [type, value] = piecesOf(content);
  const number = numberOf(type!.content);
  const name = names.get(number);
  const text = name === undefined ? undefined : textOf(value!);
  if (text === undefined) return `${name ?? number}=#${value!.bytes.toString('hex')}`;
  const escaped = text
    .replace(/[,=+<>#;"\\]/g, '\\$&')
    .replaceAll('\0', '\\00')
    .replace(/^[ \r]+|(?<![ \r])[ \r]+$/g, (blanks) => blanks.replace(/./gs, '\\$&'));
  return `${name}=${escaped}`;
}

/** None where bytes are no text: two that are read alike must not pass for one another. */
function textOf({ tag, content }: Piece): string | undefined {
  switch (tag) {
    case tags.utf8:
      return isUtf8(content) ? content.toString('utf8') : undefined;
    case tags.bmp:
      return content.length % 2 === 0
        ? Buffer.from(content).swap16().toString('utf16le')
        : undefined;
    case tags.printable:
    case tags.t61:
    case tags.ia5:
    case tags.general:
      return content.toString('latin1');
    default:
      return undefined;
  }
}

/** `2.5.4.3` */
function numberOf(bytes: Buffer): string {
  const arcs: bigint[] = [];
  let arc = 0n;
  for (const byte of bytes) {
    arc = (arc << 7n) | BigInt(byte & 0x7f);
    if ((byte & 0x80) !== 0) continue;
    arcs.push(arc);
    arc = 0n;
  }
  const [both = 0n, ...rest] = arcs; // the first two are in one
  const top = both < 80n ? both / 40n : 2n;
  return [top, both - top * 40n, ...rest].join('.');
}

function piecesOf(bytes: Buffer): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < bytes.length; ) {
    let length = bytes[at + 1]!;
    let start = at + 2;
    if (length >= 0x80) {
      const width = length & 0x7f;
      length = bytes.readUIntBE(start, width);
      start += width;
    }
    const end = start + length;
    const content = bytes.subarray(start, end);
    pieces.push({ tag: bytes[at]!, bytes: bytes.subarray(at, end), content });
    at = end;
  }
  return pieces;
}
