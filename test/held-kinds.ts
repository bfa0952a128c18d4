/**
 * Every kind of thing that a session can hold, taken by a client of its own, with the signal that stands for
 * it. Stories about stopped processes run it in a child process: `test/held-process.ts`.
 */

import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { align, type Period } from '../src/align/index.ts';
import type { Client } from '../src/client/index.ts';
import {
  Consumer,
  type ConsumerBatch,
  type ConsumerOptions,
  createTopic,
  fixedTopics,
  type LeaderRole,
  NdjsonSource,
  type OwnedPartition,
  startBroker,
} from '../src/kafka/index.ts';
import {
  Election,
  GatheringQueue,
  Lock,
  MultiLock,
  Partitioner,
  Queue,
  ReadWriteLock,
  ReentrantLock,
  Semaphore,
  StaticElection,
} from '../src/recipes/index.ts';
import { deferred } from '../src/support/index.ts';

export interface Held {
  readonly signal: AbortSignal;
  /** What else says that it is held: properties, and calls that throw when it is not. */
  readonly says?: readonly (() => unknown)[];
}

export type Take = (client: Client) => Promise<Held>;

/** Whether it says that it is held: neither false nor thrown. */
export function saysHeld(ask: () => unknown): boolean {
  try {
    return ask() !== false;
  } catch {
    return false;
  }
}

/** Records of topic t, partition 0, one a minute. Each has as many as a batch may hold. */
async function records(): Promise<NdjsonSource> {
  const directory = await mkdtemp(join(tmpdir(), 'drover-held-'));
  const lines = Array.from(
    { length: 100 },
    (_, i) => `{"timestamp":${1_700_000_040_000 + i * 60_000},"value":"${i}"}\n`,
  );
  await writeFile(join(directory, 't-0.ndjson'), lines.join(''));
  return new NdjsonSource({ directory, pollMs: 10, batchRecordsMax: 10 });
}

async function firstBatch(
  client: Client,
  options: Partial<ConsumerOptions>,
): Promise<ConsumerBatch> {
  const consumer = new Consumer(client, {
    group: 'g',
    subscribe: { topics: ['t'] },
    topics: fixedTopics({ t: 1 }),
    source: await records(),
    debounceMs: 10,
    ...options,
  });
  const { value } = await consumer[Symbol.asyncIterator]().next();
  return value!;
}

function batchHeld(batch: ConsumerBatch): Held {
  const [first] = batch;
  return { signal: batch.signal, says: [() => [...batch].includes(first!)] };
}

/** A batch whose groups do not end by themselves, and the first period that is over. */
function aligned(client: Client, group: string) {
  const period = deferred<Period>();
  const run = records().then((source) =>
    align(client, {
      group,
      topics: { t: 1 },
      source,
      mode: { period: '1m' },
      debounceMs: 10,
      onPeriod: async (one) => {
        period.resolve(one);
        await new Promise((resolve) =>
          one.signal.addEventListener('abort', resolve, { once: true }),
        );
      },
    }),
  );
  return { run, period: period.promise };
}

export const kinds: Readonly<Record<string, Take>> = {
  session: async (client) => ({
    signal: client.sessionSignal,
    says: [() => client.state.name === 'connected', () => client.sessionId !== undefined],
  }),
  lock: async (client) => {
    const grant = await new Lock(client, '/lock').acquire();
    return { signal: grant.signal, says: [() => grant.isHeld, () => grant.check()] };
  },
  'read side of a lock': async (client) => {
    const grant = await new ReadWriteLock(client, '/read-write').read.acquire();
    return { signal: grant.signal, says: [() => grant.isHeld, () => grant.check()] };
  },
  're-entrant lock': async (client) => {
    const grant = await new ReentrantLock(client, '/re-entrant').acquire({ owner: {} });
    return { signal: grant.signal, says: [() => grant.isHeld, () => grant.check()] };
  },
  'several locks': async (client) => {
    const grants = await new MultiLock(client, ['/several/a', '/several/b']).acquire();
    return { signal: grants.signal, says: [() => grants.isHeld, () => grants.check()] };
  },
  'semaphore lease': async (client) => {
    const lease = await new Semaphore(client, '/semaphore', { limit: 2 }).acquire();
    return { signal: lease.signal, says: [() => lease.isHeld, () => lease.check()] };
  },
  term: async (client) => {
    const { value: term } = await new Election(client, '/election').terms().next();
    return { signal: term!.signal, says: [() => term!.isLeading] };
  },
  'term of a static election': async (client) => {
    const { value: term } = await new StaticElection(client, '/static').terms().next();
    return { signal: term!.signal, says: [() => term!.isLeading] };
  },
  shard: async (client) => {
    const partitioner = new Partitioner(client, '/shards', { shards: ['s'] });
    const loop = partitioner[Symbol.asyncIterator]();
    for (;;) {
      // Not by `for await`, which lets go of the shard when it is left.
      const { value } = await loop.next();
      const [holding] = value!.gained;
      if (holding === undefined) continue;
      const { signal } = holding;
      return { signal, says: [() => holding.isOwned, () => !holding.isLeaving] };
    }
  },
  'queue item': async (client) => {
    const queue = new Queue(client, '/queue');
    await queue.put('x');
    const item = await queue.take();
    return { signal: item.signal, says: [() => item.isHeld] };
  },
  'place in a gathering': async (client) => ({
    signal: (await new GatheringQueue(client, '/gathering', { size: 2 }).join()).signal,
  }),
  'batch of a group': async (client) => batchHeld(await firstBatch(client, { group: 'classic' })),
  'batch of a planned group': async (client) =>
    batchHeld(await firstBatch(client, { group: 'planned', mode: 'planned' })),
  'leaving signal of a batch': async (client) => ({
    signal: (await firstBatch(client, { group: 'leaving' })).leaving,
  }),
  partition: async (client) => {
    const consumer = new Consumer(client, {
      group: 'owned',
      subscribe: { topics: ['t'] },
      topics: fixedTopics({ t: 1 }),
      source: await records(),
      debounceMs: 10,
    });
    const owned = await new Promise<OwnedPartition>((resolve) => {
      consumer.once('assigned', resolve);
    });
    return { signal: owned.signal, says: [() => owned.state === 'held'] };
  },
  'aligned batch': async (client) => {
    const run = await aligned(client, 'aligned').run;
    const { value: batch } = await run[Symbol.asyncIterator]().next();
    const [first] = batch!;
    return { signal: batch!.signal, says: [() => [...batch!].includes(first!)] };
  },
  'period of an aligned group': async (client) => {
    const { run, period } = aligned(client, 'periods');
    const reading = (async () => {
      for await (const batch of await run) await batch.done();
    })();
    reading.catch(() => {}); // it ends with the client
    return { signal: (await period).signal };
  },
  'broker role': async (client) => {
    const role = deferred<LeaderRole>();
    await startBroker(client, {
      id: 1,
      endpoints: ['PLAINTEXT://broker1:9092'],
      service: {
        becomeLeader: (one) => role.resolve(one),
        becomeFollower: () => {},
        stopReplica: () => {},
      },
    });
    await createTopic(client, 'roles', { assignment: [[1]] });
    return { signal: (await role.promise).signal };
  },
};
