/**
 * A line chart over time, by uPlot, which is loaded when the first chart is drawn. Colours are the page's and
 * follow its theme. Beside the picture stands its meaning as text, for who can't see it.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { clock } from './format.ts';
import { colour, repaint } from './theme.ts';

export interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** A name of the style sheet. */
  readonly colour: string;
  readonly dash?: boolean;
}

const load = async () => {
  const [{ default: Plot }] = await Promise.all([
    import('uplot'),
    import('uplot/dist/uPlot.min.css'),
  ]);
  return Plot;
};

export function Chart(props: {
  readonly label: string;
  readonly timesMs: readonly number[];
  readonly lines: readonly Line[];
  readonly show: (value: number) => string;
  readonly heightPx?: number;
  /** The y axis does not start at 0. */
  readonly floats?: boolean;
}) {
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [error, setError] = useState<string | null>(null);
  const height = props.heightPx ?? 180;
  const paint = repaint.value;
  const names = props.lines.map(({ label }) => label).join('\n');
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    let isOver = false;
    const parent = element.current!;
    const resize = new ResizeObserver(() =>
      plot.current?.setSize({ width: parent.clientWidth, height }),
    );
    load().then(
      (Plot) => {
        if (isOver) return;
        const { lines, show, floats } = latest.current;
        const axis = {
          stroke: colour('soft'),
          grid: { stroke: colour('line'), width: 1 },
          ticks: { stroke: colour('line') },
          font: '11px system-ui',
        };
        plot.current = new Plot(
          {
            width: parent.clientWidth || 600,
            height,
            scales: floats
              ? {}
              : { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
            axes: [
              { ...axis, values: (_plot, ticks) => ticks.map((tick) => clock(tick * 1000)) },
              {
                ...axis,
                size: floats ? 106 : 70,
                values: (_plot, ticks) => ticks.map((tick) => show(tick)),
              },
            ],
            legend: { live: false },
            series: [
              { label: 'time' },
              ...lines.map((line) => ({
                label: line.label,
                stroke: colour(line.colour),
                width: 1.5,
                points: { show: false },
                ...(line.dash ? { dash: [4, 3] } : {}),
                value: (_plot: uPlot, value: number | null) => (value === null ? '–' : show(value)),
              })),
            ],
          },
          data(latest.current),
          parent,
        );
        resize.observe(parent);
      },
      (failure: Error) => setError(`The chart could not be loaded: ${failure.message}`),
    );
    return () => {
      isOver = true;
      resize.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names, height, paint]);
  useEffect(() => {
    plot.current?.setData(data(props));
  }, [props.timesMs, props.lines]);
  if (error) return <p class="note bad">{error}</p>;
  return (
    <figure>
      <div class="chart" ref={element} aria-hidden="true" />
      <figcaption class="sr">{summary(props)}</figcaption>
    </figure>
  );
}

function data(props: {
  readonly timesMs: readonly number[];
  readonly lines: readonly Line[];
}): uPlot.AlignedData {
  return [
    props.timesMs.map((time) => time / 1000),
    ...props.lines.map(({ values }) => [...values]),
  ] as uPlot.AlignedData;
}

function summary(props: {
  readonly label: string;
  readonly lines: readonly Line[];
  readonly show: (value: number) => string;
}): string {
  const parts = props.lines.map(({ label, values }) => {
    const last = values.findLast((value) => value !== null);
    return `${label} ${last === null || last === undefined ? 'unknown' : props.show(last)}`;
  });
  return `${props.label}, last: ${parts.join(', ')}`;
}
