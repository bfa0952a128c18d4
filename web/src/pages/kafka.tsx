/** Kafka on ZooKeeper: who is controller, which brokers live, which topics are degraded, where each partition is led. */
import type { BrokerRow, KafkaView, TopicRow, TopicsView } from '../../../src/console/api.ts';
import { favourites, toggleFavourite } from '../favourites.ts';
import { ago, count, plural, time, visible } from '../format.ts';
import { Configs, Moves } from '../kafka-admin.tsx';
import { Topic } from '../kafka-topic.tsx';
import { nowMs, useAnswer } from '../live.ts';
import { offsetParam, Pager, pageSize } from '../pager.tsx';
import { Problems } from '../problems.tsx';
import { href, param, turn } from '../router.ts';
import { at } from '../transport.ts';
import { Badge, Choice, Empty, Facts, Filter, Head, Panel, Table, type Tone } from '../ui.tsx';

export function View() {
  const kafka = useAnswer<KafkaView>('/api/kafka', ['kafka']);
  const view = kafka.value;
  const topic = param('topic');
  if (kafka.error && !view)
    return <Empty title="Kafka could not be read">{kafka.error.message}</Empty>;
  if (!view) return null;
  if (view.found === 'none') {
    return (
      <div class="stack">
        <Head title="Kafka" />
        <div class="panel">
          <Empty title="There is no Kafka here">
            <p>
              No /brokers under this root. A cluster that runs in KRaft mode keeps nothing in
              ZooKeeper; one under a chroot needs it in the address, as in{' '}
              <code>host:2181/kafka</code>.
            </p>
          </Empty>
        </div>
      </div>
    );
  }
  return (
    <div class="stack">
      <Head
        title="Kafka"
        about={
          view.clusterId
            ? `cluster ${visible(view.clusterId)}`
            : view.found === '0.7'
              ? 'layout of 0.7'
              : ''
        }
      >
        <Filter label="Filter topics and configs" />
      </Head>
      {view.isMigrating ? (
        <p class="note warn">
          <strong>This cluster moves to KRaft.</strong> Its own controllers decide now: what stands
          here is a copy that they keep, and after the move it is what was.
        </p>
      ) : null}
      {topic === null ? null : <Topic name={topic} />}
      <div class="grid">
        <Controller view={view} />
        <Panel title="Health">
          <Facts
            rows={[
              ['topics', `${count(view.topics)} · ${plural(view.partitions, 'partition')}`],
              ['offline', <Fault value={view.offline} tone="bad" />],
              ['under-replicated', <Fault value={view.underReplicated} tone="warn" />],
              ['not preferred', <Fault value={view.notPreferred} tone="blue" />],
              ['moving', <Fault value={view.reassigning} tone="blue" />],
              [
                'missing brokers',
                view.missing.length === 0 ? (
                  'none'
                ) : (
                  <span class="bad">{view.missing.join(', ')}</span>
                ),
              ],
            ]}
          />
          {view.skippedTopics > 0 ? (
            <p class="soft">
              {plural(view.skippedTopics, 'topic was', 'topics were')} not looked at.
            </p>
          ) : null}
        </Panel>
      </div>
      <Panel title={plural(view.brokers.length, 'broker')} bare>
        <Table
          label="Brokers"
          sortParam="brokers"
          rows={view.brokers}
          keyOf={(row) => String(row.id)}
          columns={brokerColumns(view)}
          empty={<Empty title="No broker lives" />}
        />
      </Panel>
      <Topics />
      <Moves />
      <Configs />
      {view.problems.length > 0 ? <Problems list={view.problems} /> : null}
    </div>
  );
}

function Fault(props: { readonly value: number; readonly tone: Tone }) {
  return props.value === 0 ? (
    <span class="soft">0</span>
  ) : (
    <Badge tone={props.tone}>{count(props.value)}</Badge>
  );
}

function Controller({ view }: { readonly view: KafkaView }) {
  const { brokerId, epoch, sinceMs } = view.controller;
  return (
    <Panel
      title="Controller"
      aside={
        brokerId === null ? (
          <Badge tone="bad">none</Badge>
        ) : (
          <Badge tone="good">broker {brokerId}</Badge>
        )
      }
    >
      <Facts
        rows={[
          ['epoch', epoch === null ? '–' : String(epoch)],
          ['since', sinceMs === null ? '–' : `${time(sinceMs)} · ${ago(sinceMs, nowMs.value)}`],
        ]}
      />
      {view.controllerHistory.length > 1 ? (
        <ul class="soft">
          {view.controllerHistory.slice(0, 6).map((step) => (
            <li key={step.atMs}>
              {time(step.atMs)}: {step.brokerId === null ? 'none' : `broker ${step.brokerId}`},
              epoch {step.epoch ?? '–'}
            </li>
          ))}
        </ul>
      ) : null}
    </Panel>
  );
}

/** How much more or less than its share a broker has. */
function skew(own: number, all: readonly number[]): string {
  const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
  if (mean === 0) return '–';
  const part = Math.round((own / mean - 1) * 100);
  return `${part > 0 ? '+' : part < 0 ? '−' : '±'}${Math.abs(part)} %`;
}

const brokerColumns = (view: KafkaView) => [
  {
    name: 'id',
    by: (row: BrokerRow) => row.id,
    cell: (row: BrokerRow) => (
      <span class="row">
        <strong>{row.id}</strong>
        {row.isController ? <Badge tone="accent">controller</Badge> : null}
      </span>
    ),
  },
  {
    name: 'endpoints',
    cell: (row: BrokerRow) => <span class="mono">{row.endpoints.map(visible).join(' ')}</span>,
  },
  {
    name: 'rack',
    by: (row: BrokerRow) => row.rack ?? '',
    cell: (row: BrokerRow) => (row.rack === null ? '–' : visible(row.rack)),
  },
  {
    name: 'leaders',
    num: true,
    by: (row: BrokerRow) => row.leaders,
    cell: (row: BrokerRow) => (
      <span
        title={`${row.preferred} partitions prefer it`}
        class={row.leaders === row.preferred ? '' : 'warn'}
      >
        {count(row.leaders)} of {count(row.preferred)}
      </span>
    ),
  },
  {
    name: 'replicas',
    num: true,
    by: (row: BrokerRow) => row.replicas,
    cell: (row: BrokerRow) => count(row.replicas),
  },
  {
    name: 'skew',
    title: 'skew of leaders, replicas',
    num: true,
    by: (row: BrokerRow) => row.leaders,
    cell: (row: BrokerRow) => (
      <span title="against an even share among the brokers that live">
        {skew(
          row.leaders,
          view.brokers.map(({ leaders }) => leaders),
        )}
        {', '}
        {skew(
          row.replicas,
          view.brokers.map(({ replicas }) => replicas),
        )}
      </span>
    ),
  },
  {
    name: 'since',
    num: true,
    by: (row: BrokerRow) => row.sinceMs ?? 0,
    cell: (row: BrokerRow) => ago(row.sinceMs, nowMs.value),
  },
  {
    name: 'session',
    cell: (row: BrokerRow) => (
      <a class="mono" href={href('sessions', { name: row.session })}>
        {row.session}
      </a>
    ),
  },
];

const choices = ['all', 'faulty', 'favourites'] as const;

function Topics() {
  const only = choices.find((one) => one === param('only')) ?? 'all';
  const topics = useAnswer<TopicsView>(
    at('/api/kafka/topics', {
      offset: offsetParam(),
      limit: pageSize,
      filter: param('q'),
      only: only === 'faulty' ? 'faulty' : 'all',
      // A comma is in no topic's name, so that alone it names none.
      names: only === 'favourites' ? favourites.value.join(',') || ',' : null,
    }),
    ['kafka', 'groups'],
  );
  const view = topics.value;
  return (
    <Panel
      title="Topics"
      aside={
        <>
          <Choice
            label="Which topics"
            options={choices}
            value={only}
            onChange={(value) =>
              turn({ only: value === 'all' ? '' : value, offset: '' }, 'replace')
            }
          />
          {view ? <Pager matching={view.matching} total={view.total} word="topics" /> : null}
        </>
      }
      bare
    >
      {topics.error ? <p class="note bad">{topics.error.message}</p> : null}
      {view ? (
        <Table
          label="Topics"
          rows={view.rows}
          keyOf={(row) => row.topic}
          columns={topicColumns}
          rowClass={(row) => (row.topic === param('topic') ? 'at' : '')}
          empty={
            <Empty
              title={
                only === 'faulty'
                  ? 'No topic has a fault'
                  : only === 'favourites'
                    ? 'No topic is marked with a star'
                    : 'No topics'
              }
            />
          }
        />
      ) : null}
    </Panel>
  );
}

function Star(props: { readonly topic: string }) {
  const isMarked = favourites.value.includes(props.topic);
  return (
    <button
      type="button"
      class="star"
      aria-pressed={isMarked}
      aria-label={`favourite ${visible(props.topic)}`}
      onClick={() => toggleFavourite(props.topic)}
    >
      {isMarked ? '★' : '☆'}
    </button>
  );
}

const topicColumns = [
  {
    name: 'topic',
    by: (row: TopicRow) => row.topic,
    cell: (row: TopicRow) => (
      <span class="row">
        <Star topic={row.topic} />
        <a
          href={href('kafka', { topic: row.topic })}
          onClick={(event) => {
            event.preventDefault();
            turn({ topic: row.topic, partition: '', span: '' });
          }}
        >
          {visible(row.topic)}
        </a>
        {row.isBeingDeleted ? <Badge tone="warn">being deleted</Badge> : null}
      </span>
    ),
  },
  {
    name: 'partitions',
    num: true,
    by: (row: TopicRow) => row.partitions,
    cell: (row: TopicRow) => count(row.partitions),
  },
  {
    name: 'replication',
    num: true,
    by: (row: TopicRow) => row.replication,
    cell: (row: TopicRow) => count(row.replication),
  },
  {
    name: 'offline',
    num: true,
    by: (row: TopicRow) => row.offline,
    cell: (row: TopicRow) => <Fault value={row.offline} tone="bad" />,
  },
  {
    name: 'under',
    title: 'under-replicated',
    num: true,
    by: (row: TopicRow) => row.underReplicated,
    cell: (row: TopicRow) => <Fault value={row.underReplicated} tone="warn" />,
  },
  {
    name: 'preferred',
    title: 'not preferred',
    num: true,
    by: (row: TopicRow) => row.notPreferred,
    cell: (row: TopicRow) => <Fault value={row.notPreferred} tone="blue" />,
  },
  {
    name: 'moving',
    num: true,
    by: (row: TopicRow) => row.reassigning,
    cell: (row: TopicRow) => <Fault value={row.reassigning} tone="blue" />,
  },
  {
    name: 'groups',
    cell: (row: TopicRow) => (
      <span class="queue">
        {row.groups.slice(0, 5).map(({ group, lag }) => (
          <a
            key={group}
            class="badge"
            href={href('groups', { name: group })}
            title={lag === null ? 'lag unknown' : `${count(BigInt(lag))} records behind`}
          >
            {visible(group)}
            {lag === null ? '' : ` · ${count(BigInt(lag))} behind`}
          </a>
        ))}
        {row.groups.length > 5 ? <span class="soft">+{row.groups.length - 5}</span> : null}
      </span>
    ),
  },
];
