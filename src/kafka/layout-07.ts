/**
 * The nodes of Kafka 0.7: plain text, no replication, no controller.
 *
 * A broker's partitions of a topic are numbered by itself, from 0: `29 -> 5` under a topic means five
 * partitions on broker 29, named `29-0` to `29-4`. Those names are sorted as text, so 0-10 < 0-2.
 */

import { row } from './layout.ts';
import { nothing } from './layout-admin.ts';
import { brokerContent07 } from './layout-broker.ts';
import {
  consumerContent07,
  offsetContent,
  ownerContent,
  partitionCountContent,
} from './layout-consumer.ts';

const persistent = 'persistent';
const ephemeral = 'ephemeral';

// biome-ignore format: a table is read down its columns
export const layout07 = {
  brokerIds:    row({ path: '/brokers/ids',                                kind: persistent, content: nothing,               writer: 'broker',           watcher: 'producers (children)' }),
  broker:       row({ path: '/brokers/ids/[id]',                           kind: ephemeral,  content: brokerContent07,       writer: 'broker, at start', watcher: '' }),
  topics:       row({ path: '/brokers/topics',                             kind: persistent, content: nothing,               writer: 'broker',           watcher: 'consumers with a filter (children)' }),
  topic:        row({ path: '/brokers/topics/[topic]',                     kind: persistent, content: nothing,               writer: 'broker',           watcher: 'consumers and producers (children)' }),
  topicBroker:  row({ path: '/brokers/topics/[topic]/[broker]',            kind: ephemeral,  content: partitionCountContent, writer: 'broker, with the first log of the topic', watcher: '' }),
  groups:       row({ path: '/consumers',                                  kind: persistent, content: nothing,               writer: 'consumer',         watcher: '' }),
  consumerIds:  row({ path: '/consumers/[group]/ids',                      kind: persistent, content: nothing,               writer: 'consumer',         watcher: 'members of the group (children)' }),
  consumer:     row({ path: '/consumers/[group]/ids/[consumer]',           kind: ephemeral,  content: consumerContent07,     writer: 'consumer',         watcher: '' }),
  offsetTopics: row({ path: '/consumers/[group]/offsets',                  kind: persistent, content: nothing,               writer: 'consumer',         watcher: '' }),
  offsets:      row({ path: '/consumers/[group]/offsets/[topic]',          kind: persistent, content: nothing,               writer: 'consumer',         watcher: '' }),
  offset:       row({ path: '/consumers/[group]/offsets/[topic]/[partition]', kind: persistent, content: offsetContent,      writer: 'owner, on commit', watcher: '' }),
  ownerTopics:  row({ path: '/consumers/[group]/owners',                   kind: persistent, content: nothing,               writer: 'consumer',         watcher: '' }),
  owners:       row({ path: '/consumers/[group]/owners/[topic]',           kind: persistent, content: nothing,               writer: 'consumer',         watcher: '' }),
  owner:        row({ path: '/consumers/[group]/owners/[topic]/[partition]', kind: ephemeral, content: ownerContent,         writer: 'owner',            watcher: '' }),
} as const;
