import { expect, test } from 'vitest';
import { faultsOf, type PartitionStanding } from './partition-standing.ts';

const sound: PartitionStanding = {
  leader: 1,
  leaderEpoch: 4,
  replicas: [1, 2, 3],
  isr: [1, 2, 3],
  adding: [],
  removing: [],
  hasState: true,
};

test.each<[string[], Partial<PartitionStanding>]>([
  [[], {}],
  [['no state'], { hasState: false, leader: null, leaderEpoch: null, isr: [] }],
  [['no leader', 'out of sync'], { leader: null, isr: [2] }],
  [['not preferred'], { leader: 2 }],
  [['out of sync'], { isr: [1, 2] }],
  // A replica that is being added is not missed; one that was there before is.
  [['moving'], { replicas: [1, 2, 3, 4], adding: [4], removing: [3] }],
  [['out of sync', 'moving'], { replicas: [1, 2, 3, 4], adding: [4], isr: [1, 2] }],
  [['moving'], { removing: [3] }],
])('%j: %j', (faults, differences) => {
  expect(faultsOf({ ...sound, ...differences })).toEqual(faults);
});
