/** Groups that follow a plan: one member plans, the others read only what is written for them. */

import { expect, test, vi } from 'vitest';
import type { Client, ClientOptions } from '../../src/client/index.ts';
import {
  describeGroup,
  fixedTopics,
  GroupMember,
  type GroupMemberOptions,
  layout08,
  planLayout,
} from '../../src/kafka/index.ts';
import { loseRequest, opCodes } from '../faults.ts';
import { startZk, type Zk } from '../zk.ts';

const group = 'g';
const topics = fixedTopics({ t: 12 });

interface Member {
  readonly client: Client;
  readonly member: GroupMember;
  readonly events: string[];
  readonly mine: () => number[];
}

async function join(
  zk: Zk,
  options: Partial<GroupMemberOptions> = {},
  clientOptions: ClientOptions = {},
): Promise<Member> {
  const client = await zk.connect({ renew: true, ...clientOptions });
  const events: string[] = [];
  const member = new GroupMember(
    client,
    { group, mode: 'planned', subscribe: { topics: ['t'] }, topics, debounceMs: 20, ...options },
    {
      assigned: ({ partition }) => events.push(`+${partition}`),
      releasing: async ({ partition }) => void events.push(`-${partition}`),
    },
  );
  member.start();
  const mine = () => member.owned.map(({ partition }) => Number(partition)).sort((a, b) => a - b);
  return { client, member, events, mine };
}

const shared = (...all: Member[]) =>
  vi.waitFor(
    () => {
      expect(all.flatMap(({ mine }) => mine()).sort((a, b) => a - b)).toEqual([
        ...Array(12).keys(),
      ]);
      expect(new Set(all.map(({ mine }) => mine().length)).size).toBe(1);
    },
    { timeout: 15_000, interval: 20 },
  );

test('each member’s part stands in its own node, with the epoch of who planned it', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await join(zk, { consumerId: 'a', subscribe: { topics: { t: 2 } } });
  await shared(a);

  const path = planLayout.memberPlan.at({ group, consumer: 'g_a' });
  const { data } = await witness.get(path);

  expect(JSON.parse(String(data))).toEqual({
    version: 1,
    epoch: 1,
    partitions: { t: { 0: [[6, 11]], 1: [[0, 5]] } },
  });
  expect(a.member.status().planEpoch).toBe(1);
  expect(String((await witness.get(planLayout.plan.at({ group }))).data)).toBe('1');
});

test('who follows asks for nothing but its own part; what stays is not touched', async () => {
  await using zk = await startZk();
  const a = await join(zk);
  await shared(a);
  const b = await join(zk);
  await shared(a, b);
  const c = await join(zk);
  await shared(a, b, c);
  const asked = vi.spyOn(b.client, 'children');
  const before = b.events.length;

  const d = await join(zk);
  await shared(a, b, c, d);

  expect(asked).not.toHaveBeenCalled();
  expect(b.events.slice(before)).toHaveLength(1);
  expect(d.events).toHaveLength(3);
});

test('when who plans is gone the next goes on with the same plan: only what it had moves', async () => {
  await using zk = await startZk();
  const a = await join(zk, {}, { renew: false });
  await shared(a);
  const b = await join(zk);
  const c = await join(zk);
  await shared(a, b, c);
  const kept = [b.mine(), c.mine()];

  await zk.expire(a.client);
  await shared(b, c);

  expect(b.mine()).toEqual(expect.arrayContaining(kept[0]!));
  expect(c.mine()).toEqual(expect.arrayContaining(kept[1]!));
  expect([b, c].map(({ events }) => events.filter((e) => e.startsWith('-')).length)).toEqual([
    expect.any(Number),
    0,
  ]);
  await vi.waitFor(() => {
    const epochs = [b, c].map(({ member }) => member.status().planEpoch);
    expect(epochs.filter((epoch) => epoch !== null)).toEqual([2]);
  }, 10_000);
});

test('one who still thinks that it plans is refused, and stands in line again', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await join(zk);
  await shared(a);
  const b = await join(zk);
  await shared(a, b);
  const election = planLayout.election.at({ group });
  const [first] = (await witness.children(election)).sort(
    (x, y) => Number(x.slice(-10)) - Number(y.slice(-10)),
  );

  // Somebody deletes its place in the election: it does not know, and the next one begins.
  await witness.delete(`${election}/${first}`);
  await vi.waitFor(() => expect(b.member.status().planEpoch).toBe(2), 10_000);
  const c = await join(zk);
  await shared(a, b, c);

  await vi.waitFor(() => expect(a.member.status().planEpoch).toBeNull(), 10_000);
  const { data } = await witness.get(planLayout.memberPlan.at({ group, consumer: c.member.id }));
  expect(JSON.parse(String(data)).epoch).toBe(2);
  await vi.waitFor(async () => expect(await witness.children(election)).toHaveLength(3), 10_000);
});

test('who plans and leaves is gone from the line, though its leave is lost with the link', async () => {
  await using zk = await startZk();
  const a = await join(zk);
  await shared(a);
  const b = await join(zk);
  await shared(a, b);

  loseRequest(zk.link, opCodes.delete, planLayout.election.at({ group }));
  await a.member.close();

  await shared(b);
  expect(b.member.status().planEpoch).toBe(2);
});

test('who plans and fails stands in line again, though its leave is lost with the link', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await join(zk);
  await shared(a);

  // Another has begun to plan, as it seems; and its place is not given up at the first try.
  await witness.set(planLayout.plan.at({ group }), '7');
  loseRequest(zk.link, opCodes.delete, planLayout.election.at({ group }));
  const b = await join(zk);

  await shared(a, b);
});

test('parts of those who left are taken away; a part that makes no sense changes nothing', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const members = planLayout.members.at({ group });
  const a = await join(zk);
  await shared(a);
  const b = await join(zk);
  await shared(a, b);

  await b.member.close();
  await shared(a);
  await vi.waitFor(async () => expect(await witness.children(members)).toEqual([a.member.id]));
  await witness.set(`${members}/${a.member.id}`, 'nonsense');
  await vi.waitFor(() => expect(a.member.status().problems).toHaveLength(1), 10_000);

  expect(a.mine()).toHaveLength(12);
  await a.member.close();
  expect(a.client.load.watches).toBe(0);
});

test('a part that somebody deleted is planned again, whoever’s it is', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await join(zk);
  await shared(a);
  const b = await join(zk);
  await shared(a, b);

  for (const { member } of [b, a]) {
    const part = planLayout.memberPlan.at({ group, consumer: member.id });
    await witness.delete(part);
    await vi.waitFor(() => witness.get(part), { timeout: 15_000 });
    await shared(a, b);
  }

  for (const { member, client } of [a, b]) {
    await member.close();
    expect(client.load.watches).toBe(0);
  }
});

test('a group can be described from outside: members, owners, ages, offsets, and what is wrong', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await join(zk, { consumerId: 'a' });
  await shared(a);
  const offset = layout08.offset.at({ group, topic: 't', partition: 3 });
  await witness.create(offset, '41', { parents: true });
  const stray = layout08.owner.at({ group, topic: 't', partition: 99 });
  await witness.create(stray, 'g_gone-0', { mode: 'ephemeral' });

  const source = { bounds: async () => ({ earliest: 0n, latest: 100n }) };
  const info = await describeGroup(witness, { group, source });

  expect(info.members).toMatchObject([{ id: 'g_a', sessionId: a.client.sessionId }]);
  expect(info.partitions).toHaveLength(13);
  expect(info.partitions[3]).toMatchObject({
    topic: 't',
    partition: '3',
    owner: 'g_a-0',
    consumerId: 'g_a',
    ownerSession: a.client.sessionId,
    offset: 41n,
    latest: 100n,
    lag: 59n,
  });
  expect(Math.abs(info.partitions[3]!.ownedSinceMs! - Date.now())).toBeLessThan(60_000);
  expect(info.partitions[4]).toMatchObject({ offset: null, lag: null });
  expect(info.problems).toMatchObject([{ path: stray, why: expect.stringMatching(/no member/) }]);
});
