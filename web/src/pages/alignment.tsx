/**
 * Where a replay stands and who holds it back: a bar per partition over event time, the limit as a line
 * through all of them, and the limit against the wall clock. How it moves can be changed, and it can be
 * held by hand.
 */
import type { AlignmentsView, AlignmentView, AlignPartition } from '../../../src/console/api.ts';
import { Hold, holdText } from '../align-hold.tsx';
import { Chart } from '../chart.tsx';
import { ago, count, duration, percent, plural, rate, time, visible } from '../format.ts';
import { canWrite, nowMs, useAnswer } from '../live.ts';
import { Problems } from '../problems.tsx';
import { href, param } from '../router.ts';
import { at } from '../transport.ts';
import { Badge, Empty, Facts, Head, Panel, Table } from '../ui.tsx';

const partitionsShown = 200;

export function View() {
  const list = useAnswer<AlignmentsView>('/api/alignment', ['alignment']);
  const groups = list.value?.groups ?? [];
  const name = param('name') ?? groups[0]?.group ?? null;
  return (
    <div class="stack">
      <Head title="Alignment" about="where the replay is, and who holds it back">
        {groups.map(({ group, isFinished, isPaused }) => (
          <a
            key={group}
            class="button small"
            href={href('alignment', { name: group })}
            aria-current={group === name ? 'true' : undefined}
          >
            {visible(group)} {isFinished ? '✓' : isPaused ? '· paused' : ''}
          </a>
        ))}
      </Head>
      {list.error ? <p class="note bad">{list.error.message}</p> : null}
      {list.value && groups.length === 0 ? (
        <div class="panel">
          <Empty title="Nobody aligns anything here">
            <p>
              A run of <code>align()</code> from <code>drover/align</code> appears here while it
              goes on and after it has ended.
            </p>
          </Empty>
        </div>
      ) : null}
      {name === null ? null : <Run name={name} />}
    </div>
  );
}

function Run(props: { readonly name: string }) {
  const run = useAnswer<AlignmentView>(at('/api/alignment/one', { name: props.name }), [
    'alignment',
  ]);
  const view = run.value?.group === props.name ? run.value : null;
  if (run.error) return <p class="note bad">{run.error.message}</p>;
  if (!view) return null;
  const held = holdText(view);
  const counts = Object.entries(countBy(view.partitions.map(({ state }) => state)));
  return (
    <>
      <div class="grid">
        <Panel
          title="Limit"
          aside={
            view.isFinished ? (
              <Badge tone="good">finished</Badge>
            ) : (
              <>
                {held === null ? null : (
                  <Badge tone="warn">{view.isPaused ? 'paused by hand' : 'stepping'}</Badge>
                )}
                <Badge tone="accent">{ruleText(view)}</Badge>
              </>
            )
          }
        >
          <div class="big">{view.limitMs === null ? 'none yet' : time(view.limitMs)}</div>
          {held === null ? null : <p class="note">{capital(held)}.</p>}
          <Facts
            rows={[
              ['moved', view.movedAtMs === null ? '–' : ago(view.movedAtMs, nowMs.value)],
              ['speed', view.speed === null ? '–' : `${view.speed.toFixed(1)} × real time`],
              ['left', leftText(view)],
              ['waiting', waitText(view)],
              ['epoch', view.epoch ?? '–'],
              ['partitions', counts.map(([state, many]) => `${many} ${state}`).join(' · ')],
            ]}
          />
          {canWrite() && view.rule !== null && !view.isFinished ? (
            <div class="row actions">
              {view.limitMs === null ? null : <Hold view={view} />}
              <button
                type="button"
                class="button small"
                onClick={() =>
                  void import('../align-rule.tsx').then(({ askRule }) =>
                    askRule(view.group, view.rule!),
                  )
                }
              >
                Change the rule…
              </button>
            </div>
          ) : null}
        </Panel>
        <Panel title="Held back by">
          {view.heldBackBy.length === 0 ? (
            <p class="soft">{held === null ? 'Nobody.' : `Nobody: it is ${held}.`}</p>
          ) : null}
          <ul class="lines">
            {view.heldBackBy.slice(0, 5).map((key) => {
              const partition = view.partitions.find((one) => one.key === key);
              return (
                <li key={key}>
                  <strong class="mono">{visible(key)}</strong>
                  <span class="soft">
                    {partition?.member === null || partition === undefined
                      ? 'nobody'
                      : visible(partition.member)}
                  </span>
                  <span class="soft">
                    {behind(partition ?? null, view.limitMs)}
                    {partition === undefined ? '' : ` · ${states[partition.state][1]}`}
                  </span>
                </li>
              );
            })}
          </ul>
        </Panel>
        <Panel title={plural(view.members.length, 'member')}>
          <ul class="lines">
            {view.members.map((member) => (
              <li key={`${member.id} ${member.session}`}>
                <span class="mono">{visible(member.id)}</span>
                {member.isLeader ? <Badge tone="accent">leads</Badge> : null}
                <span class="soft">
                  {count(member.records)} records · waits {percent(member.waitingShare)}
                </span>
              </li>
            ))}
          </ul>
        </Panel>
      </div>
      <Progress view={view} />
      <Panel
        title="Limit against wall clock"
        aside={<span class="soft">the slope is the speed of the replay</span>}
      >
        {view.progress.length < 2 ? (
          <p class="soft">
            The line begins when the limit has moved twice while the console looked.
          </p>
        ) : (
          <Chart
            label="Limit against wall clock"
            floats
            timesMs={view.progress.map(({ atMs }) => atMs)}
            lines={[
              {
                label: 'limit',
                colour: 'bad',
                values: view.progress.map(({ limitMs }) => limitMs),
              },
              {
                label: 'slowest',
                colour: 'accent',
                values: view.progress.map(({ slowestMs }) => slowestMs),
              },
            ]}
            show={(value) => time(value).slice(5)}
          />
        )}
      </Panel>
      <Panel title="Periods" bare>
        <Table
          label="Periods"
          rows={view.cuts}
          keyOf={(row) => String(row.end)}
          empty={<Empty title="No period is complete yet" />}
          columns={[
            { name: 'start', by: (row) => row.start ?? 0, cell: (row) => time(row.start) },
            { name: 'end', by: (row) => row.end, cell: (row) => time(row.end) },
            {
              name: 'called',
              title: 'onPeriod',
              cell: (row) =>
                view.calledEnd !== null && row.end <= view.calledEnd ? (
                  <Badge tone="good">done</Badge>
                ) : (
                  <Badge>open</Badge>
                ),
            },
            {
              name: 'offsets',
              cell: (row) => (
                <span class="mono">
                  {Object.entries(row.offsets)
                    .slice(0, 12)
                    .map(([key, offset]) => `${visible(key)}:${offset}`)
                    .join('  ')}
                  {Object.keys(row.offsets).length > 12 ? ' …' : ''}
                </span>
              ),
            },
          ]}
        />
      </Panel>
      {view.problems.length > 0 ? <Problems list={view.problems} /> : null}
    </>
  );
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** What is there now; more may come. */
function leftText({ left, etaMs, ratePerS, isFinished, isPaused }: AlignmentView): string {
  if (isFinished) return 'nothing';
  if (isPaused) return 'paused by hand';
  if (left === null) return 'unknown: nobody tells how far the partitions reach';
  const when = etaMs === null ? 'no end in sight' : etaMs === 0 ? 'all read' : duration(etaMs);
  return `${count(BigInt(left))} records · ${rate(ratePerS)} · ${when}`;
}

/** Of all members together. */
function waitText({ members }: AlignmentView): string {
  if (members.length === 0) return '–';
  const share = members.reduce((sum, one) => sum + one.waitingShare, 0) / members.length;
  return `${percent(share)} of the time`;
}

function ruleText(view: AlignmentView): string {
  const { rule } = view;
  if (rule === null) return 'no rule yet';
  if (rule.mode === 'off') return 'switched off';
  if (rule.mode === 'drift') return `drift ${duration(rule.driftMs)}`;
  return `period ${duration(rule.stepMs)}${rule.lookAhead ? `, ${rule.lookAhead} ahead` : ''}`;
}

function behind(partition: AlignPartition | null, limitMs: number | null): string {
  if (partition?.positionMs === null || partition === null || limitMs === null)
    return 'position unknown';
  const gap = limitMs - partition.positionMs;
  return gap > 0 ? `${duration(gap)} behind the limit` : 'at the limit';
}

const states: Readonly<Record<AlignPartition['state'], readonly [cssClass: string, word: string]>> =
  {
    reading: ['reading', 'reading'],
    paused: ['waiting', 'paused at the limit'],
    idle: ['idle', 'idle'],
    finished: ['finished', 'finished'],
    stopped: ['stopped', 'stopped'],
    unowned: ['stopped', 'owned by nobody'],
  };

function Progress({ view }: { readonly view: AlignmentView }) {
  const times = view.partitions.flatMap(({ positionMs }) =>
    positionMs === null ? [] : [positionMs],
  );
  const stepMs = view.rule?.stepMs ?? 60_000;
  const limitMs = view.limitMs;
  const aheadMs =
    view.rule?.mode === 'period' ? (view.rule.lookAhead ?? 0) * stepMs : (view.rule?.driftMs ?? 0);
  // Where it is held only what lies ahead is drawn: a limit that is there already stands for both.
  const holdMs = view.holdMs !== null && !view.isPaused ? view.holdMs : null;
  const marks = [limitMs, holdMs].filter((mark) => mark !== null);
  const low = Math.min(...times, ...(limitMs === null ? [] : [limitMs - aheadMs])) - 2 * stepMs;
  const high = Math.max(...times, ...marks) + stepMs;
  const share = (value: number) =>
    `${(Math.max(0, Math.min(1, (value - low) / (high - low))) * 100).toFixed(2)}%`;
  const isDrawn = times.length > 0 && high > low;
  return (
    <Panel title="Progress in event time" aside={<Legend />}>
      {isDrawn ? (
        <>
          <div class="bars">
            {view.partitions.slice(0, partitionsShown).map((partition) => {
              const [cssClass, word] = states[partition.state];
              return (
                <>
                  <span
                    class="mono clip"
                    title={
                      partition.member === null ? 'owned by nobody' : visible(partition.member)
                    }
                  >
                    {visible(partition.key)}
                  </span>
                  <div
                    class="track"
                    role="img"
                    aria-label={`${visible(partition.key)}: ${word}, at ${time(partition.positionMs)}`}
                  >
                    {limitMs !== null && aheadMs > 0 ? (
                      <i
                        class="zone"
                        style={{
                          left: share(limitMs - aheadMs),
                          right: `calc(100% - ${share(limitMs)})`,
                        }}
                      />
                    ) : null}
                    {partition.positionMs === null ? null : (
                      <i
                        class={`fill ${cssClass}`}
                        style={{ width: share(partition.positionMs) }}
                      />
                    )}
                    {limitMs === null ? null : (
                      <i
                        class={view.isPaused ? 'limit held' : 'limit'}
                        style={{ left: share(limitMs) }}
                      />
                    )}
                    {holdMs === null ? null : (
                      <i class="limit held" style={{ left: share(holdMs) }} />
                    )}
                  </div>
                  <span class="soft nowrap num">
                    {partition.positionMs === null ? word : time(partition.positionMs).slice(5)}
                  </span>
                </>
              );
            })}
          </div>
          <div class="row soft axis">
            <span>{time(low)}</span>
            <span class="grow" />
            <span>{time(high)}</span>
          </div>
          {view.partitions.length > partitionsShown ? (
            <p class="soft">
              {count(view.partitions.length - partitionsShown)} more partitions are not drawn.
            </p>
          ) : null}
        </>
      ) : (
        <p class="soft">No partition has told its position yet.</p>
      )}
    </Panel>
  );
}

function Legend() {
  return (
    <span class="legend">
      {(['reading', 'waiting', 'idle', 'finished', 'stopped'] as const).map((name) => (
        <span key={name}>
          <i class={`swatch ${name}`} />
          {name === 'waiting'
            ? 'paused at the limit'
            : name === 'stopped'
              ? 'stopped or unowned'
              : name}
        </span>
      ))}
      <span>
        <i class="swatch limit" />
        limit
      </span>
      <span>
        <i class="swatch limit held" />
        held by hand
      </span>
    </span>
  );
}

function countBy(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
