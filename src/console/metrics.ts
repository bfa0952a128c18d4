/**
 * What the servers say of themselves, looked at every two seconds while a page is open and every ten
 * otherwise, kept in rings of a minute, a quarter of an hour and six hours.
 *
 * In: rows of all servers, and of our own what it counts. Out: points; a number is missing where nobody
 * told it. Counters become rates here, between two looks; one that went back (a restart) makes a gap.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock, Timer } from '../support/index.ts';
import type { Feed } from './feed.ts';
import type { ConsoleSources, ServersSeen } from './sources.ts';
import type { MetricPoint, MetricSeries, MetricsView, ServerView } from './views.ts';

const watchedMs = 2_000;
const unwatchedMs = 10_000;
/** How often the event loop is looked at: that much of each interval is no delay. */
const loopEveryMs = 10;

// biome-ignore format: a table is read down its columns
const rings = {
  '1m':  { everyMs: 2_000,   keptMs: 60_000 },
  '15m': { everyMs: 15_000,  keptMs: 900_000 },
  '6h':  { everyMs: 180_000, keptMs: 21_600_000 },
} as const;
type RingName = keyof typeof rings;

type How = 'sum' | 'max' | 'rate';

// biome-ignore format: a table is read down its columns
const ofServers: readonly (MetricSeries & { readonly field: keyof ServerView; readonly how: How })[] = [
  { name: 'p50',         field: 'p50Ms',        how: 'max',  label: 'read p50',        unit: 'ms',    panel: 'latency' },
  { name: 'p99',         field: 'p99Ms',        how: 'max',  label: 'read p99',        unit: 'ms',    panel: 'latency' },
  { name: 'avg',         field: 'latencyAvgMs', how: 'max',  label: 'average',         unit: 'ms',    panel: 'latency' },
  { name: 'answer',      field: 'answerMs',     how: 'max',  label: 'seen from here',  unit: 'ms',    panel: 'latency' },
  { name: 'received',    field: 'received',     how: 'rate', label: 'packets in',      unit: 'perS',  panel: 'throughput' },
  { name: 'sent',        field: 'sent',         how: 'rate', label: 'packets out',     unit: 'perS',  panel: 'throughput' },
  { name: 'outstanding', field: 'outstanding',  how: 'sum',  label: 'waiting',         unit: 'count', panel: 'throughput' },
  { name: 'dataBytes',   field: 'dataBytes',    how: 'max',  label: 'data',            unit: 'bytes', panel: 'bytes' },
  { name: 'fsyncP99',    field: 'fsyncP99Ms',   how: 'max',  label: 'fsync p99',       unit: 'ms',    panel: 'disk' },
  { name: 'nodes',       field: 'nodes',        how: 'max',  label: 'nodes',           unit: 'count', panel: 'sessions' },
  { name: 'connections', field: 'connections',  how: 'sum',  label: 'connections',     unit: 'count', panel: 'sessions' },
  { name: 'ephemerals',  field: 'ephemerals',   how: 'max',  label: 'ephemerals',      unit: 'count', panel: 'sessions' },
  { name: 'watches',     field: 'watches',      how: 'sum',  label: 'watches',         unit: 'count', panel: 'watches' },
  { name: 'openFiles',   field: 'openFiles',    how: 'max',  label: 'open files',      unit: 'count', panel: 'process' },
];

/** Of a server in this process, by the names of `mntr`. */
// biome-ignore format: a table is read down its columns
const ofOwn: readonly (MetricSeries & { readonly value: string; readonly how: How })[] = [
  { name: 'reads',         value: 'cnt_readlatency',      how: 'rate', label: 'reads',           unit: 'perS',      panel: 'throughput' },
  { name: 'writes',        value: 'cnt_updatelatency',    how: 'rate', label: 'writes',          unit: 'perS',      panel: 'throughput' },
  { name: 'writeP50',      value: 'p50_updatelatency',    how: 'max',  label: 'write p50',       unit: 'ms',        panel: 'latency' },
  { name: 'writeP99',      value: 'p99_updatelatency',    how: 'max',  label: 'write p99',       unit: 'ms',        panel: 'latency' },
  { name: 'bytesReceived', value: 'bytes_received_count', how: 'rate', label: 'bytes in',        unit: 'bytesPerS', panel: 'bytes' },
  { name: 'bytesSent',     value: 'response_bytes',       how: 'rate', label: 'bytes out',       unit: 'bytesPerS', panel: 'bytes' },
  { name: 'fsyncs',        value: 'cnt_fsynctime',        how: 'rate', label: 'fsyncs',          unit: 'perS',      panel: 'disk' },
  { name: 'fsyncAvg',      value: 'avg_fsynctime',        how: 'max',  label: 'fsync average',   unit: 'ms',        panel: 'disk' },
  { name: 'snapshotMs',    value: 'max_snapshottime',     how: 'max',  label: 'longest snapshot', unit: 'ms',       panel: 'disk' },
  { name: 'watchBytes',    value: 'watch_bytes',          how: 'rate', label: 'bytes of events', unit: 'bytesPerS', panel: 'watches' },
];

const ofProcess: readonly MetricSeries[] = [
  { name: 'loopP99', label: 'event loop p99', unit: 'ms', panel: 'process' },
  { name: 'rss', label: 'memory of this process', unit: 'bytes', panel: 'process' },
];

export class Metrics {
  readonly #sources: ConsoleSources;
  readonly #feed: Feed;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #rings: Record<RingName, MetricPoint[]> = { '1m': [], '15m': [], '6h': [] };
  readonly #loop = monitorEventLoopDelay({ resolution: loopEveryMs });
  #counters = new Map<string, { readonly value: number; readonly atMs: number }>();
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
    this.#loop.enable();
    this.#later();
  }

  /** As of the last look. */
  get seen(): ServersSeen | undefined {
    return this.#seen;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#loop.disable();
  }

  view(ring: RingName): MetricsView {
    const points = this.#rings[ring];
    const told = new Set(points.flatMap(({ values }) => Object.keys(values)));
    const all: readonly MetricSeries[] = [...ofServers, ...ofOwn, ...ofProcess];
    const brief = (this.#seen?.servers ?? []).filter(({ isBrief }) => isBrief);
    return {
      ring,
      everyMs: rings[ring].everyMs,
      series: all
        .filter(({ name }) => told.has(name))
        .map(({ name, label, unit, panel }) => ({ name, label, unit, panel })),
      points: [...points],
      ops: this.#sources.ownServer?.ops() ?? null,
      unknown: [
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
    try {
      if (lookAtServers !== undefined) this.#seen = await lookAtServers(this.#signal);
      this.#fault = null;
    } catch (error) {
      if (this.#isClosed) return this.#seen;
      this.#fault = `the servers could not be asked: ${(error as Error).message}`;
    }
    if (this.#isClosed) return this.#seen;
    const point = { atMs: this.#clock.wallMs(), values: this.#values() };
    for (const name of Object.keys(rings) as RingName[]) this.#keep(name, point);
    if (this.#seen !== undefined) {
      const { servers, findings } = this.#seen;
      const zxid = servers.reduce<bigint | null>((newest, one) => {
        const each = one.zxid === null ? null : BigInt(one.zxid);
        return each !== null && (newest === null || each > newest) ? each : newest;
      }, null);
      const text = zxid === null ? null : `0x${zxid.toString(16)}`;
      this.#feed.send('servers', { servers: [...servers], findings: [...findings], zxid: text });
    }
    this.#feed.send('metrics', point);
    return this.#seen;
  }

  #keep(name: RingName, point: MetricPoint): void {
    const { everyMs, keptMs } = rings[name];
    const ring = this.#rings[name];
    const last = ring.at(-1);
    // A little early is on time: timers are never exact.
    if (last !== undefined && point.atMs - last.atMs < everyMs * 0.8) return;
    ring.push(point);
    while (ring.length > 0 && point.atMs - ring[0]!.atMs > keptMs) ring.shift();
  }

  #values(): Record<string, number> {
    const values: Record<string, number> = {};
    const nowMs = this.#clock.nowMs();
    const put = (name: string, how: How, value: number | undefined) => {
      if (value === undefined || !Number.isFinite(value)) return;
      if (how !== 'rate') {
        values[name] = value;
        return;
      }
      const before = this.#counters.get(name);
      this.#counters.set(name, { value, atMs: nowMs });
      if (before === undefined || value < before.value || nowMs <= before.atMs) return;
      values[name] = ((value - before.value) * 1_000) / (nowMs - before.atMs);
    };
    const servers = this.#seen?.servers ?? [];
    for (const { name, field, how } of ofServers) {
      const told = servers.map((one) => one[field]).filter((one) => typeof one === 'number');
      if (told.length === 0) continue;
      const value = how === 'max' ? Math.max(...told) : told.reduce((a, b) => a + b, 0);
      put(name, how, value);
    }
    const own = this.#sources.ownServer?.values();
    for (const { name, value, how } of ofOwn) put(name, how, own?.[value]);
    put('loopP99', 'max', Math.max(0, this.#loop.percentile(99) / 1e6 - loopEveryMs));
    put('rss', 'max', process.memoryUsage.rss());
    this.#loop.reset();
    return values;
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
