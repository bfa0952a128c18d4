/**
 * How far a group's partitions reach, asked of brokers: a partition that cannot be asked for is unknown, by
 * itself, and takes none of the others with it.
 */

import { keyOf, type PartitionId, ReaderError } from '../kafka/index.ts';
import type { Ends } from './sources.ts';

export interface EndOf {
  readonly latest: bigint | null;
  /** Records between what was committed and the end; never less than 0, null where it is not known. */
  readonly lag: bigint | null;
  /** The next record that is there to read. */
  readonly next: bigint | null;
  /** What was committed is not there any more, or not yet. */
  readonly isOutOfRange: boolean;
}

export interface GroupEnds {
  of(id: PartitionId): EndOf;
  /** Why some of them are unknown, if they are. */
  readonly why: string | null;
}

const unknown: EndOf = { latest: null, lag: null, next: null, isOutOfRange: false };
const asksAtOnce = 64;

export async function endsOf(
  source: Ends | undefined,
  partitions: readonly (PartitionId & { readonly offset: bigint | null })[],
): Promise<GroupEnds> {
  const ends = new Map<string, EndOf>();
  let why: string | null = null;
  if (source !== undefined) {
    for (let at = 0; at < partitions.length; at += asksAtOnce) {
      const some = partitions.slice(at, at + asksAtOnce).map(async (one) => {
        try {
          ends.set(keyOf(one), await endOf(source, one));
        } catch (error) {
          if (!(error instanceof ReaderError)) throw error;
          why ??= error.message.replace(`${error.code}: `, '');
        }
      });
      await Promise.all(some);
    }
  }
  return { of: (id) => ends.get(keyOf(id)) ?? unknown, why };
}

async function endOf(
  source: Ends,
  { topic, partition, offset }: PartitionId & { readonly offset: bigint | null },
): Promise<EndOf> {
  const { earliest, latest } = await source.bounds({ topic, partition });
  if (offset === null) return { ...unknown, latest };
  const isOutOfRange = offset < earliest || offset > latest;
  const next = offset < earliest ? earliest : offset > latest ? latest : offset;
  return { latest, lag: latest - next, next, isOutOfRange };
}
