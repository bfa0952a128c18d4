/**
 * Locks under faults, at random: links cut, replies lost, sessions expired, waits given up.
 *
 * What must hold, whatever happens: no token has two holders, a guarded read-modify-write is never lost,
 * no write is taken after one of a higher token, and when the faults stop the lock goes round again and
 * nothing is left behind. `DROVER_FAULTS` says how many faults (50), `DROVER_SEED` which.
 */

import { expect, onTestFailed, test } from 'vitest';
import { type Client, isZkError } from '../../src/client/index.ts';
import { type Grant, Lock, LockTimeoutError, NotHeldError } from '../../src/recipes/index.ts';
import { loseReply, opCodes, watchedPaths } from '../faults.ts';
import { seeded } from '../random.ts';
import { startZk } from '../zk.ts';

const faultsWanted = Number(process.env.DROVER_FAULTS ?? 50);
const seed = Number(process.env.DROVER_SEED ?? Date.now() % 2 ** 31);

class Record {
  readonly broken: string[] = [];
  /** Each value that was written for certain, and the token under which it was. */
  readonly written = new Map<number, bigint>();
  rounds = 0;
  unknown = 0;
  readonly #tokens = new Set<bigint>();

  granted(token: bigint): void {
    if (this.#tokens.has(token)) this.broken.push(`token ${token} was given twice`);
    this.#tokens.add(token);
  }

  counted(value: number, token: bigint): void {
    if (this.written.has(value)) this.broken.push(`the update to ${value} was lost`);
    this.written.set(value, token);
  }

  /** The tokens in the order in which the server took the writes. */
  get tokens(): bigint[] {
    return [...this.written].sort(([a], [b]) => a - b).map(([, token]) => token);
  }
}

/** One round under the lock: read, add one, write it under guard. */
async function work(client: Client, lock: Grant, record: Record): Promise<void> {
  const value = Number((await client.get('/counter')).data) + 1;
  try {
    await lock.guard([{ op: 'set', path: '/counter', data: String(value) }]);
    record.counted(value, lock.fencingToken);
  } catch (error) {
    if (isZkError(error) && error.outcomeUnknown) record.unknown += 1;
    throw error;
  }
}

test(
  `${faultsWanted} faults: no token twice, no lost update, no stale write, and all is well afterwards`,
  async () => {
    onTestFailed(() => console.error(`DROVER_SEED=${seed} DROVER_FAULTS=${faultsWanted}`));
    await using zk = await startZk();
    const random = seeded(seed);
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
    const witness = await zk.witness();
    await witness.create('/counter', '0');
    const workers = await Promise.all(Array.from({ length: 4 }, () => zk.connect({ renew: true })));
    const record = new Record();
    let isOver = false;

    const life = async (client: Client) => {
      while (!isOver) {
        // Some give up soon, and some of those before they have asked.
        const wait = random() < 0.3 ? { timeoutMs: Math.floor(random() * 20) } : {};
        try {
          const lock = await new Lock(client, '/locks/x').acquire(wait);
          try {
            record.granted(lock.fencingToken);
            await work(client, lock, record);
          } finally {
            await lock.release();
          }
          record.rounds += 1;
        } catch (error) {
          const isExpected = error instanceof NotHeldError || error instanceof LockTimeoutError;
          if (!isExpected && !isZkError(error)) throw error;
        }
      }
    };
    const lives = Promise.all(workers.map(life));

    const progress = async (rounds: number) => {
      const wanted = record.rounds + rounds;
      await expect
        .poll(() => record.rounds, { timeout: 30_000, interval: 5 })
        .toBeGreaterThan(wanted);
    };
    for (let fault = 0; fault < faultsWanted; fault++) {
      const kind = pick([
        'cut',
        'reset',
        'expire',
        'create',
        'delete',
        'children',
        'multi',
      ] as const);
      if (kind === 'cut' || kind === 'reset') zk.link.cut({ reset: kind === 'reset' });
      else if (kind !== 'expire') loseReply(zk, opCodes[kind]);
      else {
        const victim = pick(workers);
        if (victim.identity) await zk.expire(victim);
      }
      await progress(Math.floor(random() * 4));
    }
    zk.link.onFrame = undefined;
    await progress(20);
    isOver = true;
    await lives;

    expect(record.broken).toEqual([]);
    expect(record.tokens).toEqual([...record.tokens].sort((a, b) => (a < b ? -1 : 1)));
    const counter = Number((await witness.get('/counter')).data);
    expect(counter).toBeGreaterThanOrEqual(record.written.size);
    expect(counter).toBeLessThanOrEqual(record.written.size + record.unknown);
    await expect.poll(() => witness.children('/locks/x')).toEqual([]);
    await expect.poll(() => watchedPaths(zk)).toEqual([]);
    expect(workers.map(({ load }) => load.watches)).toEqual([0, 0, 0, 0]);
  },
  30_000 + faultsWanted * 1_000,
);
