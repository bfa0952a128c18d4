/** The names that a partitioner deals with: those of shards, as given, and of members, as written. */

import { ArgumentError } from '../client/index.ts';

/** A copy of the list, if each of it can be part of a node's name. */
export function checkShards(shards: unknown): readonly string[] {
  if (!Array.isArray(shards)) throw new ArgumentError('shards', 'a list of names is wanted');
  for (const [i, shard] of shards.entries()) {
    const isName = typeof shard === 'string' && shard !== '' && shard !== '.' && shard !== '..';
    if (!isName || !shard.isWellFormed()) {
      throw new ArgumentError(
        `shards[${i}]`,
        'text of at least one character, not . or .., is wanted',
      );
    }
  }
  if (new Set(shards).size !== shards.length) {
    throw new ArgumentError('shards', 'each name once is wanted');
  }
  return [...shards];
}

/** The name of an ownership node: a shard may be named with slashes, a node may not. */
export function ownerName(shard: string): string {
  return encodeURIComponent(shard);
}

export function formatMember(name: string): string {
  return JSON.stringify({ name });
}

/** What somebody else has put into our line stands for its name as it is. */
export function parseMember(data: Buffer | null): string {
  try {
    const { name } = JSON.parse(String(data)) as { name: unknown };
    if (typeof name === 'string') return name;
  } catch {
    // Not ours, and so not JSON.
  }
  return String(data);
}
