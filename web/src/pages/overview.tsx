/** Is it healthy, and what just happened: a card for each server, findings, recent changes, two lines. */
import type {
  ChangeView,
  MetricPoint,
  MetricsView,
  OverviewView,
  ServerView,
} from '../../../src/console/api.ts';
import { DemoOffer } from '../demo.tsx';
import { ago, bytes, count, ms, plural, rate } from '../format.ts';
import { changes, findings, nowMs, points, servers, useAnswer } from '../live.ts';
import { NodeLink } from '../node-link.tsx';
import { href } from '../router.ts';
import { serverTone } from '../server-tone.ts';
import { Badge, Empty, Facts, Head, Panel, Sparkline } from '../ui.tsx';

const changesShown = 14;

export function View() {
  const overview = useAnswer<OverviewView>(
    '/api/overview',
    [],
    (change) => change.path.lastIndexOf('/') === 0,
  );
  const before = useAnswer<MetricsView>('/api/metrics?ring=1m').value?.points ?? [];
  const cards = servers.value.length > 0 ? servers.value : (overview.value?.servers ?? []);
  const found = servers.value.length > 0 ? findings.value : (overview.value?.findings ?? []);
  const recent = merged(changes.value, overview.value?.changes ?? []);
  if (overview.error && !overview.value)
    return <Empty title="The overview could not be read">{overview.error.message}</Empty>;
  return (
    <div class="stack">
      <Head title="Overview" about={overview.value?.quorum.sentence}>
        {found.length === 0 ? (
          <Badge tone="good">no findings</Badge>
        ) : (
          <Badge tone={found.some(({ severity }) => severity === 'critical') ? 'bad' : 'warn'}>
            {plural(found.length, 'finding')}
          </Badge>
        )}
      </Head>
      {overview.value?.isEmpty ? (
        <div class="panel">
          <DemoOffer />
        </div>
      ) : null}
      <div class="grid">
        {cards.map((server) => (
          <Server key={server.server} server={server} />
        ))}
        <Pulse label="Packets in" name="received" before={before} show={rate} />
        <Pulse label="Answer time, seen from here" name="answer" before={before} show={ms} />
      </div>
      <div class="grid wide">
        <Panel title="Findings">
          {found.length === 0 ? (
            <p class="soft">Nothing stands out.</p>
          ) : (
            <ul class="stack">
              {found.map((finding) => (
                <li key={`${finding.server} ${finding.what}`}>
                  <div class="row">
                    <Badge tone={finding.severity === 'critical' ? 'bad' : 'warn'}>
                      {finding.severity}
                    </Badge>
                    <span class="grow">
                      {finding.server === null ? '' : `${finding.server}: `}
                      {finding.what}
                    </span>
                  </div>
                  <code class="soft">{finding.more}</code>
                </li>
              ))}
            </ul>
          )}
        </Panel>
        <Panel title="Recent changes" bare>
          {recent.length === 0 ? (
            <Empty title="Nothing has changed since the console started" />
          ) : (
            <table>
              <tbody>
                {recent.slice(0, changesShown).map((change) => (
                  <tr key={`${change.zxid} ${change.type} ${change.path} ${change.atMs}`}>
                    <td>
                      <Badge
                        tone={
                          change.type === 'created'
                            ? 'good'
                            : change.type === 'deleted'
                              ? 'bad'
                              : ''
                        }
                      >
                        {words[change.type]}
                      </Badge>
                    </td>
                    <td>
                      <NodeLink path={change.path} />
                    </td>
                    <td class="num soft">{ago(change.atMs, nowMs.value)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Panel>
      </div>
    </div>
  );
}

const words: Readonly<Record<ChangeView['type'], string>> = {
  created: 'created',
  deleted: 'deleted',
  dataChanged: 'set',
  childrenChanged: 'children',
};

function merged(live: readonly ChangeView[], before: readonly ChangeView[]): ChangeView[] {
  const seen = new Set<string>();
  return [...live, ...before]
    .toSorted((left, right) => right.atMs - left.atMs)
    .filter((change) => {
      const key = `${change.zxid ?? change.atMs} ${change.type} ${change.path}`;
      const isNew = !seen.has(key);
      seen.add(key);
      return isNew;
    });
}

function Server({ server }: { readonly server: ServerView }) {
  const tone = serverTone(server);
  return (
    <Panel
      title={
        <span class="row">
          <i class={`dot ${tone}`} />
          <span class="mono">{server.server}</span>
        </span>
      }
      aside={
        <Badge
          tone={
            server.error
              ? 'bad'
              : server.role === 'leader' || server.role === 'standalone'
                ? 'accent'
                : ''
          }
        >
          {server.error ? 'down' : (server.role ?? 'unknown')}
        </Badge>
      }
    >
      {server.error ? (
        <p class="bad">{server.error}</p>
      ) : (
        <Facts
          rows={[
            ['version', server.version ?? '–'],
            [
              'zxid',
              <span class="mono">
                {server.zxid ?? '–'}
                {server.behind ? <span class="warn"> {count(server.behind)} behind</span> : ''}
              </span>,
            ],
            [
              'latency',
              server.p50Ms === null
                ? `avg ${ms(server.latencyAvgMs)} · max ${ms(server.latencyMaxMs)}`
                : `p50 ${ms(server.p50Ms)} · p99 ${ms(server.p99Ms)}`,
            ],
            ['outstanding', count(server.outstanding)],
            ['connections', count(server.connections)],
            [
              'nodes',
              `${count(server.nodes)} · ${count(server.ephemerals)} ephemeral · ${bytes(server.dataBytes)}`,
            ],
            ['watches', count(server.watches)],
            [
              'last snapshot',
              server.snapshotMs === null ? (
                <span
                  class="soft"
                  title="four-letter words do not tell it; --admin-port asks the AdminServer"
                >
                  not told
                </span>
              ) : (
                ago(server.snapshotMs, nowMs.value)
              ),
            ],
          ]}
        />
      )}
      {server.isBrief ? (
        <p class="soft">mntr is not on this server’s whitelist: it tells less than it could.</p>
      ) : null}
    </Panel>
  );
}

/** The last minute and a half: what the console kept before the page came, and what the stream told since. */
function Pulse(props: {
  readonly label: string;
  readonly name: string;
  readonly before: readonly MetricPoint[];
  readonly show: (value: number | null) => string;
}) {
  const lastMs = props.before.at(-1)?.atMs ?? 0;
  const all = [...props.before, ...points.value.filter(({ atMs }) => atMs > lastMs)].slice(-45);
  const values = all.map((point) => point.values[props.name] ?? null);
  if (values.every((value) => value === null)) return null;
  return (
    <Panel title={props.label} aside={<a href={href('metrics')}>more</a>}>
      <div class="big">{props.show(values.findLast((value) => value !== null) ?? null)}</div>
      <Sparkline values={values} label={`${props.label}, the last minutes`} />
    </Panel>
  );
}
