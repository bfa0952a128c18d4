/** The tree: nodes at the left, the one that the URL names at the right, and a bar for paths and search. */
import { useState } from 'preact/hooks';
import type { FindView, OverviewView } from '../../../src/console/api.ts';
import { DemoOffer } from '../demo.tsx';
import { ago, count, visible } from '../format.ts';
import { nowMs, session, useAnswer } from '../live.ts';
import { NodeDetail } from '../node-detail.tsx';
import { PathBar } from '../path-bar.tsx';
import { href, param, turn } from '../router.ts';
import { at } from '../transport.ts';
import { TreeView } from '../tree-view.tsx';
import { Choice, Empty, Table } from '../ui.tsx';

const places = ['name', 'data', 'owner', 'age'] as const;
const hints: Readonly<Partial<Record<(typeof places)[number], string>>> = {
  owner: 'a session, as 0x…',
  age: '<2h: changed in the last two hours; >30d: not in the last thirty days',
};

export function View() {
  const path = param('path') ?? '/';
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const mark = (one: string) => {
    const next = new Set(marked);
    if (!next.delete(one) && one !== '/') next.add(one);
    setMarked(next);
  };
  return (
    <div class="split">
      <div class="side">
        <PathBar path={path} />
        <h1 class="sr">Tree</h1>
        <TreeView path={path} marked={marked} onMark={mark} />
        <EmptyTree />
      </div>
      {param('find') === null ? (
        <NodeDetail
          path={path}
          marked={marked}
          onMark={mark}
          onUnmark={() => setMarked(new Set())}
        />
      ) : (
        <Found path={path} text={param('find')!} />
      )}
    </div>
  );
}

function EmptyTree() {
  const overview = useAnswer<OverviewView>(session.value?.features.demo ? '/api/overview' : null);
  return overview.value?.isEmpty ? <DemoOffer /> : null;
}

function Found(props: { readonly path: string; readonly text: string }) {
  const where = places.find((one) => one === param('in')) ?? 'name';
  const found = useAnswer<FindView>(
    at('/api/find', { path: props.path, text: props.text, in: where, limit: 200 }),
  );
  return (
    <section class="detail" aria-label="Found">
      <div class="content">
        <div class="row wrap">
          <h2>
            “{visible(props.text)}” below {visible(props.path)}
          </h2>
          <Choice
            label="Look in"
            options={places}
            value={where}
            onChange={(value) => turn({ in: value }, 'replace')}
          />
          <span class="grow soft">
            {found.value
              ? `${count(found.value.looked)} nodes looked at${found.value.isPartial ? '; there may be more' : ''}`
              : found.isLoading
                ? 'looking…'
                : ''}
          </span>
          <button type="button" class="button" onClick={() => turn({ find: '', in: '' })}>
            Close
          </button>
        </div>
        {hints[where] ? <p class="soft">{hints[where]}</p> : null}
        {found.error ? <p class="note bad">{found.error.message}</p> : null}
        {found.value ? (
          <div class="panel">
            <Table
              label="Found nodes"
              rows={found.value.matches}
              keyOf={(row) => row.path}
              empty={<Empty title="Nothing found" />}
              columns={[
                {
                  name: 'path',
                  by: (row) => row.path,
                  cell: (row) => (
                    <a class="mono" href={href('tree', { path: row.path })}>
                      {visible(row.path)}
                    </a>
                  ),
                },
                {
                  name: 'changed',
                  by: (row) => row.stat.mtimeMs,
                  cell: (row) => ago(row.stat.mtimeMs, nowMs.value),
                },
                {
                  name: 'bytes',
                  num: true,
                  by: (row) => row.stat.dataLength,
                  cell: (row) => count(row.stat.dataLength),
                },
                { name: 'owner', cell: (row) => row.stat.owner ?? '' },
              ]}
            />
          </div>
        ) : null}
      </div>
    </section>
  );
}
