/**
 * The shell around every page: rail, top bar, "stale since", and the page that the URL names, loaded when
 * it is first asked for. While nobody is known, the whole of it is a field for the token.
 */
import type { ComponentType } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { clock, duration } from './format.ts';
import { Icon } from './icons.tsx';
import {
  failure,
  link,
  lookAgain,
  nowMs,
  servers,
  session,
  staleSinceMs,
  wantsToken,
  zxid,
} from './live.ts';
import { askToken, Login } from './login.tsx';
import { DialogHost, Toasts } from './overlay.tsx';
import { openPalette } from './palette.tsx';
import { context, href, type Page, page, pages, visit } from './router.ts';
import { serverTone } from './server-tone.ts';
import { nextTheme, theme } from './theme.ts';
import { Badge, Empty } from './ui.tsx';

const titles: Readonly<Record<Page, string>> = {
  overview: 'Overview',
  tree: 'Tree',
  sessions: 'Sessions',
  watches: 'Watches',
  recipes: 'Recipes',
  kafka: 'Kafka',
  groups: 'Groups',
  alignment: 'Alignment',
  metrics: 'Metrics',
  audit: 'Audit',
  shell: 'Shell',
};

const loaders: Readonly<Record<Page, () => Promise<{ readonly View: ComponentType }>>> = {
  overview: () => import('./pages/overview.tsx'),
  tree: () => import('./pages/tree.tsx'),
  sessions: () => import('./pages/sessions.tsx'),
  watches: () => import('./pages/watches.tsx'),
  recipes: () => import('./pages/recipes.tsx'),
  kafka: () => import('./pages/kafka.tsx'),
  groups: () => import('./pages/groups.tsx'),
  alignment: () => import('./pages/alignment.tsx'),
  metrics: () => import('./pages/metrics.tsx'),
  audit: () => import('./pages/audit.tsx'),
  shell: () => import('./pages/shell.tsx'),
};

const loaded = new Map<Page, ComponentType>();

/** These fill the window themselves and scroll inside. */
const full: ReadonlySet<Page | null> = new Set<Page>(['tree', 'shell']);

export function App() {
  if (failure.value !== null && session.value === null) {
    return (
      <main class="alone">
        <Empty title="The console does not answer">
          <p>{failure.value}</p>
          <div class="row">
            <button type="button" class="button main" onClick={() => location.reload()}>
              Try again
            </button>
            {context === null ? null : (
              <button type="button" class="button" onClick={() => visit(null)}>
                Leave the context {context}
              </button>
            )}
          </div>
        </Empty>
      </main>
    );
  }
  if (session.value === null) return <main class="alone" aria-busy="true" />;
  if (session.value.role === 'nobody') return <Login />;
  return (
    <div class="shell">
      <Rail />
      <Bar />
      <Stale />
      <Body />
      <DialogHost />
      <Toasts />
    </div>
  );
}

function Rail() {
  return (
    <nav class="rail" aria-label="Pages">
      <a class="brand" href={href('overview')}>
        <img src="/icon.svg" alt="" />
        <span>drover</span>
      </a>
      {pages.map((name) => (
        <a
          key={name}
          class="item"
          href={href(name)}
          aria-current={page.value === name ? 'page' : undefined}
          aria-label={titles[name]}
        >
          <Icon name={name} />
          <span class="label">{titles[name]}</span>
        </a>
      ))}
      <div class="foot">
        <button type="button" class="button small" onClick={nextTheme} title="Change the theme (T)">
          Theme: {theme.value}
        </button>
        <span>
          <kbd>?</kbd> keys · {session.value?.version}
        </span>
      </div>
    </nav>
  );
}

function Bar() {
  const state = link.value?.state ?? 'connecting';
  return (
    <header class="bar">
      {session.value?.features.contexts ? (
        <button
          type="button"
          class="button"
          title="look at another context"
          onClick={() => void import('./contexts.tsx').then(({ openContexts }) => openContexts())}
        >
          {/^context (.+)$/.exec(session.value.origin)?.[1] ?? 'Contexts'}{' '}
          <span aria-hidden="true">▾</span>
          <span class="sr">, switch context</span>
        </button>
      ) : null}
      <span class="mono clip" title={session.value?.origin}>
        {session.value?.servers}
      </span>
      <span
        class="dots"
        role="img"
        aria-label={`${servers.value.filter(({ error }) => error === null).length} of ${servers.value.length} servers answer`}
      >
        {servers.value.map((server) => (
          <i
            key={server.server}
            class={`dot ${serverTone(server)}`}
            title={`${server.server} ${server.error ?? server.role ?? ''}`}
          />
        ))}
      </span>
      {state === 'connected' ? null : (
        <Badge tone={state === 'connecting' || state === 'suspended' ? 'warn' : 'bad'}>
          {state}
        </Badge>
      )}
      {session.value?.readOnly || session.value?.role === 'viewer' ? (
        <Badge tone="blue" title={session.value.readOnlyReason ?? 'you may look'}>
          read-only
        </Badge>
      ) : (
        <Badge tone="warn" title="changes are possible here">
          write
        </Badge>
      )}
      <span class="grow" />
      <span class="soft mono nowrap" title="the newest transaction that was seen">
        {zxid.value === null ? '' : `zxid ${zxid.value}`}
      </span>
      {session.value?.features.live === false ? (
        <button
          type="button"
          class="button"
          title="this server knows no recursive watches (ZooKeeper 3.6 and later do): changes do not come by themselves"
          onClick={lookAgain}
        >
          Look again
        </button>
      ) : null}
      <button type="button" class="button" onClick={openPalette}>
        Go to… <kbd>Ctrl K</kbd>
      </button>
    </header>
  );
}

function Stale() {
  const since = staleSinceMs.value;
  const isLinkDown = link.value !== null && link.value.state !== 'connected';
  return (
    <div class="stale" role="status">
      {since !== null ? (
        <>
          <strong>Stale since {clock(since)}</strong>
          {wantsToken.value ? (
            <>
              <span>The console no longer knows this page, and wants its token again.</span>
              <button type="button" class="button small" onClick={askToken}>
                Enter the token
              </button>
            </>
          ) : (
            <span>
              No events for {duration(Math.max(0, nowMs.value - since))}; trying again. What you see
              may be old.
            </span>
          )}
        </>
      ) : isLinkDown ? (
        <>
          <strong>Stale since {clock(link.value!.sinceMs)}</strong>
          <span>
            The console has no session with ZooKeeper ({link.value!.state}); trying again.
          </span>
        </>
      ) : null}
    </div>
  );
}

function Body() {
  const name = page.value;
  const [, redraw] = useState(0);
  const [broken, setBroken] = useState<string | null>(null);
  // With the page itself, not a frame later: its name is true as soon as it is seen.
  useLayoutEffect(() => {
    const where = context === null ? '' : `${context} · `;
    document.title = `${name ? titles[name] : 'Not found'} · ${where}drover`;
    setBroken(null);
    if (name === null || loaded.has(name)) return;
    loaders[name]().then(
      ({ View }) => {
        loaded.set(name, View);
        redraw((value) => value + 1);
      },
      (error: Error) => setBroken(error.message),
    );
  }, [name]);
  const View = name === null ? null : loaded.get(name);
  return (
    <main
      class={full.has(name) ? 'full' : ''}
      id="main"
      tabIndex={-1}
      aria-busy={name !== null && !View}
    >
      {name === null ? (
        <Empty title="There is no such page">
          <a href="/overview">Overview</a>
        </Empty>
      ) : broken !== null ? (
        <Empty title="This page could not be loaded">
          <p>{broken}</p>
          <button type="button" class="button" onClick={() => location.reload()}>
            Load again
          </button>
        </Empty>
      ) : View ? (
        <View key={name} />
      ) : null}
    </main>
  );
}
