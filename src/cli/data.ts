/** Data and Stats of nodes, as zkCli prints them, as a person may want them, and as bytes. */

import { isUtf8 } from 'node:buffer';
import type { StatView } from '../client/index.ts';
import { type Output, unitsOf, unprintable } from './output.ts';

/** The names and order of zkCli's StatPrinter. */
export function statLines(stat: StatView): string[] {
  return [
    `cZxid = ${zxid(stat.czxid)}`,
    `ctime = ${javaDate(Number(stat.ctime))}`,
    `mZxid = ${zxid(stat.mzxid)}`,
    `mtime = ${javaDate(Number(stat.mtime))}`,
    `pZxid = ${zxid(stat.pzxid)}`,
    `cversion = ${stat.cversion}`,
    `dataVersion = ${stat.version}`,
    `aclVersion = ${stat.aversion}`,
    `ephemeralOwner = ${zxid(stat.ephemeralOwner)}`,
    `dataLength = ${stat.dataLength}`,
    `numChildren = ${stat.numChildren}`,
  ];
}

export function printStat(output: Output, stat: StatView): void {
  for (const line of statLines(stat)) output.line(line);
}

export function statJson(stat: StatView): object {
  return {
    czxid: stat.czxid,
    mzxid: stat.mzxid,
    pzxid: stat.pzxid,
    ctime: isoTime(stat.ctime),
    mtime: isoTime(stat.mtime),
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ephemeralOwner: stat.ephemeralOwner,
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
  };
}

function zxid(value: bigint): string {
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}

const dateMaxMs = 8.64e15;

function isoTime(ms: bigint): string {
  const value = Number(ms);
  return Math.abs(value) <= dateMaxMs ? new Date(value).toISOString() : `${ms} ms`;
}

const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/** `Thu Jan 01 00:00:00 UTC 1970`, as java.util.Date says it, in the zone of this machine. */
export function javaDate(ms: number): string {
  if (Math.abs(ms) > dateMaxMs) return `${ms} ms`;
  const date = new Date(ms);
  const two = (value: number) => String(value).padStart(2, '0');
  const zone = new Intl.DateTimeFormat('en-US', { timeZoneName: 'short' })
    .formatToParts(date)
    .find(({ type }) => type === 'timeZoneName')!.value;
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
  return `${days[date.getDay()]} ${months[date.getMonth()]} ${two(date.getDate())} ${time} ${zone} ${date.getFullYear()}`;
}

/**
 * Bytes for a terminal: text with its lines, all else escaped; hex where it is no text. A file or a pipe
 * gets the bytes themselves instead.
 */
export function terminalText(data: Buffer): string {
  if (!isUtf8(data)) return hexDump(data);
  return data
    .toString('utf8')
    .replace(unprintable, (c) => (c === '\n' || c === '\t' ? c : unitsOf(c)));
}

/** Sixteen bytes a line, as hex and as ASCII, in the frame that zkCli's `get -x` draws. */
export function hexDump(data: Buffer): string {
  if (data.length === 0) return '';
  const rule = `+--------+-------------------------------------------------+----------------+`;
  const lines = [
    '         +-------------------------------------------------+',
    '         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |',
    rule,
  ];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.subarray(at, at + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = row.map((byte) => (byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : '.'));
    lines.push(
      `|${at.toString(16).padStart(8, '0')}| ${hex.padEnd(47)} |${text.join('').padEnd(16)}|`,
    );
  }
  return [...lines, rule].join('\n');
}
