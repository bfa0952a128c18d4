/**
 * One node, whole: data, stat, ACL, children, history. Which of these is in front is the URL's `tab`.
 * Asked for again whenever the stream tells that the node or its children changed.
 */
import { useState } from 'preact/hooks';
import type { HistoryView, NodeView, NodeWatchesView, StatView } from '../../src/console/api.ts';
import { asText, fromBase64 } from './decode.ts';
import { Diff } from './edit.tsx';
import {
  ago,
  bytes,
  count,
  duration,
  joinPath,
  parentOf,
  plural,
  time,
  visible,
} from './format.ts';
import { useKeys } from './keys.tsx';
import { canWrite, nowMs, session, useAnswer } from './live.ts';
import { NodeAcl } from './node-acl.tsx';
import { NodeChildren } from './node-children.tsx';
import { NodeData } from './node-data.tsx';
import { askCreate, askDelete, askImport, exportNodes } from './node-dialogs.tsx';
import { tell, tellError } from './overlay.tsx';
import { go, href, param, turn } from './router.ts';
import { at } from './transport.ts';
import { Badge, Empty, Facts } from './ui.tsx';
import { Unknown } from './unknown.tsx';

const tabs = ['data', 'stat', 'acl', 'children', 'watches', 'history'] as const;

/** Also from where nothing may be changed: what counts is where it goes. */
const mayCopy = () => session.value?.features.copy === true && session.value.role === 'editor';
const copyTo = (paths: readonly string[]) =>
  void import('./node-copy.tsx').then(({ askCopy }) => askCopy(paths));

interface Props {
  readonly path: string;
  readonly marked: ReadonlySet<string>;
  readonly onMark: (path: string) => void;
  readonly onUnmark: () => void;
}

export function NodeDetail({ path, marked, onMark, onUnmark }: Props) {
  const node = useAnswer<NodeView>(
    at('/api/node', { path }),
    [],
    (change) =>
      change.path === path || (change.type !== 'dataChanged' && parentOf(change.path) === path),
  );
  const tab = tabs.find((one) => one === param('tab')) ?? 'data';
  const chosen = marked.size > 0 ? [...marked] : [path];
  const remove = () => {
    const paths = chosen;
    if (!canWrite() || paths.includes('/')) return;
    askDelete(paths, () => {
      onUnmark();
      if (paths.some((one) => path === one || path.startsWith(`${one}/`)))
        go(href('tree', { path: parentOf(path) }));
    });
  };
  const create = () => canWrite() && askCreate(path);
  useKeys({
    n: { about: 'new node below', run: create },
    Delete: { about: 'delete the node, or those marked', run: remove },
    '1': { about: 'data', run: () => turn({ tab: '' }) },
    '2': { about: 'stat', run: () => turn({ tab: 'stat' }) },
    '3': { about: 'ACL', run: () => turn({ tab: 'acl' }) },
    '4': { about: 'children', run: () => turn({ tab: 'children' }) },
    '5': { about: 'watches', run: () => turn({ tab: 'watches' }) },
    '6': { about: 'history', run: () => turn({ tab: 'history' }) },
    x: { about: 'export the node, or those marked', run: () => void exportNodes(chosen) },
    p: {
      about: 'copy the node, or those marked, elsewhere',
      run: () => mayCopy() && copyTo(chosen),
    },
    i: { about: 'import below', run: () => canWrite() && askImport(path) },
  });
  // While another node is on its way, the one before must not stand under its name.
  const value = node.value?.path === path ? node.value : null;
  const isGone = (node.error as { code?: string } | null)?.code === 'NO_NODE';
  const [isDrafting, setDrafting] = useState(false);
  const isShown = value !== null && (!isGone || isDrafting);
  return (
    <section class="detail" aria-label="Node">
      <div class="top">
        <div class="row wrap">
          <Crumbs path={path} />
          {value ? <Marks stat={value.stat} /> : null}
          {value?.meaning ? <Badge tone="accent">{value.meaning}</Badge> : null}
          <span class="grow" />
          <Copy path={path} />
          <button type="button" class="button small" onClick={() => void exportNodes(chosen)}>
            Export{marked.size > 0 ? ` ${marked.size} marked` : ''}
          </button>
          {mayCopy() ? (
            <button type="button" class="button small" onClick={() => copyTo(chosen)}>
              Copy{marked.size > 0 ? ` ${marked.size} marked` : ''} to…
            </button>
          ) : null}
          {canWrite() ? (
            <>
              <button type="button" class="button small" onClick={() => askImport(path)}>
                Import
              </button>
              <button type="button" class="button small" onClick={create}>
                New <kbd>n</kbd>
              </button>
              <button
                type="button"
                class="button small danger"
                disabled={path === '/' && marked.size === 0}
                onClick={remove}
              >
                Delete{marked.size > 0 ? ` ${marked.size} marked` : ''}
              </button>
            </>
          ) : null}
        </div>
        <nav class="tabs" aria-label="Of this node">
          {tabs.map((one) => (
            <a
              key={one}
              href={href('tree', { path, tab: one === 'data' ? '' : one })}
              aria-current={one === tab ? 'true' : undefined}
            >
              {one === 'acl' ? 'ACL' : one[0]!.toUpperCase() + one.slice(1)}
              {one === 'children' && value ? ` ${count(value.stat.numChildren)}` : ''}
            </a>
          ))}
        </nav>
      </div>
      <div class="content">
        {node.error && isShown ? (
          <p class="note bad" role="alert">
            {isGone
              ? 'Somebody deleted this node. What you have written is still here, and nowhere else.'
              : `It could not be read again, and may have changed: ${node.error.message}`}
          </p>
        ) : null}
        {node.error && !node.isLoading && !isShown ? (
          <Empty title={isGone ? 'There is no such node' : 'The node could not be read'}>
            <p>{node.error.message}</p>
            <a href={href('tree', { path: parentOf(path) })}>Up to {visible(parentOf(path))}</a>
          </Empty>
        ) : value === null ? null : tab === 'data' ? (
          <NodeData key={path} node={value} reload={node.reload} onDraft={setDrafting} />
        ) : tab === 'stat' ? (
          <Stat stat={value.stat} />
        ) : tab === 'acl' ? (
          <NodeAcl key={path} node={value} reload={node.reload} />
        ) : tab === 'children' ? (
          <NodeChildren node={value} marked={marked} onMark={onMark} />
        ) : tab === 'watches' ? (
          <Watches path={path} />
        ) : (
          <History path={path} version={value.stat.version} />
        )}
      </div>
    </section>
  );
}

function Crumbs(props: { readonly path: string }) {
  const names = props.path === '/' ? [] : props.path.slice(1).split('/');
  let here = '/';
  return (
    <span class="crumbs">
      <a href={href('tree', { path: '/' })}>/</a>
      {names.map((name, index) => {
        here = joinPath(here, name);
        const isLast = index === names.length - 1;
        return (
          <span key={here}>
            {isLast ? (
              <strong>{visible(name)}</strong>
            ) : (
              <a href={href('tree', { path: here })}>{visible(name)}</a>
            )}
            {isLast ? '' : '/'}
          </span>
        );
      })}
    </span>
  );
}

function Marks(props: { readonly stat: StatView }) {
  const { kind, owner, ttlMs } = props.stat;
  return (
    <>
      {kind === 'persistent' ? null : (
        <Badge tone="blue">{kind === 'ttl' ? `TTL ${duration(ttlMs)}` : kind}</Badge>
      )}
      {owner === null ? null : (
        <a class="badge blue" href={href('sessions', { name: owner })}>
          {owner}
        </a>
      )}
    </>
  );
}

/** JSON quoting suits both a shell that reads double quotes and TypeScript, but a shell also reads $ and `. */
const forShell = (path: string) =>
  /^[\w/.:@-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;

function Copy(props: { readonly path: string }) {
  const copies: Readonly<Record<string, string>> = {
    'the path': props.path,
    'as a command': `drover get ${forShell(props.path)} --server ${forShell(session.value?.servers ?? '')}`,
    'as TypeScript': `await zk.get(${JSON.stringify(props.path)});`,
  };
  return (
    <select
      class="field"
      aria-label="Copy"
      value=""
      onChange={(event) => {
        const text = copies[event.currentTarget.value];
        event.currentTarget.value = '';
        if (text === undefined) return;
        navigator.clipboard.writeText(text).then(() => tell('Copied.'), tellError);
      }}
    >
      <option value="">Copy…</option>
      {Object.keys(copies).map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

function Stat({ stat }: { readonly stat: StatView }) {
  return (
    <Facts
      rows={[
        [
          'created',
          `${time(stat.ctimeMs)} · ${ago(stat.ctimeMs, nowMs.value)} · zxid ${stat.czxid}`,
        ],
        [
          'data changed',
          `${time(stat.mtimeMs)} · ${ago(stat.mtimeMs, nowMs.value)} · zxid ${stat.mzxid}`,
        ],
        ['children changed', `zxid ${stat.pzxid}`],
        ['version', String(stat.version)],
        ['children version', String(stat.cversion)],
        ['ACL version', String(stat.aversion)],
        ['kind', stat.ttlMs === null ? stat.kind : `${stat.kind}, ${duration(stat.ttlMs)}`],
        [
          'owner',
          stat.owner === null ? (
            '– (it stays)'
          ) : (
            <a href={href('sessions', { name: stat.owner })}>{stat.owner}</a>
          ),
        ],
        ['data', `${bytes(stat.dataLength)} (${count(stat.dataLength)} bytes)`],
        ['children', count(stat.numChildren)],
      ]}
    />
  );
}

function Watches(props: { readonly path: string }) {
  const watches = useAnswer<NodeWatchesView>(at('/api/node/watches', { path: props.path }), [
    'servers',
  ]);
  const view = watches.value?.path === props.path ? watches.value : null;
  if (watches.error) return <p class="note bad">{watches.error.message}</p>;
  if (!view) return null;
  return (
    <>
      {view.sessions === null ? (
        <Empty title="No server tells who watches this node" />
      ) : view.sessions.length === 0 ? (
        <Empty title="Nobody watches this node">
          A recursive watch on a node above is listed there.
        </Empty>
      ) : (
        <>
          <p>
            {plural(view.sessions.length, 'session')}
            {view.kinds && view.kinds.length > 0 ? ` · ${view.kinds.join(', ')}` : ''}
          </p>
          <ul>
            {view.sessions.slice(0, 200).map((name) => (
              <li key={name}>
                <a class="mono" href={href('sessions', { name })}>
                  {name}
                </a>
              </li>
            ))}
          </ul>
          {view.sessions.length > 200 ? (
            <p class="soft">and {count(view.sessions.length - 200)} more</p>
          ) : null}
        </>
      )}
      <Unknown list={view.unknown} />
    </>
  );
}

function History(props: { readonly path: string; readonly version: number }) {
  const history = useAnswer<HistoryView>(
    at('/api/history', { path: props.path, limit: 50 }),
    [],
    (change) => change.path === props.path,
  );
  const entries = history.value?.entries;
  if (history.error) return <Empty title="No history">{history.error.message}</Empty>;
  if (!history.value) return null;
  if (!entries) return <Empty title="No history here">{history.value.why}</Empty>;
  if (entries.length === 0) return <Empty title="The logs at hand tell nothing of this node" />;
  const shown = Number(param('entry') ?? 0);
  const text = (data: string | null) => (data === null ? '' : (asText(fromBase64(data)) ?? data));
  return (
    <>
      <div class="panel scroll">
        <table>
          <thead>
            <tr>
              {['when', 'what', 'version', 'session', 'zxid', ''].map((name) => (
                <th key={name} scope="col">
                  {name || <span class="sr">open</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {entries.map((entry, index) => (
              <tr key={entry.zxid} class={index === shown ? 'at' : ''}>
                <td class="nowrap">{time(entry.atMs)}</td>
                <td>{entry.kind}</td>
                <td>{entry.version ?? ''}</td>
                <td class="mono">
                  <a href={href('sessions', { name: entry.session })}>{entry.session}</a>
                </td>
                <td class="mono">{entry.zxid}</td>
                <td>
                  <button
                    type="button"
                    class="button small"
                    onClick={() => turn({ entry: String(index) }, 'replace')}
                  >
                    diff
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {entries[shown] ? (
        <Diff
          before={text(entries[shown].before)}
          after={text(entries[shown].after)}
          label="Before and after"
        />
      ) : null}
      {history.value.isCut ? <p class="soft">Older entries are not shown.</p> : null}
    </>
  );
}
