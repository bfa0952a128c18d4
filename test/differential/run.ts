/**
 * The differential test by hand:
 *
 *   npx tsx test/differential/run.ts --ops 1000000 --seed 1
 *   npx tsx test/differential/run.ts --seed 1 --script 42 --ops 1      one script again
 *
 * --profile usual|strict|plain|proved   what the servers are told (without: each for a quarter of the ops)
 * --peer debian                  another server to hold ours against
 * --differences N                goes on until there were N
 * --no-shrink                    says only what differs, at once
 * --tally                        prints how often which answer was met
 */

import { parseArgs } from 'node:util';
import { findZooKeepers } from '../peers/zookeeper.ts';
import { campaign } from './campaign.ts';
import { type ProfileName, randomProfiles } from './profiles.ts';

const { values } = parseArgs({
  options: {
    ops: { type: 'string', default: '100000' },
    seed: { type: 'string' },
    script: { type: 'string', default: '0' },
    profile: { type: 'string' },
    peer: { type: 'string', default: 'apache' },
    differences: { type: 'string', default: '1' },
    'no-shrink': { type: 'boolean', default: false },
    tally: { type: 'boolean', default: false },
  },
});

const { found, missing } = await findZooKeepers();
const peer = found.find(({ name }) => name.startsWith(values.peer));
if (peer === undefined) {
  for (const { name, how } of missing) console.error(`${name} is missing: ${how}`);
  process.exit(1);
}

const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed);
const names = (values.profile === undefined ? randomProfiles : [values.profile]) as ProfileName[];
const opsEach = Math.ceil(Number(values.ops) / names.length);
const startMs = Date.now();
let ops = 0;
let lines = 0;
let differences = 0;
console.error(`seed ${seed}, ${names.join(' and ')}, ${peer.name} (ZooKeeper ${peer.version})`);
for (const profile of names) {
  let saidMs = Date.now();
  const before = ops;
  const result = await campaign({
    peer,
    profile,
    seed,
    ops: opsEach,
    from: Number(values.script),
    differencesMax: Number(values.differences),
    shrinks: !values['no-shrink'],
    report: (text) => console.error(`\n${text}\n`),
    progress: (done) => {
      if (Date.now() - saidMs < 5_000) return;
      saidMs = Date.now();
      const rate = Math.round((before + done.ops) / ((saidMs - startMs) / 1_000));
      console.error(`  ${profile}: ${done.ops} ops in ${done.scripts} scripts, ${rate} ops/s`);
    },
  });
  ops += result.ops;
  lines += result.lines;
  differences += result.reports.length;
  console.error(
    `${profile}: ${result.ops} ops, ${result.scripts} scripts, ${result.reports.length} differences`,
  );
  if (values.tally) {
    const kinds = [...result.tally].sort(([a], [b]) => (a < b ? -1 : 1));
    console.error(kinds.map(([kind, count]) => `  ${kind}: ${count}`).join('\n'));
  }
  for (const [name, count] of result.allowed) console.error(`  allowed ${count} times: ${name}`);
}
const tookMs = Date.now() - startMs;
console.error(
  `seed ${seed}: ${ops} ops, ${lines} replies and events compared, ${differences} differences, ` +
    `${Math.round(tookMs / 1_000)} s, ${Math.round(ops / (tookMs / 1_000))} ops/s`,
);
process.exit(differences === 0 ? 0 : 1);
