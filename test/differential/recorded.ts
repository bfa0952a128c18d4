/**
 * Scripts with what Apache's server answered, kept in files, so that ours can be held against it where
 * there is no Java. One file is one server's life: its scripts are played in their order on a fresh one.
 *
 *   recorded/<profile>.scenes.ndjson.gz   written by hand: cases.ts and edges.ts
 *   recorded/<profile>.random.ndjson.gz   by seed: generate.ts
 *
 * Each line is one script with its answers. The script is stored and not only its seed, so that a change of
 * the generator leaves the files valid.
 */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Line } from './normalise.ts';
import type { ProfileName } from './profiles.ts';
import type { Script } from './script.ts';

export interface Recorded {
  readonly name: string;
  readonly script: Script;
  /** What Apache said, by link. */
  readonly apache: readonly (readonly Line[])[];
}

const folder = join(import.meta.dirname, 'recorded');

export interface RecordedFile {
  readonly file: string;
  readonly profile: ProfileName;
}

export const fileOf = (profile: ProfileName, isRandom: boolean): string =>
  `${profile}.${isRandom ? 'random' : 'scenes'}.ndjson.gz`;

export function recordedFiles(): RecordedFile[] {
  return readdirSync(folder)
    .sort()
    .map((file) => ({ file, profile: file.split('.', 1)[0] as ProfileName }));
}

export function readRecorded(file: string): Recorded[] {
  const text = gunzipSync(readFileSync(join(folder, file))).toString('utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { name, script, apache } = JSON.parse(line, revive);
      return { name, script, apache: apache.map((link: [number, string][]) => link.map(toLine)) };
    });
}

export function writeRecorded(file: string, recorded: readonly Recorded[]): void {
  const lines = recorded.map(({ name, script, apache }) => {
    const links = apache.map((link) => link.map(({ command, text }) => [command, text]));
    return `${JSON.stringify({ name, script: marked(script), apache: links })}\n`;
  });
  writeFileSync(join(folder, file), gzipSync(lines.join(''), { level: 9 }));
}

const toLine = ([command, text]: [number, string]): Line => ({ command, text });

/** What JSON has no word for, as an object with one key. */
function marked(value: unknown): unknown {
  if (typeof value === 'bigint') return { $bigint: String(value) };
  if (Buffer.isBuffer(value)) return { $hex: value.toString('hex') };
  if (Array.isArray(value)) return value.map(marked);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, marked(field)]));
}

function revive(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if ('$bigint' in value) return BigInt(value.$bigint as string);
  if ('$hex' in value) return Buffer.from(value.$hex as string, 'hex');
  return value;
}
