/**
 * Recipes under faults, by hand.
 *
 *   npx tsx test/recipes-faults/run.ts --faults 1000 --seed 1
 *   npx tsx test/recipes-faults/run.ts --faults 200 --only lock,queue
 *   npx tsx test/recipes-faults/run.ts --faults 200 --peer apache-3.9.5
 *   npx tsx test/recipes-faults/run.ts --faults 200 --peer apache-3.9.5 --servers 3      an ensemble: its leader is killed
 *   npx tsx test/recipes-faults/run.ts --pauses 10000              holders that are stopped past their session
 */

import { parseArgs } from 'node:util';
import { campaign } from './campaign.ts';
import { pausedHolders } from './paused-holders.ts';

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    only: { type: 'string' },
    peer: { type: 'string' },
    servers: { type: 'string', default: '1' },
    pauses: { type: 'string' },
  },
});
const startMs = Date.now();
const seed = Number(values.seed);
let broken: readonly string[];
if (values.pauses !== undefined) {
  const report = await pausedHolders({
    pauses: Number(values.pauses),
    onPause: (count) => {
      if (count % 500 === 0) console.error(`${count} pauses`);
    },
  });
  console.log(JSON.stringify(report, null, 2));
  broken = report.broken;
} else {
  const report = await campaign({
    seed,
    faults: Number(values.faults),
    peer: values.peer,
    servers: Number(values.servers),
    ...(values.only !== undefined && { recipes: values.only.split(',') }),
    onFault: (kind, count) => {
      if (count % 50 === 0) console.error(`fault ${count}: ${kind}`);
    },
  });
  console.log(JSON.stringify(report, null, 2));
  broken = report.broken;
}
const seconds = Math.round((Date.now() - startMs) / 1_000);
console.log(`${broken.length} broken, ${seconds} s, seed ${seed}`);
process.exit(broken.length === 0 ? 0 : 1);
