/** One topic of Kafka's: its settings, and where each partition is led, copied and at fault. */
import type { PartitionRow, TopicView } from '../../src/console/api.ts';
import { visible } from './format.ts';
import { Timeline } from './kafka-timeline.tsx';
import { canWrite, useAnswer } from './live.ts';
import { Problems } from './problems.tsx';
import { href, param, turn } from './router.ts';
import { at } from './transport.ts';
import { Badge, Facts, Panel, Table } from './ui.tsx';

export function Topic(props: { readonly name: string }) {
  const topic = useAnswer<TopicView>(at('/api/kafka/topic', { name: props.name }), ['kafka']);
  const view = topic.value?.topic === props.name ? topic.value : null;
  const partition = param('partition');
  const isSkewed = view?.partitions.some(({ faults }) => faults.includes('not preferred')) ?? false;
  return (
    <>
      <Panel
        title={`Topic ${visible(props.name)}`}
        aside={
          <>
            <a class="button small" href={href('tree', { path: `/brokers/topics/${props.name}` })}>
              In the tree
            </a>
            {canWrite() ? (
              <button
                type="button"
                class="button small"
                disabled={!isSkewed}
                title={isSkewed ? undefined : 'every partition is led by its preferred replica'}
                onClick={() =>
                  void import('./elect.tsx').then(({ askElect }) => askElect(props.name))
                }
              >
                Elect leaders…
              </button>
            ) : null}
            <button
              type="button"
              class="button small"
              onClick={() => turn({ topic: '', partition: '', span: '' })}
            >
              Close
            </button>
          </>
        }
        bare
      >
        {topic.error ? <p class="note bad">{topic.error.message}</p> : null}
        {view ? (
          <>
            {Object.keys(view.config).length > 0 ? (
              <div class="pad">
                <Facts
                  rows={Object.entries(view.config).map(
                    ([name, value]) => [visible(name), visible(value)] as const,
                  )}
                />
              </div>
            ) : null}
            <Table
              label="Partitions"
              sortParam="parts"
              rows={view.partitions}
              keyOf={(row) => String(row.partition)}
              columns={partitionColumns}
              rowClass={(row) => (String(row.partition) === partition ? 'at' : '')}
              shownMax={1000}
            />
            {view.problems.length > 0 ? <Problems list={view.problems} /> : null}
          </>
        ) : null}
      </Panel>
      {partition === null ? null : <Timeline topic={props.name} partition={partition} />}
    </>
  );
}

const partitionColumns = [
  {
    name: 'partition',
    by: (row: PartitionRow) => row.partition,
    cell: (row: PartitionRow) => row.partition,
  },
  {
    name: 'timeline',
    title: 'changes',
    by: (row: PartitionRow) => row.changes,
    cell: (row: PartitionRow) => (
      <button
        type="button"
        class="button small"
        aria-label={`ISR timeline of partition ${row.partition}`}
        aria-pressed={param('partition') === String(row.partition)}
        onClick={() => turn({ partition: String(row.partition) })}
      >
        {row.changes === 0 ? 'timeline' : `${row.changes} seen`}
      </button>
    ),
  },
  {
    name: 'leader',
    by: (row: PartitionRow) => row.leader ?? -1,
    cell: (row: PartitionRow) =>
      row.leader === null || row.leader < 0 ? <Badge tone="bad">none</Badge> : row.leader,
  },
  { name: 'epoch', num: true, cell: (row: PartitionRow) => row.leaderEpoch ?? '–' },
  {
    name: 'replicas',
    cell: (row: PartitionRow) => (
      <span class="queue">
        {row.replicas.map((id) => (
          <Badge
            key={id}
            tone={row.isr.includes(id) ? (id === row.leader ? 'accent' : '') : 'warn'}
            title={row.isr.includes(id) ? 'in sync' : 'out of sync'}
          >
            {id}
            {row.isr.includes(id) ? '' : ' lags'}
            {row.adding.includes(id) ? ' +' : ''}
            {row.removing.includes(id) ? ' −' : ''}
          </Badge>
        ))}
      </span>
    ),
  },
  {
    name: 'faults',
    by: (row: PartitionRow) => row.faults.length,
    cell: (row: PartitionRow) => (
      <span class="queue">
        {row.faults.map((fault) => (
          <Badge
            key={fault}
            tone={
              fault === 'no leader' || fault === 'no state'
                ? 'bad'
                : fault === 'out of sync'
                  ? 'warn'
                  : 'blue'
            }
          >
            {fault}
          </Badge>
        ))}
      </span>
    ),
  },
];
