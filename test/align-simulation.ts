/**
 * The simulation of aligned groups, by hand:
 *
 *   npx tsx test/align-simulation.ts [--minutes 100000] [--members 4] [--partitions 8] [--seed 1]
 *                                    [--fault-every 120] [--rules] [--holds]
 */

import { parseArgs } from 'node:util';
import { AlignCampaign } from './align-simulation/campaign.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '100000' },
    members: { type: 'string', default: '4' },
    partitions: { type: 'string', default: '8' },
    seed: { type: 'string', default: '1' },
    'fault-every': { type: 'string', default: '120' },
    rules: { type: 'boolean', default: false },
    holds: { type: 'boolean', default: false },
  },
});

const started = performance.now();
let printedMs = 0;
const campaign = new AlignCampaign({
  seed: Number(values.seed),
  minutes: Number(values.minutes),
  members: Number(values.members),
  partitions: Number(values.partitions),
  ...(values['fault-every'] !== '0' && { faultEveryMs: Number(values['fault-every']) * 1_000 }),
  changesRule: values.rules,
  holds: values.holds,
  onProgress: (minutes) => {
    if (performance.now() - printedMs < 10_000) return;
    printedMs = performance.now();
    console.log(`${Math.round(minutes)} minutes in ${Math.round(printedMs / 1000)} s`);
  },
});
// Backoffs of an election take chance from where everybody does.
Math.random = campaign.world.random;
const report = await campaign.run();
const seconds = Math.round((performance.now() - started) / 1000);
console.log(JSON.stringify({ ...values, seconds, ...report }, null, 2));
