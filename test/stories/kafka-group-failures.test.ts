/**
 * What earlier consumers on ZooKeeper failed at: sessions that end, replies that are lost, owners that
 * stay in the way, members that write nonsense. Each test is named by what must happen instead.
 */

import { expect, test, vi } from 'vitest';
import type { Client, ClientOptions } from '../../src/client/index.ts';
import {
  fixedTopics,
  GroupMember,
  type GroupMemberOptions,
  layout08,
  OffsetStore,
  type OwnedPartition,
} from '../../src/kafka/index.ts';
import { Ownership } from '../../src/kafka/ownership.ts';
import { deferred } from '../../src/support/index.ts';
import { loseRequest, opCodes } from '../faults.ts';
import { reached, startZk, type Zk } from '../zk.ts';

const group = 'g';
const topics = fixedTopics({ t: 4 });
const owners = layout08.owners.at({ group, topic: 't' });
const ids = layout08.consumerIds.at({ group });
const short = { sessionTimeoutMs: 1_000, backoff: { firstMs: 20, maxMs: 100 } };

interface Member {
  readonly client: Client;
  readonly member: GroupMember;
  readonly all: OwnedPartition[];
  readonly mine: () => number[];
}

async function join(
  zk: Zk,
  options: Partial<GroupMemberOptions> = {},
  clientOptions: ClientOptions = {},
  hooks: Partial<ConstructorParameters<typeof GroupMember>[2]> = {},
): Promise<Member> {
  const client = await zk.connect({ renew: true, ...clientOptions });
  const all: OwnedPartition[] = [];
  const member = new GroupMember(
    client,
    { group, subscribe: { topics: ['t'] }, topics, debounceMs: 20, ...options },
    { assigned: (owned) => all.push(owned), releasing: async () => {}, ...hooks },
  );
  member.start();
  const mine = () => member.owned.map(({ partition }) => Number(partition)).sort((a, b) => a - b);
  return { client, member, all, mine };
}

const has = (one: Member, ...partitions: number[]) =>
  vi.waitFor(() => expect(one.mine()).toEqual(partitions), { timeout: 15_000, interval: 20 });

test('an owner node in the way is waited for, however long, and then taken', async () => {
  await using zk = await startZk();
  const stranger = await zk.witness();
  await stranger.create(owners, '', { parents: true });
  await stranger.create(`${owners}/2`, 'somebody-0', { mode: 'ephemeral' });
  const a = await join(zk);
  await has(a, 0, 1, 3);
  await vi.waitFor(() => expect(a.member.status().blocked).toHaveLength(1));

  const { blocked, state } = a.member.status();
  expect(state.name).toBe('rebalancing');
  expect(blocked).toMatchObject([
    { topic: 't', partition: '2', holder: 'somebody-0', holderSession: stranger.sessionId },
  ]);
  expect(Math.abs(blocked[0]!.heldSinceMs - Date.now())).toBeLessThan(60_000);

  await stranger.delete(`${owners}/2`);
  await has(a, 0, 1, 2, 3);
  await a.member.settled();
});

test('waiting for an owner costs nothing: it is a watch, and not a try every so often', async () => {
  await using zk = await startZk();
  const stranger = await zk.witness();
  await stranger.create(owners, '', { parents: true });
  await stranger.create(`${owners}/2`, 'somebody-0', { mode: 'ephemeral' });
  const a = await join(zk);
  await has(a, 0, 1, 3);
  await vi.waitFor(() => expect(a.member.status().blocked).toHaveLength(1));

  // Anything that it still asked for would be seen by the time that these have been answered.
  const asked = vi.spyOn(a.client, 'multi');
  for (let i = 0; i < 50; i++) await a.client.sync('/');

  expect(asked).not.toHaveBeenCalled();
});

test('who crashed is succeeded when its session ends, without anybody’s help', async () => {
  await using zk = await startZk();
  const a = await join(zk, { consumerId: 'a' }, { renew: false });
  const b = await join(zk, { consumerId: 'b' });
  await has(a, 0, 1);
  await has(b, 2, 3);
  const before = [...b.member.owned]; // of `b.all` some may be gone: whoever came first had all four

  await zk.expire(a.client);

  await has(b, 0, 1, 2, 3);
  expect(before.every(({ signal }) => !signal.aborted)).toBe(true);
});

test('after the session ended everything is lost at once, and then claimed in the new one', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await join(zk);
  await has(a, 0, 1, 2, 3);
  const first = [...a.all];
  const before = a.client.sessionId;

  await zk.expire(a.client);
  await vi.waitFor(() => expect(first.every(({ signal }) => signal.aborted)).toBe(true), 10_000);
  await has(a, 0, 1, 2, 3);

  expect(first[0]!.signal.reason).toMatchObject({ code: 'NOT_OWNER', reason: 'sessionOver' });
  expect(a.client.sessionId).not.toBe(before);
  for (const partition of [0, 1, 2, 3]) {
    const stat = await witness.exists(`${owners}/${partition}`);
    expect(stat!.ephemeralOwner).toBe(a.client.sessionId);
  }
  const epochs = (list: OwnedPartition[]) => list.map(({ epoch }) => epoch).sort();
  expect(epochs(a.all.slice(4))[0]! > epochs(first)[3]!).toBe(true);
  expect(await witness.children(ids)).toEqual([a.member.id]);
});

test('a short cut of the link loses nothing: same session, same owners', async () => {
  await using zk = await startZk();
  const a = await join(zk);
  await has(a, 0, 1, 2, 3);

  zk.link.cut();
  await reached(a.client, 'suspended');
  await reached(a.client, 'connected');
  await a.client.sync('/');

  expect(a.mine()).toEqual([0, 1, 2, 3]);
  expect(a.all).toHaveLength(4);
});

test('cut off for longer than the session, a member knows by its own clock that nothing is its own', async () => {
  await using zk = await startZk();
  const a = await join(zk, {}, short);
  await has(a, 0, 1, 2, 3);

  zk.link.refuse();
  zk.link.cut();
  await vi.waitFor(() => expect(a.all.every(({ signal }) => signal.aborted)).toBe(true), 10_000);
  expect(a.mine()).toEqual([]);
  expect(a.member.state.name).toBe('joining');

  await zk.link.accept();
  await has(a, 0, 1, 2, 3);
});

test('without renew the end of the session is the end of the member, and it says so', async () => {
  await using zk = await startZk();
  const failed = vi.fn();
  const a = await join(zk, {}, { renew: false }, { failed });
  await has(a, 0, 1, 2, 3);

  await zk.expire(a.client);
  await vi.waitFor(() => expect(failed).toHaveBeenCalledOnce(), 10_000);

  expect(failed.mock.calls[0]![0]).toMatchObject({ code: 'SESSION_EXPIRED' });
  expect(a.member.state.name).toBe('failed');
  expect(a.mine()).toEqual([]);
  await expect(a.member.settled()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
  await a.member.close();
});

test('a fixed id that is used again before the old session ended waits for it, and is reported', async () => {
  await using zk = await startZk();
  const first = await join(zk, { consumerId: 'same' });
  await has(first, 0, 1, 2, 3);

  const second = await join(zk, { consumerId: 'same' });
  await vi.waitFor(() => {
    expect(second.member.status().idBlocked?.session).toBe(first.client.sessionId);
  }, 10_000);
  expect(second.mine()).toEqual([]);

  await first.client.close();
  await has(second, 0, 1, 2, 3);
  expect(second.member.status().idBlocked).toBeNull();
});

test('closing while the id is somebody else’s leaves no watch behind', async () => {
  await using zk = await startZk();
  const first = await join(zk, { consumerId: 'same' });
  await has(first, 0, 1, 2, 3);
  const second = await join(zk, { consumerId: 'same' });
  await vi.waitFor(() => expect(second.member.status().idBlocked).not.toBeNull(), 10_000);

  await second.member.close();

  expect(second.client.load.watches).toBe(0);
  expect(first.mine()).toEqual([0, 1, 2, 3]);
});

test('a lost reply to a claim or to the registration does no harm: ownership is what the server shows', async () => {
  await using zk = await startZk();
  let cuts = 0;
  const a = await join(zk);
  await has(a, 0, 1, 2, 3);
  // Cut again and again while everything is claimed anew.
  for (; cuts < 5; cuts++) {
    const b = await join(zk);
    zk.link.cut();
    await vi.waitFor(
      () => {
        const together = [...a.mine(), ...b.mine()].sort();
        expect([a.member.state.name, b.member.state.name]).toEqual(['settled', 'settled']);
        expect(together).toEqual([0, 1, 2, 3]);
        expect(a.mine()).toHaveLength(2);
      },
      { timeout: 15_000, interval: 20 },
    );
    zk.link.cut();
    await b.member.close();
    await has(a, 0, 1, 2, 3);
  }
});

test.for([
  ['range', {}],
  ['sticky', { assignor: 'sticky' }],
] as const)(
  '%s: a claim that was made and could not be looked at is not left behind',
  async ([, options]) => {
    await using zk = await startZk();
    loseRequest(zk.link, opCodes.getData, `${owners}/`);

    const a = await join(zk, options, { readRetries: 0 });

    await has(a, 0, 1, 2, 3);
    expect(a.member.state.name).toBe('settled');
  },
);

test('closing, a member looks for claims of its own that it never heard of', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  loseRequest(zk.link, opCodes.getData, `${owners}/`);
  const closing = deferred<Promise<void>>();
  // Closed in the moment in which a claim failed: before it could be looked for again.
  const problem = () => closing.resolve(a.member.close());
  const a = await join(zk, {}, { readRetries: 0 }, { problem });

  await closing.promise;

  expect(a.all.length).toBeLessThan(4);
  expect(await witness.children(owners)).toEqual([]);
});

test('a node of this member’s own earlier session is deleted, and claimed anew', async () => {
  await using zk = await startZk();
  const a = await join(zk, {}, short);
  await has(a, 0, 1, 2, 3);

  // Its own clock ends the session; on the server it still lives, with all its nodes.
  const witness = await zk.witness();
  const before = a.client.sessionId!;
  zk.link.refuse();
  zk.link.cut();
  await vi.waitFor(() => expect(a.client.sessionId).toBeUndefined(), 10_000);
  await zk.link.accept();
  await has(a, 0, 1, 2, 3);

  const stats = await Promise.all([0, 1, 2, 3].map((p) => witness.exists(`${owners}/${p}`)));
  expect(stats.map((stat) => stat!.ephemeralOwner === before)).toEqual(Array(4).fill(false));
});

test('garbage in one registration is reported, and the others share everything', async () => {
  await using zk = await startZk();
  const bad = await zk.witness();
  await bad.create(ids, '', { parents: true });
  await bad.create(`${ids}/g_empty`, '', { mode: 'ephemeral' });
  await bad.create(`${ids}/g_nonsense`, '{]', { mode: 'ephemeral' });
  const white = { version: 1, pattern: 'white_list', subscription: { '(?<': 1 }, timestamp: '1' };
  await bad.create(`${ids}/g_regex`, JSON.stringify(white), { mode: 'ephemeral' });

  const a = await join(zk);
  await has(a, 0, 1, 2, 3);

  const paths = new Set(a.member.status().problems.map(({ path }) => path));
  expect([...paths].sort()).toEqual(
    ['g_empty', 'g_nonsense', 'g_regex'].map((id) => `${ids}/${id}`),
  );
});

test('a filter that backtracks for ever, and threads without end, do not stop the other members', async () => {
  await using zk = await startZk();
  const bad = await zk.witness();
  await bad.create(ids, '', { parents: true });
  const write = (id: string, filter: string, threads: number) => {
    const subscription = { [filter]: threads };
    const data = JSON.stringify({
      version: 1,
      pattern: 'white_list',
      subscription,
      timestamp: '1',
    });
    return bad.create(`${ids}/${id}`, data, { mode: 'ephemeral' });
  };
  await write('g_backtracks', '(a+)+b', 1);
  await write('g_threads', 'a.*', 10_000);
  const a = 'a'.repeat(120);
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`${a}${i}`, 1]));

  const member = await join(zk, { topics: fixedTopics({ ...many, t: 4 }) });
  await has(member, 0, 1, 2, 3);

  expect(member.member.status().problems).toMatchObject([
    { path: `${ids}/g_threads`, why: expect.stringContaining('500000') },
  ]);
});

test.for([
  ['classic', {}],
  ['planned', { mode: 'planned' }],
] as const)(
  '%s: names that no topic can have, and threads without end, are reported, and the others share everything',
  async ([, options]) => {
    await using zk = await startZk();
    const bad = await zk.witness();
    await bad.create(ids, '', { parents: true });
    const write = (id: string, subscription: object, pattern = 'static') => {
      const data = JSON.stringify({ version: 1, pattern, subscription, timestamp: '1' });
      return bad.create(`${ids}/${id}`, data, { mode: 'ephemeral' });
    };
    await write('g_dots', { '..': 1 });
    await write('g_endless', { t: 1_000_000_000 });
    await write('g_endless_list', { '.*': 1_000_000_000 }, 'white_list');
    await write('g_none', { '': 1 });
    await write('g_slashes', { 'a//b': 1 });
    const replicas = { 0: [1], 1: [1], 2: [1], 3: [1] };
    const topic = { version: 1, partitions: replicas };
    const path = layout08.topic.at({ topic: 't' });
    await bad.create(path, JSON.stringify(topic), { parents: true });

    const client = await zk.connect();
    await using member = new GroupMember(
      client,
      { group, subscribe: { topics: ['t'] }, ...options },
      { assigned: () => {}, releasing: async () => {} },
    );
    member.start();
    await member.settled();

    expect(member.owned).toHaveLength(4);
    const paths = new Set(member.status().problems.map(({ path }) => path));
    expect([...paths].sort()).toEqual(
      ['g_dots', 'g_endless', 'g_endless_list', 'g_none', 'g_slashes'].map((id) => `${ids}/${id}`),
    );
  },
);

test('a registration that was made empty and filled later counts once it is filled', async () => {
  await using zk = await startZk();
  const late = await zk.witness();
  await late.create(ids, '', { parents: true });
  await late.create(`${ids}/g_0late`, '', { mode: 'ephemeral' });
  const a = await join(zk);
  await has(a, 0, 1, 2, 3);

  const data = '{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}';
  await late.set(`${ids}/g_0late`, data);
  const b = await join(zk, { consumerId: 'z' }); // any change makes all look again
  await has(b, 3);
  await has(a, 2);
});

test('a registration that somebody deleted is made again', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  for (const mode of ['classic', 'planned'] as const) {
    const a = await join(zk, { mode });
    await has(a, 0, 1, 2, 3);

    await witness.delete(`${ids}/${a.member.id}`);
    await vi.waitFor(async () => {
      const stat = await witness.exists(`${ids}/${a.member.id}`);
      expect(stat?.ephemeralOwner).toBe(a.client.sessionId);
    }, 10_000);
    await has(a, 0, 1, 2, 3);
    await a.member.close();
  }
});

test.for([
  ['classic', {}],
  ['sticky', { assignor: 'sticky' }],
  ['planned', { mode: 'planned' }],
] as const)(
  '%s: a group that somebody deleted with all its nodes comes back',
  async ([, options]) => {
    await using zk = await startZk();
    const witness = await zk.witness();
    const a = await join(zk, options);
    await has(a, 0, 1, 2, 3);

    await witness.deleteRecursive(`/consumers/${group}`);

    await vi.waitFor(async () => {
      const stats = await Promise.all([0, 1, 2, 3].map((p) => witness.exists(`${owners}/${p}`)));
      expect(stats.every((stat) => stat?.ephemeralOwner === a.client.sessionId)).toBe(true);
    }, 10_000);
    const b = await join(zk, options);
    await vi.waitFor(() => expect([a.mine().length, b.mine().length]).toEqual([2, 2]), 10_000);
  },
);

test('an owner node that somebody deleted is lost, and then claimed anew', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await join(zk);
  await has(a, 0, 1, 2, 3);
  const [before] = a.all.filter(({ partition }) => partition === '1');

  await witness.delete(`${owners}/1`);
  await vi.waitFor(() => expect(before!.signal.aborted).toBe(true), 10_000);
  await has(a, 0, 1, 2, 3);

  expect(before!.signal.reason).toMatchObject({ reason: 'nodeDeleted' });
  expect(a.all.filter(({ partition }) => partition === '1')[1]!.epoch > before!.epoch).toBe(true);
});

test('a slow member delays only what is asked of it, and no longer than it may', async () => {
  await using zk = await startZk();
  let isFreed = false;
  const a = await join(
    zk,
    { consumerId: 'a', releaseTimeoutMs: 60_000 },
    {},
    {
      releasing: () =>
        vi.waitFor(() => expect(isFreed).toBe(true), { timeout: 30_000, interval: 20 }),
    },
  );
  await has(a, 0, 1, 2, 3);
  const b = await join(zk, { consumerId: 'b' });
  await vi.waitFor(() => expect(b.member.status().blocked).toHaveLength(2), 10_000);
  expect(b.member.status().blocked.map(({ holder }) => holder)).toEqual(['g_a-0', 'g_a-0']);
  await vi.waitFor(() => expect(a.member.status().releasing).toHaveLength(2), 10_000);

  isFreed = true;
  await has(b, 2, 3);
});

test('work that never ends is left behind when its time is over', async () => {
  await using zk = await startZk();
  const hung = { releasing: () => new Promise<void>(() => {}) };
  const a = await join(zk, { consumerId: 'a', releaseTimeoutMs: 50 }, {}, hung);
  await has(a, 0, 1, 2, 3);
  const b = await join(zk, { consumerId: 'b' });

  await has(b, 2, 3);
  await has(a, 0, 1);
});

test('a zombie’s commit is refused: by its own process, and by the server', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await join(zk, { consumerId: 'a' });
  await has(a, 0, 1, 2, 3);
  const store = new OffsetStore(a.client, { group, onProblem: () => {} });
  const [zombie] = a.all.filter(({ partition }) => partition === '3');
  await store.commit([{ owned: zombie!, offset: 10n }]);
  const path = layout08.offset.at({ group, topic: 't', partition: 3 });

  // As an admin would: the node is deleted under it, and another member is quicker than the news.
  await witness.multi([
    { op: 'delete', path: `${owners}/3` },
    { op: 'create', path: `${owners}/3`, data: 'b-0', mode: 'ephemeral' },
    { op: 'set', path, data: '10' },
  ]);
  const late = store.commit([{ owned: zombie!, offset: 11n }]);

  await expect(late).rejects.toMatchObject({ code: 'NOT_OWNER' });
  expect(String((await witness.get(path)).data)).toBe('10');
});

test('scripted Java members: claims made by their rule and ours fit into one group', async () => {
  await using zk = await startZk();
  const java = await zk.witness();
  const id = 'g_javahost-1411294187842-5b2a0f11';
  const data =
    '{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1411294187842"}';
  await java.create(ids, '', { parents: true });
  await java.create(`${ids}/${id}`, data, { mode: 'ephemeral' });
  await java.create(owners, '', { parents: true });
  for (const p of [0, 1, 2, 3]) {
    await java.create(`${owners}/${p}`, `${id}-0`, { mode: 'ephemeral' });
  }
  // It sorts behind "g_a": with range over two members Java keeps 2 and 3, and lets 0 and 1 go.
  const a = await join(zk, { consumerId: 'a' });
  await vi.waitFor(() => expect(a.member.status().blocked).toHaveLength(2), 10_000);

  // Java's rebalance: release all, then claim what its own computation says.
  for (const p of [0, 1, 2, 3]) await java.delete(`${owners}/${p}`);
  for (const p of [2, 3]) {
    await java.create(`${owners}/${p}`, `${id}-0`, { mode: 'ephemeral' });
  }
  await has(a, 0, 1);
  await a.member.settled();
  expect(String((await java.get(`${owners}/0`)).data)).toBe('g_a-0');

  // It dies: what it had is ours.
  for (const p of [2, 3]) await java.delete(`${owners}/${p}`);
  await java.delete(`${ids}/${id}`);
  await has(a, 0, 1, 2, 3);
});

test('what an earlier session of ours left is deleted at once; what a stranger left is not', async () => {
  await using zk = await startZk();
  const before = await zk.witness();
  const stranger = await zk.witness();
  await before.create(owners, '', { parents: true });
  await before.create(`${owners}/0`, 'g_me-0', { mode: 'ephemeral' });
  await stranger.create(`${owners}/1`, 'g_me-0', { mode: 'ephemeral' });
  const client = await zk.connect();
  const ownership = new Ownership(client, {
    group,
    wallMs: Date.now,
    formerSessions: new Set([before.sessionId!]),
    onChange: () => {},
    onProblem: () => {},
  });

  const [mine, theirs] = await Promise.all(
    ['0', '1'].map((partition) => ownership.claim({ topic: 't', partition }, 'g_me-0')),
  );

  expect(mine).toMatchObject({ owned: { partition: '0', sessionId: client.sessionId } });
  expect(theirs).toMatchObject({ blocked: { partition: '1', holderSession: stranger.sessionId } });
  await ownership.close();
});

test('a claim shuts out whoever owned the partition before, even one that was never told', async () => {
  await using zk = await startZk();
  const admin = await zk.witness();
  const claim = async (client: Client) => {
    const ownership = new Ownership(client, {
      group,
      wallMs: Date.now,
      formerSessions: new Set(),
      onChange: () => {}, // hears nothing
      onProblem: () => {},
    });
    const claimed = await ownership.claim({ topic: 't', partition: '0' }, 'g_x-0');
    return (claimed as { owned: OwnedPartition }).owned;
  };
  const [first, second] = [await zk.connect(), await zk.connect()];
  const stores = [first, second].map(
    (client) => new OffsetStore(client, { group, onProblem: () => {} }),
  );
  const before = await claim(first);
  await stores[0]!.commit([{ owned: before, offset: 5n }]);

  await admin.delete(`${owners}/0`);
  const after = await claim(second);
  const late = stores[0]!.commit([{ owned: before, offset: 9n }]);

  await expect(late).rejects.toMatchObject({ code: 'NOT_OWNER' });
  expect(after.offset).toBe(5n);
  await stores[1]!.commit([{ owned: after, offset: 6n }]);
  const path = layout08.offset.at({ group, topic: 't', partition: 0 });
  expect(String((await admin.get(path)).data)).toBe('6');
});

test('subscriptions that the assignor cannot deal with are reported, and end nobody', async () => {
  await using zk = await startZk();
  const two = fixedTopics({ t: 4, u: 4 });
  const old = { assignor: 'roundrobin-0.8', topics: two } as const;
  const a = await join(zk, { ...old, subscribe: { topics: ['t', 'u'] } });
  await vi.waitFor(() => expect(a.member.owned).toHaveLength(8), 10_000);
  const b = await join(zk, { ...old, subscribe: { topics: ['t'] } });
  await vi.waitFor(() => {
    expect(a.member.status().problems.at(-1)?.why).toMatch(/use roundrobin/);
  }, 10_000);
  expect(a.member.owned).toHaveLength(8);

  await b.member.close();
  await vi.waitFor(() => expect(a.member.state.name).toBe('settled'), 10_000);
});
