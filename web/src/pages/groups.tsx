/** Consumer groups: who is late, by how much, whether it recovers, and who owns which partition. */
import type {
  GroupPartitionRow,
  GroupRow,
  GroupState,
  GroupsView,
  GroupView,
} from '../../../src/console/api.ts';
import { ago, count, duration, plural, rate, time, visible } from '../format.ts';
import { canWrite, nowMs, useAnswer } from '../live.ts';
import { offsetParam, Pager, pageSize } from '../pager.tsx';
import { Problems } from '../problems.tsx';
import { href, param, turn } from '../router.ts';
import { at } from '../transport.ts';
import { Badge, Empty, Filter, Head, Panel, Sparkline, Table, type Tone } from '../ui.tsx';

const tones: Readonly<Record<GroupState, Tone>> = {
  ok: 'good',
  late: 'warn',
  stalled: 'bad',
  stopped: 'bad',
  empty: '',
  unknown: '',
};

/** A word, and never a number that looks like one. */
const lagOf = (text: string | null) =>
  text === null ? <span class="soft">unknown</span> : count(BigInt(text));
const behindOf = (behindMs: number | null) =>
  behindMs === null ? (
    <span class="soft">unknown</span>
  ) : behindMs === 0 ? (
    '0 s'
  ) : (
    duration(behindMs)
  );

/** Whether it will have read everything, as long as it goes on like this. */
function Outlook({ row }: { readonly row: GroupRow }) {
  if (row.outlook === 'caughtUp') return <span class="good">caught up</span>;
  if (row.outlook === 'recovers') return <span>in {duration(row.etaMs)}</span>;
  if (row.outlook === 'unknown') return <span class="soft">unknown</span>;
  const why =
    row.members === 0
      ? 'nobody reads'
      : row.state === 'stalled'
        ? 'offsets stand still'
        : 'the lag does not shrink';
  return (
    <span class="bad" title={why}>
      never: {why}
    </span>
  );
}

export function View() {
  const groups = useAnswer<GroupsView>(
    at('/api/groups', { offset: offsetParam(), limit: pageSize, filter: param('q') }),
    ['groups'],
  );
  const view = groups.value;
  const name = param('name');
  return (
    <div class="stack">
      <Head title="Groups" about="who is late, and will they recover">
        <Filter label="Filter groups" />
      </Head>
      {groups.error ? <p class="note bad">{groups.error.message}</p> : null}
      {name === null ? null : <Group name={name} />}
      {view ? (
        <>
          {view.lagUnknown === null ? null : <LagUnknown why={view.lagUnknown} />}
          <Pager matching={view.matching} total={view.total} word="groups" />
          <div class="panel">
            <Table
              label="Groups"
              rows={view.rows}
              keyOf={(row) => row.group}
              columns={columns}
              rowClass={(row) => (row.group === name ? 'at' : '')}
              empty={
                <Empty title="No groups keep their offsets in ZooKeeper">
                  <p>Groups that commit to Kafka itself (0.9 and later) are not to be seen here.</p>
                </Empty>
              }
            />
          </div>
        </>
      ) : null}
    </div>
  );
}

const columns = [
  {
    name: 'group',
    by: (row: GroupRow) => row.group,
    cell: (row: GroupRow) => (
      <a
        href={href('groups', { name: row.group })}
        onClick={(event) => {
          event.preventDefault();
          turn({ name: row.group });
        }}
      >
        {visible(row.group)}
      </a>
    ),
  },
  {
    name: 'state',
    by: (row: GroupRow) => row.state,
    cell: (row: GroupRow) => <Badge tone={tones[row.state]}>{row.state}</Badge>,
  },
  {
    name: 'members',
    num: true,
    by: (row: GroupRow) => row.members,
    cell: (row: GroupRow) => (row.idle > 0 ? `${row.members} (${row.idle} idle)` : row.members),
  },
  {
    name: 'partitions',
    title: 'owned',
    num: true,
    by: (row: GroupRow) => row.partitions,
    cell: (row: GroupRow) => `${count(row.owned)} of ${count(row.partitions)}`,
  },
  {
    name: 'lag',
    num: true,
    by: (row: GroupRow) => Number(row.lag ?? -1),
    title: 'lag in records',
    cell: (row: GroupRow) => lagOf(row.lag),
  },
  {
    name: 'behind',
    title: 'lag in time',
    num: true,
    by: (row: GroupRow) => row.behindMs ?? -1,
    cell: (row: GroupRow) => behindOf(row.behindMs),
  },
  {
    name: 'rate',
    num: true,
    by: (row: GroupRow) => row.ratePerS ?? -1,
    cell: (row: GroupRow) => rate(row.ratePerS),
  },
  {
    name: 'eta',
    title: 'caught up',
    by: (row: GroupRow) => row.etaMs ?? Number.MAX_VALUE,
    cell: (row: GroupRow) => <Outlook row={row} />,
  },
  {
    name: 'commit',
    title: 'last commit',
    num: true,
    by: (row: GroupRow) => row.committedMs ?? 0,
    cell: (row: GroupRow) => ago(row.committedMs, nowMs.value),
  },
  { name: 'trend', cell: (row: GroupRow) => <Trend row={row} /> },
];

/** Lag where it is known, else what is committed between one look and the next. */
function Trend({ row }: { readonly row: GroupRow }) {
  const hasLag = row.trend.some(({ lag }) => lag !== null);
  const values = hasLag
    ? row.trend.map(({ lag }) => lag)
    : row.trend.slice(1).map(({ offset }, index) => Math.max(0, offset - row.trend[index]!.offset));
  return values.length < 2 ? (
    <span class="soft">–</span>
  ) : (
    <Sparkline values={values} label={`${hasLag ? 'lag' : 'progress'} of ${visible(row.group)}`} />
  );
}

function Group(props: { readonly name: string }) {
  const group = useAnswer<GroupView>(at('/api/groups/one', { name: props.name }), ['groups']);
  const view = group.value?.group === props.name ? group.value : null;
  return (
    <Panel
      title={`Group ${visible(props.name)}`}
      aside={
        <>
          {view ? <Badge tone={tones[view.row.state]}>{view.row.state}</Badge> : null}
          {view && canWrite() && view.partitions.length > 0 ? (
            <button
              type="button"
              class="button small"
              onClick={() =>
                void import('../group-reset.tsx').then(({ askReset }) => askReset(view))
              }
            >
              Offsets…
            </button>
          ) : null}
          <button type="button" class="button small" onClick={() => turn({ name: '' })}>
            Close
          </button>
        </>
      }
      bare
    >
      {group.error ? <p class="note bad">{group.error.message}</p> : null}
      {view ? (
        <div class="stack">
          <div class="pad grid">
            <div>
              <h3>Will it recover?</h3>
              <p>
                <Outlook row={view.row} />
              </p>
              <p class="soft">
                {view.row.lag === null
                  ? ''
                  : `${plural(Number(view.row.lag), 'record')} behind, in time ${view.row.behindMs === null ? 'unknown' : duration(view.row.behindMs)}; `}
                reads {rate(view.row.ratePerS)}
              </p>
              <Trend row={view.row} />
              {view.lagUnknown === null ? null : <LagUnknown why={view.lagUnknown} />}
            </div>
            <div>
              <h3>{plural(view.members.length, 'member')}</h3>
              <ul>
                {view.members.map((member) => (
                  <li key={member.id} class="row wrap">
                    <span class="mono clip">{visible(member.id)}</span>
                    <span class="soft">
                      owns {member.owns}, here for {duration(nowMs.value - member.sinceMs)}
                    </span>
                  </li>
                ))}
              </ul>
            </div>
            <div>
              <h3>Rebalances seen</h3>
              {view.rebalances.length === 0 ? (
                <p class="soft">None since the console looks.</p>
              ) : null}
              <ul>
                {view.rebalances.slice(0, 8).map((one) => (
                  <li key={one.atMs}>
                    {time(one.atMs)}: {plural(one.moved, 'partition')} moved among{' '}
                    {plural(one.members, 'member')}
                  </li>
                ))}
              </ul>
            </div>
          </div>
          <Table
            label="Partitions"
            sortParam="parts"
            rows={view.partitions}
            keyOf={(row) => `${row.topic}/${row.partition}`}
            columns={partitionColumns}
            shownMax={1000}
          />
          {view.problems.length > 0 ? <Problems list={view.problems} /> : null}
        </div>
      ) : null}
    </Panel>
  );
}

function LagUnknown(props: { readonly why: string }) {
  return (
    <p class="note">
      <strong>Lag is unknown:</strong> {props.why}.
    </p>
  );
}

const partitionColumns = [
  {
    name: 'topic',
    by: (row: GroupPartitionRow) => row.topic,
    cell: (row: GroupPartitionRow) => (
      <a href={href('kafka', { topic: row.topic })}>{visible(row.topic)}</a>
    ),
  },
  {
    name: 'partition',
    by: (row: GroupPartitionRow) => Number(row.partition) || 0,
    cell: (row: GroupPartitionRow) => visible(row.partition),
  },
  {
    name: 'owner',
    by: (row: GroupPartitionRow) => row.consumer ?? '',
    cell: (row: GroupPartitionRow) =>
      row.owner === null ? (
        <Badge tone="warn">nobody</Badge>
      ) : (
        <span class="mono">{visible(row.consumer ?? row.owner)}</span>
      ),
  },
  {
    name: 'offset',
    num: true,
    by: (row: GroupPartitionRow) => Number(row.offset ?? -1),
    cell: (row: GroupPartitionRow) =>
      row.offset === null ? <span class="soft">none</span> : lagOf(row.offset),
  },
  {
    name: 'end',
    num: true,
    by: (row: GroupPartitionRow) => Number(row.latest ?? -1),
    cell: (row: GroupPartitionRow) => lagOf(row.latest),
  },
  {
    name: 'lag',
    num: true,
    by: (row: GroupPartitionRow) => Number(row.lag ?? -1),
    cell: (row: GroupPartitionRow) => (
      <>
        {lagOf(row.lag)}
        {row.isOutOfRange ? (
          <>
            {' '}
            <Badge tone="bad" title="what was committed is not there any more, or not yet">
              out of range
            </Badge>
          </>
        ) : null}
      </>
    ),
  },
  {
    name: 'behind',
    title: 'in time',
    num: true,
    by: (row: GroupPartitionRow) => row.behindMs ?? -1,
    cell: (row: GroupPartitionRow) => behindOf(row.behindMs),
  },
  {
    name: 'commit',
    title: 'last commit',
    num: true,
    by: (row: GroupPartitionRow) => row.committedMs ?? 0,
    cell: (row: GroupPartitionRow) => ago(row.committedMs, nowMs.value),
  },
];
