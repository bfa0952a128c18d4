import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import type { Holding } from '../../src/recipes/holding.ts';
import { Partitioner, type PartitionerOptions } from '../../src/recipes/partitioner.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { opCodes } from '../faults.ts';
import { ephemeralsOf, reached, startZk } from '../zk.ts';

const long = { timeout: 15_000, interval: 20 };
const shards = ['s0', 's1', 's2', 's3', 's4', 's5'];
const quick = { settleMs: 20, settleMaxMs: 200 };

interface Worker {
  readonly name: string;
  readonly partitioner: Partitioner;
  /** What it works on now. */
  readonly working: Map<string, Holding>;
  /** Every start and end, in its order, shared by all. */
  readonly log: string[];
  readonly run: Promise<void>;
}

/** Works on whatever it is given until told to stop. */
function work(
  client: Client,
  name: string,
  log: string[] = [],
  options: Partial<PartitionerOptions> = {},
): Worker {
  const partitioner = new Partitioner(client, '/p', { name, shards, ...quick, ...options });
  const working = new Map<string, Holding>();
  const run = partitioner.each(async (holding) => {
    working.set(holding.shard, holding);
    log.push(`${name} + ${holding.shard}`);
    await new Promise<void>((resolve) => {
      if (holding.signal.aborted) resolve();
      holding.signal.addEventListener('abort', () => resolve());
    });
    working.delete(holding.shard);
    log.push(`${name} - ${holding.shard}`);
  });
  run.catch(() => {}); // whoever waits for it hears of it
  return { name, partitioner, working, log, run };
}

async function settled(workers: readonly Worker[], count = shards.length): Promise<void> {
  await vi.waitFor(() => {
    const all = workers.flatMap(({ working }) => [...working.keys()]);
    expect(all.sort()).toEqual(shards.slice(0, count));
    const sizes = workers.map(({ working }) => working.size);
    expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
  }, long);
}

/** No shard is begun before the one who had it has ended. */
function checkLog(log: readonly string[]): void {
  const owner = new Map<string, string>();
  for (const line of log) {
    const [name, sign, shard] = line.split(' ') as [string, string, string];
    if (sign === '+') {
      expect(owner.get(shard), line).toBeUndefined();
      owner.set(shard, name);
    } else owner.delete(shard);
  }
}

test('members share the shards; one that joins takes its share, and only that moves', async () => {
  await using zk = await startZk();
  const clients = [await zk.connect(), await zk.connect(), await zk.connect()];
  const log: string[] = [];
  const a = work(clients[0]!, 'a', log);
  await settled([a]);
  const b = work(clients[1]!, 'b', log);
  await settled([a, b]);
  const before = { a: [...a.working.keys()], b: [...b.working.keys()] };
  const moves = log.length;

  const c = work(clients[2]!, 'c', log);
  await settled([a, b, c]);

  expect(before.a).toEqual(expect.arrayContaining([...a.working.keys()]));
  expect(before.b).toEqual(expect.arrayContaining([...b.working.keys()]));
  expect(log.length - moves).toBe(4); // two given away, two taken
  checkLog(log);
  await c.partitioner.close();
  await settled([a, b]);
  await Promise.all([a, b].map(({ partitioner }) => partitioner.close()));
  await Promise.all([a, b, c].map(({ run }) => run));
  checkLog(log);
  for (const client of clients) {
    expect({ watches: client.load.watches, nodes: await ephemeralsOf(client) }).toEqual({
      ...{ watches: 0, nodes: [] },
    });
  }
});

test('a shard is not begun by the next before the one who has it lets go', async () => {
  await using zk = await startZk();
  const [one, two] = [await zk.connect(), await zk.connect()];
  const slow = new Partitioner(one, '/p', { name: 'slow', shards, ...quick });
  const leaving: Holding[] = [];
  const run = (async () => {
    for await (const assignment of slow) leaving.push(...assignment.leaving);
  })();
  await vi.waitFor(() => expect(slow.held).toHaveLength(6), long);

  const other = work(two, 'other');
  await vi.waitFor(() => expect(leaving).toHaveLength(3), long);

  expect(other.working.size).toBe(0);
  expect(leaving.every(({ isOwned, signal }) => isOwned && signal.aborted)).toBe(true);
  expect(leaving[0]!.signal.reason).toMatchObject({ code: 'HAND_OVER' });
  const [first, ...rest] = leaving;
  await first!.release();
  await vi.waitFor(() => expect([...other.working.keys()]).toEqual([first!.shard]), long);
  expect(other.working.get(first!.shard)!.token).toBeGreaterThan(first!.token);
  await Promise.all(rest.map((holding) => holding.release()));
  await vi.waitFor(() => expect(other.working.size).toBe(3), long);
  await other.partitioner.close();
  const closing = slow.close();
  await vi.waitFor(() => expect(leaving.length).toBeGreaterThanOrEqual(6), long);
  for (const holding of slow.held) await holding.release();
  await closing;
  await run;
});

test('a holder that does not let go in time loses the shard all the same', async () => {
  await using zk = await startZk();
  const clock = new MovableClock();
  const [one, two] = [await zk.connect(), await zk.connect()];
  const stuck = new Partitioner(one, '/p', {
    ...{ name: 'stuck', shards, ...quick, clock, handOverMs: 60_000 },
  });
  const seen: Holding[] = [];
  const run = (async () => {
    for await (const { gained } of stuck) seen.push(...gained);
  })();
  await vi.waitFor(() => expect(seen).toHaveLength(6), long);
  const other = work(two, 'other');
  await vi.waitFor(() => expect(stuck.held.filter((it) => it.isLeaving)).toHaveLength(3), long);
  expect(other.working.size).toBe(0);

  clock.advance(60_000);

  await vi.waitFor(() => expect(other.working.size).toBe(3), long);
  await other.partitioner.close();
  const closing = stuck.close();
  await vi.waitFor(() => {
    clock.advance(60_000);
    expect(stuck.held).toEqual([]);
  }, long);
  await closing;
  await run;
});

test('when a member dies its shards go to the others, and those they had stay', async () => {
  await using zk = await startZk();
  const [one, two] = [await zk.connect(), await zk.witness()];
  const log: string[] = [];
  const a = work(one, 'a', log);
  const b = work(two, 'b', log);
  await settled([a, b]);
  const kept = [...b.working.values()];

  await zk.expire(one);
  await vi.waitFor(() => expect(b.working.size).toBe(6), long);

  expect(kept.every((holding) => b.working.get(holding.shard) === holding)).toBe(true);
  await expect(a.run).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
  await b.partitioner.close();
});

test('a member whose session was renewed joins again, and gets what it had', async () => {
  await using zk = await startZk();
  const renewing = { renew: true, sessionTimeoutMs: 4_000 };
  const [one, two] = [await zk.connect(renewing), await zk.witness()];
  const slowPlan = { settleMs: 300, settleMaxMs: 2_000 };
  const b = work(two, 'b', [], slowPlan);
  const a = work(one, 'a', [], slowPlan);
  await settled([a, b]);
  const before = [...a.working.keys()].sort();
  const tokens = [...a.working.values()].map(({ token }) => token);
  const theirs = [...b.working.values()];

  await zk.expire(one);
  await vi.waitFor(() => {
    const now = [...a.working.values()];
    expect(now.map(({ shard }) => shard).sort()).toEqual(before);
    expect(now.every(({ token }) => !tokens.includes(token))).toBe(true);
  }, long);

  expect([...b.working.values()]).toEqual(theirs);
  await Promise.all([a, b].map(({ partitioner }) => partitioner.close()));
});

test('a link that comes back in time moves nothing', async () => {
  await using zk = await startZk();
  const [one, two] = [await zk.connect(), await zk.connect()];
  const log: string[] = [];
  const [a, b] = [work(one, 'a', log), work(two, 'b', log)];
  await settled([a, b]);
  const before = log.length;

  for (let i = 0; i < 3; i++) {
    zk.link.cut();
    await Promise.all([reached(one, 'suspended'), reached(two, 'suspended')]);
    await Promise.all([one.exists('/p'), two.exists('/p')]);
  }
  await settled([a, b]);

  expect(log.length).toBe(before);
  await Promise.all([a, b].map(({ partitioner }) => partitioner.close()));
});

test('a burst of joins is planned for when it is over, once, and not for each', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const clock = new MovableClock();
  const patient = { clock, settleMs: 60_000, settleMaxMs: 600_000 };
  const workers: Worker[] = [];
  for (let i = 0; i < 6; i++) {
    workers.push(work(await zk.connect(), `m${i}`, [], patient));
    const members = () => witness.children('/p/members').catch(() => []);
    await vi.waitFor(async () => expect(await members()).toHaveLength(i + 1), long);
  }
  await vi.waitFor(() => expect(workers[0]!.partitioner.isPlanning).toBe(true), long);
  expect(workers.map(({ partitioner }) => partitioner.generation)).toEqual([0, 0, 0, 0, 0, 0]);

  await vi.waitFor(() => {
    clock.advance(60_000);
    expect(workers.flatMap(({ working }) => [...working.keys()]).sort()).toEqual(shards);
  }, long);

  // Two, if the clock was moved before the last one was seen.
  expect(workers[0]!.partitioner.generation).toBeLessThanOrEqual(2);
  expect(workers.filter(({ partitioner }) => partitioner.isPlanning)).toHaveLength(1);
  await Promise.all(workers.map(({ partitioner }) => partitioner.close()));
});

test('when the one that plans goes, the next one plans', async () => {
  await using zk = await startZk();
  const [one, two, three] = [await zk.connect(), await zk.connect(), await zk.connect()];
  const a = work(one, 'a');
  await settled([a]);
  const b = work(two, 'b');
  await settled([a, b]);
  expect([a.partitioner.isPlanning, b.partitioner.isPlanning]).toEqual([true, false]);

  await a.partitioner.close();
  await settled([b]);
  const c = work(three, 'c');
  await settled([b, c]);

  expect(b.partitioner.isPlanning).toBe(true);
  await Promise.all([b, c].map(({ partitioner }) => partitioner.close()));
});

test('other shards: those that are gone are handed over, new ones are taken', async () => {
  await using zk = await startZk();
  const [one, two] = [await zk.connect(), await zk.connect()];
  const [a, b] = [work(one, 'a'), work(two, 'b')];
  await settled([a, b]);

  for (const { partitioner } of [a, b]) partitioner.setShards(shards.slice(0, 4));
  await settled([a, b], 4);
  for (const { partitioner } of [a, b]) partitioner.setShards(shards);
  await settled([a, b]);

  await Promise.all([a, b].map(({ partitioner }) => partitioner.close()));
});

test('the plan is deleted or spoilt: nothing is given away, and another is made', async () => {
  await using zk = await startZk();
  const [one, two, witness] = [await zk.connect(), await zk.connect(), await zk.witness()];
  const log: string[] = [];
  const [a, b] = [work(one, 'a', log), work(two, 'b', log)];
  await settled([a, b]);
  const before = log.filter((line) => line.includes(' - ')).length;
  const text = async () => String((await witness.get('/p/plan')).data);

  await witness.set('/p/plan', 'nonsense');
  await vi.waitFor(async () => expect(await text()).toContain('"generation"'), long);
  await settled([a, b]);
  await witness.delete('/p/plan');
  await vi.waitFor(async () => expect(await text()).toContain('"generation"'), long);
  await settled([a, b]);

  // A plan from nothing may divide them in another way, but what it divides is all of them.
  expect(log.filter((line) => line.includes(' - ')).length - before).toBeLessThanOrEqual(12);
  checkLog(log);
  await Promise.all([a, b].map(({ partitioner }) => partitioner.close()));
});

test('somebody deletes an ownership node: its holder is told, and the shard is taken anew', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const a = work(client, 'a');
  await settled([a]);
  const held = a.working.get('s3')!;

  await witness.delete('/p/owners/s3');

  await vi.waitFor(() => expect(a.working.get('s3')?.token).toBeGreaterThan(held.token), long);
  expect(held.signal.reason).toMatchObject({ code: 'NOT_HELD', reason: 'nodeDeleted' });
  await a.partitioner.close();
});

test('breaking out of the loop leaves the group and lets everything go', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const partitioner = new Partitioner(client, '/p', { name: 'a', shards, ...quick });

  for await (const { held } of partitioner) if (held.length === 6) break;

  expect(await ephemeralsOf(client)).toEqual([]);
  expect(client.load.watches).toBe(0);
});

test('a signal ends the loop with its reason, and lets everything go', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const abort = new AbortController();
  const worker = work(client, 'a', [], { signal: abort.signal });
  await settled([worker]);

  abort.abort(new Error('enough'));

  await expect(worker.run).rejects.toThrow('enough');
  expect(await ephemeralsOf(client)).toEqual([]);
});

test('a tree that is deleted under its only member is made again', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const worker = work(client, 'a');
  await settled([worker]);
  const isMissed = new Promise<void>((resolve) => {
    zk.link.onFrame = ({ direction, bytes }) => {
      const isRead = direction === 'toServer' && bytes.readInt32BE(4) === opCodes.getData;
      if (isRead && bytes.includes('/p/plan')) {
        zk.link.pause('toServer'); // it finds none, and what would make it does not pass
        resolve();
      }
      return 'pass';
    };
  });

  await witness.delete('/p/plan');
  await isMissed;
  zk.link.onFrame = undefined;
  await witness.deleteRecursive('/p');
  zk.link.resume('toServer');

  await expect.poll(() => witness.exists('/p/plan'), long).not.toBeNull();
  await settled([worker]);
  await worker.partitioner.close();
  await worker.run;
});

test('work that fails ends all of it, with its error', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const partitioner = new Partitioner(client, '/p', { name: 'a', shards, ...quick });
  const run = partitioner.each(async ({ shard, signal }) => {
    if (shard === 's2') throw new Error('s2 is broken');
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  });

  await expect(run).rejects.toThrow('s2 is broken');

  expect(await ephemeralsOf(client)).toEqual([]);
});

test.each([
  [['a', 'a'], 'shards: each name once is wanted'],
  [[''], /^shards\[0\]: text/],
  [['..'], /^shards\[0\]: text/],
  ['ab', 'shards: must be a list, got "ab"'],
])('the shards %j are refused', async (wrong, message) => {
  await using zk = await startZk();
  const client = await zk.connect();

  expect(() => new Partitioner(client, '/p', { shards: wrong as string[] })).toThrow(message);
});
