/**
 * What all servers of an ensemble say of themselves, asked at once: for `status`, `doctor` and `top`.
 *
 * In: `mntr` and `srvr` of each, and the percentiles that newer servers have. Out: a row for each, with
 * nothing where a server does not say, and never a guess. How far one lags is counted against the
 * newest zxid seen, within the same epoch: another epoch has counted anew.
 *
 * `mntr` may be off the whitelist: `srvr` always answers, and then fewer columns are known.
 */

import {
  type AskOptions,
  ask,
  faultText,
  isNotWhitelisted,
  numberOf,
  readValues,
  type Server,
} from './four-letter.ts';

export interface ServerRow {
  readonly server: Server;
  /** Why it could not be asked. Everything below is then missing. */
  readonly error?: string;
  /** leader, follower, observer, standalone, read-only; undefined while it takes no requests. */
  readonly role?: string;
  readonly version?: string;
  readonly zxid?: bigint;
  /** Transactions behind the newest; undefined where that can't be said. */
  readonly behind?: number;
  readonly connections?: number;
  readonly watches?: number;
  /** Watches told of an event since the start; only servers of 3.6 and later count them. */
  readonly fired?: number;
  readonly nodes?: number;
  readonly outstanding?: number;
  readonly latencyMs?: { readonly min?: number; readonly avg?: number; readonly max?: number };
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly ephemerals?: number;
  readonly dataBytes?: number;
  readonly openFiles?: number;
  readonly openFilesMax?: number;
  readonly fsyncP99Ms?: number;
  readonly received?: number;
  readonly sent?: number;
  readonly followers?: number;
  readonly followersSynced?: number;
  /** How long the answer took to come, seen from here. */
  readonly answerMs: number;
  /** `mntr` is not on the server's whitelist, so only srvr's columns are known. */
  readonly isBrief?: boolean;
  /** All of `mntr`. */
  readonly values: Readonly<Record<string, string>>;
}

export async function serverRows(
  servers: readonly Server[],
  options: AskOptions = {},
): Promise<ServerRow[]> {
  const rows = await Promise.all(servers.map((server) => rowOf(server, options)));
  let newest = 0n;
  for (const { zxid = 0n } of rows) if (zxid > newest) newest = zxid;
  return rows.map((row) => ({ ...row, ...behind(row.zxid, newest) }));
}

function behind(zxid: bigint | undefined, newest: bigint): { behind?: number } {
  if (zxid === undefined || zxid >> 32n !== newest >> 32n)
    return zxid === newest ? { behind: 0 } : {};
  return { behind: Number(newest - zxid) };
}

async function rowOf(server: Server, options: AskOptions): Promise<ServerRow> {
  const startMs = performance.now();
  try {
    const [srvr, mntr] = await Promise.all([
      ask(server, 'srvr', options),
      ask(server, 'mntr', options).catch(() => ''),
    ]);
    return rowFrom(server, srvr, mntr, performance.now() - startMs);
  } catch (error) {
    options.signal?.throwIfAborted();
    return { server, error: faultText(error), answerMs: performance.now() - startMs, values: {} };
  }
}

/** What a server said, read: also for one that is in this process and needs no asking. */
export function rowFrom(server: Server, srvr: string, mntr: string, answerMs: number): ServerRow {
  return { server, answerMs, ...fromSrvr(srvr), ...fromMntr(mntr) };
}

function fromSrvr(text: string): Partial<ServerRow> {
  if (/not currently serving requests/.test(text)) return { values: {} };
  const values = readValues(text);
  const zxid = /^0x[0-9a-f]+$/i.test(values.Zxid ?? '') ? BigInt(values.Zxid!) : undefined;
  const version = /^([^-,\s]+)/.exec(values['Zookeeper version'] ?? '')?.[1];
  const latency = /^([\d.]+)\/([\d.]+)\/([\d.]+)$/.exec(values['Latency min/avg/max'] ?? '');
  return known({
    role: values.Mode,
    version,
    zxid,
    connections: numberOf(values.Connections),
    outstanding: numberOf(values.Outstanding),
    nodes: numberOf(values['Node count']),
    received: numberOf(values.Received),
    sent: numberOf(values.Sent),
    latencyMs: latency
      ? { min: Number(latency[1]), avg: Number(latency[2]), max: Number(latency[3]) }
      : undefined,
  });
}

function fromMntr(text: string): Partial<ServerRow> & Pick<ServerRow, 'values'> {
  if (text === '' || isNotWhitelisted(text)) return { isBrief: true, values: {} };
  const values = readValues(text);
  const number = (name: string) => numberOf(values[`zk_${name}`]);
  return {
    ...known({
      watches: number('watch_count'),
      fired: sumOf(
        ['created', 'deleted', 'changed', 'children'].map((kind) =>
          number(`sum_node_${kind}_watch_count`),
        ),
      ),
      ephemerals: number('ephemerals_count'),
      dataBytes: number('approximate_data_size'),
      openFiles: number('open_file_descriptor_count'),
      openFilesMax: number('max_file_descriptor_count'),
      // Reads are most of what a server does, and are what a user waits for.
      p50Ms: number('p50_readlatency'),
      p99Ms: number('p99_readlatency'),
      fsyncP99Ms: number('p99_fsynctime'),
      followers: number('learners') ?? number('followers'),
      followersSynced: number('synced_followers'),
    }),
    values,
  };
}

/** Undefined where none is told. */
function sumOf(values: readonly (number | undefined)[]): number | undefined {
  const told = values.filter((value) => value !== undefined);
  return told.length === 0 ? undefined : told.reduce((sum, value) => sum + value, 0);
}

/** Without what is undefined. */
function known<T extends object>(values: T): Partial<{ [K in keyof T]: NonNullable<T[K]> }> {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Partial<{ [K in keyof T]: NonNullable<T[K]> }>;
}
