/** The Metrics and Shell pages. How values are written: see `views.ts`. */

/** A look at everything at one time. Rates are per second since the point before. */
export interface MetricPoint {
  readonly atMs: number;
  /** By name; see `MetricsView.series`. Missing where nobody told. */
  readonly values: Readonly<Record<string, number>>;
}

export interface MetricSeries {
  readonly name: string;
  readonly label: string;
  readonly unit: 'ms' | 'perS' | 'bytes' | 'bytesPerS' | 'count';
  readonly panel:
    | 'opLatency'
    | 'opThroughput'
    | 'latency'
    | 'throughput'
    | 'bytes'
    | 'disk'
    | 'process'
    | 'watches'
    | 'sessions';
}

/** GET /api/metrics?ring=1m|15m|6h */
export interface MetricsView {
  readonly ring: '1m' | '15m' | '6h';
  readonly everyMs: number;
  readonly series: readonly MetricSeries[];
  readonly points: readonly MetricPoint[];
  /** Of our own server, by op, over what the ring holds; `maxMs` is since it started. */
  readonly ops:
    | readonly {
        readonly op: string;
        readonly count: number;
        readonly ratePerS: number | null;
        readonly p50Ms: number;
        readonly p90Ms: number;
        readonly p99Ms: number;
        readonly p999Ms: number;
        readonly maxMs: number;
      }[]
    | null;
  /** Where Prometheus may ask; null: nowhere, or nobody knows. */
  readonly prometheus: string | null;
  readonly unknown: readonly string[];
}

/** POST /api/bench */
export interface BenchView {
  readonly what: 'reads' | 'writes';
  readonly inFlight: number;
  readonly count: number;
  readonly atMs: number;
  readonly ratePerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** GET /api/commands */
export interface CommandView {
  readonly name: string;
  readonly usage: string;
  readonly about: string;
  readonly group: string;
  readonly writes: boolean;
  readonly options: readonly { readonly flags: string; readonly about: string }[];
}

/** POST /api/shell */
export interface ShellView {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly isCut: boolean;
}
