/**
 * Who led a partition and who was in sync, over time: a line for each replica, and each change in words.
 * As far as it was seen while the console ran, or out of the transaction logs where those are at hand.
 */
import type { IsrState, TimelineView } from '../../src/console/api.ts';
import { ago, plural, time, visible } from './format.ts';
import { nowMs, useAnswer } from './live.ts';
import { param, turn } from './router.ts';
import { at } from './transport.ts';
import { Choice, Empty, Panel } from './ui.tsx';

const spans = { '5m': 300_000, '1h': 3_600_000, '1d': 86_400_000, all: Number.POSITIVE_INFINITY };
type Span = keyof typeof spans;
const changesShown = 30;

export function Timeline(props: { readonly topic: string; readonly partition: string }) {
  const answer = useAnswer<TimelineView>(
    at('/api/kafka/timeline', { name: props.topic, partition: props.partition }),
    ['kafka'],
  );
  const view =
    answer.value?.topic === props.topic && String(answer.value.partition) === props.partition
      ? answer.value
      : null;
  const given = param('span');
  const span: Span = given !== null && Object.hasOwn(spans, given) ? (given as Span) : '5m';
  return (
    <Panel
      title={`ISR of ${visible(props.topic)}/${visible(props.partition)}`}
      aside={
        <>
          <Legend />
          <Choice
            label="Time span"
            options={Object.keys(spans) as Span[]}
            value={span}
            onChange={(value) => turn({ span: value === '5m' ? '' : value }, 'replace')}
          />
          <button
            type="button"
            class="button small"
            onClick={() => turn({ partition: '', span: '' })}
          >
            Close
          </button>
        </>
      }
    >
      {answer.error ? <p class="note bad">{answer.error.message}</p> : null}
      {view === null ? null : view.states.length === 0 ? (
        <Empty title="This partition has no state yet" />
      ) : (
        <Drawn view={view} spanMs={spans[span]} />
      )}
    </Panel>
  );
}

interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  readonly state: IsrState;
}

function Drawn({ view, spanMs }: { readonly view: TimelineView; readonly spanMs: number }) {
  const endMs = Math.max(nowMs.value, view.nowMs, view.states.at(-1)!.atMs);
  const firstMs = view.states[0]!.atMs;
  const startMs = Math.max(firstMs, endMs - spanMs);
  const lengthMs = Math.max(1, endMs - startMs);
  const share = (atMs: number) => ((Math.max(startMs, atMs) - startMs) / lengthMs) * 100;
  const stretches = view.states.map(
    (state, index): Stretch => ({
      state,
      fromMs: state.atMs,
      toMs: view.states[index + 1]?.atMs ?? endMs,
    }),
  );
  const shown = stretches.filter(({ toMs }) => toMs > startMs);
  const replicas = [...new Set([...view.replicas, ...shown.flatMap(({ state }) => state.isr)])];
  const changes = view.states.slice(1).toReversed();
  return (
    <div class="stack">
      <div class="bars isr">
        {replicas.map((id) => (
          <>
            <span>broker {id}</span>
            <div class="track" role="img" aria-label={wordsOf(id, shown)}>
              {shown.map(({ state, fromMs, toMs }) => (
                <i
                  key={fromMs}
                  class={`fill ${toneOf(id, state)}`}
                  title={`${time(Math.max(fromMs, startMs))}: ${placeOf(id, state)}`}
                  style={{
                    left: `${share(fromMs).toFixed(3)}%`,
                    width: `${Math.max(0.2, share(toMs) - share(fromMs)).toFixed(3)}%`,
                  }}
                />
              ))}
            </div>
            <span class="soft nowrap">{placeOf(id, view.states.at(-1)!)}</span>
          </>
        ))}
      </div>
      <div class="row soft axis">
        <span>{time(startMs)}</span>
        <span class="grow" />
        <span>now</span>
      </div>
      <ul class="lines">
        {changes.slice(0, changesShown).map((state, index) => (
          <li key={`${state.atMs} ${index}`}>
            <span class="mono nowrap">{time(state.atMs)}</span>
            <span>{changeOf(state, view.states[view.states.length - 2 - index]!)}</span>
            {state.missed > 0 ? (
              <span class="warn">{plural(state.missed, 'change')} before it went unseen</span>
            ) : null}
          </li>
        ))}
      </ul>
      <p class="soft">
        {view.from === 'logs'
          ? 'Out of the transaction logs of this server.'
          : `Seen since this console runs. The first state that it knows is of ${time(firstMs)} (${ago(firstMs, nowMs.value)})${view.states[0]!.missed > 0 ? `; ${plural(view.states[0]!.missed, 'change')} came before it` : ''}.`}
      </p>
    </div>
  );
}

function toneOf(id: number, { leader, isr }: IsrState): string {
  if (leader === id) return 'leads';
  return isr.includes(id) ? 'insync' : 'outofsync';
}

function placeOf(id: number, state: IsrState): string {
  return { leads: 'leads', insync: 'in sync', outofsync: 'out of sync' }[toneOf(id, state)]!;
}

function wordsOf(id: number, shown: readonly Stretch[]): string {
  const parts = shown.map(({ state, fromMs }) => `from ${time(fromMs)} ${placeOf(id, state)}`);
  return `broker ${id}: ${parts.slice(-10).join(', ')}`;
}

/** `broker 2 fell out of sync; leader 1 → 3, epoch 7` */
function changeOf(now: IsrState, before: IsrState): string {
  const left = before.isr.filter((id) => !now.isr.includes(id));
  const came = now.isr.filter((id) => !before.isr.includes(id));
  const name = (id: number | null) => (id === null ? 'nobody' : String(id));
  return [
    ...(left.length > 0 ? [`${left.join(', ')} fell out of sync`] : []),
    ...(came.length > 0 ? [`${came.join(', ')} came back in sync`] : []),
    ...(now.leader === before.leader
      ? []
      : [`leader ${name(before.leader)} → ${name(now.leader)}, epoch ${now.leaderEpoch}`]),
    ...(now.leader === before.leader && left.length + came.length === 0
      ? [`leader ${name(now.leader)} again, epoch ${now.leaderEpoch}`]
      : []),
  ].join('; ');
}

function Legend() {
  return (
    <span class="legend">
      {(['leads', 'insync', 'outofsync'] as const).map((name) => (
        <span key={name}>
          <i class={`swatch ${name}`} />
          {{ leads: 'leads', insync: 'in sync', outofsync: 'out of sync' }[name]}
        </span>
      ))}
    </span>
  );
}
