/**
 * ZooKeeper's C client, as Debian packages it, on `drover serve` and on Apache's servers: a story in C
 * (test/peers/c/) and the client's own tools have to print the same lines on all of them.
 */

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type CPrograms, findCPrograms } from './c/fetch.ts';
import { playBatch, playCli, playLoad, playStory } from './c/play.ts';
import { type DroverServer, startDroverServe } from './drover-serve.ts';
import { type ApacheServer, findZooKeepers, startApache, type ZooKeeperPeer } from './zookeeper.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const programs = await findCPrograms();
const { found } = await findZooKeepers();

/** Containers and TTL nodes that have had their time are not waited for by the minute. */
const reaping = { 'znode.container.checkIntervalMs': '100' };
const jvm = Object.entries(reaping).map(([key, value]) => `-D${key}=${value}`);

const startOurs = () => startDroverServe({ extendedTypesEnabled: 'true', ...reaping });

/** What older servers say otherwise, by the line and how it ends. */
const changed = [
  {
    versions: /^3\.([0-7]\.|8\.[0-3]$|9\.[01]$)/,
    line: /^\w+: exists \/story\/(far|mine): not authenticated$/,
    there: 'ok',
    why: 'exists asks for the right to read since 3.8.4 and 3.9.2',
  },
] as const;

function asOn({ version }: ZooKeeperPeer, lines: readonly string[]): string[] {
  const rules = changed.filter(({ versions }) => versions.test(version));
  return lines.map((line) => {
    const rule = rules.find((one) => one.line.test(line));
    return rule === undefined ? line : line.replace(/[^:]*$/, ` ${rule.there}`);
  });
}

const script = `
create /c
create /c
create /c/a
create /none/a
create c
create +e /c/e
create +s /c/s-
create +es /c/es-
create +c /c/box
create +t=3600000 /c/ttl
create2 /c/two
create2 +e /c/two-e
create2 +ce /c/odd
create /c/e/x
ls /c
ls2 /c
ls /none
get /c
set /c some words
get /c
set /none x
exists /c/a
wexists /c/later
create /c/later
exists /none
delete /c
delete /c/a
delete /c/a
sync /c
sync /none
config
reconfig -remove 1
reconfig -add server.2=127.0.0.1:1:2;3
addauth digest ann:secret
get /zookeeper/quota
set /zookeeper/config x
ls /
`
  .split('\n')
  .filter((line) => line !== '');

test.runIf(typeof programs === 'string')('the C client is here', ({ skip }) => {
  if (process.env.CI !== 'true') skip(String(programs));
  expect.fail(String(programs));
});

describe.skipIf(typeof programs === 'string')('the C client on drover serve', () => {
  const { story, cli, load } = programs as CPrograms;
  let server: DroverServer;
  let told: string[];
  let shell: string[];

  async function shellOn(address: string): Promise<string[]> {
    const lines = await playCli(cli, address, script);
    for (const command of ['create /od', 'od', 'ls /od']) {
      lines.push(...(await playBatch(cli, address, command)));
    }
    return lines;
  }

  beforeAll(async () => {
    server = await startOurs();
    told = await playStory(story, server.address);
    shell = await shellOn(server.address);
  });

  afterAll(() => server?.[Symbol.asyncDispose]());

  test('the story and the script come to their ends', () => {
    expect(told.at(-1)).toBe('the end');
    expect(told.length).toBeGreaterThan(400);
    expect(shell).toContain('\tbox');
    expect(shell).toContain('Recvd 200 responses for 200 requests sent');
  });

  describe.each(found)('compared with $name', (peer) => {
    let apache: ApacheServer;

    beforeAll(async () => {
      apache = await startApache(peer, { jvm });
    });

    afterAll(() => apache?.[Symbol.asyncDispose]());

    test('the story is the same, and then what its shell says', async () => {
      expect(asOn(peer, told)).toEqual(await playStory(story, apache.address));
      expect(shell).toEqual(await shellOn(apache.address));
    });
  });

  test("ZooKeeper's load generator goes its rounds, and cleans up behind itself", async () => {
    const rounds = 3;

    const lines = await playLoad(load, server.address, 500, rounds);

    const round = [
      'Creating children for path /load',
      'Starting the write cycle for path /load',
      'Starting the read cycle for path /load',
      'Starting the delete cycle for path /load',
    ];
    expect(lines.slice(0, 4 * rounds)).toEqual(Array(rounds).fill(round).flat());
    expect(lines.filter((line) => /Failed|Invalid/.test(line))).toEqual([]);
    expect(lines.slice(-2)).toEqual([
      'Successfully deleted a subtree starting at /load (… nodes)',
      'ended with 0',
    ]);
  });
});
