/** Each finding of the doctor, from a cluster that has just that fault. */

import { expect, test } from 'vitest';
import type { GroupPartitionInfo } from '../kafka/index.ts';
import type { BrokerView, PartitionView } from './kafka-cluster.ts';
import { doctorView, type Examined, kafkaFindings } from './kafka-doctor.ts';
import { unknownLag } from './kafka-lag.ts';

const nowMs = 1_000_000_000;

function broker(id: number, host = `h${id}`): BrokerView {
  const endpoint = { listener: 'PLAINTEXT', protocol: 'PLAINTEXT', host, port: 9092 };
  return {
    id,
    epoch: 1n,
    sessionId: 1n,
    registration: {
      version: 5,
      endpoints: [endpoint],
      host,
      port: 9092,
      jmxPort: -1,
      timestampMs: 0,
      rack: null,
      features: {},
    },
  };
}

const well: PartitionView = {
  name: '0',
  leader: 1,
  leaderEpoch: 0,
  replicas: [1, 2],
  isr: [1, 2],
  adding: [],
  removing: [],
  hasState: true,
};

const owned: GroupPartitionInfo = {
  topic: 't',
  partition: '0',
  owner: 'g_a-0',
  consumerId: 'g_a',
  ownerSession: 1n,
  ownedSinceMs: 0,
  offset: 5n,
  committedMs: nowMs,
  latest: null,
  lag: null,
};

const member = { id: 'g_a', registration: null, sessionId: 1n, sinceMs: 0 };
const group = { group: 'g', members: [member], partitions: [owned], problems: [], idle: [] };

interface Change {
  readonly cluster?: Partial<Examined['cluster']>;
  readonly pending?: Partial<Examined['pending']>;
  readonly groups?: Examined['groups'];
  readonly lags?: Examined['lags'];
  readonly partition?: Partial<PartitionView>;
}

function examined({ cluster, pending, groups = [group], lags = [], partition }: Change): Examined {
  const partitions = [{ ...well, ...partition }];
  return {
    cluster: {
      generation: '0.8',
      brokers: [broker(1), broker(2)],
      controller: { brokerId: 1, epoch: 1, sinceMs: 0 },
      topics: [{ topic: 't', topicId: null, config: {}, isBeingDeleted: false, partitions }],
      problems: [],
      ...cluster,
    },
    pending: { deletions: [], reassignment: null, election: null, ...pending },
    groups,
    lags,
    nowMs,
  };
}

const nobody = { brokers: [], topics: [], controller: { brokerId: null, epoch: 3, sinceMs: null } };
const problem = { path: '/x', why: 'no JSON', content: '{' };
const lagging = { ...owned, group: 'g', behind: { ...unknownLag, latest: 9n, records: 4n } };

test.each<[string, Change, string, RegExp]>([
  ['no broker', { cluster: nobody }, 'critical', /^no broker is registered/],
  [
    'no controller',
    { cluster: { controller: { brokerId: null, epoch: 3, sinceMs: null } } },
    'critical',
    /^there is no controller/,
  ],
  [
    'a controller that is no broker',
    { cluster: { controller: { brokerId: 9, epoch: 3, sinceMs: null } } },
    'warning',
    /^the controller 9 is no registered broker/,
  ],
  ['no leader', { partition: { leader: null } }, 'critical', /^1 partition has no leader: t\/0$/],
  ['no state', { partition: { hasState: false } }, 'warning', /never dealt with.*t\/0$/],
  ['a broker gone', { cluster: { brokers: [broker(1)] } }, 'critical', /is gone: 2$/],
  ['out of sync', { partition: { isr: [1] } }, 'warning', /out of sync: t\/0$/],
  ['not preferred', { partition: { leader: 2 } }, 'warning', /^1 of 1 partition.* not led by/],
  [
    'one address twice',
    { cluster: { brokers: [broker(1, 'h'), broker(2, 'h')] } },
    'critical',
    /^brokers 1 and 2 both say they are at h:9092$/,
  ],
  ['a deletion', { pending: { deletions: ['old'] } }, 'warning', /^old waits to be deleted/],
  ['a move', { pending: { reassignment: '{}' } }, 'warning', /to move partitions is not done/],
  ['an election', { pending: { election: '{}' } }, 'warning', /to elect leaders is not done/],
  ['garbage', { cluster: { problems: [problem] } }, 'warning', /^\/x: no JSON$/],
  [
    'a partition that nobody owns',
    { groups: [{ ...group, partitions: [{ ...owned, owner: null, consumerId: null }] }] },
    'critical',
    /^group g: 1 partition without an owner, t\/0$/,
  ],
  ['an idle member', { groups: [{ ...group, idle: ['g_a'] }] }, 'warning', /1 of 1 member own/],
  [
    'garbage of a group',
    { groups: [{ ...group, problems: [problem] }] },
    'warning',
    /^group g: \/x/,
  ],
  [
    'a partition that stands still while records wait',
    { lags: [{ ...lagging, committedMs: nowMs - 6 * 60_000 }] },
    'warning',
    /^group g: t\/0 stands still for 6m, and 4 records wait$/,
  ],
  [
    'an offset that is gone',
    { lags: [{ ...lagging, behind: { ...lagging.behind, earliest: 6n, isOutOfRange: true } }] },
    'critical',
    /^group g: t\/0 is committed at 5, and holds 6 to 9$/,
  ],
])('%s is found', (_, change, severity, what) => {
  const findings = kafkaFindings(examined(change));

  expect(findings).toHaveLength(1);
  expect(findings[0]!.severity).toBe(severity);
  expect(findings[0]!.what).toMatch(what);
});

test('nothing is found where nothing is wrong, or where a topic is quiet', () => {
  const quiet = { ...lagging, committedMs: 0, behind: { ...lagging.behind, records: 0n } };

  const view = doctorView(examined({ lags: [quiet, { ...quiet, behind: unknownLag }] }));

  expect(view.code).toBe(0);
  expect(view.parts).toEqual(['2 brokers, 1 topic, 1 group: nothing to find fault with']);
});

test('0.7 has neither controller nor replicas, and that is no fault', () => {
  const cluster = { generation: '0.7', controller: null } as const;

  expect(kafkaFindings(examined({ cluster }))).toEqual([]);
});

test('the worst stands first, and the code says how bad it is', () => {
  const both = examined({
    partition: { isr: [1] },
    cluster: { problems: [problem], brokers: [broker(1)] },
  });

  expect(kafkaFindings(both).map(({ severity }) => severity)).toEqual([
    'critical',
    'warning',
    'warning',
  ]);
  expect(doctorView(both).code).toBe(2);
  expect(doctorView(examined({ partition: { isr: [1] } })).code).toBe(1);
});
