/**
 * What the admin server can be asked, by all names that Apache has for it (Commands.java), with the
 * names of Apache's fields. `command` and `error` are added to whatever a command gives.
 */

import { digestVersion, printable } from '../protocol/index.ts';
import type { Connection } from './connection.ts';
import { directoryBytes, requestLatency, type ServerFacts } from './facts.ts';
import {
  confValues,
  environment,
  getTraceMask,
  resetLinks,
  setTraceMask,
  textBytesMax,
} from './four-letter-words.ts';
import type { JavaValue } from './java-json.ts';
import { Double, monitorValues, plainLinks } from './metrics.ts';
import { lastOperation } from './operations.ts';
import { fullVersion } from './version.ts';

type Answer = Record<string, JavaValue>;

export interface AdminCommand {
  readonly aliases: readonly string[];
  /** It needs somebody who may do everything with the root. */
  readonly guarded?: boolean;
  /** Snapshots, out or in: answered by admin-snapshot.ts, and not by `run`. */
  readonly snapshot?: 'out' | 'in';
  run(facts: ServerFacts, query: URLSearchParams): Answer;
}

/** Of what one answer lists: who can dial may ask (CVE-2017-5637). */
const itemsMax = 50_000;
const itemCharsMax = textBytesMax;

// biome-ignore format: a table is read down its columns
export const adminCommands: Readonly<Record<string, AdminCommand>> = {
  configuration:         { aliases: ['conf', 'config'], run: configuration },
  connection_stat_reset: { aliases: ['crst'],           run: (facts) => { resetLinks(facts); return {}; } },
  connections:           { aliases: ['cons'],           run: (facts) => connections(facts, false) },
  dirs:                  { aliases: [],                 run: dirs },
  dump:                  { aliases: [],                 run: dump },
  environment:           { aliases: ['env', 'envi'],    run: () => environment() },
  get_trace_mask:        { aliases: ['gtmk'],           run: () => ({ tracemask: getTraceMask() }) },
  hash:                  { aliases: [],                 run: hash },
  initial_configuration: { aliases: ['icfg'],           run: (facts) => ({ initial_configuration: facts.initialConfig }) },
  is_read_only:          { aliases: ['isro'],           run: () => ({ read_only: false }) },
  last_snapshot:         { aliases: ['lsnp'],           run: lastSnapshot },
  leader:                { aliases: ['lead'],           run: () => ({ error: 'server is not initialized' }) },
  monitor:               { aliases: ['mntr'],           run: monitor },
  observer_connection_stat_reset: { aliases: ['orst'],  run: () => ({}) },
  observers:             { aliases: ['obsr'],           run: () => ({ synced_observers: 0, observers: [] }) },
  restore:               { aliases: ['rest'],           run: () => ({}), guarded: true, snapshot: 'in' },
  ruok:                  { aliases: [],                 run: () => ({}) },
  server_stats:          { aliases: ['srvr'],           run: serverStats },
  set_trace_mask:        { aliases: ['stmk'],           run: traceMask },
  snapshot:              { aliases: ['snap'],           run: () => ({}), guarded: true, snapshot: 'out' },
  stat_reset:            { aliases: ['srst'],           run: ({ engine }) => { engine.stats.reset(); return {}; } },
  stats:                 { aliases: ['stat'],           run: (facts) => ({ ...serverStats(facts), ...connections(facts, true) }) },
  system_properties:     { aliases: ['sysp'],           run: () => environment() },
  voting_view:           { aliases: [],                 run: () => ({ current_config: {} }) },
  watch_summary:         { aliases: ['wchs'],           run: watchSummary },
  watches:               { aliases: ['wchc'],           run: watches },
  watches_by_path:       { aliases: ['wchp'],           run: watchesByPath },
  zabstate:              { aliases: [],                 run: () => ({ voting: false, zabstate: '' }) },
};

const byName = new Map(
  Object.entries(adminCommands).flatMap(([name, command]) =>
    [name, ...command.aliases].map((each) => [each, { name, command }] as const),
  ),
);

export function findAdminCommand(
  name: string,
): { name: string; command: AdminCommand } | undefined {
  return byName.get(name);
}

function configuration(facts: ServerFacts): Answer {
  const values = confValues(facts);
  return {
    client_port: values.clientPort,
    data_dir: values.dataDir,
    data_log_dir: values.dataLogDir,
    tick_time: values.tickTime,
    max_client_cnxns: values.maxClientCnxns,
    min_session_timeout: values.minSessionTimeout,
    max_session_timeout: values.maxSessionTimeout,
    server_id: values.serverId,
    client_port_listen_backlog: values.clientPortListenBacklog,
  };
}

function connections({ engine }: ServerFacts, brief: boolean): Answer {
  const all = [...engine.connections].slice(0, itemsMax);
  const shown = (secure: boolean) =>
    all.filter(({ wire }) => wire.secure === secure).map((each) => connection(each, brief));
  return { connections: shown(false), secure_connections: shown(true) };
}

function connection(each: Connection, brief: boolean): Answer {
  const link = each.stats(0);
  const { latency } = link;
  const counts = {
    remote_socket_address: `${link.address}:${link.port}`,
    interest_ops: 1,
    outstanding_requests: link.inFlight,
    packets_received: link.packetsReceived,
    packets_sent: link.packetsSent,
  };
  if (brief) return counts;
  return {
    ...counts,
    session_id: link.sessionId,
    last_operation: lastOperation(each),
    established: Math.floor(link.establishedWallMs),
    session_timeout: link.sessionTimeoutMs,
    last_cxid: link.lastXid,
    last_zxid: link.lastZxid,
    last_response_time: Math.round(link.lastReplyMs),
    last_latency: Math.round(latency.lastMs),
    min_latency: Math.round(latency.minMs),
    avg_latency: Math.floor(latency.averageMs),
    max_latency: Math.round(latency.maxMs),
  };
}

function dirs(facts: ServerFacts): Answer {
  const { data, log } = directoryBytes(facts);
  return { datadir_size: data, logdir_size: log };
}

function hash({ engine }: ServerFacts): Answer {
  const digests = engine.tree.digestLog.map(({ zxid, digest }) => ({
    zxid,
    digest_version: digestVersion,
    digest: BigInt.asIntN(64, digest),
  }));
  return { digests };
}

function dump({ engine }: ServerFacts): Answer {
  const room = new Room();
  const due = [...engine.sessions.buckets].sort(([a], [b]) => a - b);
  return {
    expiry_time_to_session_ids: Object.fromEntries(
      due.map(([dueMs, sessions]) => [
        String(Math.round(dueMs)),
        room.take(sessions, ({ id }) => id),
      ]),
    ),
    session_id_to_ephemeral_paths: Object.fromEntries(
      [...engine.tree.owners].map(([id, paths]) => [String(id), room.take(paths, (path) => path)]),
    ),
  };
}

/** How many items an answer still has room for, and how many characters. */
class Room {
  #left = itemsMax;
  #charsLeft = itemCharsMax;

  /** `chars` long is what they stand behind. */
  take<T>(items: Iterable<T>, show: (item: T) => JavaValue, chars = 0): JavaValue[] {
    const shown: JavaValue[] = [];
    this.#charsLeft -= chars;
    for (const item of items) {
      if (this.isFull) break;
      const value = show(item);
      this.#left -= 1;
      this.#charsLeft -= typeof value === 'string' ? value.length : 0;
      shown.push(value);
    }
    return shown;
  }

  get isFull(): boolean {
    return this.#left === 0 || this.#charsLeft <= 0;
  }
}

/** Whole seconds, though Apache's documents promise milliseconds. */
function lastSnapshot({ storage }: ServerFacts): Answer {
  const last = storage?.lastSnapshot();
  if (last === undefined) return { zxid: 'f'.repeat(16), timestamp: -1 };
  return { zxid: last.zxid.toString(16), timestamp: Math.floor(last.wallMs / 1000) };
}

function monitor(facts: ServerFacts): Answer {
  return {
    version: fullVersion(),
    server_state: 'standalone',
    ...Object.fromEntries(monitorValues(facts)),
  };
}

function serverStats(facts: ServerFacts): Answer {
  const { engine, clock, startedMs } = facts;
  const latency = requestLatency(facts);
  const bytes = directoryBytes(facts);
  const { last, min, max } = engine.stats.responses;
  const responseStats = { last_buffer_size: last, min_buffer_size: min, max_buffer_size: max };
  const plain = plainLinks(facts);
  return {
    version: fullVersion(),
    read_only: false,
    server_stats: {
      packets_sent: engine.stats.packetsSent,
      packets_received: engine.stats.packetsReceived,
      fsync_threshold_exceed_count: engine.stats.slowAppends,
      client_response_stats: responseStats,
      data_dir_size: bytes.data,
      log_dir_size: bytes.log,
      provider_null: false,
      last_processed_zxid: engine.lastZxid,
      outstanding_requests: engine.outstanding,
      server_state: 'standalone',
      avg_latency: new Double(latency.average),
      max_latency: latency.max,
      min_latency: latency.min,
      num_alive_client_connections: engine.connections.size,
      uptime: Math.round(clock.nowMs() - startedMs),
      auth_failed_count: engine.stats.proofsFailed,
      non_mtlsremote_conn_count: plain.remote,
      non_mtlslocal_conn_count: plain.local,
    },
    client_response: responseStats,
    node_count: engine.tree.nodeCount,
  };
}

function traceMask(_: ServerFacts, query: URLSearchParams): Answer {
  const text = query.get('traceMask');
  const complaint = 'setTraceMask requires long traceMask argument';
  if (text === null) return { error: complaint };
  if (!/^[+-]?\d{1,19}$/.test(text) || BigInt.asIntN(64, BigInt(text)) !== BigInt(text)) {
    return { error: `${complaint}, got ${printable(text)}` };
  }
  setTraceMask(BigInt(text));
  return { tracemask: BigInt(text) };
}

function watchSummary({ engine }: ServerFacts): Answer {
  const { data } = engine.watches;
  return {
    num_connections: [...data.watchers()].length,
    num_paths: data.pathCount,
    num_total_watches: data.count,
  };
}

function watches({ engine }: ServerFacts): Answer {
  const room = new Room();
  const { data } = engine.watches;
  const bySession: Record<string, JavaValue> = {};
  for (const watcher of data.watchers()) {
    if (room.isFull) break;
    bySession[String(watcher.watcherId)] = room.take(data.pathsOf(watcher), (path) => path);
  }
  return { session_id_to_watched_paths: bySession };
}

function watchesByPath({ engine }: ServerFacts): Answer {
  const room = new Room();
  const byPath: [string, JavaValue][] = [];
  for (const [path, watchers] of engine.watches.data.paths()) {
    if (room.isFull) break;
    byPath.push([path, room.take(watchers, ({ watcherId }) => watcherId, path.length)]);
  }
  return { path_to_session_ids: Object.fromEntries(byPath) };
}
