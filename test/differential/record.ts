/**
 * Records what Apache's server answers to cases.ts, edges.ts and some random scripts, for recorded.test.ts:
 *
 *   npx tsx test/differential/record.ts [--seed 1] [--scripts 15]
 *
 * Only needed when scenes were added, or other random scripts should be recorded. Writes all files of
 * `recorded/` anew.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findZooKeepers } from '../peers/zookeeper.ts';
import { temporaryFolder } from '../peers/zookeeper-server.ts';
import { cases, type Scene } from './cases.ts';
import { edges } from './edges.ts';
import { generate } from './generate.ts';
import { normalise } from './normalise.ts';
import { Player } from './play.ts';
import { type ProfileName, profiles, randomProfiles } from './profiles.ts';
import { seedOf } from './random.ts';
import { fileOf, writeRecorded } from './recorded.ts';
import { startTheirs } from './servers.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    scripts: { type: 'string', default: '15' },
  },
});

const { found, missing } = await findZooKeepers();
const peer = found.find(({ name }) => name.startsWith('apache'));
if (peer === undefined) {
  for (const { name, how } of missing) console.error(`${name} is missing: ${how}`);
  process.exit(1);
}

async function record(file: string, profile: ProfileName, scenes: readonly Scene[]): Promise<void> {
  if (scenes.length === 0) return;
  await using apache = await startTheirs(peer!, profile, temporaryFolder());
  const player = new Player(apache.port);
  const recorded = [];
  for (const { name, script } of scenes) {
    recorded.push({ name, script, apache: normalise(await player.play(script)) });
  }
  player.close();
  writeRecorded(file, recorded);
  console.error(`${file}: ${recorded.length} scripts on ${peer!.name}`);
}

mkdirSync(join(import.meta.dirname, 'recorded'), { recursive: true });
for (const profile of Object.keys(profiles) as ProfileName[]) {
  const scenes = [...cases, ...edges].filter((scene) => scene.profile === profile);
  await record(fileOf(profile, false), profile, scenes);
}
for (const [at, profile] of randomProfiles.entries()) {
  const { enforceQuota } = profiles[profile];
  const scenes = Array.from({ length: Number(values.scripts) }, (_, i): Scene => {
    const seed = seedOf(Number(values.seed) + at, i);
    return { name: `seed ${seed}`, profile, script: generate(seed, enforceQuota) };
  });
  await record(fileOf(profile, true), profile, scenes);
}
process.exit(0);
