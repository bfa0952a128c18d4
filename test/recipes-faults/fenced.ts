/**
 * Locks and leadership over a fenced number: whoever holds it reads the number and writes one more, each
 * time with its token, and the number refuses whoever comes with a lower token than was ever seen.
 *
 * What must hold: no token is given twice, and no update is lost, however long a holder was stopped
 * between its read and its write. That two are inside at once, and that one of them is refused, is what
 * the token is for: it is counted, and while nothing is wrong it does not happen.
 */

import {
  Election,
  Lock,
  MultiLock,
  Partitioner,
  ReadWriteLock,
  ReentrantLock,
  SemaphoreMutex,
  StaticElection,
} from '../../src/recipes/index.ts';
import { type Asked, type Hand, Judge, type Situation, type Workload } from './workload.ts';

export class Fence extends Judge {
  readonly #tokens = new Set<bigint>();
  readonly #inside = new Map<bigint, 'read' | 'write'>();
  #highest = -1n;
  #highestWriter = -1n;
  #value = 0;

  override answer({ worker, what, args }: Asked): unknown {
    const [token, seen] = args as [bigint, number | undefined];
    const by = `${worker} with token ${token}`;
    if (what === 'leave') {
      this.#inside.delete(token);
      return null;
    }
    if (what === 'enter' || what === 'enterToRead') {
      if (this.#tokens.has(token)) this.broken.push(`${by}: the token was given before`);
      this.#tokens.add(token);
      const kind = what === 'enter' ? 'write' : 'read';
      const others = [...this.#inside.values()];
      if (others.some((other) => other === 'write' || kind === 'write')) this.count('overlaps');
      this.#inside.set(token, kind);
    }
    const isRead = what === 'enterToRead' || what === 'readAgain';
    if (token < (isRead ? this.#highestWriter : this.#highest)) {
      this.count('refused');
      return null;
    }
    if (token > this.#highest) this.#highest = token;
    if (!isRead && token > this.#highestWriter) this.#highestWriter = token;
    if (seen !== undefined && seen !== this.#value) {
      this.broken.push(`${by}: ${what} of ${seen}, and it is ${this.#value}: not alone inside`);
    }
    if (what === 'write') {
      this.#value += 1;
      this.count('written');
    }
    return this.#value;
  }
}

/** A lock that is a lease: never two of them at once, and none that nobody gives back. */
class LeasedFence extends Fence {
  readonly #leases: string;

  constructor(leases: string) {
    super();
    this.#leases = leases;
  }

  override async look({ witness }: Situation): Promise<void> {
    const taken = (await witness.exists(this.#leases))?.numChildren ?? 0;
    if (taken > 1) this.broken.push(`${taken} leases are taken of 1`);
  }

  override async end({ witness }: Situation): Promise<void> {
    const left = await witness.children(this.#leases);
    if (left.length > 0) this.broken.push(`leases that nobody gave back: ${left.join(', ')}`);
  }
}

/** Reads under the token, comes back after a look at the server, and writes. */
async function readAndWrite({ ask, client }: Hand, token: bigint): Promise<void> {
  try {
    const seen = await ask('enter', token);
    if (seen === null) return;
    await client.exists('/');
    await ask('write', token, seen);
  } finally {
    await ask('leave', token);
  }
}

const fenced = (
  begin: (hand: Hand) => (work: (token: bigint) => Promise<void>) => Promise<unknown>,
  judge = () => new Fence(),
): Workload => ({
  begin(hand) {
    const hold = begin(hand);
    return { round: async () => void (await hold((token) => readAndWrite(hand, token))) };
  },
  judge,
});

const shards = ['a', 'b', 'c', 'd', 'e', 'f'];

/** A fence for each shard. After the faults all are worked on. */
class Shards extends Judge {
  readonly #fences = new Map(shards.map((shard) => [shard, new Fence()]));
  #before: number[] | undefined;

  override answer({ worker, what, args: [shard, ...args] }: Asked): unknown {
    return this.#fences.get(shard)!.answer({ worker, what, args });
  }

  override get overlaps(): number {
    return [...this.#fences.values()].reduce((sum, { overlaps }) => sum + overlaps, 0);
  }

  override async isWell(): Promise<boolean> {
    const now = [...this.#fences.values()].map(({ counts }) => counts.written ?? 0);
    this.#before ??= now;
    return now.every((count, i) => count > this.#before![i]!);
  }

  override async end(_: Situation): Promise<void> {
    for (const [shard, fence] of this.#fences) {
      this.broken.push(...fence.broken.map((what) => `shard ${shard}: ${what}`));
      for (const [what, by] of Object.entries(fence.counts)) this.count(what, by);
    }
  }
}

export const fencedWorkloads: Readonly<Record<string, Workload>> = {
  lock: fenced(({ client, stopped: signal }) => {
    const lock = new Lock(client, '/lock');
    return (work) => lock.hold(({ fencingToken }) => work(fencingToken), { signal });
  }),

  reentrantLock: fenced(({ client, stopped: signal }) => {
    const lock = new ReentrantLock(client, '/reentrant');
    return async (work) => {
      const owner = {};
      await lock.hold(
        ({ fencingToken }) => lock.hold(() => work(fencingToken), { owner, signal }),
        { owner, signal },
      );
    };
  }),

  multiLock: fenced(({ client, stopped: signal }) => {
    const lock = new MultiLock(client, ['/multi/a', '/multi/b']);
    return (work) => lock.hold(({ fencingTokens: [token] }) => work(token!), { signal });
  }),

  semaphoreMutex: fenced(
    ({ client, stopped: signal }) => {
      const mutex = new SemaphoreMutex(client, '/semaphore-mutex');
      return (work) => mutex.hold(({ fencingToken }) => work(fencingToken), { signal });
    },
    () => new LeasedFence('/semaphore-mutex/leases'),
  ),

  election: fenced(({ client, name, stopped: signal }) => {
    const election = new Election(client, '/election', { id: name });
    return (work) => election.lead(({ epoch }) => work(epoch), { signal });
  }),

  staticElection: fenced(({ client, name, stopped: signal }) => {
    const election = new StaticElection(client, '/currentMaster', { id: name });
    return (work) => election.lead(({ epoch }) => work(epoch), { signal });
  }),

  readWriteLock: {
    begin(hand) {
      const { client, stopped: signal, ask } = hand;
      const lock = new ReadWriteLock(client, '/rw');
      let rounds = 0;
      const read = async (token: bigint) => {
        try {
          const seen = await ask('enterToRead', token);
          if (seen === null) return;
          await client.exists('/');
          await ask('readAgain', token, seen);
        } finally {
          await ask('leave', token);
        }
      };
      return {
        async round() {
          rounds += 1;
          if (rounds % 3 > 0)
            await lock.read.hold(({ fencingToken }) => read(fencingToken), { signal });
          else {
            const write = (token: bigint) => readAndWrite(hand, token);
            await lock.write.hold(({ fencingToken }) => write(fencingToken), { signal });
          }
        },
      };
    },
    judge: () => new Fence(),
  },

  partitioner: {
    begin({ client, name, ask, stopped }) {
      const options = { name, shards, settleMs: 20, settleMaxMs: 200 };
      const partitioner = new Partitioner(client, '/partitions', options);
      let worked = () => {};
      const working = partitioner.each(async ({ shard, token, signal }) => {
        let seen = await ask('enter', shard, token);
        while (seen !== null && !signal.aborted && !stopped.aborted) {
          await client.exists('/').catch(() => {});
          if (signal.aborted) break;
          seen = await ask('write', shard, token, seen);
          worked();
        }
        await ask('leave', shard, token);
      });
      return {
        round: () =>
          Promise.race([
            working.then(() => {
              if (!stopped.aborted) throw new Error('the partitioner has ended');
            }),
            new Promise<void>((resolve) => {
              worked = resolve;
              stopped.addEventListener('abort', () => resolve(), { once: true });
            }),
          ]),
        close: () => partitioner.close(),
      };
    },
    judge: () => new Shards(),
  },
};
