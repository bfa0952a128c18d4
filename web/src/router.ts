/**
 * Where the reader is. Every view and every filter is a URL: /tree?path=/app&tab=stat.
 *
 * In: clicks on links of this page, Back and Forward, and `go()`. Out: the signals `page` and `query`.
 * The address bar is the only state; a component that wants to remember something shareable puts it here.
 * Not promised: scroll positions after Back (the browser's own restoring does what it can).
 */
import { computed, signal } from '@preact/signals';

export const pages = [
  'overview',
  'tree',
  'sessions',
  'watches',
  'recipes',
  'kafka',
  'groups',
  'alignment',
  'metrics',
  'audit',
  'shell',
] as const;
export type Page = (typeof pages)[number];

export type Query = Readonly<Record<string, string | undefined>>;

const url = signal(new URL(location.href));

const contextIn = (address: URL) => address.searchParams.get('context') || null;

/**
 * The saved context that is looked at; null: where the console was started for. It stays from page to page,
 * in the address; another one is another page load, so that nothing of the one before is left.
 */
export const context = contextIn(url.value);

export const page = computed<Page | null>(() => {
  const name = url.value.pathname.slice(1);
  if (name === '') return 'overview';
  return (pages as readonly string[]).includes(name) ? (name as Page) : null;
});

export const query = computed(() => url.value.searchParams);

/** One parameter of the query; an empty one counts as absent. */
export function param(name: string): string | null {
  return query.value.get(name) || null;
}

export function href(to: Page, parameters: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ context: context ?? '', ...parameters })) {
    const isOwnPlace = name === 'context' && value === '' && context !== null;
    if (value !== undefined && (value !== '' || isOwnPlace)) search.set(name, value);
  }
  // Slashes are legal in a query, and paths are what people read in these.
  const text = search.toString().replaceAll('%2F', '/');
  return `/${to}${text === '' ? '' : `?${text}`}`;
}

export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  const next = new URL(to, location.href);
  if (!next.searchParams.has('context') && context !== null) {
    next.searchParams.set('context', context);
  }
  if (contextIn(next) !== context) {
    location.assign(next);
    return;
  }
  if (next.href === url.value.href) return;
  if (how === 'push') history.pushState(null, '', next);
  else history.replaceState(null, '', next);
  url.value = next;
}

/** Changes some parameters of the view in front; typing into a filter replaces, opening something pushes. */
export function turn(parameters: Query, how: 'push' | 'replace' = 'push'): void {
  const merged: Record<string, string | undefined> = Object.fromEntries(query.value);
  go(href(page.value ?? 'overview', { ...merged, ...parameters }), how);
}

/** The same page elsewhere, loaded anew. */
export function visit(name: string | null): void {
  location.assign(`/${page.value ?? 'overview'}?context=${encodeURIComponent(name ?? '')}`);
}

export function startRouter(): void {
  if (context === null && url.value.searchParams.has('context')) {
    url.value.searchParams.delete('context');
    history.replaceState(null, '', url.value);
  }
  addEventListener('popstate', () => {
    const now = new URL(location.href);
    if (contextIn(now) !== context) location.reload();
    else url.value = now;
  });
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin)
      return;
    if (link.pathname.startsWith('/api/') || link.pathname === '/metrics.txt') return;
    event.preventDefault();
    go(link.href);
  });
}
