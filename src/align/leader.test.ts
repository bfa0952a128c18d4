import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, connect, ZkError } from '../client/index.ts';
import { Election } from '../recipes/index.ts';
import { systemClock } from '../support/index.ts';
import { startTestServer, type TestServer } from '../testing/index.ts';
import { alignPaths, formatMember, parseLimit, parsePlan } from './layout.ts';
import { Leader } from './leader.ts';
import type { LeaderOptions, OuterInput, OuterLimit } from './leader-options.ts';
import type { Topics } from './limit-store.ts';
import { prepareGroup } from './prepare.ts';

const paths = alignPaths('g');
const base = 1_700_000_040_000;
const rule = { mode: 'period', stepMs: 60_000, lookAhead: 0 } as const;
const lost = () => new ZkError('CONNECTION_LOSS');

let server: TestServer;
let client: Client;

beforeEach(async () => {
  server = await startTestServer();
  client = await connect(server.address);
  await prepareGroup(client, paths, rule, systemClock, new AbortController().signal);
});

afterEach(async () => {
  await client.close();
  await server.close();
});

/** One term, over topics that the test moves. */
async function lead(options: Partial<LeaderOptions> = {}) {
  const election = new Election(client, paths.election, { id: 'm' });
  const { value: term } = await election[Symbol.asyncIterator]().next();
  const directory = {
    topics: new Map([['t', ['0']]]) as Topics,
    heard: new Set<() => void>(),
    change(...partitions: string[]) {
      directory.topics = new Map([['t', partitions]]);
      for (const heard of directory.heard) heard();
    },
  };
  const leader = new Leader(client, term!, {
    paths,
    clock: systemClock,
    rule,
    topics: async () => directory.topics,
    onTopics: (heard) => {
      directory.heard.add(heard);
      return () => directory.heard.delete(heard);
    },
    hasCuts: true,
    onProblem: () => {},
    ...options,
  });
  const running = leader.run();
  running.catch(() => {}); // told to who waits for it
  const over = async () => {
    await election.close();
    await running;
  };
  return { directory, over, [Symbol.asyncDispose]: over };
}

/** A limit from outside, of which the test sees what it was opened with. */
function outer(fail: (count: number) => boolean) {
  const open: string[][] = [];
  let count = 0;
  const openOuter = async (input: OuterInput): Promise<OuterLimit> => {
    count += 1;
    if (fail(count)) throw lost();
    const partitions = [...input.topics.values()].flat();
    open.push(partitions);
    return {
      limitMs: base,
      hasOthers: true,
      report: () => {},
      setPeriod: () => {},
      close: async () => void open.splice(open.indexOf(partitions), 1),
    };
  };
  return { openOuter, open };
}

const planned = async () => parsePlan((await client.get(paths.plan)).data, paths.plan).get('t');

test('trouble that passes while topics are read, or a shared limit is opened, ends no term', async () => {
  let asked = 0;
  const { openOuter, open } = outer((count) => count === 1);
  const topics = async () => {
    asked += 1;
    if (asked === 3) throw lost(); // the first that comes once the term is claimed
    return new Map([['t', ['0']]]);
  };
  await using term = await lead({ openOuter, topics });

  await expect.poll(() => open).toEqual([['0']]);
  await term.over();

  expect(open).toEqual([]);
});

test('a shared limit that could not be opened again for more topics is opened later', async () => {
  const { openOuter, open } = outer((count) => count === 2);
  await using term = await lead({ openOuter });
  await expect.poll(() => open).toEqual([['0']]);

  term.directory.change('0', '1');

  await expect.poll(() => open).toEqual([['0', '1']]);
});

test('of topics that change again and again a shared limit is opened for the last', async () => {
  const { openOuter, open } = outer(() => false);
  await using term = await lead({ openOuter });
  await expect.poll(() => open).toEqual([['0']]);

  for (let turns = 0; turns < 20; turns++) {
    term.directory.change('0', '1');
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    term.directory.change('0', '1', `${turns + 2}`);

    await expect.poll(() => open).toEqual([['0', '1', `${turns + 2}`]]);
  }
});

test('topics that change while a term begins are not missed', async () => {
  let isFollowing = false;
  await using term: Awaited<ReturnType<typeof lead>> = await lead({
    onStep: (step) => {
      if (step === 'claimed') term.directory.change('0', '1');
      if (step === 'following') isFollowing = true;
    },
  });

  await expect.poll(() => isFollowing).toBe(true);
  await expect.poll(planned).toEqual(['0', '1']);
});

test('what a member says of a partition before the leader knows of it counts', async () => {
  const say = (name: string, key: string, positionMs: number) => {
    const report = { epoch: 1n, state: 'reading', positionMs, offset: 5n, reached: [] } as const;
    const partitions = new Map([[key, report]]);
    const [data] = formatMember({ id: name, partitions, records: 0, waitingShare: 0 });
    return client.set(`${paths.members}/${name}`, data!);
  };
  const limitMs = async () => parseLimit((await client.get(paths.limit)).data, paths.limit).limitMs;
  for (const name of ['a@1', 'b@2']) await client.create(`${paths.members}/${name}`);
  await say('b@2', 't/1', base + 120_000); // held back from here on, and so silent
  await say('a@1', 't/0', base);
  await using term = await lead();
  await expect.poll(limitMs).toBe(base + 60_000);

  term.directory.change('0', '1');
  await expect.poll(planned).toEqual(['0', '1']);
  await say('a@1', 't/0', base + 60_000);

  await expect.poll(limitMs).toBe(base + 120_000);
});

/** What a member says of one partition that is at its end. */
function finished(name: string, ...keys: string[]): string {
  const report = {
    epoch: 1n,
    state: 'finished',
    positionMs: base,
    offset: 5n,
    reached: [],
  } as const;
  const partitions = new Map(keys.map((key) => [key, report]));
  return formatMember({ id: name, partitions, records: 0, waitingShare: 0 })[0]!;
}

test('a member that comes after the end is told of it, for what it reads may be from an earlier run', async () => {
  const stored = async () => {
    const { data, stat } = await client.get(paths.limit);
    return { ...parseLimit(data, paths.limit), mzxid: stat.mzxid };
  };
  await client.create(`${paths.members}/a@1`, finished('a', 't/0'));
  await using _term = await lead();
  await expect.poll(async () => (await stored()).isFinished).toBe(true);
  const before = await stored();

  const { stat } = await client.create(`${paths.members}/b@2`, finished('b'));
  expect(stat.czxid).toBeGreaterThan(before.mzxid);

  await expect.poll(async () => (await stored()).mzxid > stat.czxid).toBe(true);
  expect(await stored()).toMatchObject({ isFinished: true, limitMs: before.limitMs });
});
