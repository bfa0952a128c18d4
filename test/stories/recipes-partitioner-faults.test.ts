/**
 * Shards under random faults. The seed is in every failure: DROVER_SEED repeats a run, and
 * DROVER_FAULTS makes it longer.
 */

import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Partitioner } from '../../src/recipes/partitioner.ts';
import { type Apart, connectApart } from '../faults.ts';
import { seeded } from '../random.ts';
import { ephemeralsOf, startZk, type Zk } from '../zk.ts';

const seed = Number(process.env.DROVER_SEED ?? 20_262);
const faults = Number(process.env.DROVER_FAULTS ?? 25);
const timeoutMs = 2_000;
const shards = Array.from({ length: 10 }, (_, i) => `s${i}`);

interface Event {
  readonly name: string;
  readonly type: 'began' | 'told';
  readonly shard: string;
  readonly token: bigint;
}

interface Worker extends Apart {
  readonly name: string;
  readonly working: Set<string>;
  readonly history: Event[];
  partitioner: Partitioner | undefined;
}

async function worker(zk: Zk, name: string, history: Event[]): Promise<Worker> {
  const apart = await connectApart(zk, timeoutMs);
  const one = { name, ...apart, history };
  const made: Worker = { ...one, working: new Set(), partitioner: undefined };
  join(made);
  return made;
}

function join(one: Worker): void {
  const { name, client, history, working } = one;
  const options = { name, shards, settleMs: 20, settleMaxMs: 200 };
  one.partitioner = new Partitioner(client, '/p', options);
  void one.partitioner.each(async ({ shard, token, signal }) => {
    history.push({ name, type: 'began', shard, token });
    working.add(shard);
    await new Promise<void>((resolve) => {
      const told = () => {
        history.push({ name, type: 'told', shard, token });
        working.delete(shard);
        resolve();
      };
      if (signal.aborted) told();
      else signal.addEventListener('abort', told, { once: true });
    });
  });
}

type Fault = (one: Worker, zk: Zk, witness: Client) => Promise<void>;

/** What may happen to a process and its network, while the server and the tree are left alone. */
const natural: Record<string, Fault> = {
  cut: async ({ link }) => link.cut(),
  leave: async (one) => {
    const { partitioner } = one;
    one.partitioner = undefined;
    await partitioner?.close();
  },
  join: async (one) => {
    if (one.partitioner === undefined) join(one);
  },
  restart: async (one) => {
    await one.partitioner?.close();
    join(one);
  },
  pauseBeyondTimeout: async ({ clock }) => clock.advance(timeoutMs + 1),
  partition: async ({ link, client }) => {
    link.refuse();
    link.cut();
    await vi.waitFor(() => expect(client.state.name).not.toBe('connected'));
    await link.accept();
  },
};

/** What an operator or a server may do: then nobody is told in advance, and only the token protects. */
const forced: Record<string, Fault> = {
  ...natural,
  expire: async ({ client }, zk) => {
    if (client.identity) await zk.expire(client);
  },
  deleteOwner: async (_, __, witness) => {
    const [first] = await witness.children('/p/owners').catch(() => []);
    if (first) await witness.discard(`/p/owners/${first}`);
  },
  deleteMember: async (_, __, witness) => {
    const [first] = await witness.children('/p/members').catch(() => []);
    if (first) await witness.discard(`/p/members/${first}`);
  },
  deletePlan: async (_, __, witness) => witness.discard('/p/plan'),
};

test.each([
  ['natural', natural],
  ['forced', forced],
] as const)(
  'no shard twice, and all of them at rest: %s faults',
  { timeout: 240_000 },
  async (kind, table) => {
    await using zk = await startZk();
    const witness = await zk.witness();
    const history: Event[] = [];
    const names = ['a', 'b', 'c', 'd'];
    const workers = await Promise.all(names.map((name) => worker(zk, name, history)));
    const random = seeded(seed);
    const kinds = Object.keys(table);
    const done: string[] = [];
    const where = () => `seed ${seed}, faults ${done.join(' ')}`;
    const atRest = () =>
      vi.waitFor(
        () => {
          const here = workers.filter(({ partitioner }) => partitioner !== undefined);
          const all = here.flatMap(({ working }) => [...working]).sort();
          expect(all, where()).toEqual(here.length > 0 ? shards : []);
          const sizes = here.map(({ working }) => working.size);
          if (sizes.length > 0) expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThan(2);
        },
        { timeout: 40_000, interval: 20 },
      );

    await atRest();
    for (let i = 0; i < faults; i++) {
      const name = kinds[Math.floor(random() * kinds.length)]!;
      const one = workers[Math.floor(random() * workers.length)]!;
      done.push(`${name}(${one.name})`);
      await table[name]!(one, zk, witness);
      if (random() < 0.4) await atRest();
    }
    for (const one of workers) {
      one.link.heal();
      if (one.partitioner === undefined) join(one);
    }
    await atRest();

    const tokens = history.filter(({ type }) => type === 'began').map(({ token }) => token);
    expect(new Set(tokens).size, where()).toBe(tokens.length);
    if (kind === 'natural') {
      const owner = new Map<string, Event>();
      const highest = new Map<string, bigint>();
      for (const event of history) {
        const { shard, token } = event;
        if (event.type === 'told') {
          if (owner.get(shard)?.token === token) owner.delete(shard);
          continue;
        }
        expect(owner.get(shard), `${shard} has two owners; ${where()}`).toBeUndefined();
        expect(token > (highest.get(shard) ?? 0n), `tokens grow; ${where()}`).toBe(true);
        owner.set(shard, event);
        highest.set(shard, token);
      }
    }
    await Promise.all(workers.map(({ partitioner }) => partitioner?.close()));
    await vi.waitFor(async () => {
      for (const { client } of workers) {
        const left = { watches: client.load.watches, nodes: await ephemeralsOf(client) };
        expect(left, where()).toEqual({ watches: 0, nodes: [] });
      }
    }, 15_000);
    await Promise.all(workers.map(({ client }) => client.close()));
    await Promise.all(workers.map(({ link }) => link.close()));
  },
);
