/** Is it fast, and did it get slower: lines over one minute, a quarter of an hour or six hours. */
import type { MetricPoint, MetricSeries, MetricsView } from '../../../src/console/api.ts';
import { Chart } from '../chart.tsx';
import { bytes, count, ms, rate } from '../format.ts';
import { points, useAnswer } from '../live.ts';
import { param, turn } from '../router.ts';
import { at } from '../transport.ts';
import { Choice, Empty, Head, Panel, Table } from '../ui.tsx';
import { Unknown } from '../unknown.tsx';

const rings = ['1m', '15m', '6h'] as const;
const colours = ['accent', 'blue', 'warn', 'bad', 'violet', 'good', 'soft'] as const;

const titles: Readonly<Record<MetricSeries['panel'], string>> = {
  latency: 'Latency',
  throughput: 'Throughput',
  bytes: 'Bytes',
  disk: 'Disk',
  process: 'Process',
  watches: 'Watches',
  sessions: 'Sessions',
};

const shows: Readonly<Record<MetricSeries['unit'], (value: number) => string>> = {
  ms,
  perS: rate,
  bytes,
  bytesPerS: (value) => `${bytes(value)}/s`,
  count: (value) => count(Math.round(value * 10) / 10),
};

export function View() {
  const ring = rings.find((one) => one === param('ring')) ?? '1m';
  const metrics = useAnswer<MetricsView>(at('/api/metrics', { ring }));
  const view = metrics.value?.ring === ring ? metrics.value : null;
  const all = view ? joined(view, points.value) : [];
  const times = all.map(({ atMs }) => atMs);
  const panels = [...new Set(view?.series.map((series) => `${series.panel} ${series.unit}`))];
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
      <div class="grid wide">
        {all.length === 0
          ? null
          : panels.map((key) => {
              const series = view!.series.filter((one) => `${one.panel} ${one.unit}` === key);
              const first = series[0]!;
              const isMain = first === view!.series.find(({ panel }) => panel === first.panel);
              const title = isMain
                ? titles[first.panel]
                : `${titles[first.panel]}: ${series.map(({ label }) => label).join(', ')}`;
              const lines = series
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
            })}
      </div>
      {view?.ops ? (
        <Panel title="By op, since the server started" bare>
          <Table
            label="Latency by op"
            rows={view.ops}
            keyOf={(row) => row.op}
            columns={[
              {
                name: 'op',
                by: (row) => row.op,
                cell: (row) => <span class="mono">{row.op}</span>,
              },
              { name: 'count', num: true, by: (row) => row.count, cell: (row) => count(row.count) },
              { name: 'p50', num: true, by: (row) => row.p50Ms, cell: (row) => ms(row.p50Ms) },
              { name: 'p99', num: true, by: (row) => row.p99Ms, cell: (row) => ms(row.p99Ms) },
              { name: 'max', num: true, by: (row) => row.maxMs, cell: (row) => ms(row.maxMs) },
            ]}
          />
        </Panel>
      ) : null}
      {view ? <Unknown list={view.unknown} /> : null}
    </div>
  );
}

/** What was asked for, and what the stream has told since; the finest ring alone takes every point. */
function joined(view: MetricsView, live: readonly MetricPoint[]): MetricPoint[] {
  let lastMs = view.points.at(-1)?.atMs ?? 0;
  const added: MetricPoint[] = [];
  for (const point of live) {
    if (point.atMs < lastMs + view.everyMs * 0.9) continue;
    added.push(point);
    lastMs = point.atMs;
  }
  const spanMs = { '1m': 60_000, '15m': 900_000, '6h': 21_600_000 }[view.ring];
  return [...view.points, ...added].filter(({ atMs }) => atMs >= lastMs - spanMs);
}
