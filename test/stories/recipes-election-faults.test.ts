/**
 * Elections under random faults. The seed is in every failure: DROVER_SEED repeats a run, and
 * DROVER_FAULTS makes it longer.
 */

import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Election } from '../../src/recipes/election.ts';
import { type Apart, connectApart } from '../faults.ts';
import { seeded } from '../random.ts';
import { ephemeralsOf, startZk, type Zk } from '../zk.ts';

const seed = Number(process.env.DROVER_SEED ?? 20_261);
const faults = Number(process.env.DROVER_FAULTS ?? 25);
const timeoutMs = 2_000;

interface Event {
  readonly id: string;
  readonly type: 'elected' | 'told';
  readonly epoch: bigint;
}

interface Voter extends Apart {
  readonly id: string;
  election: Election;
}

async function voter(zk: Zk, id: string, history: Event[]): Promise<Voter> {
  const apart = await connectApart(zk, timeoutMs);
  const { client } = apart;
  const one = { id, ...apart, election: new Election(client, '/e', { id }) };
  void stand(one, history);
  return one;
}

/** Stands again whenever the work in a term has failed. */
async function stand(one: Voter, history: Event[]): Promise<void> {
  const { election } = one;
  try {
    for await (const term of election) {
      history.push({ id: one.id, type: 'elected', epoch: term.epoch });
      await new Promise<void>((resolve) => {
        const told = () => {
          history.push({ id: one.id, type: 'told', epoch: term.epoch });
          resolve();
        };
        if (term.signal.aborted) told();
        else term.signal.addEventListener('abort', told, { once: true });
      });
    }
  } catch (error) {
    if ((error as { code?: string }).code !== 'SESSION_EXPIRED') throw error;
  }
}

type Fault = (one: Voter, zk: Zk, witness: Client) => Promise<void>;

/** What may happen to a process and its network, while the server and the tree are left alone. */
const natural: Record<string, Fault> = {
  cut: async ({ link }) => link.cut(),
  reset: async ({ link }) => link.cut({ reset: true }),
  stall: async ({ link, client }) => {
    link.pause('toClient');
    const answered = client.exists('/').catch(() => {});
    await new Promise(setImmediate);
    link.resume('toClient');
    await answered;
  },
  pauseBeyondTimeout: async ({ clock }) => clock.advance(timeoutMs + 1),
  resign: async ({ election }) => election.resign(),
  partition: async ({ link, client }) => {
    link.refuse();
    link.cut();
    await vi.waitFor(() => expect(client.state.name).not.toBe('connected'));
    await link.accept();
  },
  partitionBeyondTimeout: async ({ link, client }) => {
    link.refuse();
    link.cut();
    const { sessionId } = client;
    if (sessionId !== undefined) {
      await vi.waitFor(() => expect(client.sessionId).not.toBe(sessionId), { timeout: 10_000 });
    }
    await link.accept();
  },
};

/** What an operator or a server may do: then nobody is told in advance, and only the epoch protects. */
const forced: Record<string, Fault> = {
  ...natural,
  expire: async ({ client }, zk) => {
    if (client.identity) await zk.expire(client);
  },
  deleteLeader: async (_, __, witness) => {
    const names = await witness.children('/e').catch(() => []);
    const [first] = names.sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
    if (first) await witness.discard(`/e/${first}`);
  },
  deleteAll: async (_, __, witness) => {
    await witness.deleteRecursive('/e').catch(() => {}); // somebody joins at the same time
  },
};

test.each([
  ['natural', natural],
  ['forced', forced],
] as const)(
  'one leader at a time, and always one again: %s faults',
  { timeout: 240_000 },
  async (kind, table) => {
    await using zk = await startZk();
    const witness = await zk.witness();
    const history: Event[] = [];
    const voters = await Promise.all(['a', 'b', 'c'].map((id) => voter(zk, id, history)));
    const random = seeded(seed);
    const names = Object.keys(table);
    const done: string[] = [];
    const where = () => `seed ${seed}, faults ${done.join(' ')}`;
    const aLeader = () =>
      vi.waitFor(
        () => expect(voters.filter(({ election }) => election.isLeading)).toHaveLength(1),
        {
          timeout: 30_000,
          interval: 10,
        },
      );

    await aLeader();
    for (let i = 0; i < faults; i++) {
      const name = names[Math.floor(random() * names.length)]!;
      const one = voters[Math.floor(random() * voters.length)]!;
      done.push(`${name}(${one.id})`);
      await table[name]!(one, zk, witness);
      if (random() < 0.5)
        await aLeader().catch((error) => Promise.reject(new Error(where(), { cause: error })));
    }
    for (const { link } of voters) link.heal();
    await aLeader();

    const elected = history.filter(({ type }) => type === 'elected');
    expect(new Set(elected.map(({ epoch }) => epoch)).size, where()).toBe(elected.length);
    if (kind === 'natural') {
      let leading: Event | undefined;
      let highest = 0n;
      for (const event of history) {
        if (event.type === 'told') {
          if (leading?.epoch === event.epoch) leading = undefined;
          continue;
        }
        expect(leading, `${event.id} was elected while another leads; ${where()}`).toBeUndefined();
        expect(event.epoch > highest, `epochs grow; ${where()}`).toBe(true);
        [leading, highest] = [event, event.epoch];
      }
    }
    // At rest the leader is the first in line, by a node of its present session, and knows it alone.
    await vi.waitFor(async () => {
      const leading = voters.filter(({ election }) => election.isLeading);
      expect(leading, where()).toHaveLength(1);
      const { election, client } = leading[0]!;
      const line = await election.candidates();
      expect(line.map(({ id }) => id).sort(), where()).toEqual(['a', 'b', 'c']);
      expect(line[0]).toMatchObject({ path: election.term?.path, sessionId: client.sessionId });
    }, 15_000);
    await Promise.all(voters.map(({ election }) => election.close()));
    await vi.waitFor(async () => {
      for (const { client } of voters) {
        expect(
          { watches: client.load.watches, nodes: await ephemeralsOf(client) },
          where(),
        ).toEqual({
          ...{ watches: 0, nodes: [] },
        });
      }
    }, 15_000);
    await Promise.all(voters.map(({ client }) => client.close()));
    await Promise.all(voters.map(({ link }) => link.close()));
  },
);
