/** Who watches what: by path and by session, with a mark on nodes that wake a herd. */
import type { WatchesView } from '../../../src/console/api.ts';
import { count, rate } from '../format.ts';
import { points, useAnswer } from '../live.ts';
import { NodeLink } from '../node-link.tsx';
import { offsetParam, Pager, pageSize } from '../pager.tsx';
import { href, param } from '../router.ts';
import { at } from '../transport.ts';
import { Badge, Empty, Facts, Filter, Head, Panel, Table } from '../ui.tsx';
import { Unknown } from '../unknown.tsx';

const sessionsShown = 3;
const kindsUnknown = 'kinds of watches: only the console of drover serve tells them apart';

const kindsMean: Readonly<Record<string, string>> = {
  data: 'data, once',
  children: 'children, once',
  persistent: 'persistent',
  recursive: 'persistent, with all below',
};

function Kinds({ view }: { readonly view: WatchesView }) {
  return view.kinds === null ? null : (
    <Panel title="Paths by kind">
      <Facts
        rows={Object.entries(view.kinds).map(([kind, paths]) => [
          kindsMean[kind] ?? kind,
          count(paths),
        ])}
      />
    </Panel>
  );
}

/** How many were told of an event, each second, by the last look at the servers. */
function fired(): string {
  const last = points.value.findLast(({ values }) => values.fired !== undefined);
  return last ? `${rate(last.values.fired)} fired` : 'how many fire, the servers do not tell (yet)';
}

export function View() {
  const watches = useAnswer<WatchesView>(
    at('/api/watches', { offset: offsetParam(), limit: pageSize, filter: param('q') }),
    ['servers'],
  );
  const view = watches.value;
  return (
    <div class="stack">
      <Head
        title="Watches"
        about={
          view
            ? `${count(view.total)} watches on ${count(view.paths)} paths by ${count(view.connections)} connections; ${fired()}`
            : ''
        }
      >
        <Filter label="Filter by path" />
      </Head>
      {watches.error ? <p class="note bad">{watches.error.message}</p> : null}
      {view ? (
        <>
          {view.rows.some(({ isHerd }) => isHerd) ? (
            <p class="note warn">
              A node with more than {view.herdAt} watchers wakes them all at once. Locks that watch
              only the one before them, and one shared watch per process, avoid that.
            </p>
          ) : null}
          <div class="grid lead">
            <Panel
              title="By path"
              aside={
                <Pager matching={view.matching} total={view.paths ?? view.matching} word="paths" />
              }
              bare
            >
              <Table
                label="Watches by path"
                rows={view.rows}
                keyOf={(row) => row.path}
                empty={<Empty title="No watches, as far as the servers tell" />}
                columns={[
                  {
                    name: 'path',
                    by: (row) => row.path,
                    cell: (row) => <NodeLink path={row.path} />,
                  },
                  {
                    name: 'watchers',
                    num: true,
                    by: (row) => row.count,
                    cell: (row) => count(row.count),
                  },
                  {
                    name: 'kinds',
                    cell: (row) =>
                      row.kinds === null ? (
                        <span class="soft">–</span>
                      ) : (
                        <span class="nowrap">{row.kinds.join(', ')}</span>
                      ),
                  },
                  {
                    name: 'herd',
                    title: '',
                    cell: (row) => (row.isHerd ? <Badge tone="warn">herd</Badge> : ''),
                  },
                  {
                    name: 'sessions',
                    cell: (row) => (
                      <span class="queue">
                        {row.sessions.slice(0, sessionsShown).map((session) => (
                          <a key={session} class="badge" href={href('sessions', { name: session })}>
                            {session}
                          </a>
                        ))}
                        {row.sessions.length > sessionsShown ? (
                          <span class="soft">+{row.sessions.length - sessionsShown}</span>
                        ) : null}
                      </span>
                    ),
                  },
                ]}
              />
            </Panel>
            <div class="stack">
              <Kinds view={view} />
              <Panel title="By session, the twenty with most" bare>
                <Table
                  label="Watches by session"
                  sortParam="sort2"
                  rows={view.bySession}
                  keyOf={(row) => row.session}
                  columns={[
                    {
                      name: 'session',
                      by: (row) => row.session,
                      cell: (row) => (
                        <a class="mono" href={href('sessions', { name: row.session })}>
                          {row.session}
                        </a>
                      ),
                    },
                    {
                      name: 'watches',
                      num: true,
                      by: (row) => row.count,
                      cell: (row) => count(row.count),
                    },
                  ]}
                />
              </Panel>
            </div>
          </div>
          <Unknown list={[...view.unknown, ...(view.kinds === null ? [kindsUnknown] : [])]} />
        </>
      ) : null}
    </div>
  );
}
