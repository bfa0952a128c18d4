/**
 * What the servers say of themselves, looked at every two seconds while a page is open and every ten
 * otherwise, kept in rings of a minute, a quarter of an hour and six hours.
 *
 * In: rows of all servers, and of our own what it counts. Out: points; a number is missing where nobody
 * told it. Counters become rates here, over the stretch since the ring's point before, and so do the
 * percentiles of our own server's ops; of peaks a point has the highest of its stretch. A counter that
 * went back (a restart) makes a gap. Series and points are bounded by the tables here and by the ops.
 */

import type { Clock, Timer } from '../support/index.ts';
import type { Feed } from './feed.ts';
import { type How, MetricRing, type Reading } from './metric-ring.ts';
import type { OpTimesSeen } from './op-times.ts';
import { ProcessReadings } from './process-readings.ts';
import type { ConsoleSources, OwnServer, ServersSeen } from './sources.ts';
import type { MetricPoint, MetricSeries, MetricsView, ServerView } from './views.ts';

const watchedMs = 2_000;
const unwatchedMs = 10_000;

// biome-ignore format: a table is read down its columns
const rings = {
  '1m':  { everyMs: 2_000,   keptMs: 60_000 },
  '15m': { everyMs: 15_000,  keptMs: 900_000 },
  '6h':  { everyMs: 180_000, keptMs: 21_600_000 },
} as const;
type RingName = keyof typeof rings;

/** A point has the highest since the point before, and not just the last. */
type Kept = { readonly isPeak?: true };

// biome-ignore format: a table is read down its columns
const ofServers: readonly (MetricSeries & Kept & { readonly field: keyof ServerView; readonly how: How })[] = [
  { name: 'p50',         field: 'p50Ms',        how: 'max',  label: 'reads p50',       unit: 'ms',    panel: 'latency' },
  { name: 'p99',         field: 'p99Ms',        how: 'max',  label: 'reads p99',       unit: 'ms',    panel: 'latency',    isPeak: true },
  { name: 'avg',         field: 'latencyAvgMs', how: 'max',  label: 'average',         unit: 'ms',    panel: 'latency' },
  { name: 'answer',      field: 'answerMs',     how: 'max',  label: 'seen from here',  unit: 'ms',    panel: 'latency',    isPeak: true },
  { name: 'received',    field: 'received',     how: 'rate', label: 'packets in',      unit: 'perS',  panel: 'throughput' },
  { name: 'sent',        field: 'sent',         how: 'rate', label: 'packets out',     unit: 'perS',  panel: 'throughput' },
  { name: 'outstanding', field: 'outstanding',  how: 'sum',  label: 'waiting',         unit: 'count', panel: 'throughput', isPeak: true },
  { name: 'dataBytes',   field: 'dataBytes',    how: 'max',  label: 'data',            unit: 'bytes', panel: 'bytes' },
  { name: 'fsyncP99',    field: 'fsyncP99Ms',   how: 'max',  label: 'fsync p99',       unit: 'ms',    panel: 'disk',       isPeak: true },
  { name: 'nodes',       field: 'nodes',        how: 'max',  label: 'nodes',           unit: 'count', panel: 'sessions' },
  { name: 'connections', field: 'connections',  how: 'sum',  label: 'connections',     unit: 'count', panel: 'sessions' },
  { name: 'ephemerals',  field: 'ephemerals',   how: 'max',  label: 'ephemerals',      unit: 'count', panel: 'sessions' },
  { name: 'watches',     field: 'watches',      how: 'sum',  label: 'watches',         unit: 'count', panel: 'watches' },
  { name: 'fired',       field: 'fired',        how: 'rate', label: 'watches fired',   unit: 'perS',  panel: 'watches' },
  { name: 'openFiles',   field: 'openFiles',    how: 'max',  label: 'open files',      unit: 'count', panel: 'process' },
];

/** Of the server that the console belongs to, by the names of `mntr`. */
// biome-ignore format: a table is read down its columns
const ofOwn: readonly (MetricSeries & Kept & { readonly value: string; readonly how: How })[] = [
  { name: 'bytesReceived', value: 'bytes_received_count', how: 'rate', label: 'bytes in',        unit: 'bytesPerS', panel: 'bytes' },
  { name: 'bytesSent',     value: 'response_bytes',       how: 'rate', label: 'bytes out',       unit: 'bytesPerS', panel: 'bytes' },
  { name: 'fsyncs',        value: 'cnt_fsynctime',        how: 'rate', label: 'fsyncs',          unit: 'perS',      panel: 'disk' },
  { name: 'snapshotMs',    value: 'max_snapshottime',     how: 'max',  label: 'longest snapshot', unit: 'ms',       panel: 'disk' },
  { name: 'watchBytes',    value: 'watch_bytes',          how: 'rate', label: 'bytes of events', unit: 'bytesPerS', panel: 'watches' },
];

const ofProcess: readonly (MetricSeries & Kept)[] = [
  { name: 'loopP99', label: 'event loop p99', unit: 'ms', panel: 'process', isPeak: true },
  { name: 'loopMax', label: 'event loop longest', unit: 'ms', panel: 'process', isPeak: true },
  { name: 'gcMax', label: 'longest collection', unit: 'ms', panel: 'process', isPeak: true },
  { name: 'rss', label: 'memory of this process', unit: 'bytes', panel: 'process' },
];

const opsUnknown =
  'latency and throughput by op: only the console of drover serve tells them apart';

/** What the log took for a batch stands among the ops as `fsync`: it is of the disk. */
const ofOps = (op: string): readonly MetricSeries[] =>
  op === 'fsync'
    ? [
        { name: 'op.fsync.p50', label: 'fsync p50', unit: 'ms', panel: 'disk' },
        { name: 'op.fsync.p99', label: 'fsync p99', unit: 'ms', panel: 'disk' },
      ]
    : [
        { name: `op.${op}.p99`, label: op, unit: 'ms', panel: 'opLatency' },
        { name: `op.${op}.rate`, label: op, unit: 'perS', panel: 'opThroughput' },
      ];

/** What our own server tells of itself, at one time. */
interface OwnReadings {
  readonly values: Readonly<Record<string, number>>;
  readonly ops: OpTimesSeen;
  readonly process: Readonly<Record<string, number>> | undefined;
}

async function readingsOf(own: OwnServer | undefined): Promise<OwnReadings | undefined> {
  if (own === undefined) return undefined;
  const [values, ops, process] = await Promise.all([own.values(), own.opTimes(), own.process?.()]);
  return { values, ops, process };
}

export class Metrics {
  readonly #sources: ConsoleSources;
  readonly #feed: Feed;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #rings: Record<RingName, MetricRing> = {
    '1m': new MetricRing(rings['1m']),
    '15m': new MetricRing(rings['15m']),
    '6h': new MetricRing(rings['6h']),
  };
  readonly #process = new ProcessReadings();
  #seen: ServersSeen | undefined;
  #looking: Promise<ServersSeen | undefined> | undefined;
  #fault: string | null = null;
  #timer: Timer | undefined;
  #isClosed = false;
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(sources: ConsoleSources, feed: Feed, clock: Clock, signal: AbortSignal) {
    this.#sources = sources;
    this.#feed = feed;
    this.#clock = clock;
    this.#signal = signal;
    this.#later();
  }

  /** As of the last look. */
  get seen(): ServersSeen | undefined {
    return this.#seen;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#process.close();
  }

  async view(ring: RingName): Promise<MetricsView> {
    const seen = await this.#sources.ownServer?.opTimes();
    const { points } = this.#rings[ring];
    const told = new Set(points.flatMap(({ values }) => Object.keys(values)));
    // One line is enough, and what is told by op is of the stretch and not since the start.
    if (told.has('op.fsync.p99')) told.delete('fsyncP99');
    const all: readonly MetricSeries[] = [
      ...(seen?.ops.flatMap(({ op }) => ofOps(op)) ?? []),
      ...ofServers,
      ...ofOwn,
      ...ofProcess,
    ];
    const brief = (this.#seen?.servers ?? []).filter(({ isBrief }) => isBrief);
    return {
      ring,
      everyMs: rings[ring].everyMs,
      series: all
        .filter(({ name }) => told.has(name))
        .map(({ name, label, unit, panel }) => ({ name, label, unit, panel })),
      points: [...points],
      ops: seen === undefined ? null : this.#rings[ring].table(seen, this.#clock.nowMs()),
      prometheus: this.#sources.ownServer?.metricsUrl ?? null,
      unknown: [
        ...(seen === undefined ? [opsUnknown] : []),
        ...brief.map(({ server }) => `${server}: mntr is not in its 4lw.commands.whitelist`),
        ...(this.#fault === null ? [] : [this.#fault]),
      ],
    };
  }

  /** Looks now; who asks meanwhile gets the same look. */
  look(): Promise<ServersSeen | undefined> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookOnce(): Promise<ServersSeen | undefined> {
    const { lookAtServers } = this.#sources;
    this.#lookedMs = this.#clock.nowMs();
    let own: OwnReadings | undefined;
    try {
      if (lookAtServers !== undefined) this.#seen = await lookAtServers(this.#signal);
      own = await readingsOf(this.#sources.ownServer);
      this.#fault = null;
    } catch (error) {
      if (this.#isClosed) return this.#seen;
      this.#fault = `the servers could not be asked: ${(error as Error).message}`;
    }
    if (this.#isClosed) return this.#seen;
    const point = this.#keep(own);
    if (this.#seen !== undefined) {
      const { servers, findings } = this.#seen;
      const zxid = servers.reduce<bigint | null>((newest, one) => {
        const each = one.zxid === null ? null : BigInt(one.zxid);
        return each !== null && (newest === null || each > newest) ? each : newest;
      }, null);
      const text = zxid === null ? null : `0x${zxid.toString(16)}`;
      this.#feed.send('servers', { servers: [...servers], findings: [...findings], zxid: text });
    }
    if (point !== undefined) this.#feed.send('metrics', point);
    return this.#seen;
  }

  /** Gives the point of the finest ring, if one was due. */
  #keep(own: OwnReadings | undefined): MetricPoint | undefined {
    const [atMs, nowMs] = [this.#clock.wallMs(), this.#clock.nowMs()];
    const readings = this.#readings(own);
    const [finest] = (['1m', '15m', '6h'] as const).map((name) =>
      this.#rings[name].take(atMs, nowMs, readings, own?.ops),
    );
    return finest;
  }

  #readings(own: OwnReadings | undefined): Reading[] {
    const readings: Reading[] = [];
    const put = (
      { name, isPeak }: MetricSeries & Kept,
      how: How,
      value: number | undefined,
      from = '',
    ) => {
      if (value === undefined || !Number.isFinite(value)) return;
      readings.push({ name, how, isPeak: isPeak === true, value, from });
    };
    // How long it took to be told that nobody listens is no answer time.
    const servers = (this.#seen?.servers ?? []).filter(({ error }) => error == null);
    for (const series of ofServers) {
      const telling = servers.filter((one) => typeof one[series.field] === 'number');
      const told = telling.map((one) => one[series.field] as number);
      if (told.length === 0) continue;
      const { how } = series;
      const value = how === 'max' ? Math.max(...told) : told.reduce((a, b) => a + b, 0);
      put(series, how, value, telling.map(({ server }) => server).join(' '));
    }
    for (const series of ofOwn) put(series, series.how, own?.values[series.value]);
    const mine = this.#process.take();
    const process: Readonly<Record<string, number>> = own?.process ?? mine;
    for (const series of ofProcess) put(series, 'max', process[series.name]);
    return readings;
  }

  #later(): void {
    if (this.#isClosed) return;
    this.#timer = this.#clock.after(
      watchedMs,
      () => {
        const isWatched = this.#feed.listeners > 0;
        const sinceMs = this.#clock.nowMs() - this.#lookedMs;
        if (!isWatched && sinceMs < unwatchedMs) return this.#later();
        void this.look().finally(() => this.#later());
      },
      true,
    );
  }
}
