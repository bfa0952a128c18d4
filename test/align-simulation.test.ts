/**
 * Aligned groups in a simulated world: the same code as everywhere, on a model of a server, with time,
 * network and faults from a seed. `npx tsx test/align-simulation.ts` runs it for 100,000 minutes.
 */

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { leaderSteps } from '../src/align/index.ts';
import { AlignCampaign, type Fault, Violation } from './align-simulation/campaign.ts';
import { seeded } from './random.ts';

// Backoffs of an election take chance from here: the same in every run.
beforeEach(() => void vi.spyOn(Math, 'random').mockImplementation(seeded(5)));
afterEach(() => void vi.restoreAllMocks());

test.for([1, 2, 3])(
  'seed %i: through crashes, pauses and cuts nobody runs ahead, nothing is lost, and it goes on',
  { timeout: 60_000 },
  async (seed) => {
    const campaign = new AlignCampaign({
      seed,
      minutes: 90,
      members: 3,
      partitions: 6,
      faultEveryMs: 45_000,
    });

    const { faults, cuts, epochs, handed, records } = await campaign.run();

    expect(faults.kill! + faults.pause! + faults.cut!).toBeGreaterThan(50);
    expect(epochs).toBeGreaterThan(5);
    expect(cuts).toBeGreaterThan(80);
    // Some came twice, since some died before the next cut.
    expect(handed).toBeGreaterThan(records);
  },
);

test('the rule is changed under way, and what was promised still holds', {
  timeout: 60_000,
}, async () => {
  const campaign = new AlignCampaign({
    seed: 9,
    minutes: 90,
    members: 3,
    partitions: 6,
    faultEveryMs: 60_000,
    changesRule: true,
  });

  await expect(campaign.run()).resolves.toMatchObject({ simulatedMinutes: expect.any(Number) });
});

test.for([11, 13])(
  'seed %i: held by hand, let on by steps and let go, through faults and changes of the rule',
  { timeout: 60_000 },
  async (seed) => {
    const campaign = new AlignCampaign({
      seed,
      minutes: 90,
      members: 3,
      partitions: 6,
      faultEveryMs: 45_000,
      changesRule: true,
      holds: true,
    });

    const { holds, faults } = await campaign.run();

    expect(Math.min(holds.pause!, holds.step!, holds.continue!)).toBeGreaterThan(5);
    expect(faults.kill! + faults.pause! + faults.cut!).toBeGreaterThan(20);
  },
);

const cases = leaderSteps.flatMap((step) =>
  (['kill', 'pause', 'cut'] as const).map((fault): [Fault, (typeof leaderSteps)[number]] => [
    fault,
    step,
  ]),
);

test.for(cases)(
  '%s of the leader at the step "%s": the next one goes on, and nothing is lost',
  async ([fault, step]) => {
    const isOnce = leaderSteps.indexOf(step) < leaderSteps.indexOf('moving');
    const campaign = new AlignCampaign({
      seed: 4,
      minutes: 10,
      members: 2,
      partitions: 4,
      faultAt: { step, count: isOnce ? 1 : 4, fault },
    });

    const { faults, epochs } = await campaign.run();

    expect(faults[fault]).toBe(1);
    // One that leads on after a fault was cut off for longer than its session, and elected again.
    expect(epochs).toBeGreaterThanOrEqual(step === 'elected' || step === 'read' ? 1 : 2);
  },
);

test.for([2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24])(
  'a link that breaks %i ms after a move was begun, and comes back: no callback is left out',
  async (afterMs) => {
    const campaign = new AlignCampaign({
      seed: 4,
      minutes: 10,
      members: 2,
      partitions: 4,
      faultAt: { step: 'moving', count: 4, fault: 'cut', afterMs, forMs: 500 },
    });

    const { epochs } = await campaign.run();

    expect(epochs).toBe(1); // the same one leads on
  },
);

test('the same seed gives the same run, to the last record', async () => {
  const run = () => {
    vi.spyOn(Math, 'random').mockImplementation(seeded(5));
    return new AlignCampaign({
      seed: 21,
      minutes: 15,
      members: 3,
      partitions: 4,
      faultEveryMs: 30_000,
    }).run();
  };

  const [first, second] = [await run(), await run()];

  expect(second).toEqual(first);
});

test('the simulation would notice: a limit that goes back, and one written by who does not lead', async () => {
  const started = async () => {
    const campaign = new AlignCampaign({ seed: 3, minutes: 1, members: 2, partitions: 2 });
    campaign.join();
    campaign.logs.get('t/0')!.append(1_700_000_000_000);
    campaign.logs.get('t/1')!.append(1_700_000_000_000);
    await campaign.runFor(20_000);
    return campaign;
  };
  const leader = (campaign: AlignCampaign) =>
    [...campaign.server.nodes].find(([path]) => path.includes('/election/'))![1].stat
      .ephemeralOwner;
  const limit = (campaign: AlignCampaign) =>
    JSON.parse(String(campaign.server.nodes.get('/align/g/limit')!.data));

  const back = await started();
  const lower = JSON.stringify({ ...limit(back), limit: 5 });
  back.server.apply([{ op: 'set', path: '/align/g/limit', data: lower }], leader(back));
  await expect(back.runFor(1)).rejects.toThrow(/went back/);

  const stranger = await started();
  const same = JSON.stringify(limit(stranger));
  stranger.server.apply([{ op: 'set', path: '/align/g/limit', data: same }], 99n);
  await expect(stranger.runFor(1)).rejects.toThrow(Violation);
});
