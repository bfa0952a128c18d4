/**
 * The nodes of Kafka 0.8 to 3.9, below the cluster's chroot.
 *
 * Rows stand in the order in which `rowOf` tries them: what is named exactly before what is matched
 * by a pattern. Content of several versions is read in all of them; the newest is written unless a
 * version is chosen. Everything here is persistent and open to all unless the cluster sets ACLs.
 */

import { row } from './layout.ts';
import {
  clusterIdContent,
  configChangeContent,
  configContent,
  controllerContent,
  epochContent,
  jsonContent,
  logDirEventContent,
  migrationContent,
  nothing,
  partitionsContent,
  plainText,
  producerIdsContent,
  reassignContent,
} from './layout-admin.ts';
import { brokerContent } from './layout-broker.ts';
import { consumerContent, offsetContent, ownerContent } from './layout-consumer.ts';
import { stateContent, topicContent } from './layout-topic.ts';

const persistent = 'persistent';
const ephemeral = 'ephemeral';
const sequential = 'persistentSequential';

const featureContent = jsonContent(
  '{"version":2,"status":1,"features":{"name":{"max_version_level":1}}}',
);
const aclContent = jsonContent(
  '{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}',
);
const aclChangeContent = jsonContent(
  '{"version":1,"resourceType":"TOPIC","name":"t","patternType":"PREFIXED"}',
);
const tokenContent = jsonContent('{"version":3,"owner":"User:a","tokenId":"id"}');

// biome-ignore format: a table is read down its columns
export const layout08 = {
  // Brokers
  brokerIds:      row({ path: '/brokers/ids',           kind: persistent, content: nothing,       writer: 'broker',            watcher: 'controller (children)' }),
  broker:         row({ path: '/brokers/ids/[id]',      kind: ephemeral,  content: brokerContent, writer: 'broker',            watcher: 'controller (data)' }),
  brokerSequence: row({ path: '/brokers/seqid',         kind: persistent, content: nothing,       writer: 'broker without an id', watcher: '', since: '0.9' }),

  // Topics
  topics:         row({ path: '/brokers/topics',                                         kind: persistent, content: nothing,      writer: 'broker',     watcher: 'controller, consumers with a filter (children)' }),
  topic:          row({ path: '/brokers/topics/[topic]',                                 kind: persistent, content: topicContent, writer: 'whoever creates it, then the controller', watcher: 'controller, old consumers (data)' }),
  partitions:     row({ path: '/brokers/topics/[topic]/partitions',                      kind: persistent, content: nothing,      writer: 'controller', watcher: '' }),
  partition:      row({ path: '/brokers/topics/[topic]/partitions/[partition]',          kind: persistent, content: nothing,      writer: 'controller', watcher: '' }),
  partitionState: row({ path: '/brokers/topics/[topic]/partitions/[partition]/state',    kind: persistent, content: stateContent, writer: 'controller; the leader for its ISR, below 2.7', watcher: 'controller, while it moves the partition (data)' }),

  // The controller
  controller:      row({ path: '/controller',       kind: ephemeral,  content: controllerContent, writer: 'the broker elected', watcher: 'every broker (data)' }),
  controllerEpoch: row({ path: '/controller_epoch', kind: persistent, content: epochContent,      writer: 'the broker elected', watcher: '' }),
  clusterId:       row({ path: '/cluster/id',       kind: persistent, content: clusterIdContent,  writer: 'first broker',       watcher: '', since: '0.10.1' }),
  feature:         row({ path: '/feature',          kind: persistent, content: featureContent,    writer: 'controller',         watcher: 'every broker (data)', since: '2.7' }),
  migration:       row({ path: '/migration',        kind: persistent, content: migrationContent,  writer: 'KRaft controller',   watcher: '', since: '3.4' }),
  producerIds:     row({ path: '/latest_producer_id_block', kind: persistent, content: producerIdsContent, writer: 'controller', watcher: '', since: '0.11' }),

  // Asked of the controller
  deleteTopics:      row({ path: '/admin/delete_topics',               kind: persistent, content: nothing,           writer: 'broker', watcher: 'controller (children)', since: '0.8.1' }),
  deleteTopic:       row({ path: '/admin/delete_topics/[topic]',       kind: persistent, content: nothing,           writer: 'admin',  watcher: '', since: '0.8.1' }),
  reassign:          row({ path: '/admin/reassign_partitions',         kind: persistent, content: reassignContent,   writer: 'admin',  watcher: 'controller (exists)' }),
  preferredElection: row({ path: '/admin/preferred_replica_election',  kind: persistent, content: partitionsContent, writer: 'admin',  watcher: 'controller (exists)' }),

  // Told to the controller
  isrChanges:   row({ path: '/isr_change_notification',                        kind: persistent, content: nothing,            writer: 'broker',                    watcher: 'controller (children)', since: '0.9' }),
  isrChange:    row({ path: '/isr_change_notification/isr_change_[seq]',       kind: sequential, content: partitionsContent,  writer: 'leader, below 2.7',         watcher: '', since: '0.9' }),
  logDirEvents: row({ path: '/log_dir_event_notification',                     kind: persistent, content: nothing,            writer: 'broker',                    watcher: 'controller (children)', since: '1.0' }),
  logDirEvent:  row({ path: '/log_dir_event_notification/log_dir_event_[seq]', kind: sequential, content: logDirEventContent, writer: 'broker that lost a disk',   watcher: '', since: '1.0' }),

  // Configuration
  configChanges:    row({ path: '/config/changes',                        kind: persistent, content: nothing,             writer: 'broker',              watcher: 'every broker (children)', since: '0.8.1' }),
  configChange:     row({ path: '/config/changes/config_change_[seq]',    kind: sequential, content: configChangeContent, writer: 'who changed it',      watcher: '', since: '0.8.1' }),
  topicConfigs:     row({ path: '/config/topics',                         kind: persistent, content: nothing,             writer: 'broker',              watcher: '', since: '0.8.1' }),
  topicConfig:      row({ path: '/config/topics/[topic]',                 kind: persistent, content: configContent,       writer: 'admin',               watcher: '', since: '0.8.1' }),
  brokerConfig:     row({ path: '/config/brokers/[broker]',               kind: persistent, content: configContent,       writer: 'admin',               watcher: '', since: '0.10.1' }),
  clientConfig:     row({ path: '/config/clients/[client]',               kind: persistent, content: configContent,       writer: 'admin',               watcher: '', since: '0.9', encoded: true }),
  userConfig:       row({ path: '/config/users/[user]',                   kind: persistent, content: configContent,       writer: 'admin',               watcher: '', since: '0.10.1', encoded: true }),
  userClientConfig: row({ path: '/config/users/[user]/clients/[client]',  kind: persistent, content: configContent,       writer: 'admin',               watcher: '', since: '0.10.1', encoded: true }),
  ipConfig:         row({ path: '/config/ips/[ip]',                       kind: persistent, content: configContent,       writer: 'admin',               watcher: '', since: '2.7' }),

  // Security
  acl:               row({ path: '/kafka-acl/[type]/[name]',                              kind: persistent, content: aclContent,       writer: 'authorizer', watcher: '', since: '0.9' }),
  prefixedAcl:       row({ path: '/kafka-acl-extended/prefixed/[type]/[name]',            kind: persistent, content: aclContent,       writer: 'authorizer', watcher: '', since: '2.0' }),
  aclChange:         row({ path: '/kafka-acl-changes/acl_changes_[seq]',                  kind: sequential, content: plainText,        writer: 'authorizer', watcher: 'every broker (children)', since: '0.9' }),
  prefixedAclChange: row({ path: '/kafka-acl-extended-changes/acl_changes_[seq]',         kind: sequential, content: aclChangeContent, writer: 'authorizer', watcher: 'every broker (children)', since: '2.0' }),
  token:             row({ path: '/delegation_token/tokens/[id]',                         kind: persistent, content: tokenContent,     writer: 'broker',     watcher: '', since: '1.1' }),
  tokenChange:       row({ path: '/delegation_token/token_changes/token_change_[seq]',    kind: sequential, content: plainText,        writer: 'broker',     watcher: 'every broker (children)', since: '1.1' }),

  // Groups that keep themselves in ZooKeeper
  groups:       row({ path: '/consumers',                                     kind: persistent, content: nothing,         writer: 'broker',   watcher: '' }),
  consumerIds:  row({ path: '/consumers/[group]/ids',                         kind: persistent, content: nothing,         writer: 'consumer', watcher: 'members of the group (children)' }),
  consumer:     row({ path: '/consumers/[group]/ids/[consumer]',              kind: ephemeral,  content: consumerContent, writer: 'consumer', watcher: '' }),
  offsetTopics: row({ path: '/consumers/[group]/offsets',                     kind: persistent, content: nothing,         writer: 'consumer', watcher: '' }),
  offsets:      row({ path: '/consumers/[group]/offsets/[topic]',             kind: persistent, content: nothing,         writer: 'consumer', watcher: '' }),
  offset:       row({ path: '/consumers/[group]/offsets/[topic]/[partition]', kind: persistent, content: offsetContent,   writer: 'owner',    watcher: 'monitors (data)' }),
  ownerTopics:  row({ path: '/consumers/[group]/owners',                      kind: persistent, content: nothing,         writer: 'consumer', watcher: '' }),
  owners:       row({ path: '/consumers/[group]/owners/[topic]',              kind: persistent, content: nothing,         writer: 'consumer', watcher: '' }),
  owner:        row({ path: '/consumers/[group]/owners/[topic]/[partition]',  kind: ephemeral,  content: ownerContent,    writer: 'owner',    watcher: '' }),
} as const;

/** Made by every broker at its start where they are missing, parents and all. */
export const basePaths: readonly string[] = [
  '/consumers',
  '/brokers/ids',
  '/brokers/topics',
  '/config/changes',
  '/admin/delete_topics',
  '/brokers/seqid',
  '/isr_change_notification',
  '/latest_producer_id_block',
  '/log_dir_event_notification',
  '/config/topics',
  '/config/clients',
  '/config/users',
  '/config/brokers',
  '/config/ips',
];
