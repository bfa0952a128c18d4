/** Offsets in ZooKeeper: fenced, never back, reset by hand, and beside Kafka's own. */

import { expect, test, vi } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import {
  fixedTopics,
  GroupMember,
  layout08,
  type OffsetCommitter,
  OffsetStore,
  type OwnedPartition,
  resetOffsets,
} from '../../src/kafka/index.ts';
import { Ownership } from '../../src/kafka/ownership.ts';
import { startZk, type Zk } from '../zk.ts';

const group = 'g';
const pathOf = (partition: number) => layout08.offset.at({ group, topic: 't', partition });
const t = (partition: number) => ({ topic: 't', partition: String(partition) });

async function owner(zk: Zk, count = 2) {
  const client = await zk.connect({ renew: true });
  const owned: OwnedPartition[] = [];
  const member = new GroupMember(
    client,
    { group, subscribe: { topics: ['t'] }, topics: fixedTopics({ t: count }), debounceMs: 20 },
    { assigned: (one) => owned.push(one), releasing: async () => {} },
  );
  member.start();
  await vi.waitFor(() => expect(owned).toHaveLength(count), 10_000);
  owned.sort((a, b) => Number(a.partition) - Number(b.partition));
  return { client, member, owned, store: storeOf(client) };
}

function storeOf(client: Client, committer?: OffsetCommitter): OffsetStore {
  return new OffsetStore(client, { group, committer, onProblem: () => {} });
}

const text = async (client: Client, partition: number) =>
  String((await client.get(pathOf(partition))).data);

test('a commit is a decimal number in the partition’s node; the next claim begins there', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await owner(zk);

  const results = await a.store.commit([
    { owned: a.owned[0]!, offset: 5n },
    { owned: a.owned[1]!, offset: 9_007_199_254_740_993n },
  ]);
  await a.member.close();
  const b = await owner(zk);

  expect(results.map(({ outcome }) => outcome)).toEqual(['committed', 'committed']);
  expect([await text(witness, 0), await text(witness, 1)]).toEqual(['5', '9007199254740993']);
  expect(await Promise.all(b.owned.map((one) => b.store.start(one)))).toEqual([
    5n,
    9_007_199_254_740_993n,
  ]);
});

test('all partitions of a commit go in one request', async () => {
  await using zk = await startZk();
  const a = await owner(zk, 12);
  await a.store.commit(a.owned.map((owned) => ({ owned, offset: 1n })));
  const multi = vi.spyOn(a.client, 'multi');

  await a.store.commit(a.owned.map((owned) => ({ owned, offset: 2n })));

  expect(multi).toHaveBeenCalledOnce();
});

test('an offset never goes back by a commit, and the same one again writes nothing', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const { store, owned } = await owner(zk);
  await store.commit([{ owned: owned[0]!, offset: 10n }]);
  const { version } = (await witness.exists(pathOf(0)))!;

  const lower = await store.commit([{ owned: owned[0]!, offset: 7n }]);
  const same = await store.commit([{ owned: owned[0]!, offset: 10n }]);

  expect(lower).toEqual([{ ...t(0), offset: 10n, outcome: 'kept' }]);
  expect(same).toEqual([{ ...t(0), offset: 10n, outcome: 'unchanged' }]);
  expect((await witness.exists(pathOf(0)))!.version).toBe(version);
});

test('commits that overlap are put in order', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const { store, owned } = await owner(zk);

  await Promise.all(
    [...Array(30).keys()].map((i) => store.commit([{ owned: owned[0]!, offset: BigInt(i + 1) }])),
  );

  expect(await text(witness, 0)).toBe('30');
});

test('a commit whose reply was lost is settled by looking, and counts once', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const { store, owned } = await owner(zk);
  for (let i = 1; i <= 10; i++) {
    const committing = store.commit([{ owned: owned[0]!, offset: BigInt(i) }]);
    zk.link.cut();
    expect((await committing)[0]!.offset).toBe(BigInt(i));
  }

  expect(await text(witness, 0)).toBe('10');
});

test('a higher offset that somebody else wrote is kept; a lower one is written over', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const { store, owned } = await owner(zk);
  await store.commit([{ owned: owned[0]!, offset: 10n }]);

  await witness.set(pathOf(0), '50');
  const [kept] = await store.commit([{ owned: owned[0]!, offset: 20n }]);
  await witness.set(pathOf(0), '15');
  const [written] = await store.commit([{ owned: owned[0]!, offset: 60n }]);

  expect(kept).toMatchObject({ outcome: 'kept', offset: 50n });
  expect(written).toMatchObject({ outcome: 'committed', offset: 60n });
  expect(await text(witness, 0)).toBe('60');
});

test('what is no offset is reported, and written over', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  await witness.create(pathOf(0), 'nonsense', { parents: true });
  const { store, owned } = await owner(zk);

  expect(await store.start(owned[0]!)).toBeNull();
  await store.commit([{ owned: owned[0]!, offset: 3n }]);

  expect(await text(witness, 0)).toBe('3');
});

test('after the session ended nothing is committed, though the same process has a new one', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await owner(zk);
  await a.store.commit([{ owned: a.owned[0]!, offset: 1n }]);
  const before = a.client.sessionId;

  await zk.expire(a.client);
  await vi.waitFor(() => {
    expect(a.client.sessionId).not.toBe(before);
    expect(a.client.state.name).toBe('connected');
  }, 10_000);
  const late = a.store.commit([{ owned: a.owned[0]!, offset: 2n }]);

  await expect(late).rejects.toMatchObject({ code: 'NOT_OWNER', reason: 'sessionOver' });
  expect(await text(witness, 0)).toBe('1');
});

test('a partition that was let go of takes no commit any more', async () => {
  await using zk = await startZk();
  const a = await owner(zk);
  await a.member.close();

  const late = a.store.commit([{ owned: a.owned[0]!, offset: 2n }]);

  await expect(late).rejects.toMatchObject({ code: 'NOT_OWNER', reason: 'released' });
});

test('with a committer Kafka’s own offsets are written first, and the higher is read', async () => {
  await using zk = await startZk();
  const witness = await zk.witness();
  const a = await owner(zk);
  const kafka = new Map<string, bigint>([['0', 100n]]);
  let isUp = true;
  const committer: OffsetCommitter = {
    fetch: async (_, partitions) =>
      partitions.flatMap(({ topic, partition }) => {
        const offset = kafka.get(partition);
        return offset === undefined ? [] : [{ topic, partition, offset }];
      }),
    commit: async (_, offsets) => {
      if (!isUp) throw new Error('the coordinator is away');
      for (const { partition, offset } of offsets) kafka.set(partition, offset);
    },
  };
  const store = storeOf(a.client, committer);

  expect(await Promise.all(a.owned.map((one) => store.start(one)))).toEqual([100n, null]);
  await store.commit([{ owned: a.owned[1]!, offset: 7n }]);
  isUp = false;
  await expect(store.commit([{ owned: a.owned[1]!, offset: 8n }])).rejects.toThrow('away');

  expect([kafka.get('1'), await text(witness, 1)]).toEqual([7n, '7']);
});

const source = {
  bounds: async () => ({ earliest: 10n, latest: 90n }),
  offsetForTime: async (_: unknown, ms: number) => BigInt(ms),
};

test('offsets are reset to a number, an end, a time, or by a shift, within what there is', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const partitions = [t(0)];
  const rules = [
    { to: 50n },
    { shiftBy: -20n },
    { shiftBy: -100n },
    { shiftBy: 1_000n },
    { to: 'earliest' },
    { to: 'latest' },
    { toTimeMs: 33 },
    { to: 33n },
  ] as const;

  const results = [];
  for (const rule of rules) {
    const [result] = await resetOffsets(client, { group, partitions, rule, source });
    results.push(`${result!.before} ${result!.outcome} ${result!.after}`);
  }

  expect(results).toEqual([
    'null set 50',
    '50 set 30',
    '30 set 10',
    '10 set 90',
    '90 set 10',
    '10 set 90',
    '90 set 33',
    '33 unchanged 33',
  ]);
  expect(await text(client, 0)).toBe('33');
});

test('a partition that somebody owns is not reset; a dry run writes nothing', async () => {
  await using zk = await startZk();
  const a = await owner(zk);
  await a.store.commit([{ owned: a.owned[0]!, offset: 5n }]);
  const client = await zk.connect();
  const ask = { group, partitions: [t(0)], rule: { to: 0n } } as const;

  expect(await resetOffsets(client, ask)).toEqual([
    { ...t(0), before: 5n, after: 0n, outcome: 'owned' },
  ]);
  await a.member.close();
  expect((await resetOffsets(client, { ...ask, dryRun: true }))[0]!.outcome).toBe('wouldSet');
  expect(await text(client, 0)).toBe('5');
  expect((await resetOffsets(client, ask))[0]!.outcome).toBe('set');
  expect(await text(client, 0)).toBe('0');
  const owners = layout08.owners.at({ group, topic: 't' });
  expect(await client.children(owners)).toEqual([]);
});

test('a shift whose reply was lost is done once', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const witness = await zk.witness();
  await witness.create(pathOf(0), '0', { parents: true });
  for (let i = 1; i <= 10; i++) {
    const shifting = resetOffsets(client, { group, partitions: [t(0)], rule: { shiftBy: 10n } });
    zk.link.cut();
    await shifting;
    expect(await text(witness, 0)).toBe(String(10 * i));
  }
});

test('what needs a source says so', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const ask = { group, partitions: [t(0)] };

  await expect(resetOffsets(client, { ...ask, rule: { to: 'latest' } })).rejects.toThrow(/source/);
  await expect(resetOffsets(client, { ...ask, rule: { shiftBy: 1n } })).rejects.toThrow(/shift/);
});

/** A claim on partition 0 that hears of nothing: as of a member that is slow to be told. */
async function claim(client: Client, thread: string): Promise<OwnedPartition> {
  const ownership = new Ownership(client, {
    group,
    wallMs: () => 0,
    formerSessions: new Set(),
    onChange: () => {},
    onProblem: () => {},
  });
  const claimed = await ownership.claim(t(0), thread);
  if (claimed === null || !('owned' in claimed)) throw new Error('it is not ours');
  return claimed.owned;
}

test.each(['before it commits', 'before it looks whose it is', 'before the offset is written'])(
  'a former owner whose node was deleted by hand %s commits nothing, where nothing ever was',
  async (when) => {
    await using zk = await startZk();
    const [former, client, witness] = [await zk.connect(), await zk.connect(), await zk.witness()];
    await witness.create(pathOf(1), '7', { parents: true }); // so that nothing is missing above ours
    const was = await claim(former, 'former-0');
    let heir: OwnedPartition | undefined;
    const takeOver = async () => {
      await witness.delete(was.path);
      heir = await claim(client, 'heir-0');
    };
    if (when === 'before it commits') await takeOver();
    const [exists, multi] = [former.exists.bind(former), former.multi.bind(former)];
    vi.spyOn(former, 'exists').mockImplementation(async (path, options) => {
      if (when === 'before it looks whose it is' && path === was.path) heir ?? (await takeOver());
      return exists(path, options);
    });
    vi.spyOn(former, 'multi').mockImplementation(async (ops, options) => {
      const isOffset = ops.some((one) => 'data' in one && one.data === '5');
      if (when === 'before the offset is written' && isOffset) heir ?? (await takeOver());
      return multi(ops, options) as never;
    });

    const commit = storeOf(former).commit([{ owned: was, offset: 5n }]);

    await expect(commit).rejects.toMatchObject({ code: 'NOT_OWNER', reason: 'nodeDeleted' });
    expect([heir!.offset, await storeOf(client).start(heir!)]).toEqual([null, null]);
    await storeOf(client).commit([{ owned: heir!, offset: 3n }]);
    expect(await text(witness, 0)).toBe('3');
  },
);

test('what is no offset is moved by a claim, and overwritten by the first commit', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create(pathOf(0), 'junk', { parents: true });

  const owned = await claim(client, 'one-0');
  const moved = (await witness.exists(pathOf(0)))!.version;
  const offset = owned.offset;
  const [committed] = await storeOf(client).commit([{ owned, offset: 4n }]);

  expect([moved, offset, committed!.outcome]).toEqual([1, null, 'committed']);
  expect(await text(witness, 0)).toBe('4');
});
