/**
 * The nodes of MetaQ, below its root: connect with `/meta` (or whatever the cluster's root is) as
 * chroot. Brokers number their own partitions, as in Kafka 0.7, and may have slaves.
 */

import { type Content, row } from './layout.ts';
import { nothing, plainText } from './layout-admin.ts';
import {
  consumerContentMetaq,
  metaqOffsetContent,
  ownerContent,
  partitionCountContent,
} from './layout-consumer.ts';
import { isObject, parseJson, toCount, toJson } from './layout-fields.ts';

export interface MetaqAddress {
  readonly host: string;
  readonly port: number;
}

const addressContent: Content<MetaqAddress> = {
  schema: 'meta://host:port',
  parse(text) {
    const found = /^meta:\/\/(?:\[([^\]]+)\]|([^:/?]+)):(\d+)/.exec(text ?? '');
    if (found === null) throw new Error('meta://host:port is wanted');
    return { host: (found[1] ?? found[2])!, port: Number(found[3]) };
  },
  format: ({ host, port }) => `meta://${host.includes(':') ? `[${host}]` : host}:${port}`,
};

export interface MetaqTopicShare {
  readonly numParts: number;
  /** `29-m`, or `29-s1` for a slave. */
  readonly broker: string;
}

const shareContent: Content<MetaqTopicShare> = {
  schema: '{"numParts":2,"broker":"29-m"}',
  parse(text) {
    const value = parseJson(text ?? '');
    if (!isObject(value)) return { numParts: partitionCountContent.parse(text), broker: '' };
    return { numParts: toCount(value.numParts, 'numParts'), broker: String(value.broker ?? '') };
  },
  format: ({ numParts, broker }) => toJson({ numParts, broker }),
};

const persistent = 'persistent';
const ephemeral = 'ephemeral';

// biome-ignore format: a table is read down its columns
export const layoutMetaq = {
  brokerIds:   row({ path: '/brokers/ids',                                   kind: persistent, content: nothing,              writer: 'broker',   watcher: 'clients (children)' }),
  broker:      row({ path: '/brokers/ids/[id]',                              kind: persistent, content: plainText,            writer: 'broker, for old clients', watcher: '' }),
  master:      row({ path: '/brokers/ids/[id]/master',                       kind: ephemeral,  content: addressContent,       writer: 'broker',   watcher: '' }),
  slave:       row({ path: '/brokers/ids/[id]/slave[n]',                     kind: ephemeral,  content: addressContent,       writer: 'broker',   watcher: '' }),
  checksum:    row({ path: '/brokers/ids/[id]/master_config_checksum',       kind: ephemeral,  content: plainText,            writer: 'broker',   watcher: 'slaves (data)' }),
  topicsPub:   row({ path: '/brokers/topics-pub',                            kind: persistent, content: nothing,              writer: 'broker',   watcher: '' }),
  topicPub:    row({ path: '/brokers/topics-pub/[topic]',                    kind: persistent, content: nothing,              writer: 'broker',   watcher: 'producers (children)' }),
  sharePub:    row({ path: '/brokers/topics-pub/[topic]/[broker]',           kind: ephemeral,  content: shareContent,         writer: 'broker',   watcher: '' }),
  topicSub:    row({ path: '/brokers/topics-sub/[topic]',                    kind: persistent, content: nothing,              writer: 'broker',   watcher: 'consumers (children)' }),
  shareSub:    row({ path: '/brokers/topics-sub/[topic]/[broker]',           kind: ephemeral,  content: shareContent,         writer: 'broker',   watcher: '' }),
  topicOld:    row({ path: '/brokers/topics/[topic]',                        kind: persistent, content: nothing,              writer: 'broker before 1.4.3', watcher: 'clients (children)' }),
  shareOld:    row({ path: '/brokers/topics/[topic]/[broker]',               kind: ephemeral,  content: shareContent,         writer: 'broker before 1.4.3', watcher: '' }),
  consumerIds: row({ path: '/consumers/[group]/ids',                         kind: persistent, content: nothing,              writer: 'consumer', watcher: 'members of the group (children)' }),
  consumer:    row({ path: '/consumers/[group]/ids/[consumer]',              kind: ephemeral,  content: consumerContentMetaq, writer: 'consumer', watcher: '' }),
  offsets:     row({ path: '/consumers/[group]/offsets/[topic]',             kind: persistent, content: nothing,              writer: 'consumer', watcher: '' }),
  offset:      row({ path: '/consumers/[group]/offsets/[topic]/[partition]', kind: persistent, content: metaqOffsetContent,   writer: 'owner',    watcher: '' }),
  owners:      row({ path: '/consumers/[group]/owners/[topic]',              kind: persistent, content: nothing,              writer: 'consumer', watcher: '' }),
  owner:       row({ path: '/consumers/[group]/owners/[topic]/[partition]',  kind: ephemeral,  content: ownerContent,         writer: 'owner',    watcher: '' }),
} as const;

/** `29-m` gives broker 29, the master; `29-s2` its second slave. */
export function metaqBrokerOf(name: string): { broker: number; slave: number | null } | null {
  const found = /^(\d+)-(?:m|s(\d*))$/.exec(name);
  if (found === null) return null;
  return {
    broker: Number(found[1]),
    slave: found[2] === undefined ? null : Number(found[2] || 0),
  };
}
