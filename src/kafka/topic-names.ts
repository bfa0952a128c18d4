/**
 * Names and ids of topics: Kafka's rules, and nothing that touches ZooKeeper.
 */

import { randomBytes } from 'node:crypto';

const nameLengthMax = 249;

/** Why a name is not legal, or null when it is. */
export function topicNameFault(name: string): string | null {
  if (typeof name !== 'string' || name === '') return 'a topic needs a name';
  if (name === '.' || name === '..') return `"${name}" is no name`;
  if (name.length > nameLengthMax) return `a name has at most ${nameLengthMax} characters`;
  if (!/^[a-zA-Z0-9._-]+$/.test(name)) return 'a name has letters, digits, dots, _ and - alone';
  return null;
}

/** Metrics write both `.` and `_` as `_`: two such names would be one there. */
export function collides(name: string, other: string): boolean {
  return name !== other && name.replaceAll('.', '_') === other.replaceAll('.', '_');
}

/** 22 characters of base64url, as Kafka's Uuid prints; never one that starts with `-`. */
export function newTopicId(): string {
  for (;;) {
    const bytes = randomBytes(16);
    bytes[6] = (bytes[6]! & 0x0f) | 0x40;
    bytes[8] = (bytes[8]! & 0x3f) | 0x80;
    const id = bytes.toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}
