/** Consumer groups: who reads what, through joins, leaves, crashes and everything in between. */

import { expect, test, vi } from 'vitest';
import type { Client, ClientOptions } from '../../src/client/index.ts';
import {
  fixedTopics,
  GroupMember,
  type GroupMemberOptions,
  layout08,
} from '../../src/kafka/index.ts';
import { deferred } from '../../src/support/index.ts';
import { startZk, type Zk } from '../zk.ts';

const group = 'g';
const topics = fixedTopics({ t: 12 });
const owners = layout08.owners.at({ group, topic: 't' });
const ids = layout08.consumerIds.at({ group });

interface Member {
  readonly client: Client;
  readonly member: GroupMember;
  readonly events: string[];
  readonly mine: () => number[];
}

const members: GroupMember[] = [];

async function join(
  zk: Zk,
  options: Partial<GroupMemberOptions> = {},
  clientOptions: ClientOptions = {},
  hooks: Partial<ConstructorParameters<typeof GroupMember>[2]> = {},
): Promise<Member> {
  const client = await zk.connect({ renew: true, ...clientOptions });
  const events: string[] = [];
  const member = new GroupMember(
    client,
    { group, subscribe: { topics: ['t'] }, topics, debounceMs: 20, ...options },
    {
      assigned: (owned) => events.push(`+${owned.partition}`),
      releasing: async (owned) => {
        events.push(`-${owned.partition}`);
      },
      ...hooks,
    },
  );
  members.push(member);
  member.start();
  return {
    client,
    member,
    events,
    mine: () => member.owned.map(({ partition }) => Number(partition)).sort((a, b) => a - b),
  };
}

/** Until everything is read by somebody, and everybody has what is due. */
async function quiet(...all: Member[]): Promise<void> {
  await vi.waitFor(
    () => {
      const states = all.map(({ member }) => member.state);
      expect(states.map(({ name }) => name)).toEqual(all.map(() => 'settled'));
      const read = all.flatMap(({ mine }) => mine()).sort((a, b) => a - b);
      expect(read).toEqual([...Array(12).keys()]);
      const counts = all.map(({ mine }) => mine().length);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    },
    { timeout: 15_000, interval: 20 },
  );
}

const modes: [string, Partial<GroupMemberOptions>][] = [
  ['range', {}],
  ['roundrobin', { assignor: 'roundrobin' }],
  ['sticky', { assignor: 'sticky' }],
  ['planned', { mode: 'planned' }],
];

test.for(modes)(
  '%s: members share a topic, and share it anew when one comes or goes',
  async ([, options]) => {
    await using zk = await startZk();
    const witness = await zk.witness();
    const a = await join(zk, options);
    await quiet(a);
    const b = await join(zk, options);
    const c = await join(zk, options);
    await quiet(a, b, c);
    const counts = [a, b, c].map(({ mine }) => mine().length);
    expect(counts).toEqual([4, 4, 4]);
    for (const partition of a.mine()) {
      const { data, stat } = await witness.get(`${owners}/${partition}`);
      expect(String(data)).toBe(`${a.member.id}-0`);
      expect(stat.ephemeralOwner).toBe(a.client.sessionId);
    }

    await b.member.close();
    await quiet(a, c);
    expect([a.mine().length, c.mine().length]).toEqual([6, 6]);
    expect(await witness.children(ids)).toHaveLength(2);

    await a.member.close();
    await c.member.close();
    expect(await witness.children(owners)).toEqual([]);
    expect(await witness.children(ids)).toEqual([]);
    expect([a, b, c].map(({ client }) => client.load.watches)).toEqual([0, 0, 0]);
  },
);

test('the example of the documents: four partitions, three consumers, by the order of their ids', async () => {
  await using zk = await startZk();
  const four = fixedTopics({ report: 4 });
  const options = { topics: four, subscribe: { topics: ['report'] } };
  const all = await Promise.all(
    ['node1', 'node2', 'node3'].map((consumerId) => join(zk, { ...options, consumerId })),
  );

  await vi.waitFor(() => expect(all.map(({ mine }) => mine())).toEqual([[0, 1], [2], [3]]), 10_000);
});

test('threads: a member has as many as it registered, and says which are idle', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const two = fixedTopics({ report: 4 });
  const options = { topics: two, subscribe: { topics: { report: 2 } } };
  const all = await Promise.all(
    ['node1', 'node2', 'node3'].map((consumerId) => join(zk, { ...options, consumerId })),
  );

  const ownerOf = async (partition: number) => {
    const path = layout08.owner.at({ group, topic: 'report', partition });
    return String((await witness.get(path)).data);
  };
  // Who came first has had two partitions for its first thread: a part may be right before its threads are.
  await vi.waitFor(async () => {
    expect(all.map(({ mine }) => mine())).toEqual([[0, 1], [2, 3], []]);
    expect(all[2]!.member.status().idleThreads).toEqual(['g_node3-0', 'g_node3-1']);
    const texts = await Promise.all([0, 1, 2, 3].map(ownerOf));
    expect(texts).toEqual(['g_node1-0', 'g_node1-1', 'g_node2-0', 'g_node2-1']);
  }, 10_000);
});

test('a member registers in one write: whoever sees its node sees all of it', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  await witness.create(ids, '', { parents: true });
  const seen: (string | null)[] = [];
  const stream = witness.watch(ids, { recursive: true });
  await stream.ready;
  const reading = (async () => {
    for await (const { type, path } of stream) {
      if (path !== ids && type === 'created')
        return seen.push(String((await witness.get(path)).data));
    }
  })();

  const a = await join(zk);
  await reading;

  expect(JSON.parse(seen[0]!)).toMatchObject({
    version: 1,
    subscription: { t: 1 },
    pattern: 'static',
  });
  expect(a.member.id).toMatch(/^g_.+-\d{13}-[0-9a-f]{8}$/);
});

test('only what moves is released: who stays reads on', async () => {
  await using zk = await startZk();
  const a = await join(zk, { assignor: 'sticky' });
  await quiet(a);
  const b = await join(zk, { assignor: 'sticky' });
  await quiet(a, b);
  const c = await join(zk, { assignor: 'sticky' });
  await quiet(a, b, c);

  const released = (one: Member) => one.events.filter((event) => event.startsWith('-')).length;
  expect([a, b, c].map(released)).toEqual([8, 2, 0]);
  const claimed = [a, b, c].map(
    ({ events }) => events.filter((event) => event.startsWith('+')).length,
  );
  expect(claimed).toEqual([12, 6, 4]);
});

test('a partition that goes to another thread of the same member is not let go of', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const three = { subscribe: { topics: { t: 3 } } };
  const a = await join(zk, { ...three, consumerId: 'a' });
  await quiet(a);
  const before = await witness.exists(`${owners}/4`);
  const b = await join(zk, { ...three, consumerId: 'b' });
  await quiet(a, b);

  const after = await witness.get(`${owners}/4`);
  expect(String((await witness.get(`${owners}/5`)).data)).toBe('g_a-2');
  expect(String(after.data)).toBe('g_a-2');
  expect(after.stat.czxid).toBe(before!.czxid);
  expect(a.events.filter((event) => event.startsWith('-'))).toHaveLength(6);
});

test('two consumers in one process, on one client, both work', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const made = [0, 1].map(() => {
    const options = { group, subscribe: { topics: ['t'] }, topics, debounceMs: 20 };
    const hooks = { assigned: () => {}, releasing: async () => {} };
    const member = new GroupMember(client, options, hooks);
    member.start();
    return member;
  });

  await vi.waitFor(() => expect(made.map(({ owned }) => owned.length)).toEqual([6, 6]), 10_000);
  await Promise.all(made.map((member) => member.close()));
  expect(client.load.watches).toBe(0);
});

test('of two consumers on one client each waits for what the other still has in hand', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const finished = deferred();
  const options = { group, subscribe: { topics: ['t'] }, topics, debounceMs: 20 };
  const a = new GroupMember(
    client,
    { ...options, consumerId: 'a' },
    { assigned: () => {}, releasing: () => finished.promise },
  );
  a.start();
  await a.settled();
  const taken: string[] = [];
  const b = new GroupMember(
    client,
    { ...options, consumerId: 'b' },
    { assigned: ({ partition }) => taken.push(partition), releasing: async () => {} },
  );
  b.start();
  await vi.waitFor(() => expect(a.status().releasing).toHaveLength(6), 10_000);
  await vi.waitFor(() => expect(b.status().blocked.length + taken.length).toBe(6), 10_000);

  expect(taken).toEqual([]);
  finished.resolve();
  await Promise.all([a.settled(), b.settled()]);

  expect([a.owned.length, b.owned.length, taken.length]).toEqual([6, 6, 6]);
  await Promise.all([a.close(), b.close()]);
});

test('of two consumers with one id on one client the second waits until the first is closed', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const options = { group, subscribe: { topics: ['t'] }, topics, debounceMs: 20 };
  const finished = deferred();
  const make = (releasing: () => Promise<void>) => {
    const hooks = { assigned: () => {}, releasing };
    const member = new GroupMember(client, { ...options, consumerId: 'same' }, hooks);
    member.start();
    return member;
  };
  const first = make(() => finished.promise);
  await first.settled();
  const second = make(async () => {});
  const third = make(async () => {});

  for (const member of [second, third]) {
    await vi.waitFor(() => {
      expect(member.status().idBlocked?.session).toBe(client.sessionId);
    }, 10_000);
  }
  await third.close();
  const closing = first.close();
  await vi.waitFor(() => expect(first.status().releasing).toHaveLength(12), 10_000);
  expect(second.owned).toEqual([]);
  expect(await client.children(ids)).toEqual([first.id]);
  finished.resolve();
  await closing;

  await second.settled();
  expect(second.owned).toHaveLength(12);
  expect(second.status()).toMatchObject({ idBlocked: null, problems: [] });
  await second.close();
  expect(client.load.watches).toBe(0);
});

test('a burst of changes is one rebalance, not one for each', async () => {
  await using zk = await startZk();
  const a = await join(zk, { debounceMs: 500 });
  await quiet(a);
  const before = a.member.status().rebalances;

  const others = await Promise.all([...Array(8)].map(() => join(zk, { debounceMs: 50 })));
  await quiet(a, ...others);

  expect(a.member.status().rebalances - before).toBeLessThanOrEqual(3);
});

test('topics: a filter takes in what comes later, and leaves Kafka’s own out', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const topic = async (name: string, count: number) => {
    const replicas = Object.fromEntries([...Array(count).keys()].map((p) => [p, [1]]));
    const data = JSON.stringify({ version: 1, partitions: replicas });
    const path = layout08.topic.at({ topic: name });
    if (await witness.exists(path)) await witness.set(path, data);
    else await witness.create(path, data, { parents: true });
  };
  await topic('logs.a', 2);
  await topic('other', 2);
  await topic('__consumer_offsets', 2);
  const client = await zk.connect();
  const hooks = { assigned: () => {}, releasing: async () => {} };
  const options = { group, debounceMs: 20, subscribe: { whiteList: ' "logs.*, __.*" ' } };
  await using member = new GroupMember(client, options, hooks);
  const mine = () => member.owned.map((one) => `${one.topic}/${one.partition}`).sort();
  member.start();
  await vi.waitFor(() => expect(mine()).toEqual(['logs.a/0', 'logs.a/1']), 10_000);

  await topic('logs.b', 1);
  await vi.waitFor(() => expect(mine()).toEqual(['logs.a/0', 'logs.a/1', 'logs.b/0']), 10_000);
  await topic('logs.b', 2);
  await vi.waitFor(() => expect(mine()).toHaveLength(4), 10_000);
  await witness.delete(layout08.topic.at({ topic: 'logs.a' }));
  await vi.waitFor(() => expect(mine()).toEqual(['logs.b/0', 'logs.b/1']), 10_000);
});

test('0.7: partitions are what brokers registered, and registrations are plain text', async () => {
  await using zk = await startZk();
  const broker = await zk.witness();
  await broker.create('/brokers/topics/t', '', { parents: true });
  await broker.create('/brokers/topics/t/29', '2', { mode: 'ephemeral' });
  const client = await zk.connect();
  const hooks = { assigned: () => {}, releasing: async () => {} };
  await using member = new GroupMember(
    client,
    { group, generation: '0.7', debounceMs: 20, subscribe: { topics: { t: 2 } } },
    hooks,
  );
  const mine = () => member.owned.map(({ partition }) => partition).sort();
  member.start();
  await vi.waitFor(() => expect(mine()).toEqual(['29-0', '29-1']), 10_000);

  await broker.create('/brokers/topics/t/30', '1', { mode: 'ephemeral' });
  await vi.waitFor(() => expect(mine()).toEqual(['29-0', '29-1', '30-0']), 10_000);

  expect(String((await broker.get(`${ids}/${member.id}`)).data)).toBe('{ "t": 2 }');
});
