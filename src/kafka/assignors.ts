/**
 * Who reads what: partitions dealt out to the threads of a group's consumers.
 *
 * In: every member with its threads for each topic, and every topic's partitions in the order of its
 * generation (by number; in 0.7 by text). Out: for each topic, which thread has which partition. Pure,
 * and the same for whoever computes it from the same input: members need not talk to agree.
 *
 *   range        Kafka's own: each topic in runs, the first threads get one more
 *   roundrobin   all topics in one circle, in the order of a hash: "t-p" as from 1.0
 *   roundrobin-0.8  the same with "[t,p]", as up to 0.11, and only for equal subscriptions
 *   ceil         runs of ceil(partitions / threads), as the documents have it: later threads get less
 *   sticky       what is held stays, up to a fair share; only the rest is dealt out
 *
 * Threads are sorted as text, in UTF-16 order, so that "c-10" stands before "c-2", as in Java. Not
 * promised: that every thread gets something. `idleThreads` says which do not.
 */

import { ArgumentError } from '../client/index.ts';

export interface AssignorInput {
  /** By consumer id: how many threads it has for each topic. */
  readonly members: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** By topic: its partitions, sorted. */
  readonly topics: ReadonlyMap<string, readonly string[]>;
  /** Who has what now; `sticky` keeps of it what it may. */
  readonly held?: Assignment;
}

/** By topic and partition: the thread, as `consumerId-number`. */
export type Assignment = ReadonlyMap<string, ReadonlyMap<string, string>>;

export type Assignor = (input: AssignorInput) => Assignment;

export type AssignorName = 'range' | 'roundrobin' | 'roundrobin-0.8' | 'ceil' | 'sticky';

/** As text in UTF-16 units, which is how Java compares strings, and JavaScript too. */
export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The threads that read a topic, sorted. */
export function threadsOf(input: AssignorInput, topic: string): string[] {
  const threads: string[] = [];
  for (const [consumerId, topics] of input.members) {
    const count = topics.get(topic) ?? 0;
    for (let i = 0; i < count; i++) threads.push(`${consumerId}-${i}`);
  }
  return threads.sort(byText);
}

/** Topics in order, with their threads; those that nobody reads are left out. */
function* read(input: AssignorInput): Generator<[string, readonly string[], string[]]> {
  for (const topic of [...input.topics.keys()].sort(byText)) {
    const threads = threadsOf(input, topic);
    if (threads.length > 0) yield [topic, input.topics.get(topic)!, threads];
  }
}

export const range: Assignor = (input) => {
  const result = new Map<string, Map<string, string>>();
  for (const [topic, partitions, threads] of read(input)) {
    const each = Math.floor(partitions.length / threads.length);
    const extra = partitions.length % threads.length;
    const mine = new Map<string, string>();
    threads.forEach((thread, i) => {
      const start = each * i + Math.min(i, extra);
      const end = start + each + (i < extra ? 1 : 0);
      for (const partition of partitions.slice(start, end)) mine.set(partition, thread);
    });
    result.set(topic, mine);
  }
  return result;
};

export const ceil: Assignor = (input) => {
  const result = new Map<string, Map<string, string>>();
  for (const [topic, partitions, threads] of read(input)) {
    const each = Math.ceil(partitions.length / threads.length);
    const mine = new Map<string, string>();
    partitions.forEach((partition, i) => {
      mine.set(partition, threads[Math.floor(i / each)]!);
    });
    result.set(topic, mine);
  }
  return result;
};

/** `String.hashCode`: 31 times what was, plus the unit, in 32 bits. */
export function javaHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash;
}

const labels = {
  'roundrobin-0.8': (topic: string, partition: string) => `[${topic},${partition}]`,
  roundrobin: (topic: string, partition: string) => `${topic}-${partition}`,
} as const;

function circle(name: keyof typeof labels): Assignor {
  const label = labels[name];
  return (input) => {
    const result = new Map<string, Map<string, string>>();
    const readers = new Map<string, ReadonlySet<string>>();
    const partitions: { topic: string; partition: string; hash: number }[] = [];
    for (const [topic, names, threads] of read(input)) {
      readers.set(topic, new Set(threads));
      result.set(topic, new Map());
      for (const partition of names) {
        partitions.push({ topic, partition, hash: javaHash(label(topic, partition)) });
      }
    }
    if (name === 'roundrobin-0.8') refuseUnequal(readers);
    partitions.sort((a, b) => a.hash - b.hash);
    const threads = [...new Set([...readers.values()].flatMap((one) => [...one]))].sort(byText);
    let at = 0;
    for (const { topic, partition } of partitions) {
      const able = readers.get(topic)!;
      while (!able.has(threads[at % threads.length]!)) at += 1;
      result.get(topic)!.set(partition, threads[at % threads.length]!);
      at += 1;
    }
    return result;
  };
}

function refuseUnequal(readers: ReadonlyMap<string, ReadonlySet<string>>): void {
  const [first, ...others] = [...readers].map(([topic, threads]) => ({ topic, threads }));
  for (const other of others) {
    const { size } = first!.threads;
    if (other.threads.size === size && [...other.threads].every((one) => first!.threads.has(one))) {
      continue;
    }
    throw new ArgumentError(
      'assignor',
      `roundrobin-0.8 wants every topic read by the same threads, and ${first!.topic} and ${other.topic} are not; use roundrobin`,
    );
  }
}

export const roundrobin = circle('roundrobin');
export const roundrobin08 = circle('roundrobin-0.8');

/**
 * How many partitions of each topic a thread may have: as even as whole numbers go, over all topics.
 * Known from members and partitions alone, so that members who agree on nothing else agree on it.
 */
export function fairShares(input: AssignorInput): Map<string, Map<string, number>> {
  const shares = new Map<string, Map<string, number>>();
  const total = new Map<string, number>();
  for (const [topic, partitions, threads] of read(input)) {
    const each = Math.floor(partitions.length / threads.length);
    const extra = partitions.length % threads.length;
    // The remainder goes to whoever has least so far, so that remainders of many topics spread out.
    const order = [...threads].sort((a, b) => (total.get(a) ?? 0) - (total.get(b) ?? 0));
    const mine = new Map<string, number>();
    order.forEach((thread, i) => {
      const share = each + (i < extra ? 1 : 0);
      mine.set(thread, share);
      total.set(thread, (total.get(thread) ?? 0) + share);
    });
    shares.set(topic, mine);
  }
  return shares;
}

export const sticky: Assignor = (input) => {
  const result = new Map<string, Map<string, string>>();
  for (const [topic, shares] of fairShares(input)) {
    const partitions = input.topics.get(topic)!;
    const held = input.held?.get(topic);
    const mine = new Map<string, string>();
    const room = roomFor(shares, partitions, held);
    const homeless: string[] = [];
    for (const partition of partitions) {
      const thread = held?.get(partition);
      const left = thread === undefined ? 0 : (room.get(thread) ?? 0);
      if (thread === undefined || left === 0) {
        homeless.push(partition);
        continue;
      }
      room.set(thread, left - 1);
      mine.set(partition, thread);
    }
    const open = [...room].sort(([a], [b]) => byText(a, b)).filter(([, left]) => left > 0);
    for (const partition of homeless) {
      const last = open.at(-1)!;
      mine.set(partition, last[0]);
      last[1] -= 1;
      if (last[1] === 0) open.pop();
    }
    result.set(topic, mine);
  }
  return result;
};

/**
 * The shares, with the remainder given to those who hold that much already: a thread that has one
 * more than the even part keeps it, as long as there are as many who may.
 */
function roomFor(
  shares: ReadonlyMap<string, number>,
  partitions: readonly string[],
  held: ReadonlyMap<string, string> | undefined,
): Map<string, number> {
  if (held === undefined) return new Map(shares);
  const each = Math.floor(partitions.length / shares.size);
  const counts = new Map<string, number>();
  for (const partition of partitions) {
    const thread = held.get(partition);
    if (thread !== undefined) counts.set(thread, (counts.get(thread) ?? 0) + 1);
  }
  let extra = partitions.length % shares.size;
  const room = new Map([...shares.keys()].map((thread) => [thread, each]));
  const wish = (thread: string) => ((counts.get(thread) ?? 0) > each ? 1 : 0);
  const order = [...shares.keys()].sort(
    (a, b) => wish(b) - wish(a) || shares.get(b)! - shares.get(a)! || byText(a, b),
  );
  for (const thread of order) {
    if (extra === 0) break;
    room.set(thread, each + 1);
    extra -= 1;
  }
  return room;
}

export const assignors: Readonly<Record<AssignorName, Assignor>> = {
  range,
  roundrobin,
  'roundrobin-0.8': roundrobin08,
  ceil,
  sticky,
};

/** Threads of these members that have no partition at all. */
export function idleThreads(input: AssignorInput, assignment: Assignment): string[] {
  const busy = new Set<string>();
  for (const partitions of assignment.values()) {
    for (const thread of partitions.values()) busy.add(thread);
  }
  const all = new Set<string>();
  for (const topic of new Set([...input.members.values()].flatMap((one) => [...one.keys()]))) {
    for (const thread of threadsOf(input, topic)) all.add(thread);
  }
  return [...all].filter((thread) => !busy.has(thread)).sort(byText);
}
