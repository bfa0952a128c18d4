/**
 * The tree beside the node: rows by `TreeModel`, drawn by `useVirtual`, children asked for as they come into
 * view, kept true by what the stream tells. The node in front is the URL's `path`.
 *
 * Rows that changed flash. A path that the URL names is opened down to it, however many siblings it has:
 * one question for each level, for the page of children that the next name stands on.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ChangeView, ChildRow, ChildrenView } from '../../src/console/api.ts';
import { bytes, count, nameOf, parentOf, visible } from './format.ts';
import { useKeys } from './keys.tsx';
import { onNodes } from './live.ts';
import { isLate, longListMs } from './long-list.ts';
import { type Carried, carried, carry, isCarried } from './node-carry.ts';
import { tellError } from './overlay.tsx';
import { context, turn } from './router.ts';
import { at, get } from './transport.ts';
import { pageRows, TreeModel, type TreeRow } from './tree-model.ts';
import { useVirtual } from './virtual.ts';

const rowPx = 24;

interface Props {
  readonly path: string;
  readonly marked: ReadonlySet<string>;
  readonly onMark: (path: string) => void;
  /** Something was dropped on a row, or pasted; null: nothing may be copied here. */
  readonly onCarried: ((carried: Carried, parent: string) => void) | null;
}

export function TreeView({ path, marked, onMark, onCarried }: Props) {
  const model = useMemo(() => new TreeModel<ChildRow>(), []);
  const [, setVersion] = useState(0);
  const redraw = () => setVersion((value) => value + 1);
  const [tries, setTries] = useState(0);
  const front = useRef(path);
  front.current = path;
  const element = useRef<HTMLDivElement>(null);
  const busy = useRef(new Map<string, Promise<void>>());
  const answers = useRef(0);
  const flashed = useRef(new Map<string, number>());
  const virtual = useVirtual(element, model.size, rowPx);

  /** One request for a page at a time; whoever asks meanwhile waits for the same. */
  const load = (branch: string, page: number): Promise<void> => {
    const key = `${page} ${branch}`;
    const pending = busy.current.get(key);
    if (pending) return pending;
    const started = fetchPage(branch, page).finally(() => {
      busy.current.delete(key);
      redraw();
    });
    busy.current.set(key, started);
    return started;
  };
  const late = useRef(new Map<string, ReturnType<typeof setTimeout>>());
  const lookLater = (branch: string) => {
    if (late.current.has(branch)) return;
    const timer = setTimeout(() => {
      late.current.delete(branch);
      if (model.invalidate(branch)) redraw();
    }, longListMs);
    late.current.set(branch, timer);
  };
  const loadAround = async (branch: string, name: string) => {
    await fetchRows(branch, { around: name });
    redraw();
  };
  const fetchPage = (branch: string, page: number) =>
    fetchRows(branch, { offset: page * pageRows });
  const fetchRows = async (branch: string, where: { offset?: number; around?: string }) => {
    try {
      const asOf = model.changes;
      const view = await get<ChildrenView>(
        at('/api/children', { path: branch, limit: pageRows, ...where }),
      );
      model.put(branch, view.total, view.offset, view.rows, asOf);
      answers.current += 1;
      // Of a long list that changes all the time the console gives what it has.
      if (isLate(view)) lookLater(branch);
    } catch (error) {
      const { code } = error as { code?: string };
      // Gone in the meantime: its parent's pages, asked for by the same change, no longer show it. Where
      // nobody answers it stays as it was, and is asked for again with the next change.
      if (branch !== '/' && (code === 'NO_NODE' || code === 'NO_AUTH')) model.close(branch);
      if (code !== 'NO_NODE') tellError(error);
    }
  };

  useEffect(() => {
    void load('/', 0);
    return () => {
      for (const timer of late.current.values()) clearTimeout(timer);
    };
  }, []);
  const first = virtual.rows[0]?.index ?? 0;
  const last = virtual.rows.at(-1)?.index ?? 0;
  const wants = model.wants(first, last);
  const wanted = wants.map((want) => `${want.page} ${want.path}`).join('|');
  useEffect(() => {
    for (const want of wants) void load(want.path, want.page);
    // After each answer too: a page that changed while it was on its way is wanted as it was before. And
    // after each change: what could not be read is wanted as it was before, too.
  }, [wanted, answers.current, model.changes]);

  useEffect(
    () =>
      onNodes((changes) => {
        if (changes === null) model.invalidateAll();
        else for (const change of changes) heed(model, flashed.current, change);
        // What was looked for in vain may be there by now.
        const isOnTheWay = changes === null || changes.some((one) => isMade(one, front.current));
        if (isOnTheWay && model.indexOf(front.current) === null) setTries((value) => value + 1);
        redraw();
      }),
    [],
  );

  useEffect(() => {
    let isOver = false;
    void (async () => {
      await reveal(model, path, loadAround, () => isOver);
      if (isOver) return;
      redraw();
      const row = model.indexOf(path);
      // After the next frame, when the list has the height that the new rows give it.
      if (row !== null) requestAnimationFrame(() => virtual.scrollTo(row));
    })().catch(tellError);
    return () => {
      isOver = true;
    };
  }, [path, tries]);

  const toggle = (row: TreeRow<ChildRow>) => {
    if (row.isOpen) model.close(row.path);
    else if (row.child) {
      model.open(row.path, row.child.stat?.numChildren ?? 0);
      void load(row.path, 0);
    } else model.open('/');
    redraw();
  };
  const move = (by: number) => {
    const from = model.indexOf(path);
    if (from === null) return; // it is still being looked for
    const next = model.rowAt(Math.max(0, Math.min(model.size - 1, from + by)));
    if (next.child || next.depth === 0) turn({ path: next.path }, 'replace');
  };
  const current = () => {
    const row = model.indexOf(path);
    return row === null ? null : model.rowAt(row);
  };
  const openOrStep = (isOpening: boolean) => {
    const row = current();
    if (!row) return;
    if (isOpening && !row.isOpen) toggle(row);
    else if (isOpening) move(1);
    else if (row.isOpen) toggle(row);
    else turn({ path: parentOf(row.path) }, 'replace');
  };
  const down = { about: 'next node', run: () => move(1) };
  const up = { about: 'node before', run: () => move(-1) };
  useKeys({
    j: down,
    ArrowDown: down,
    k: up,
    ArrowUp: up,
    ArrowRight: { about: 'open', run: () => openOrStep(true) },
    ArrowLeft: { about: 'close, or to the parent', run: () => openOrStep(false) },
    Enter: { about: 'open or close', run: () => current() && toggle(current()!) },
    ' ': { about: 'mark', run: () => onMark(path) },
    PageDown: { about: 'a page down', run: () => move(20) },
    PageUp: { about: 'a page up', run: () => move(-20) },
  });

  return (
    <div
      class="view"
      ref={element}
      role="tree"
      aria-label="Nodes"
      aria-multiselectable="true"
      tabIndex={0}
      aria-activedescendant={
        model.indexOf(path) === null ? undefined : `row-${model.indexOf(path)}`
      }
    >
      <div class="inner" role="presentation" style={{ height: `${virtual.totalPx}px` }}>
        {virtual.rows.map(({ index, topPx }) => {
          if (index >= model.size) return null;
          const row = model.rowAt(index);
          return (
            <Row
              key={row.path}
              id={`row-${index}`}
              row={row}
              topPx={topPx}
              isAt={row.path === path}
              isMarked={marked.has(row.path)}
              flash={flashed.current.get(row.path) ?? 0}
              onToggle={() => toggle(row)}
              onMark={() => onMark(row.path)}
              carries={() => (marked.has(row.path) ? [...marked] : [row.path])}
              onCarried={onCarried}
            />
          );
        })}
      </div>
    </div>
  );
}

function Row(props: {
  readonly id: string;
  readonly row: TreeRow<ChildRow>;
  readonly topPx: number;
  readonly isAt: boolean;
  readonly isMarked: boolean;
  readonly flash: number;
  readonly onToggle: () => void;
  readonly onMark: () => void;
  readonly carries: () => readonly string[];
  readonly onCarried: Props['onCarried'];
}) {
  const { row, onCarried } = props;
  const stat = row.child?.stat ?? null;
  const hasChildren = row.depth === 0 || (stat?.numChildren ?? 0) > 0 || row.isOpen;
  const isKnown = row.child !== null || row.depth === 0;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    // biome-ignore lint/a11y/useFocusableInteractive: named by aria-activedescendant
    <div
      id={props.id}
      class={`node ${props.isAt ? 'at' : ''} ${props.flash && Date.now() - props.flash < 1600 ? 'flash' : ''}`}
      style={{ top: `${props.topPx}px`, paddingLeft: `${row.depth * 14 + 4}px` }}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-posinset={row.index + 1}
      aria-setsize={row.siblings}
      aria-expanded={hasChildren ? row.isOpen : undefined}
      aria-selected={props.isAt || props.isMarked}
      onClick={(event) => {
        if (!isKnown) return;
        if (event.ctrlKey || event.metaKey) props.onMark();
        else turn({ path: row.path });
      }}
      onDblClick={props.onToggle}
      draggable={isKnown && row.depth > 0}
      onDragStart={(event) => {
        if (event.dataTransfer)
          carry(event.dataTransfer, { from: context, paths: props.carries() });
      }}
      onDragOver={(event) => {
        if (isKnown && onCarried && event.dataTransfer && isCarried(event.dataTransfer)) {
          event.preventDefault();
          event.dataTransfer.dropEffect = 'copy';
        }
      }}
      onDrop={(event) => {
        const found = event.dataTransfer && carried(event.dataTransfer);
        if (!found || !onCarried) return;
        event.preventDefault();
        onCarried(found, row.path);
      }}
    >
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: Enter and the arrows open and close */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: as above */}
      <span
        class="twist"
        onClick={(event) => {
          event.stopPropagation();
          if (hasChildren && isKnown) props.onToggle();
        }}
      >
        {hasChildren ? (row.isOpen ? '▾' : '▸') : ''}
      </span>
      {props.isMarked ? <span class="good">✓</span> : null}
      <span class={`name ${isKnown ? '' : 'soft'}`}>
        {row.depth === 0 ? '/' : row.child ? visible(row.child.name) : '…'}
      </span>
      {stat?.owner ? (
        <span class="badge blue" title={`ephemeral, of session ${stat.owner}`}>
          E
        </span>
      ) : null}
      {stat?.kind === 'container' ? (
        <span class="badge" title="container: goes when empty">
          C
        </span>
      ) : null}
      {stat?.kind === 'ttl' ? (
        <span class="badge" title="goes after its TTL">
          TTL
        </span>
      ) : null}
      <span class="meta">
        {stat && stat.dataLength > 0 ? <span>{bytes(stat.dataLength)}</span> : null}
        {stat && stat.numChildren > 0 ? (
          <span title="children">{count(stat.numChildren)}</span>
        ) : null}
      </span>
    </div>
  );
}

function heed(model: TreeModel<ChildRow>, flashed: Map<string, number>, change: ChangeView): void {
  const isStructure = change.type === 'created' || change.type === 'deleted';
  if (change.type === 'childrenChanged') model.invalidate(change.path);
  else model.invalidate(parentOf(change.path));
  // The parent's own row shows how many children it has.
  if (isStructure) model.invalidate(parentOf(parentOf(change.path)));
  if (change.type === 'deleted') model.close(change.path);
  else flashed.set(change.path, Date.now());
  if (flashed.size > 500) flashed.clear();
}

/** A change that made a node, or one above it. */
const isMade = (change: ChangeView, path: string) =>
  change.type === 'created' && (path === change.path || path.startsWith(`${change.path}/`));

/** Opens every node above `path` and loads the page in which each next one stands. */
async function reveal(
  model: TreeModel<ChildRow>,
  path: string,
  loadAround: (branch: string, name: string) => Promise<void>,
  isOver: () => boolean,
): Promise<void> {
  if (path === '/' || model.indexOf(path) !== null) return;
  const names = path.slice(1).split('/');
  let branch = '/';
  for (const name of names) {
    const next = branch === '/' ? `/${name}` : `${branch}/${name}`;
    if (model.indexOf(next) === null) await loadAround(branch, name);
    if (isOver() || model.indexOf(next) === null) return;
    if (next !== path) model.open(next);
    branch = next;
  }
}

export const shortName = (path: string) => visible(nameOf(path));
