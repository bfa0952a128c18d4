/** Who is connected, since when, how long until expiry, and what they own. */
import { useState } from 'preact/hooks';
import type { ClientRow, SessionDetail, SessionsView } from '../../../src/console/api.ts';
import { ago, count, duration, ms, visible } from '../format.ts';
import { canWrite, nowMs, useAnswer } from '../live.ts';
import { NodeLink } from '../node-link.tsx';
import { closeDialog, Dialog, openDialog, tell } from '../overlay.tsx';
import { offsetParam, Pager, pageSize } from '../pager.tsx';
import { href, param, turn } from '../router.ts';
import { at, post } from '../transport.ts';
import { Badge, Empty, Facts, Filter, Head, Meter, Panel, Table } from '../ui.tsx';
import { Unknown } from '../unknown.tsx';

export function View() {
  const sessions = useAnswer<SessionsView>(
    at('/api/sessions', { offset: offsetParam(), limit: pageSize, filter: param('q') }),
    ['servers'],
  );
  const name = param('name');
  const view = sessions.value;
  return (
    <div class="stack">
      <Head title="Sessions" about="who is connected, and who owns what">
        <Filter label="Filter sessions" />
      </Head>
      {sessions.error ? <p class="note bad">{sessions.error.message}</p> : null}
      {name === null ? null : <One name={name} canExpire={view?.canExpire ?? false} />}
      {view ? (
        <>
          <Pager matching={view.matching} total={view.total} word="sessions" />
          <div class="panel">
            <Table
              label="Sessions"
              rows={view.rows}
              keyOf={(row) => `${row.server} ${row.address} ${row.session}`}
              rowClass={(row) => (row.session !== null && row.session === name ? 'at' : '')}
              empty={<Empty title="Nobody is connected, as far as the servers tell" />}
              columns={[
                {
                  name: 'session',
                  by: (row) => row.session ?? '',
                  cell: (row) => <Session row={row} />,
                },
                {
                  name: 'address',
                  by: (row) => row.address,
                  cell: (row) => <span class="mono nowrap">{visible(row.address)}</span>,
                },
                ...(new Set(view.rows.map(({ server }) => server)).size > 1
                  ? [
                      {
                        name: 'server',
                        by: (row: ClientRow) => row.server,
                        cell: (row: ClientRow) => <span class="mono nowrap">{row.server}</span>,
                      },
                    ]
                  : []),
                {
                  name: 'age',
                  num: true,
                  by: (row) => row.sinceMs ?? 0,
                  cell: (row) => (row.sinceMs === null ? '–' : duration(nowMs.value - row.sinceMs)),
                },
                { name: 'expiry', title: 'to expiry', cell: (row) => <Expiry row={row} /> },
                {
                  name: 'ephemerals',
                  num: true,
                  by: (row) => row.ephemerals ?? -1,
                  cell: (row) => count(row.ephemerals),
                },
                {
                  name: 'watches',
                  num: true,
                  by: (row) => row.watches ?? -1,
                  cell: (row) => count(row.watches),
                },
                { name: 'op', title: 'last op', cell: (row) => row.lastOp ?? '–' },
                {
                  name: 'latency',
                  title: 'avg / max',
                  num: true,
                  by: (row) => row.latencyMaxMs ?? -1,
                  cell: (row) => `${ms(row.latencyAvgMs)} / ${ms(row.latencyMaxMs)}`,
                },
                {
                  name: 'in',
                  title: 'in / out',
                  num: true,
                  by: (row) => row.received ?? -1,
                  cell: (row) => `${count(row.received)} / ${count(row.sent)}`,
                },
              ]}
            />
          </div>
          <Unknown list={view.unknown} />
        </>
      ) : null}
    </div>
  );
}

function Session({ row }: { readonly row: ClientRow }) {
  if (row.session === null) return <span class="soft">no session</span>;
  return (
    <span class="row">
      <a class="mono nowrap" href={href('sessions', { name: row.session })}>
        {row.session}
      </a>
      {row.isConsole ? (
        <span class="nowrap">
          <Badge tone="accent">this console</Badge>
        </span>
      ) : null}
    </span>
  );
}

function Expiry({ row }: { readonly row: ClientRow }) {
  if (row.timeoutMs === null) return <>–</>;
  if (row.expiresMs === null) {
    const why = 'how much of it is left, only the console of drover serve tells';
    return (
      <span class="soft" title={why}>
        {duration(row.timeoutMs)} in all
      </span>
    );
  }
  // Servers end sessions a little after their time-out, at the next tick.
  const leftMs = Math.min(row.timeoutMs, Math.max(0, row.expiresMs - nowMs.value));
  const share = leftMs / row.timeoutMs;
  return (
    <Meter
      value={share}
      tone={share < 0.2 ? 'bad' : share < 0.5 ? 'warn' : ''}
      label={`${duration(leftMs)} of ${duration(row.timeoutMs)}`}
    />
  );
}

function One(props: { readonly name: string; readonly canExpire: boolean }) {
  const one = useAnswer<SessionDetail>(at('/api/sessions/one', { name: props.name }), ['servers']);
  const client = one.value?.client;
  return (
    <Panel
      title={<span class="mono">{props.name}</span>}
      aside={
        <>
          {props.canExpire && canWrite() ? (
            <button
              type="button"
              class="button small danger"
              onClick={() =>
                openDialog(() => (
                  <Expire name={props.name} ephemerals={one.value?.ephemerals?.length ?? null} />
                ))
              }
            >
              Expire
            </button>
          ) : null}
          <button type="button" class="button small" onClick={() => turn({ name: '' })}>
            Close
          </button>
        </>
      }
    >
      {one.error ? <p class="bad">{one.error.message}</p> : null}
      {one.value ? (
        <div class="grid wide">
          <Facts
            rows={[
              ['address', client ? visible(client.address) : 'no connection now'],
              ['time-out', duration(client?.timeoutMs)],
              ['connected', client?.sinceMs ? ago(client.sinceMs, nowMs.value) : '–'],
              ['queued', count(client?.queued)],
              [
                'received',
                client?.received === undefined ? '–' : `${count(client.received)} packets`,
              ],
            ]}
          />
          <Paths title="Ephemeral nodes" list={one.value.ephemerals} />
          <Paths title="Watches" list={one.value.watches} />
        </div>
      ) : null}
    </Panel>
  );
}

function Paths(props: { readonly title: string; readonly list: readonly string[] | null }) {
  return (
    <div>
      <h3>
        {props.title} {props.list ? count(props.list.length) : ''}
      </h3>
      {props.list === null ? <p class="soft">No server tells.</p> : null}
      <ul>
        {props.list?.slice(0, 100).map((path) => (
          <li key={path}>
            <NodeLink path={path} />
          </li>
        ))}
      </ul>
      {(props.list?.length ?? 0) > 100 ? (
        <p class="soft">and {count(props.list!.length - 100)} more</p>
      ) : null}
    </div>
  );
}

function Expire(props: { readonly name: string; readonly ephemerals: number | null }) {
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<string | null>(null);
  const expire = async () => {
    try {
      await post('/api/sessions/expire', { session: props.name });
      closeDialog();
      tell(`Session ${props.name} is expired.`);
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  return (
    <Dialog
      title={`Expire session ${props.name}`}
      onSubmit={() => typed === props.name && void expire()}
      footer={
        <>
          <button type="button" class="button" onClick={closeDialog}>
            Cancel
          </button>
          <button type="submit" class="button danger" disabled={typed !== props.name}>
            Expire
          </button>
        </>
      }
    >
      <div class="body">
        <p>
          Its ephemeral nodes{props.ephemerals === null ? '' : ` (${props.ephemerals})`} go at once,
          and its owner is told that the session is over.
        </p>
        <label>
          Type the session id
          <input
            class="field mono"
            value={typed}
            autocomplete="off"
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        {error ? <p class="note bad">{error}</p> : null}
      </div>
    </Dialog>
  );
}
