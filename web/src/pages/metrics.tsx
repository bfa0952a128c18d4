/** Is it fast, and did it get slower: lines over one minute, a quarter of an hour or six hours. */
import { useEffect } from 'preact/hooks';
import type { MetricPoint, MetricSeries, MetricsView } from '../../../src/console/api.ts';
import { Benches } from '../bench.tsx';
import { Chart } from '../chart.tsx';
import { bytes, count, ms, rate } from '../format.ts';
import { nowMs, points, useAnswer } from '../live.ts';
import { param, turn } from '../router.ts';
import { at } from '../transport.ts';
import { Choice, Empty, Head, Panel, Table } from '../ui.tsx';
import { Unknown } from '../unknown.tsx';

const rings = ['1m', '15m', '6h'] as const;
const words = { '1m': 'minute', '15m': 'quarter of an hour', '6h': 'six hours' } as const;
/** The table by op is asked for this often, and so are points, unless they come more seldom. */
const tableEveryMs = 5_000;
const colours = ['accent', 'blue', 'warn', 'bad', 'violet', 'good', 'soft'] as const;

const titles: Readonly<Record<MetricSeries['panel'], string>> = {
  opLatency: 'Latency by op, p99',
  opThroughput: 'Throughput by op',
  latency: 'Latency',
  throughput: 'Throughput',
  disk: 'Disk',
  bytes: 'Bytes',
  process: 'Process',
  watches: 'Watches',
  sessions: 'Sessions',
};

const order = Object.keys(titles);

const shows: Readonly<Record<MetricSeries['unit'], (value: number) => string>> = {
  ms,
  perS: rate,
  bytes,
  bytesPerS: (value) => `${bytes(value)}/s`,
  count: (value) => count(Math.round(value * 10) / 10),
};

/** Lines that are drawn at once; the table below has them all. */
const linesMax = colours.length;

export function View() {
  const ring = rings.find((one) => one === param('ring')) ?? '1m';
  const metrics = useAnswer<MetricsView>(at('/api/metrics', { ring }));
  const view = metrics.value?.ring === ring ? metrics.value : null;
  const all = view ? joined(view, points.value) : [];
  const times = all.map(({ atMs }) => atMs);
  // The stream tells the finest points alone: the others, and the table, are asked for when due.
  const everyMs = Math.max(view?.everyMs ?? 0, tableEveryMs);
  const due = Math.floor(nowMs.value / everyMs);
  useEffect(() => {
    if (view) metrics.reload();
  }, [due]);
  const keys = [...new Set(view?.series.map((series) => `${series.panel} ${series.unit}`))];
  const rank = (key: string) => order.indexOf(key.split(' ')[0]!);
  const panels = keys.toSorted((a, b) => rank(a) - rank(b));
  const panelOf = (key: string) => {
    if (all.length === 0) return null;
    const series = view!.series.filter((one) => `${one.panel} ${one.unit}` === key);
    const first = series[0]!;
    const isMain = first === view!.series.find(({ panel }) => panel === first.panel);
    const title = isMain
      ? titles[first.panel]
      : `${titles[first.panel]}: ${series.map(({ label }) => label).join(', ')}`;
    const lines = busiest(first.panel, series, all)
      .map((one, index) => ({
        label: one.label,
        colour: colours[index % colours.length]!,
        dash: index >= colours.length,
        values: all.map(({ values }) => values[one.name] ?? null),
      }))
      .filter(({ values }) => values.some((value) => value !== null));
    return lines.length === 0 ? null : (
      <Panel
        key={key}
        title={title}
        aside={
          <span class="soft">
            {first.unit === 'perS'
              ? 'per second'
              : first.unit === 'bytesPerS'
                ? 'bytes per second'
                : first.unit}
          </span>
        }
      >
        <Chart label={title} timesMs={times} lines={lines} show={shows[first.unit]} />
      </Panel>
    );
  };
  return (
    <div class="stack">
      <Head
        title="Metrics"
        about={view ? `a point every ${view.everyMs / 1000} s, kept in memory` : ''}
      >
        <Choice
          label="Over"
          options={rings}
          value={ring}
          onChange={(value) => turn({ ring: value }, 'replace')}
        />
      </Head>
      {metrics.error ? <p class="note bad">{metrics.error.message}</p> : null}
      {view && all.length === 0 ? (
        <div class="panel">
          <Empty title="No points yet">They come in while the console runs.</Empty>
        </div>
      ) : null}
      <div class="grid wide">{panels.filter((key) => rank(key) < 2).map(panelOf)}</div>
      {view?.ops ? (
        <Panel title={`By op, over the last ${words[ring]}`} bare>
          <Table
            label="Latency by op"
            rows={view.ops}
            keyOf={(row) => row.op}
            empty={<Empty title="Nothing was asked of the server in this time" />}
            columns={[
              {
                name: 'op',
                by: (row) => row.op,
                cell: (row) => <span class="mono">{row.op}</span>,
              },
              { name: 'count', num: true, by: (row) => row.count, cell: (row) => count(row.count) },
              {
                name: 'rate',
                title: 'per second',
                num: true,
                by: (row) => row.ratePerS ?? -1,
                cell: (row) => (row.ratePerS === null ? '–' : rate(row.ratePerS)),
              },
              { name: 'p50', num: true, by: (row) => row.p50Ms, cell: (row) => ms(row.p50Ms) },
              { name: 'p90', num: true, by: (row) => row.p90Ms, cell: (row) => ms(row.p90Ms) },
              { name: 'p99', num: true, by: (row) => row.p99Ms, cell: (row) => ms(row.p99Ms) },
              {
                name: 'p999',
                title: 'p99.9',
                num: true,
                by: (row) => row.p999Ms,
                cell: (row) => ms(row.p999Ms),
              },
              {
                name: 'max',
                title: 'longest, ever',
                num: true,
                by: (row) => row.maxMs,
                cell: (row) => ms(row.maxMs),
              },
            ]}
          />
        </Panel>
      ) : null}
      <div class="grid wide">{panels.filter((key) => rank(key) >= 2).map(panelOf)}</div>
      <Benches />
      {view ? (
        <p class="soft">
          For Prometheus:{' '}
          {view.prometheus === null ? (
            'a server offers /metrics where its metricsProvider is switched on.'
          ) : (
            <a href={view.prometheus} rel="noreferrer">
              {view.prometheus}
            </a>
          )}
        </p>
      ) : null}
      {view ? <Unknown list={view.unknown} /> : null}
    </div>
  );
}

/** Of more ops than can be told apart in a picture, those that were asked for most. */
function busiest(
  panel: MetricSeries['panel'],
  series: readonly MetricSeries[],
  all: readonly MetricPoint[],
): readonly MetricSeries[] {
  if (!panel.startsWith('op') || series.length <= linesMax) return series;
  const asked = (name: string) => {
    const rateName = name.replace(/\.p\d+$/, '.rate');
    return all.reduce((sum, { values }) => sum + (values[rateName] ?? 0), 0);
  };
  return series.toSorted((a, b) => asked(b.name) - asked(a.name)).slice(0, linesMax);
}

/** What was asked for and, in the finest ring, what the stream has told since. */
function joined(view: MetricsView, live: readonly MetricPoint[]): readonly MetricPoint[] {
  if (view.ring !== '1m') return view.points;
  let lastMs = view.points.at(-1)?.atMs ?? 0;
  const added = live.filter(({ atMs }) => atMs > lastMs);
  lastMs = added.at(-1)?.atMs ?? lastMs;
  return [...view.points, ...added].filter(({ atMs }) => atMs >= lastMs - 60_000);
}
