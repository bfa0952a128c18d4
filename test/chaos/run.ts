/**
 * The campaigns, by hand.
 *
 *   npx tsx test/chaos/run.ts kill --cycles 1000 --seed 1
 *   npx tsx test/chaos/run.ts fuzz-engine --frames 1e7
 *   npx tsx test/chaos/run.ts fuzz-server --frames 1e6
 *   npx tsx test/chaos/run.ts faults --stride 1
 *   npx tsx test/chaos/run.ts corruption --bytes 100000 --stride 1
 *   npx tsx test/chaos/run.ts power --cuts 500                     (root)
 *   npx tsx test/chaos/run.ts planted
 *   npx tsx test/chaos/run.ts stop --pauses 100 --holders 60
 *   npx tsx test/chaos/run.ts away
 *   npx tsx test/chaos/run.ts slow
 */

import { parseArgs } from 'node:util';
import { Build } from './child.ts';
import { corruptionSweep } from './corruption.ts';
import { faultSweep } from './disk-faults.ts';
import { fuzzEngine, fuzzServer } from './fuzz.ts';
import { killLoop } from './kill-loop.ts';
import { findPlanted } from './planted-bugs.ts';
import { powerCuts } from './power-cut.ts';
import { killAndWait, serveOnSlowDisk, stopAndGo } from './stalls.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    cycles: { type: 'string', default: '50' },
    bytes: { type: 'string', default: '20000' },
    frames: { type: 'string', default: '1e5' },
    pauses: { type: 'string', default: '3' },
    holders: { type: 'string', default: '30' },
    cuts: { type: 'string', default: '5' },
    stride: { type: 'string', default: '7' },
    'per-life': { type: 'string', default: '25' },
  },
});

const campaigns: Record<string, () => Promise<{ failures: readonly string[] }>> = {
  async kill() {
    using build = new Build();
    return await killLoop({
      seed: Number(values.seed),
      cycles: Number(values.cycles),
      perLife: Number(values['per-life']),
      build,
      onLife: told,
    });
  },
  async stop() {
    using build = new Build();
    const [pauses, holders] = [Number(values.pauses), Number(values.holders)];
    return await stopAndGo({ build, pauses, holders });
  },
  async away() {
    using build = new Build();
    return await killAndWait({ build, holders: Number(values.holders) });
  },
  async power() {
    using build = new Build();
    const [seed, cuts, perLife] = [values.seed, values.cuts, values['per-life']].map(Number);
    return await powerCuts({ seed: seed!, cuts: cuts!, perLife: perLife!, build, onLife: told });
  },
  planted: () => findPlanted(),
  slow: () => serveOnSlowDisk(2_000, 1_000),
  faults: () => faultSweep({ seed: Number(values.seed), stride: Number(values.stride) }),
  corruption() {
    const [seed, bytes, stride] = [values.seed, values.bytes, values.stride].map(Number);
    return corruptionSweep({ seed: seed!, bytes: bytes!, stride: stride!, onFile: told });
  },
  'fuzz-engine': () =>
    fuzzEngine({ seed: Number(values.seed), frames: Number(values.frames), onGeneration: told }),
  async 'fuzz-server'() {
    using build = new Build();
    return await fuzzServer({ seed: Number(values.seed), frames: Number(values.frames), build });
  },
};

const told = (report: { failures: readonly string[] }) =>
  console.log(JSON.stringify({ ...report, failures: report.failures.length }));
const campaign = campaigns[positionals[0] ?? ''];
if (campaign === undefined) {
  console.error(`which one? ${Object.keys(campaigns).join(', ')}`);
  process.exit(2);
}
const startedMs = performance.now();
const report = await campaign();
console.log(report);
console.log(`seed ${values.seed}, ${Math.round((performance.now() - startedMs) / 1000)} s`);
process.exit(report.failures.length === 0 ? 0 : 1);
