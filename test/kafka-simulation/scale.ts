/**
 * What a change of a group costs, by its size: requests, watch events, partitions that move, and the
 * time until everything is owned again, on the model server with 1 to 20 ms each way.
 *
 *   npx tsx test/kafka-simulation/scale.ts planned 1000 10000
 */

import type { GroupMemberOptions } from '../../src/kafka/index.ts';
import { Campaign } from './campaign.ts';

const [kind = 'planned', members = '100', partitions = '1000'] = process.argv.slice(2);
const mode = kind === 'planned' ? 'planned' : 'classic';
const assignor = mode === 'classic' ? (kind as GroupMemberOptions['assignor']) : undefined;
const campaign = new Campaign({
  seed: 1,
  events: 0,
  membersMax: Number(members),
  partitions: Number(partitions),
  topics: 1,
  mode,
  ...(assignor && { assignor }),
});

async function measure(what: string, work: () => void): Promise<void> {
  const { server, world } = campaign;
  const before = { requests: server.requests, events: server.events, atMs: world.nowMs };
  const counts = new Map(server.counts);
  const { claims } = campaign.report();
  work();
  await campaign.quiet();
  const row = {
    kind,
    members: Number(members),
    partitions: Number(partitions),
    what,
    moved: campaign.report().claims - claims,
    requests: server.requests - before.requests,
    events: server.events - before.events,
    watches: server.watchCount,
    settledMs: world.nowMs - before.atMs,
    byOp: Object.fromEntries([...server.counts].map(([op, n]) => [op, n - (counts.get(op) ?? 0)])),
  };
  console.log(JSON.stringify(row));
}

await measure('all join', () => {
  for (let i = 0; i < Number(members); i++) campaign.join({ commits: false });
});
await measure('one joins', () => void campaign.join({ commits: false }));
await measure('one leaves', () => campaign.leave([...campaign.slots].at(-2)!));
await measure('one crashes', () => campaign.crash([...campaign.slots].at(-2)!));
if (mode === 'planned') {
  await measure('who plans crashes', () => {
    const planner = [...campaign.slots].find(({ member }) => member.status().planEpoch !== null);
    campaign.crash(planner!);
  });
}
await measure('ten join', () => {
  for (let i = 0; i < 10; i++) campaign.join({ commits: false });
});
process.exit(0);
