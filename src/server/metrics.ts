/**
 * Every metric of a standalone Apache server by its own name, and where ours comes from.
 *
 * `metricsOf` works them all out when somebody asks: `mntr`, the admin server, Prometheus. What only
 * an ensemble does is 0 here, as it is on a standalone Apache server. What has no counterpart in one
 * process with one thread stands in `unmeasured`, and is not shown: a zero would say that it was fast.
 */

import { printable } from '../protocol/index.ts';
import { directoryBytes, requestLatency, type ServerFacts, type StorageTally } from './facts.ts';
import { openFiles, openFilesMax } from './open-files.ts';
import { quotaSums } from './quota-sums.ts';
import { type Latency, latencyBoundsMs, Tally } from './stats.ts';

type Amount = (facts: ServerFacts) => number;
type Spread = (facts: ServerFacts) => Latency | Tally;

export type Metric = { readonly name: string; readonly about: string } & (
  | { readonly type: 'gauge' | 'counter'; readonly value: number }
  | {
      readonly type: 'gauge' | 'counter';
      /** By the label `key`. */
      readonly byKey: Iterable<readonly [key: string, value: number]>;
    }
  | {
      readonly type: 'summary';
      readonly count: number;
      readonly sum: number;
      readonly min: number;
      readonly max: number;
      /** By the part of all, where the shape is known. */
      readonly quantiles: ReadonlyMap<number, number>;
      /** Upper bound and how many stayed below it, the last without bound. */
      readonly buckets?: readonly (readonly [below: number, count: number])[];
    }
);

const none = () => 0;
const nothing = new Tally();
const stored =
  (name: StorageTally): Spread =>
  ({ storage }) =>
    storage?.tallies?.[name] ?? nothing;

// biome-ignore format: a table is read down its columns
const gauges: Record<string, readonly [about: string, value: Amount]> = {
  avg_latency:                  ['of all requests, milliseconds',           (f) => requestLatency(f).average],
  min_latency:                  ['of all requests, milliseconds',           (f) => requestLatency(f).min],
  max_latency:                  ['of all requests, milliseconds',           (f) => requestLatency(f).max],
  packets_received:             ['requests since the start or srst',        ({ engine }) => engine.stats.packetsReceived],
  packets_sent:                 ['replies and events likewise',             ({ engine }) => engine.stats.packetsSent],
  num_alive_connections:        ['links that are open',                     ({ engine }) => engine.connections.size],
  outstanding_requests:         ['requests without a reply yet',            ({ engine }) => engine.outstanding],
  uptime:                       ['milliseconds since the start',            (f) => Math.round(f.clock.nowMs() - f.startedMs)],
  znode_count:                  ['nodes',                                   ({ engine }) => engine.tree.nodeCount],
  watch_count:                  ['watches, of data and of children',        ({ engine }) => engine.watches.count],
  ephemerals_count:             ['ephemeral nodes',                         ({ engine }) => engine.tree.ephemeralCount],
  approximate_data_size:        ['bytes of paths and data',                 ({ engine }) => engine.tree.approximateDataSize],
  global_sessions:              ['sessions',                                ({ engine }) => engine.sessions.size],
  local_sessions:               ['sessions that only one server knows',     none],
  open_file_descriptor_count:   ['files and sockets of this process',       () => openFiles()],
  max_file_descriptor_count:    ['how many of them it may have',            () => openFilesMax()],
  connection_drop_probability:  ['of the connection throttle, which is off', none],
  outstanding_tls_handshake:    ['TLS handshakes under way',                none],
  auth_failed_count:            ['proofs of an id that did not hold',       ({ engine }) => engine.stats.proofsFailed],
  non_mtls_remote_conn_count:   ['links without TLS from elsewhere, beside a port for it', (f) => plainLinks(f).remote],
  non_mtls_local_conn_count:    ['links without TLS from here, beside a port for it',      (f) => plainLinks(f).local],
  last_client_response_size:    ['of the last frame to a client, bytes; -1 before it', ({ engine }) => engine.stats.responses.last],
  min_client_response_size:     ['of the smallest one, bytes',              ({ engine }) => engine.stats.responses.min],
  max_client_response_size:     ['of the largest one, bytes',               ({ engine }) => engine.stats.responses.max],
};

/** As Apache, which counts them where TLS is spoken, too. */
export function plainLinks({ engine, securePort }: ServerFacts): { remote: number; local: number } {
  const { plainRemote, plainLocal } = engine.stats;
  return securePort === undefined
    ? { remote: 0, local: 0 }
    : { remote: plainRemote, local: plainLocal };
}

// biome-ignore format: a table is read down its columns
const counters: Record<string, readonly [about: string, value: Amount]> = {
  bytes_received_count:                  ['bytes from clients',                           ({ engine }) => engine.stats.bytesReceived],
  response_bytes:                        ['bytes of replies to clients',                  ({ engine }) => engine.stats.responseBytes],
  watch_bytes:                           ['bytes of events to clients',                   ({ engine }) => engine.stats.eventBytes],
  connection_request_count:              ['first frames of links',                        ({ engine }) => engine.stats.connectRequests],
  connection_revalidate_count:           ['sessions that were asked for on a new link',   ({ engine }) => engine.stats.revalidations],
  connection_rejected:                   ['links beyond a limit',                         ({ engine }) => engine.stats.connectionsRefused],
  sessionless_connections_expired:       ['links that asked for no session in time',      ({ engine }) => engine.stats.greetingsTimedOut],
  stale_sessions_expired:                ['sessions that nothing was heard of',           ({ engine }) => engine.stats.sessionsExpired],
  connection_drop_count:                 ['links that their client ended',                ({ engine }) => engine.stats.connectionsDropped],
  cnxn_closed_without_zk_server_running: ['links before the server was ready',            none],
  commit_count:                          ['ensembles only',                               none],
  dead_watchers_cleared:                 ['watches of closed links go at once',           none],
  dead_watchers_queued:                  ['watches of closed links go at once',           none],
  add_dead_watcher_stall_time:           ['watches of closed links go at once',           none],
  diff_count:                            ['ensembles only',                               none],
  digest_mismatches_count:               ['txns that made another tree than they said',   ({ engine }) => engine.stats.digestMismatches],
  ensemble_auth_fail:                    ['ensembles only',                               none],
  ensemble_auth_skip:                    ['ensembles only',                               none],
  ensemble_auth_success:                 ['ensembles only',                               none],
  insecure_admin_count:                  ['of admin.portUnification, which is off',       none],
  large_requests_rejected:               ['of the large-request throttle, which is off',  none],
  learner_commit_received_count:         ['ensembles only',                               none],
  learner_proposal_received_count:       ['ensembles only',                               none],
  looking_count:                         ['ensembles only',                               none],
  proposal_count:                        ['ensembles only',                               none],
  quit_leading_due_to_disloyal_voter:    ['ensembles only',                               none],
  request_commit_queued:                 ['ensembles only',                               none],
  request_throttle_wait_count:           ['of the request throttle, which is off',        none],
  requests_not_forwarded_to_commit_processor: ['ensembles only',                          none],
  response_packet_cache_hits:            ['there is no cache of replies',                 none],
  response_packet_cache_misses:          ['there is no cache of replies',                 none],
  response_packet_get_children_cache_hits:   ['there is no cache of replies',             none],
  response_packet_get_children_cache_misses: ['there is no cache of replies',             none],
  restore_error_count:                   ['restores by the admin server that failed',     ({ storage }) => storage?.restores?.errors ?? 0],
  restore_rate_limited_count:            ['restores by the admin server, too soon',       ({ storage }) => storage?.restores?.refused ?? 0],
  revalidate_count:                      ['ensembles only',                               none],
  skip_learner_request_to_next_processor_count: ['ensembles only',                        none],
  snap_count:                            ['ensembles only: snapshots sent to learners',   none],
  snapshot_error_count:                  ['snapshots by the admin server that failed',    ({ engine }) => engine.stats.snapshotErrors],
  snapshot_rate_limited_count:           ['snapshots by the admin server, too soon',      ({ engine }) => engine.stats.snapshotsRefused],
  stale_replies:                         ['of the request throttle, which is off',        none],
  stale_requests:                        ['of the request throttle, which is off',        none],
  stale_requests_dropped:                ['of the request throttle, which is off',        none],
  throttled_ops:                         ['of the request throttle, which is off',        none],
  tls_handshake_exceeded:                ['TLS handshakes beyond a limit',                none],
  unrecoverable_error_count:             ['the server stops at the first',                none],
  unsuccessful_handshake:                ['TLS handshakes that failed',                   ({ engine }) => engine.stats.tlsFailures],
};

// biome-ignore format: a table is read down its columns
const summaries: Record<string, readonly [about: string, spread: Spread]> = {
  readlatency:               ['from a read to its reply, milliseconds',   ({ engine }) => engine.stats.reads],
  updatelatency:             ['from a write to its reply, milliseconds',  ({ engine }) => engine.stats.writes],
  fsynctime:                 ['of one batch to disk, milliseconds',       ({ engine }) => engine.stats.appends],
  sync_process_time:         ['of one batch to disk, milliseconds',       ({ engine }) => engine.stats.appends],
  sync_processor_batch_size: ['txns in one batch',                        ({ engine }) => engine.stats.batchTxns],
  node_created_watch_count:  ['watchers of one event',                    ({ engine }) => engine.watches.told.created],
  node_deleted_watch_count:  ['watchers of one event',                    ({ engine }) => engine.watches.told.deleted],
  node_changed_watch_count:  ['watchers of one event',                    ({ engine }) => engine.watches.told.dataChanged],
  node_children_watch_count: ['watchers of one event',                    ({ engine }) => engine.watches.told.childrenChanged],
  snapshottime:              ['of one snapshot, milliseconds',            stored('snapshottime')],
  dbinittime:                ['of reading all there is, milliseconds',    stored('dbinittime')],
  startup_snap_load_time:    ['of reading the snapshot, milliseconds',    stored('startup_snap_load_time')],
  startup_txns_load_time:    ['of reading the log, milliseconds',         stored('startup_txns_load_time')],
  startup_txns_loaded:       ['txns read at the start',                   stored('startup_txns_loaded')],
  restore_time:              ['of one restore, milliseconds',             ({ storage }) => storage?.restores?.restore_time ?? new Tally()],
};

/** By the first name of the paths. */
function byNamespace({ engine }: ServerFacts): Metric[] {
  const { countLimit, bytesLimit, countUsage, bytesUsage } = quotaSums(engine.tree);
  const gauges: readonly [name: string, about: string, byKey: ReadonlyMap<string, number>][] = [
    ['quota_count_limit_per_namespace', 'nodes that quotas allow; -1 is no limit', countLimit],
    ['quota_bytes_limit_per_namespace', 'bytes that quotas allow; -1 is no limit', bytesLimit],
    ['quota_count_usage_per_namespace', 'nodes below quotas', countUsage],
    ['quota_bytes_usage_per_namespace', 'bytes below quotas', bytesUsage],
  ];
  return [
    ...gauges.map(([name, about, byKey]) => ({ name, about, byKey, type: 'gauge' as const })),
    {
      name: 'quota_exceeded_error_per_namespace',
      about: 'writes that a hard limit forbade',
      type: 'counter',
      byKey: engine.stats.quotaErrors,
    },
  ];
}

/** What Apache has no name for: limits that somebody has run into. */
// biome-ignore format: a table is read down its columns
const limited: Record<string, readonly [type: 'gauge' | 'counter', about: string, value: Amount]> = {
  disk_free_bytes:     ['gauge',   'free on the disk of the log or the snapshots; -1 is unknown', freeBytes],
  writes_refused:      ['gauge',   '1 while the disk is nearly full and writes are refused',      ({ engine }) => Number(engine.refusesWrites)],
  writes_refused_count: ['counter', 'writes that were refused for it',                            ({ engine }) => engine.stats.writesRefused],
  auth_refused_count:  ['counter', 'proofs not looked at, as their address failed too often',     ({ engine }) => engine.stats.authRefusals],
};

function freeBytes({ storage }: ServerFacts): number {
  const bytes = storage?.freeBytes?.() ?? Infinity;
  return bytes === Infinity ? -1 : bytes;
}

/** Apache's others, of a server of many threads or of many servers. */
export const unmeasured: Readonly<Record<string, readonly string[]>> = {
  'belongs to an ensemble': [
    ...['ack_latency', 'commit_propagation_latency', 'election_time', 'follower_sync_time'],
    ...['inflight_diff_count', 'inflight_snap_count', 'leader_unavailable_time'],
    ...['learner_handler_qp_size', 'learner_handler_qp_time_ms', 'observer_sync_time'],
    ...['learner_request_processor_queue_size', 'om_commit_process_time_ms'],
    ...['om_proposal_process_time_ms', 'proposal_ack_creation_latency', 'proposal_latency'],
    ...['quorum_ack_latency', 'unavailable_time'],
  ],
  'is a queue or a step between threads, and here is one thread': [
    ...['commit_commit_proc_req_queued', 'commit_process_time', 'pending_session_queue_size'],
    ...['concurrent_request_processing_in_commit_processor', 'local_write_committed_time_ms'],
    ...['outstanding_changes_queued', 'outstanding_changes_removed', 'prep_process_time'],
    ...['propagation_latency', 'proposal_process_time'],
    ...['prep_processor_queue_size', 'prep_processor_queue_time_ms'],
    ...['prep_processor_request_queued', 'read_commit_proc_issued', 'read_commit_proc_req_queued'],
    ...['read_commitproc_time_ms', 'read_final_proc_time_ms', 'reads_issued_from_session_queue'],
    ...['reads_after_write_in_session_queue', 'requests_in_session_queue'],
    ...['server_write_committed_time_ms', 'session_queues_drained', 'sync_processor_queue_size'],
    ...['sync_processor_queue_and_flush_time_ms', 'sync_processor_queue_flush_time_ms'],
    ...['sync_processor_queue_time_ms', 'sync_processor_request_queued'],
    ...['time_waiting_empty_pool_in_commit_processor_read_ms', 'write_commit_proc_issued'],
    ...['write_batch_time_in_commit_processor', 'write_commit_proc_req_queued'],
    ...['write_commitproc_time_ms', 'write_final_proc_time_ms', 'close_session_prep_time'],
  ],
  'is of a part that we do not have': [
    ...['connection_token_deficit', 'dead_watchers_cleaner_latency', 'jvm_pause_time_ms'],
    ...['netty_queued_buffer_capacity', 'request_throttle_queue_time_ms'],
    ...['socket_closing_time'],
  ],
  'would be looked up with each read and write, and has a series for each name below the root': [
    ...['read_per_namespace', 'write_per_namespace'],
  ],
};

const quantiles = [0.5, 0.9, 0.95, 0.99, 0.999];

export function metricsOf(facts: ServerFacts): Metric[] {
  const metrics: Metric[] = [];
  for (const [name, [about, value]] of Object.entries(gauges)) {
    metrics.push({ name, about, type: 'gauge', value: value(facts) });
  }
  for (const [name, [about, value]] of Object.entries(counters)) {
    metrics.push({ name, about, type: 'counter', value: value(facts) });
  }
  const bytes = directoryBytes(facts);
  const added = { data_dir_size: bytes.data, log_dir_size: bytes.log };
  for (const [name, value] of Object.entries(added)) {
    metrics.push({ name: `drover_${name}`, about: 'bytes on disk', type: 'gauge', value });
  }
  for (const [name, [type, about, value]] of Object.entries(limited)) {
    metrics.push({ name: `drover_${name}`, about, type, value: value(facts) });
  }
  const { slowAppends } = facts.engine.stats;
  const about = 'batches that took the disk too long: fsync.warningthresholdms';
  metrics.push({
    name: 'fsync_threshold_exceed_count',
    about,
    type: 'counter',
    value: slowAppends,
  });
  metrics.push(...byNamespace(facts));
  for (const [name, [about, spread]] of Object.entries(summaries)) {
    metrics.push({ name, about, type: 'summary', ...shapeOf(spread(facts)) });
  }
  return metrics;
}

function shapeOf(spread: Latency | Tally) {
  if (spread instanceof Tally) {
    const { count, sum, max } = spread;
    return { count, sum, min: count === 0 ? 0 : spread.min, max, quantiles: new Map() };
  }
  let below = 0;
  const buckets = [...spread.buckets].map((inBucket, i) => {
    below += inBucket;
    return [latencyBoundsMs[i] ?? Infinity, below] as const;
  });
  return {
    count: spread.count,
    sum: spread.sumMs,
    min: spread.count === 0 ? 0 : spread.minMs,
    max: spread.maxMs,
    quantiles: new Map(quantiles.map((part) => [part, spread.quantileMs(part)])),
    buckets,
  };
}

/** As `mntr` and the admin server show them: whole numbers but for averages. */
export function monitorValues(facts: ServerFacts): [name: string, value: number | Double][] {
  return metricsOf(facts).flatMap((metric): [string, number | Double][] => {
    const { name } = metric;
    if ('byKey' in metric) {
      return [...metric.byKey].map(([key, value]) => [`${printable(key)}_${name}`, value]);
    }
    if (metric.type !== 'summary') {
      const isDouble = name === 'avg_latency' || name === 'connection_drop_probability';
      return [[name, isDouble ? new Double(metric.value) : Math.round(metric.value)]];
    }
    const { count, sum, min, max } = metric;
    return [
      [`avg_${name}`, new Double(count === 0 ? 0 : sum / count)],
      [`min_${name}`, Math.round(min)],
      [`max_${name}`, Math.round(max)],
      [`cnt_${name}`, count],
      [`sum_${name}`, Math.round(sum)],
      ...[...metric.quantiles]
        .filter(([part]) => detailed.has(name) && part !== 0.9)
        .map(([part, value]): [string, number] => [
          `p${String(part).slice(2).padEnd(2, '0')}_${name}`,
          Math.round(value),
        ]),
    ];
  });
}

/** Those that Apache shows percentiles of. */
const detailed = new Set(['readlatency', 'updatelatency']);

/** A number that Java prints as a double: four digits at most, one at least. */
export class Double {
  readonly value: number;

  constructor(value: number) {
    this.value = Math.round(value * 10_000) / 10_000;
  }

  toString(): string {
    return Number.isInteger(this.value) ? this.value.toFixed(1) : String(this.value);
  }
}
