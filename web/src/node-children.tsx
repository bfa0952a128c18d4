/**
 * The children of a node as a table: filter and order by the server, rows as they scroll into view, marks
 * for what is to be deleted. Made for 300,000 of them.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ChildRow, ChildrenView, NodeView } from '../../src/console/api.ts';
import { ago, bytes, count, parentOf, visible } from './format.ts';
import { nowMs, onNodes } from './live.ts';
import { isLate, longListMs } from './long-list.ts';
import { href, param, turn } from './router.ts';
import { at, get } from './transport.ts';
import { Empty, Filter } from './ui.tsx';
import { useVirtual } from './virtual.ts';

const rowPx = 26;
const pageRows = 200;
const pagesMax = 40;
const changedMs = 200;
const orders = ['name', '-name', 'sequence', '-sequence'] as const;

interface Props {
  readonly node: NodeView;
  readonly marked: ReadonlySet<string>;
  readonly onMark: (path: string) => void;
}

export function NodeChildren({ node, marked, onMark }: Props) {
  const filter = param('q') ?? '';
  const order = orders.find((one) => one === param('order')) ?? 'name';
  const { matching, total, rowAt, ask, error } = usePages(node.path, filter, order);
  const element = useRef<HTMLDivElement>(null);
  const virtual = useVirtual(element, matching, rowPx);
  const first = virtual.rows[0]?.index ?? 0;
  const last = virtual.rows.at(-1)?.index ?? 0;
  useEffect(() => ask(first, last));
  return (
    <>
      <div class="row wrap">
        <Filter label="Filter children by name" />
        <label class="row">
          <span class="soft">order</span>
          <select
            class="field"
            value={order}
            onChange={(event) => turn({ order: event.currentTarget.value }, 'replace')}
          >
            {orders.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <span class="soft">
          {filter ? `${count(matching)} of ${count(total)}` : count(total)} · {count(marked.size)}{' '}
          marked
        </span>
      </div>
      {error ? <p class="note bad">{error}</p> : null}
      {matching === 0 ? (
        <Empty title={filter ? 'No name matches' : 'No children'} />
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys must reach it
        <section class="panel view virtual-table" ref={element} tabIndex={0} aria-label="Children">
          <div class="inner" style={{ height: `${virtual.totalPx}px` }}>
            {virtual.rows.map(({ index, topPx }) => (
              <Row
                key={index}
                row={rowAt(index)}
                topPx={topPx}
                isMarked={marked.has(rowAt(index)?.path ?? '')}
                onMark={onMark}
              />
            ))}
          </div>
        </section>
      )}
    </>
  );
}

function Row(props: {
  readonly row: ChildRow | null;
  readonly topPx: number;
  readonly isMarked: boolean;
  readonly onMark: (path: string) => void;
}) {
  const { row } = props;
  return (
    <div class="node child" style={{ top: `${props.topPx}px` }}>
      {row ? (
        <>
          <input
            type="checkbox"
            aria-label={`Mark ${visible(row.name)}`}
            checked={props.isMarked}
            onChange={() => props.onMark(row.path)}
          />
          <a class="name" href={href('tree', { path: row.path })}>
            {visible(row.name)}
          </a>
          {row.stat?.owner ? (
            <a class="badge blue" href={href('sessions', { name: row.stat.owner })}>
              {row.stat.owner}
            </a>
          ) : null}
          <span class="meta">
            <span>{row.stat ? bytes(row.stat.dataLength) : ''}</span>
            <span>{row.stat?.numChildren ? `${count(row.stat.numChildren)} children` : ''}</span>
            <span>{row.stat ? ago(row.stat.mtimeMs, nowMs.value) : 'gone'}</span>
          </span>
        </>
      ) : (
        <span class="soft">…</span>
      )}
    </div>
  );
}

/** Pages of a long list, asked for as they are looked at and again when the children change. */
function usePages(path: string, filter: string, order: string) {
  const [state, setState] = useState({ matching: 0, total: 0, error: null as string | null });
  const pages = useRef(new Map<number, readonly ChildRow[]>());
  const busy = useRef(new Set<number>());
  const run = useRef(0);
  const later = useRef<(waitMs: number) => void>(() => {});
  const load = async (page: number, mine: number) => {
    busy.current.add(page);
    try {
      const view = await get<ChildrenView>(
        at('/api/children', {
          path,
          offset: page * pageRows,
          limit: pageRows,
          filter,
          sort: order,
        }),
      );
      if (run.current !== mine) return;
      pages.current.delete(page);
      pages.current.set(page, view.rows);
      const oldest = pages.current.keys().next().value;
      if (pages.current.size > pagesMax && oldest !== undefined) pages.current.delete(oldest);
      setState({ matching: view.matching, total: view.total, error: null });
      // Of a long list that changes all the time the console gives what it has.
      if (isLate(view)) later.current(longListMs);
    } catch (error) {
      if (run.current === mine) setState((old) => ({ ...old, error: (error as Error).message }));
    } finally {
      if (run.current === mine) busy.current.delete(page);
    }
  };
  const restart = (isFresh: boolean) => {
    run.current += 1;
    busy.current.clear();
    const shown = isFresh ? [] : [...pages.current.keys()].slice(-3);
    if (isFresh) pages.current.clear();
    else
      for (const page of pages.current.keys())
        if (!shown.includes(page)) pages.current.delete(page);
    for (const page of shown.length > 0 ? shown : [0]) void load(page, run.current);
  };
  useEffect(() => {
    restart(true);
    let timer: ReturnType<typeof setTimeout> | undefined;
    later.current = (waitMs) => {
      timer ??= setTimeout(() => {
        timer = undefined;
        restart(false);
      }, waitMs);
    };
    const stop = onNodes((changes) => {
      const isOurs =
        changes === null ||
        changes.some((change) => parentOf(change.path) === path && change.path !== '/');
      if (isOurs) later.current(changedMs);
    });
    return () => {
      stop();
      clearTimeout(timer);
      later.current = () => {};
    };
  }, [path, filter, order]);
  return {
    ...state,
    rowAt: (index: number) =>
      pages.current.get(Math.floor(index / pageRows))?.[index % pageRows] ?? null,
    ask: (from: number, to: number) => {
      for (let page = Math.floor(from / pageRows); page <= Math.floor(to / pageRows); page += 1) {
        if (!pages.current.has(page) && !busy.current.has(page) && state.error === null)
          void load(page, run.current);
      }
    },
  };
}
