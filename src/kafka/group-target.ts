/**
 * What one member should have, out of what all should have. Pure.
 *
 * With `isShared` it is told how many of each topic its threads may have, not which.
 */

import { type AssignorInput, fairShares } from './assignors.ts';
import type { AssignorChoice } from './group-options.ts';
import type { Target } from './holdings.ts';
import { keyOf } from './partition.ts';

export interface MemberTarget {
  readonly target: Target;
  /** Threads of this member that get nothing. */
  readonly idle: readonly string[];
}

export function targetOf(
  input: AssignorInput,
  consumerId: string,
  { assignor, isShared }: AssignorChoice,
): MemberTarget {
  const threads = threadsOfMember(input, consumerId);
  return isShared ? sharesOf(input, threads) : wantedOf(input, threads, assignor);
}

function threadsOfMember(input: AssignorInput, consumerId: string): ReadonlySet<string> {
  const counts = [...(input.members.get(consumerId)?.values() ?? [])];
  const count = counts.reduce((most, one) => Math.max(most, one), 0);
  return new Set(Array.from({ length: count }, (_, i) => `${consumerId}-${i}`));
}

function wantedOf(
  input: AssignorInput,
  threads: ReadonlySet<string>,
  assignor: AssignorChoice['assignor'],
): MemberTarget {
  const assignment = assignor(input);
  const wanted = new Map<string, string>();
  for (const [topic, partitions] of assignment) {
    for (const [partition, thread] of partitions) {
      if (threads.has(thread)) wanted.set(keyOf({ topic, partition }), thread);
    }
  }
  const busy = new Set(wanted.values());
  const idle = [...threads].filter((thread) => !busy.has(thread));
  return { target: { wanted }, idle };
}

function sharesOf(input: AssignorInput, threads: ReadonlySet<string>): MemberTarget {
  const busy = new Set<string>();
  const shares = new Map(
    [...fairShares(input)].map(([topic, all]) => {
      const mine = new Map([...all].filter(([thread]) => threads.has(thread)));
      for (const [thread, share] of mine) if (share > 0) busy.add(thread);
      return [topic, { partitions: input.topics.get(topic)!, threads: mine }] as const;
    }),
  );
  return { target: { shares }, idle: [...threads].filter((thread) => !busy.has(thread)) };
}
