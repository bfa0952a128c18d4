/** What was asked of Kafka's cluster: partitions that are moved, elections that wait, settings that were changed. */
import type { ConfigRow, ConfigsView, MoveRow, MovesView } from '../../src/console/api.ts';
import { ago, count, plural, time, visible } from './format.ts';
import { nowMs, useAnswer } from './live.ts';
import { Problems } from './problems.tsx';
import { href, param } from './router.ts';
import { at } from './transport.ts';
import { Badge, Empty, Panel, Table } from './ui.tsx';

const configsShown = 200;

export function Moves() {
  const moves = useAnswer<MovesView>('/api/kafka/moves', ['kafka']);
  const view = moves.value;
  return (
    <Panel
      title="Reassignments"
      aside={
        !view || view.total === 0 ? null : <Badge tone="blue">{count(view.total)} under way</Badge>
      }
      bare
    >
      {moves.error ? <p class="note bad">{moves.error.message}</p> : null}
      {view && view.electing.length > 0 ? (
        <p class="note">
          <strong>An election waits</strong> for the controller: the preferred leader of{' '}
          {view.electing
            .slice(0, 10)
            .map(({ topic, partition }) => `${visible(topic)}/${partition}`)
            .join(', ')}
          {view.electing.length > 10 ? ` and ${plural(view.electing.length - 10, 'more')}` : ''}.
        </p>
      ) : null}
      {view && view.askedAtMs !== null ? (
        <p class="note">
          /admin/reassign_partitions was written {ago(view.askedAtMs, nowMs.value)}, and stands
          until the controller has moved all that it names.
        </p>
      ) : null}
      {view ? (
        <Table
          label="Reassignments"
          sortParam="moves"
          rows={view.rows}
          keyOf={(row) => `${row.topic}/${row.partition}`}
          columns={moveColumns}
          empty={<Empty title="No partition is being moved" />}
        />
      ) : null}
      {view && view.problems.length > 0 ? <Problems list={view.problems} /> : null}
    </Panel>
  );
}

const moveColumns = [
  {
    name: 'partition',
    by: (row: MoveRow) => `${row.topic}/${String(row.partition).padStart(9, '0')}`,
    cell: (row: MoveRow) => (
      <a href={href('kafka', { topic: row.topic, partition: String(row.partition) })}>
        {visible(row.topic)}/{row.partition}
      </a>
    ),
  },
  {
    name: 'from',
    cell: (row: MoveRow) => (row.from === null ? 'no such partition' : row.from.join(', ')),
  },
  { name: 'to', cell: (row: MoveRow) => row.to.join(', ') },
  { name: 'comes', title: 'comes in', cell: (row: MoveRow) => row.adding.join(', ') || '–' },
  { name: 'goes', title: 'goes out', cell: (row: MoveRow) => row.removing.join(', ') || '–' },
  {
    name: 'insync',
    title: 'in sync',
    by: (row: MoveRow) => row.inSync ?? -1,
    cell: (row: MoveRow) => (row.inSync === null ? '–' : `${row.inSync} of ${row.to.length}`),
  },
  {
    name: 'state',
    by: (row: MoveRow) => row.state,
    cell: (row: MoveRow) => (
      <Badge tone={row.state === 'moving' ? 'blue' : 'warn'}>
        {row.state === 'moving' ? 'moving' : 'asked for'}
      </Badge>
    ),
  },
];

export function Configs() {
  const configs = useAnswer<ConfigsView>(
    at('/api/kafka/configs', { offset: '0', limit: String(configsShown), filter: param('q') }),
    ['kafka'],
  );
  const view = configs.value;
  return (
    <Panel
      title="Configs"
      aside={
        view ? (
          <span class="soft">
            {plural(view.matching, 'entry', 'entries')}
            {view.matching > view.rows.length ? `, the first ${count(view.rows.length)} shown` : ''}
            {view.skipped > 0 ? `; ${count(view.skipped)} were not looked at` : ''}
          </span>
        ) : null
      }
      bare
    >
      {configs.error ? <p class="note bad">{configs.error.message}</p> : null}
      {view ? (
        <Table
          label="Configs"
          sortParam="configs"
          rows={view.rows}
          keyOf={(row) => row.path}
          columns={configColumns}
          empty={
            <Empty title={view.total === 0 ? 'Nothing was changed' : 'Nothing matches the filter'}>
              <p>
                Settings that were changed while the cluster runs stand here; those in the files of
                brokers are not in ZooKeeper.
              </p>
            </Empty>
          }
        />
      ) : null}
      {view && view.problems.length > 0 ? <Problems list={view.problems} /> : null}
    </Panel>
  );
}

const configColumns = [
  {
    name: 'what',
    by: (row: ConfigRow) => `${row.kind} ${row.name}`,
    cell: (row: ConfigRow) => (
      <a href={href('tree', { path: row.path })}>
        {row.name === '<default>' ? `every ${row.kind}` : `${row.kind} ${visible(row.name)}`}
      </a>
    ),
  },
  {
    name: 'settings',
    cell: (row: ConfigRow) => (
      <ul class="plain mono">
        {row.values.map(({ name, value }) => (
          <li key={name}>
            {visible(name)} ={' '}
            {value === null ? <span class="soft">secret, not shown</span> : visible(value)}
          </li>
        ))}
      </ul>
    ),
  },
  {
    name: 'changed',
    by: (row: ConfigRow) => row.changedMs,
    cell: (row: ConfigRow) => (
      <span title={time(row.changedMs)}>{ago(row.changedMs, nowMs.value)}</span>
    ),
  },
];
