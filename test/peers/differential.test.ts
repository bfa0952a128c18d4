/**
 * Ours and Apache's 3.9.5 under the same random scripts: every reply, Stat and event is the same, but
 * for what test/differential/allowed.ts names. By hand, with more: npx tsx test/differential/run.ts
 */

import { afterAll, describe, expect, test } from 'vitest';
import { campaign } from '../differential/campaign.ts';
import { cases } from '../differential/cases.ts';
import { edges } from '../differential/edges.ts';
import { type ProfileName, randomProfiles } from '../differential/profiles.ts';
import { Pair } from '../differential/servers.ts';
import { findZooKeepers } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();
const peer = found.find(({ name }) => name.startsWith('apache'));
const ops = Number(process.env.DIFFERENTIAL_OPS ?? 10_000);
/** Another one each time; a report names it. */
const seed = Number(process.env.DIFFERENTIAL_SEED ?? Date.now() % 1_000_000_000);

if (peer === undefined) {
  for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});
}

describe.skipIf(peer === undefined)('beside Apache ZooKeeper', { timeout: 240_000 }, () => {
  const pairs = new Map<ProfileName, Promise<Pair>>();
  const pairFor = (profile: ProfileName): Promise<Pair> => {
    const pair = pairs.get(profile) ?? Pair.start(peer!, profile);
    pairs.set(profile, pair);
    return pair;
  };
  afterAll(async () => {
    for (const pair of pairs.values()) await (await pair)[Symbol.asyncDispose]();
  });

  test.each([...cases, ...edges])('$name', async ({ profile, script }) => {
    const pair = await pairFor(profile);

    const { difference } = await pair.run(script);

    expect(difference).toBeUndefined();
  });

  test.each(randomProfiles)(
    `random scripts show no difference, seed ${seed}, %s`,
    async (profile) => {
      const share = Math.ceil(ops / randomProfiles.length);

      const {
        reports,
        lines,
        ops: done,
      } = await campaign({ peer: peer!, profile, seed, ops: share });

      console.log(`differential: seed ${seed}, ${profile}: ${done} ops, ${lines} lines compared`);
      expect(reports.join('\n')).toBe('');
    },
  );

  test('a planted fault is found, and its script cut down to the fault', async () => {
    const ours = {
      onRequest: ({ op }: { op: string }) => (op === 'getAllChildrenNumber' ? -7 : undefined),
    };

    const { reports } = await campaign({
      peer: peer!,
      profile: 'usual',
      seed: 1,
      ops: 5_000,
      ours,
    });

    expect(reports).toHaveLength(1);
    expect(reports[0]!.match(/^ {2}#/gm)).toHaveLength(2); // a connect, and the call
    expect(reports[0]).toMatch(/ours: .* getAllChildrenNumber: .* err -7/);
  });
});
