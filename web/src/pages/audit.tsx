/** Every change that was made through this console, and by command lines of the same user: who, when, what it was before and after, and undo. */
import { useState } from 'preact/hooks';
import type { AuditEntry, AuditState, AuditView, ChangedView } from '../../../src/console/api.ts';
import { asText, fromBase64 } from '../decode.ts';
import { Diff } from '../edit.tsx';
import { count, plural, time, visible } from '../format.ts';
import { canWrite, session, useAnswer } from '../live.ts';
import { NodeLink } from '../node-link.tsx';
import { closeDialog, Dialog, openDialog, tell } from '../overlay.tsx';
import { offsetParam, Pager, pageSize } from '../pager.tsx';
import { param } from '../router.ts';
import { at, post } from '../transport.ts';
import { Badge, Empty, Filter, Head, Table } from '../ui.tsx';

export function View() {
  const audit = useAnswer<AuditView>(
    at('/api/audit', { offset: offsetParam(), limit: pageSize, filter: param('q') }),
    ['audit'],
  );
  const view = audit.value;
  return (
    <div class="stack">
      <Head
        title="Audit"
        about={
          view?.hasCommandLines
            ? 'what was changed through this console since it started, and by drover command lines'
            : 'what was changed through this console since it started'
        }
      >
        <Filter label="Filter by path or action" />
      </Head>
      {audit.error ? <p class="note bad">{audit.error.message}</p> : null}
      {view ? (
        <>
          <Pager matching={view.total} total={view.total} word="changes" />
          <div class="panel">
            <Table
              label="Changes"
              rows={view.entries}
              keyOf={(row) => String(row.id)}
              columns={columns}
              empty={
                <Empty title="Nothing was changed from here">
                  Every change made in this console appears here, with what was there before
                  {view.hasCommandLines ? ', and every change by drover on a command line.' : '.'}
                </Empty>
              }
            />
          </div>
          <p class="soft">
            {view.hasCommandLines
              ? 'Command lines are those of this user on this machine, found by the servers that they wrote to. '
              : ''}
            Programs, other clients and other machines are not in this list
            {session.value?.features.history
              ? '; the History of a node shows every write to it.'
              : '; no ZooKeeper tells who made them.'}
          </p>
        </>
      ) : null}
    </div>
  );
}

const actionNames: Readonly<Record<AuditEntry['action'], string>> = {
  create: 'create',
  set: 'set',
  acl: 'acl',
  delete: 'delete',
  import: 'import',
  undo: 'undo',
  shell: 'shell',
  cli: 'command line',
  expire: 'expire',
  bench: 'bench',
  demo: 'demo',
  rule: 'rule',
  offsets: 'offsets',
  elect: 'elect',
  copy: 'copy',
};

const columns = [
  {
    name: 'when',
    by: (row: AuditEntry) => row.atMs,
    cell: (row: AuditEntry) => <span class="nowrap">{time(row.atMs)}</span>,
  },
  { name: 'who', by: (row: AuditEntry) => row.who, cell: (row: AuditEntry) => visible(row.who) },
  {
    name: 'action',
    by: (row: AuditEntry) => row.action,
    cell: (row: AuditEntry) => (
      <Badge tone={row.ok ? (row.action === 'delete' ? 'warn' : 'accent') : 'bad'}>
        {row.ok ? actionNames[row.action] : `${actionNames[row.action]} failed`}
      </Badge>
    ),
  },
  {
    name: 'path',
    by: (row: AuditEntry) => row.path,
    cell: (row: AuditEntry) => (
      <>
        <NodeLink path={row.path} />
        {row.count > 1 ? <span class="soft"> and {plural(row.count - 1, 'more')}</span> : null}
        {row.note === null ? null : <div class="soft mono">{visible(row.note)}</div>}
      </>
    ),
  },
  {
    name: 'version',
    num: true,
    cell: (row: AuditEntry) => `${row.before?.version ?? '–'} → ${row.after?.version ?? '–'}`,
  },
  {
    name: 'open',
    title: 'details',
    cell: (row: AuditEntry) => (
      <button
        type="button"
        class="button small"
        onClick={() => openDialog(() => <Entry entry={row} />)}
      >
        {row.undo === 'possible' && canWrite()
          ? 'Diff, undo'
          : row.undo === 'done'
            ? 'Undone'
            : 'Diff'}
      </button>
    ),
  },
];

const text = (state: AuditState | null) => {
  if (state === null) return '';
  const data = state.data === null ? '' : (asText(fromBase64(state.data)) ?? state.data);
  const acl = state.acl?.map(({ scheme, id, perms }) => `acl ${scheme}:${id}:${perms}`).join('\n');
  return acl === undefined ? data : `${data}${data === '' ? '' : '\n'}${acl}`;
};

function Entry({ entry }: { readonly entry: AuditEntry }) {
  const [error, setError] = useState<string | null>(null);
  const undo = async () => {
    try {
      await post<ChangedView>('/api/audit/undo', { id: entry.id });
      closeDialog();
      tell('Undone.');
    } catch (failure) {
      setError((failure as Error).message);
    }
  };
  const isPossible = entry.undo === 'possible' && canWrite();
  return (
    <Dialog
      title={`${actionNames[entry.action]} ${visible(entry.path)}`}
      class="wide"
      onSubmit={() => isPossible && void undo()}
      footer={
        <>
          <button type="button" class="button" onClick={closeDialog}>
            Close
          </button>
          {isPossible ? (
            <button type="submit" class="button main">
              Undo
            </button>
          ) : null}
        </>
      }
    >
      <div class="body">
        <p class="soft">
          {time(entry.atMs)} by {visible(entry.who)} · {count(entry.count)}{' '}
          {entry.count === 1 ? 'node' : 'nodes'}
          {entry.undo === 'tooLarge'
            ? ' · too large to be kept for undo'
            : entry.undo === 'done'
              ? ' · undone'
              : ''}
        </p>
        {entry.before === null && entry.after === null ? (
          <p>No data was kept of this.</p>
        ) : (
          <Diff before={text(entry.before)} after={text(entry.after)} label="Before and after" />
        )}
        {error ? (
          <p class="note bad" role="alert">
            {error}
          </p>
        ) : null}
      </div>
    </Dialog>
  );
}
