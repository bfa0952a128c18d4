/**
 * Beside Java: trees as the consumers and brokers of Kafka 0.7.2, 0.8.2.2 and 1.1.1 leave them, in
 * `test/golden/kafka/groups.json`. What we read there, and that a member of ours joins their groups
 * without touching what is theirs, and leaves the bytes that a Java consumer of that release would.
 *
 * A live client holds what is ephemeral, for all of Java's processes. Time stands still for what is
 * written, and ids are given, so nothing has to be left out of the comparison.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import {
  type AssignorName,
  describeGroup,
  GroupMember,
  layout07,
  layout08,
  listGroups,
  OffsetStore,
  type OwnedPartition,
  readBrokers,
  readController,
  readTopic,
  readTopicNames,
  type SubscriptionInput,
  ZooKeeperTopics,
} from '../../src/kafka/index.ts';
import { systemClock } from '../../src/support/index.ts';
import { eventually } from '../kafka.ts';
import { startZk } from '../zk.ts';

interface Node {
  readonly data: string | null;
  readonly ephemeral: boolean;
}
type Tree = Readonly<Record<string, Node>>;

/** How a member of ours joins a group, and the nodes of the group that are then new or other. */
interface Joined {
  readonly assignor: AssignorName;
  readonly subscribe: SubscriptionInput;
  readonly nodes: Tree;
}
interface Version {
  readonly tree: Tree;
  readonly joined: Readonly<Record<string, Joined>>;
}

const file = join(import.meta.dirname, '../golden/kafka/groups.json');
const golden = JSON.parse(readFileSync(file, 'utf8')) as {
  readonly versions: Readonly<Record<string, Version>>;
};
const versions = Object.entries(golden.versions);
const joins = versions.flatMap(([version, { tree, joined }]) =>
  Object.entries(joined).map(([group, how]) => ({ version, group, tree, ...how })),
);

const generationOf = (version: string) => (version.startsWith('0.7') ? '0.7' : '0.8');
/** What the golden nodes of our member say. */
const clock = { ...systemClock, wallMs: () => 1_500_000_000_000 };

/** Parents come first: a path sorts before what is below it. */
async function load(client: Client, tree: Tree): Promise<void> {
  for (const path of Object.keys(tree).sort()) {
    const { data, ephemeral } = tree[path]!;
    await client.create(path, data, { mode: ephemeral ? 'ephemeral' : 'persistent' });
  }
}

/** By path: text, whose session it is, and what shows whether anybody has written it since. */
async function dump(client: Client) {
  const seen = new Map<string, Node & { session: bigint; mzxid: bigint; czxid: bigint }>();
  for await (const { path } of client.walk('/')) {
    if (path === '/') continue;
    const { data, stat } = await client.get(path);
    const { ephemeralOwner: session, mzxid, czxid } = stat;
    const text = data === null ? null : data.toString('utf8');
    seen.set(path, { data: text, ephemeral: session !== 0n, session, mzxid, czxid });
  }
  return seen;
}

const plain = (seen: Awaited<ReturnType<typeof dump>>): Tree =>
  Object.fromEntries([...seen].map(([path, { data, ephemeral }]) => [path, { data, ephemeral }]));

/**
 * The one difference: a parent that nobody has made yet. Nobody reads it, and it is empty where we make
 * it; Java's is null, and in 1.1 empty above a registration and null elsewhere.
 */
const withOurParent = ([path, node]: [string, Node]): [string, Node] => [
  path,
  { ...node, data: node.data ?? '' },
];

/** The text of every node right below a path, by name. */
function below(tree: Tree, parent: string): Record<string, string | null> {
  const entries = Object.entries(tree)
    .filter(([path]) => path.slice(0, path.lastIndexOf('/')) === parent)
    .map(([path, { data }]) => [path.slice(parent.length + 1), data] as const);
  return Object.fromEntries(entries);
}

test.for(versions)('%s: every group is read as it stands', async ([version, { tree }]) => {
  await using zk = await startZk();
  const java = await zk.witness();
  await load(java, tree);
  const client = await zk.connect();

  expect(await listGroups(client)).toEqual(Object.keys(below(tree, '/consumers')).sort());

  for (const group of await listGroups(client)) {
    const seen = await describeGroup(client, { group, generation: generationOf(version) });
    const ids = Object.keys(below(tree, `/consumers/${group}/ids`)).sort();
    expect(seen.members.map(({ id, sessionId }) => [id, sessionId])).toEqual(
      ids.map((id) => [id, java.sessionId]),
    );
    expect(seen.problems).toEqual([]);
    const expected = ['owners', 'offsets'].map((kind) => {
      const topics = Object.keys(below(tree, `/consumers/${group}/${kind}`));
      return topics.flatMap((topic) =>
        Object.entries(below(tree, `/consumers/${group}/${kind}/${topic}`)).map(
          ([partition, text]) => `${topic}/${partition} ${text}`,
        ),
      );
    });
    const owners = seen.partitions.map((one) => `${one.topic}/${one.partition} ${one.owner}`);
    const offsets = seen.partitions
      .filter(({ offset }) => offset !== null)
      .map((one) => `${one.topic}/${one.partition} ${one.offset}`);
    expect([owners.sort(), offsets.sort()]).toEqual(expected.map((list) => list.sort()));
    for (const { consumerId, ownerSession } of seen.partitions) {
      expect(ids).toContain(consumerId);
      expect(ownerSession).toBe(java.sessionId);
    }
  }
  expect(plain(await dump(java))).toEqual(tree);
});

const registrations = [
  ['0.7.2', 'audit', ['static', { clicks: 2 }, null], ['white_list', { 'clicks|vi.*': 1 }, null]],
  [
    '0.8.2.2',
    'billing',
    ['static', { orders: 11 }, 1_420_000_001_100],
    ['white_list', { 'or\\w+|re.*': 1 }, 1_420_000_002_100],
  ],
  [
    '1.1.1',
    'billing',
    ['static', { orders: 2, refunds: 2 }, 1_520_000_001_100],
    ['black_list', { 'or.*': 2 }, 1_520_000_002_100],
  ],
] as const;

test.for(registrations)(
  '%s: registrations in %s say what they mean',
  async ([version, group, ...expected]) => {
    await using zk = await startZk();
    const client = await zk.connect();
    await load(client, golden.versions[version]!.tree);

    const { members } = await describeGroup(client, { group, generation: generationOf(version) });

    const read = members.map(({ registration }) => {
      const { pattern, subscription, timestampMs } = registration!;
      return [pattern, Object.fromEntries(subscription), timestampMs];
    });
    expect(read).toEqual(expected);
  },
);

test('0.7.2: brokers and their shares of topics are read', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await load(client, golden.versions['0.7.2']!.tree);

  const path = layout07.broker.at({ id: 1 });
  expect(layout07.broker.parse((await client.get(path)).data, path)).toMatchObject({
    host: '10.0.0.11',
    port: 9092,
    timestampMs: 1_330_000_000_500,
  });
  const topics = new ZooKeeperTopics(client, '0.7', (problem) => expect.fail(problem.why));
  expect(await topics.list()).toEqual(['clicks', 'views']);
  expect((await topics.partitions('clicks')).join(' ')).toBe(
    '0-0 0-1 0-10 0-2 0-3 0-4 0-5 0-6 0-7 0-8 0-9 1-0 1-1',
  );
  await topics.close();
});

const clusters = [
  {
    version: '0.8.2.2',
    form: { version: 1, jmxPort: 9999, rack: null, timestampMs: 1_420_000_000_001 },
    topics: ['orders', 'refunds', 'stock'],
    controller: { brokerId: 1, epoch: 3, sinceMs: 1_420_000_000_100 },
    partitions: 14,
  },
  {
    version: '1.1.1',
    form: { version: 4, jmxPort: -1, rack: 'east', timestampMs: 1_520_000_000_001 },
    topics: ['__consumer_offsets', 'orders', 'refunds'],
    controller: { brokerId: 2, epoch: 12, sinceMs: 1_520_000_000_100 },
    partitions: 12,
  },
];

test.for(clusters)('$version: brokers, topics and the controller are read', async (cluster) => {
  await using zk = await startZk();
  const java = await zk.witness();
  const { tree } = golden.versions[cluster.version]!;
  await load(java, tree);
  const client = await zk.connect();
  const onProblem = ({ path, why }: { path: string; why: string }) => expect.fail(`${path} ${why}`);

  const brokers = await readBrokers(client, { onProblem });
  expect(brokers.map(({ id, sessionId }) => [id, sessionId])).toEqual([
    [1, java.sessionId],
    [2, java.sessionId],
  ]);
  const at = { host: 'kafka1', port: 9092 };
  expect(brokers[0]!.registration).toEqual({
    ...cluster.form,
    ...at,
    endpoints: [{ listener: 'PLAINTEXT', protocol: 'PLAINTEXT', ...at }],
    features: {},
  });
  expect(await readController(client, { onProblem })).toEqual(cluster.controller);
  expect(await readTopicNames(client)).toEqual(cluster.topics);
  const orders = await readTopic(client, 'orders', { onProblem });
  expect(orders).toMatchObject({
    topicId: null,
    config: { 'retention.ms': '86400000' },
    isBeingDeleted: false,
  });
  const { epoch: controllerEpoch } = cluster.controller;
  const expected = Array.from({ length: cluster.partitions }, (_, partition) => {
    const replicas = partition % 2 === 0 ? [1, 2] : [2, 1];
    const state = {
      leader: replicas[0],
      leaderEpoch: partition % 3,
      controllerEpoch,
      isr: replicas,
      isRecovering: false,
    };
    return { partition, replicas, adding: [], removing: [], state };
  });
  expect(orders!.partitions).toEqual(expected);
  // What a controller of ours writes over it is the same text.
  for (const { partition, state } of orders!.partitions) {
    const path = layout08.partitionState.at({ topic: 'orders', partition });
    expect(layout08.partitionState.format(state!)).toBe(tree[path]!.data);
  }
});

test('0.7.2: brokers are read as they wrote themselves, and what is no broker is told', async () => {
  await using zk = await startZk();
  const java = await zk.witness();
  await load(java, golden.versions['0.7.2']!.tree);
  await java.create('/brokers/ids/7', 'neither:this:nor:that');
  const problems: string[] = [];

  const brokers = await readBrokers(java, { onProblem: ({ path }) => void problems.push(path) });

  const at = (host: string) => ({ host, port: 9092 });
  expect(brokers).toMatchObject([
    { id: 0, registration: { version: 0, timestampMs: 1330000000000, ...at('10.0.0.10') } },
    { id: 1, registration: { version: 0, timestampMs: 1330000000500, ...at('10.0.0.11') } },
  ]);
  expect(brokers[1]!.registration.endpoints).toEqual([
    { listener: 'PLAINTEXT', protocol: 'PLAINTEXT', ...at('10.0.0.11') },
  ]);
  expect(problems).toEqual(['/brokers/ids/7']);
});

test.for(joins)('$version: a member of ours joins $group as a Java one would', async (how) => {
  const { version, group, tree, nodes, assignor, subscribe } = how;
  await using zk = await startZk();
  const java = await zk.witness();
  await load(java, tree);
  const before = await dump(java);
  const client = await zk.connect();
  const store = new OffsetStore(client, { group, onProblem: ({ why }) => expect.fail(why) });
  const owned = new Map<string, OwnedPartition>();
  const member = new GroupMember(
    client,
    {
      group,
      subscribe,
      assignor,
      generation: generationOf(version),
      consumerId: 'drover',
      debounceMs: 20,
      clock,
    },
    { assigned: (one) => owned.set(one.path, one), releasing: async () => {} },
  );
  const isMine = (path: string) => nodes[path]!.data?.startsWith(`${member.id}-`);
  const owners = Object.keys(nodes).filter(
    (path) => nodes[path]!.ephemeral && path.includes('/owners/'),
  );
  const due = owners.filter(isMine);
  const held = due.filter((path) => path in tree);
  member.start();

  // It waits for what is Java's, says so, and touches nothing.
  const pathOf = (one: { topic: string; partition: string }) =>
    layout08.owner.at({ group, topic: one.topic, partition: one.partition });
  await eventually(() => {
    expect(member.status().blocked.map(pathOf).sort()).toEqual([...held].sort());
    expect(member.owned.map(pathOf).sort()).toEqual(due.filter((one) => !held.includes(one)));
  });
  const waiting = await dump(java);
  for (const [path, node] of before) expect(waiting.get(path), path).toEqual(node);

  // Java's members rebalance: what moves is deleted, and made anew by who gets it.
  const moving = owners.filter((path) => path in tree && tree[path]!.data !== nodes[path]!.data);
  for (const path of moving) await java.delete(path);
  for (const path of moving.filter((one) => !isMine(one))) {
    await java.create(path, nodes[path]!.data, { mode: 'ephemeral' });
  }
  await eventually(() => {
    expect(member.state.name).toBe('settled');
    expect(member.owned.map(pathOf).sort()).toEqual([...due].sort());
  });
  const commits = Object.entries(nodes)
    .filter(([path, { data }]) => path.includes('/offsets/') && data !== null)
    .map(([path, { data }]) => {
      const mine = owned.get(path.replace('/offsets/', '/owners/'));
      return { owned: mine!, offset: BigInt(data!) };
    });
  await store.commit(commits);

  const after = await dump(java);
  const whole = { ...tree, ...Object.fromEntries(Object.entries(nodes).map(withOurParent)) };
  expect(plain(after)).toEqual(whole);
  const id = `/consumers/${group}/ids/${member.id}`;
  const ours = [...after].filter(([, { session }]) => session === client.sessionId);
  expect(ours.map(([path]) => path).sort()).toEqual([id, ...due].sort());
  // A claim writes a stored offset once more, as it is: so what an owner before commits is refused.
  const fenced = new Set(due.map((path) => path.replace('/owners/', '/offsets/')));
  const untouched = Object.keys(tree).filter((path) => !(path in nodes) && !fenced.has(path));
  for (const path of untouched) expect(after.get(path), path).toEqual(before.get(path));
  const reading = await describeGroup(client, { group, generation: generationOf(version) });
  expect(reading.problems).toEqual([]);

  // It goes, and leaves its offsets alone behind.
  await member.close();
  const gone = new Set([id, ...due]);
  const left = Object.entries(whole).filter(([path]) => !gone.has(path));
  expect(plain(await dump(java))).toEqual(Object.fromEntries(left));
});
