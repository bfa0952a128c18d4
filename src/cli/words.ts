/**
 * How things are written for people and for programs: paths, zxids, times, data, ACLs.
 *
 * Whatever is printed may come from strangers, so control, bidi and invisible characters come out
 * escaped, in text and in JSON alike.
 */

import { isUtf8 } from 'node:buffer';
import { type Acl, permsText } from '../protocol/index.ts';

/** Control, format (bidi, zero width), line and paragraph separators, halves of a pair. */
export const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const control = /\p{Cc}/u;
const shortEscapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** On one line, and harmless to a terminal. */
export function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replace(unprintable, (c) => shortEscapes[c] ?? unitsOf(c));
}

/** As `escaped`, but lines stay lines: for texts of our own that quote others. */
export function escapedLines(text: string): string {
  return text.replace(unprintable, (c) => (c === '\n' ? c : unitsOf(c)));
}

export function unitsOf(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** A zxid, a session, a digest. */
export function hex(value: bigint): string {
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}

/** `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const dateMaxMs = 8.64e15;

export function timeText(ms: number): string {
  return Math.abs(ms) <= dateMaxMs ? new Date(ms).toISOString() : `${ms} ms`;
}

/** `world:anyone:cdrwa`, as zkCli takes it. */
export function aclText(acl: readonly Acl[]): string {
  return acl.map(({ perms, id }) => escaped(`${id.scheme}:${id.id}:${permsText(perms)}`)).join(',');
}

/** What is shown of data unless all of it is asked for. */
export const shownBytes = 80;

/** Text where it is text, else hex; `-` for null and `""` for nothing. */
export function dataText(data: Buffer | null, bytesMax = shownBytes): string {
  if (data === null) return '-';
  if (data.length === 0) return '""';
  let end = Math.min(bytesMax, data.length);
  const rest = () => (end < data.length ? `… (${data.length} bytes)` : '');
  if (isUtf8(data)) {
    while (end < data.length && (data[end]! & 0xc0) === 0x80) end -= 1; // not within a character
    const text = data.toString('utf8', 0, end);
    if (!control.test(text.replace(/[\n\r\t]/g, ''))) return `${escaped(text)}${rest()}`;
  }
  return `0x${data.toString('hex', 0, end)}${rest()}`;
}

/** Data in JSON, always whole: as text if it is UTF-8, so that no byte changes on the way. */
export function dataJson(data: Buffer | null): { text: string } | { hex: string } | null {
  if (data === null) return null;
  return isUtf8(data) ? { text: data.toString('utf8') } : { hex: data.toString('hex') };
}

export function aclJson(acl: readonly Acl[]): object[] {
  return acl.map(({ perms, id: { scheme, id } }) => ({ scheme, id, perms: permsText(perms) }));
}

/** One line. Longs are written as hex; what a terminal could trip over is escaped, as JSON allows. */
export function jsonLine(value: object): string {
  const text = JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? hex(each) : each));
  return `${text.replace(unprintable, unitsOf)}\n`;
}
