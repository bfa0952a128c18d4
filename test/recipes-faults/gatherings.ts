/**
 * Barriers, gatherings and leases: nobody goes in before enough have come, nobody is in two groups, and
 * there are never more leases than there are.
 */

import { DoubleBarrier, GatheringQueue, Semaphore } from '../../src/recipes/index.ts';
import { type Asked, Judge, type Situation, type Workload } from './workload.ts';

const size = 3;
const patienceMs = 5_000;
const limit = 2;

/** Rounds go on once every worker is done with one, whatever became of it. */
class Rounds extends Judge {
  #round = 0;
  #done = new Set<string>();
  readonly #came = new Map<number, Set<string>>();
  #waiting: (() => void)[] = [];

  override async answer({ worker, what, args: [round] }: Asked): Promise<unknown> {
    if (what === 'round') return this.#round;
    if (what === 'entering') {
      this.#came.set(round, (this.#came.get(round) ?? new Set()).add(worker));
      return;
    }
    if (what === 'entered') {
      const { size: came } = this.#came.get(round)!;
      if (came < size) this.broken.push(`${worker} is in round ${round} when ${came} have come`);
      this.count('entered');
      return;
    }
    this.#done.add(worker);
    if (this.#done.size === size) {
      this.#round += 1;
      this.#done = new Set();
      for (const resolve of this.#waiting.splice(0)) resolve();
    } else {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

/** Each member, and the group that it found itself in. */
class Groups extends Judge {
  readonly #groupOf = new Map<string, string>();

  override hear({ worker, args: [name, members] }: Asked): void {
    const group = (members as string[]).join(' ');
    if (members.length !== size) this.broken.push(`${worker} is in a group of ${members.length}`);
    if (!members.includes(name)) this.broken.push(`${worker} is in a group without it`);
    for (const member of members as string[]) {
      const before = this.#groupOf.get(member) ?? group;
      if (before !== group) this.broken.push(`${member} is in two groups: ${before}; ${group}`);
      this.#groupOf.set(member, group);
    }
    this.count('gathered');
  }
}

class Leases extends Judge {
  override async look({ witness }: Situation): Promise<void> {
    const taken = (await witness.exists('/semaphore/leases'))?.numChildren ?? 0;
    this.count('looks');
    if (taken > limit) this.broken.push(`${taken} leases are taken of ${limit}`);
  }

  /** How many leases there were when one who has one looked. */
  override hear({ worker, args: [taken] }: Asked): void {
    this.count('leases');
    if (taken > limit) this.broken.push(`${worker} sees ${taken} leases taken of ${limit}`);
  }

  override async end({ witness }: Situation): Promise<void> {
    const left = await witness.children('/semaphore/leases');
    if (left.length > 0) this.broken.push(`leases that nobody gave back: ${left.join(', ')}`);
  }
}

export const gatheringWorkloads: Readonly<Record<string, Workload>> = {
  doubleBarrier: {
    begin({ client, name, ask, stopped: signal }) {
      return {
        async round() {
          const round = await ask('round');
          try {
            const path = `/double-barrier/${round}`;
            const barrier = new DoubleBarrier(client, path, size, { name });
            await ask('entering', round);
            await barrier.enter({ timeoutMs: patienceMs, signal });
            await ask('entered', round);
            await barrier.leave({ timeoutMs: patienceMs, signal });
          } finally {
            const isOver = new Promise<void>((resolve) => {
              if (signal.aborted) resolve();
              else signal.addEventListener('abort', () => resolve(), { once: true });
            });
            await Promise.race([ask('done', round), isOver]);
          }
        },
      };
    },
    judge: () => new Rounds(),
  },

  gatheringQueue: {
    begin({ client, tell, stopped: signal }) {
      const queue = new GatheringQueue(client, '/gathering', { size });
      return {
        async round() {
          const member = await queue.join({ timeoutMs: patienceMs, signal });
          try {
            const { position, members } = await member.turn({ timeoutMs: patienceMs, signal });
            tell('gathered', members[position], [...members]);
          } finally {
            await member.leave();
          }
        },
      };
    },
    judge: () => new Groups(),
  },

  semaphore: {
    begin({ client, tell, stopped: signal }) {
      const semaphore = new Semaphore(client, '/semaphore', { limit });
      return {
        async round() {
          const look = async () => (await client.exists('/semaphore/leases'))?.numChildren ?? 0;
          tell('seen', await semaphore.hold(look, { signal }));
        },
      };
    },
    judge: () => new Leases(),
  },
};
