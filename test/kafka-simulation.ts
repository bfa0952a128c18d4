/**
 * The simulation of consumer groups, by hand:
 *
 *   npx tsx test/kafka-simulation.ts [--events 100000] [--members 200] [--partitions 1000]
 *                                    [--seed 1] [--mode classic|planned] [--assignor name]
 *                                    [--storm 20] [--gap 300]
 */

import { parseArgs } from 'node:util';
import type { AssignorName } from '../src/kafka/index.ts';
import { Campaign } from './kafka-simulation/campaign.ts';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '100000' },
    members: { type: 'string', default: '200' },
    partitions: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    mode: { type: 'string', default: 'classic' },
    assignor: { type: 'string' },
    storm: { type: 'string', default: '20' },
    gap: { type: 'string', default: '300' },
  },
});

// Errors are part of the traffic here, by the million, and nobody reads their stacks.
Error.stackTraceLimit = 0;
const started = performance.now();
let printedMs = 0;
const campaign = new Campaign({
  seed: Number(values.seed),
  events: Number(values.events),
  membersMax: Number(values.members),
  partitions: Number(values.partitions),
  stormEvents: Number(values.storm),
  gapMs: Number(values.gap),
  mode: values.mode as 'classic' | 'planned',
  ...(values.assignor !== undefined && { assignor: values.assignor as AssignorName }),
  onProgress: ({ events, storms, settleMsMax }) => {
    if (performance.now() - printedMs < 10_000) return;
    printedMs = performance.now();
    console.log(`${events} events, ${storms} storms, settled within ${settleMsMax} ms`);
  },
});
const report = await campaign.run();
const seconds = Math.round((performance.now() - started) / 1000);
console.log(JSON.stringify({ ...values, seconds, ...report }, null, 2));
