/** The tree: nodes at the left, the one that the URL names at the right, and a bar for paths and search. */
import { useLayoutEffect, useState } from 'preact/hooks';
import type { FindView, OverviewView } from '../../../src/console/api.ts';
import { DemoOffer } from '../demo.tsx';
import { ago, count, plural, visible } from '../format.ts';
import { isTyping, useKeys } from '../keys.tsx';
import { canWrite, nowMs, session, useAnswer } from '../live.ts';
import { type Carried, carried, carry } from '../node-carry.ts';
import { NodeDetail } from '../node-detail.tsx';
import { NodeLink } from '../node-link.tsx';
import { isDialogOpen, tell } from '../overlay.tsx';
import { PathBar } from '../path-bar.tsx';
import { context, param, turn } from '../router.ts';
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
  const mark = (one: string) =>
    setMarked((before) => {
      const next = new Set(before);
      if (!next.delete(one) && one !== '/') next.add(one);
      return next;
    });
  usePaste(path, marked);
  return (
    <div class="split">
      <div class="side">
        <PathBar path={path} />
        <h1 class="sr">Tree</h1>
        <TreeView path={path} marked={marked} onMark={mark} onCarried={mayPaste() ? paste : null} />
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

const mayPaste = () => session.value?.features.copy === true && canWrite();
const paste = (carried: Carried, parent: string) =>
  void import('../node-copy.tsx').then(({ askPaste }) => askPaste(carried, parent));

/** Ctrl C takes the node in front, or those marked; Ctrl V asks where below the one in front they go. */
function usePaste(path: string, marked: ReadonlySet<string>): void {
  // For the list of keys alone: browsers tell of these as events of their own.
  useKeys({
    'Ctrl C': { about: 'take the node, or those marked, to paste elsewhere', run: () => {} },
    'Ctrl V': { about: 'paste what was taken below this node', run: () => {} },
  });
  useLayoutEffect(() => {
    const isElsewhere = ({ target }: Event) => isTyping(target) || isDialogOpen();
    const onCopy = (event: ClipboardEvent) => {
      const isText = (getSelection()?.toString() ?? '') !== '';
      if (isText || isElsewhere(event) || !event.clipboardData) return;
      event.preventDefault();
      const paths = marked.size > 0 ? [...marked] : [path];
      carry(event.clipboardData, { from: context, paths });
      tell(`${plural(paths.length, 'node')} to paste, here or in another cluster.`);
    };
    const onPaste = (event: ClipboardEvent) => {
      const found = event.clipboardData && carried(event.clipboardData);
      if (!found || isElsewhere(event)) return;
      event.preventDefault();
      if (mayPaste()) paste(found, path);
      else tell('Nothing can be changed here.');
    };
    document.addEventListener('copy', onCopy);
    document.addEventListener('paste', onPaste);
    return () => {
      document.removeEventListener('copy', onCopy);
      document.removeEventListener('paste', onPaste);
    };
  });
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
                  cell: (row) => <NodeLink path={row.path} />,
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
