/**
 * The keyboard: everything that the mouse can do. One listener for the page; a view adds its own keys
 * while it stands. No key is taken while somebody types, and none together with Ctrl, Alt or Meta,
 * except Ctrl-K (Meta-K), which opens the palette from anywhere.
 */
import { useLayoutEffect } from 'preact/hooks';
import { session } from './live.ts';
import { Dialog, isDialogOpen, openDialog } from './overlay.tsx';
import { openPalette } from './palette.tsx';
import { go, href, type Page } from './router.ts';
import { nextTheme } from './theme.ts';

export type Keys = Readonly<Record<string, { readonly about: string; readonly run: () => void }>>;

const local = new Set<Keys>();

/** Two keys, one after the other, as in "g t". */
const pageKeys: Readonly<Record<string, Page>> = {
  o: 'overview',
  t: 'tree',
  s: 'sessions',
  w: 'watches',
  r: 'recipes',
  k: 'kafka',
  g: 'groups',
  a: 'alignment',
  m: 'metrics',
  u: 'audit',
  c: 'shell',
};

const everywhere: Keys = {
  '?': { about: 'this help', run: () => openDialog(() => <Help />) },
  '/': {
    about: 'filter',
    run: () => document.querySelector<HTMLElement>('[data-filter]')?.focus(),
  },
  T: { about: 'next theme', run: nextTheme },
  C: {
    about: 'switch context',
    run: () => {
      if (session.value?.features.contexts) {
        void import('./contexts.tsx').then(({ openContexts }) => openContexts());
      }
    },
  },
};

export function useKeys(keys: Keys): void {
  // With the view itself, not a frame later: a key pressed as soon as it is seen counts.
  useLayoutEffect(() => {
    local.add(keys);
    return () => {
      local.delete(keys);
    };
  });
}

export const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) ||
    target.classList.contains('editor'));

export function startKeys(): void {
  let isGoing = false;
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isDialogOpen()) return;
    const isCheckbox = event.target instanceof HTMLInputElement && event.target.type === 'checkbox';
    if (isTyping(event.target) && !isCheckbox) {
      if (event.key === 'Escape') (event.target as HTMLElement).blur();
      return;
    }
    if (isGoing) {
      isGoing = false;
      const page = pageKeys[event.key];
      if (page) go(href(page));
      return;
    }
    if (event.key === 'g') {
      isGoing = true;
      return;
    }
    for (const keys of [...local, everywhere]) {
      const key = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
      if (!key) continue;
      // Enter and space belong to the button, link or box that has the focus.
      const isControl = (event.target as Element).closest?.(
        'a, button, summary, input, [role=option]',
      );
      if (isControl && (event.key === 'Enter' || event.key === ' ')) return;
      event.preventDefault();
      key.run();
      return;
    }
  });
}

function Help() {
  const rows = [...local].flatMap((keys) => Object.entries(keys));
  return (
    <Dialog title="Keys">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys must reach it */}
      <section class="body" tabIndex={0} aria-label="All keys">
        <dl class="facts">
          {[...rows, ...Object.entries(everywhere)].map(([key, { about }]) => (
            <>
              <dt>
                <kbd>{key === ' ' ? 'space' : key}</kbd>
              </dt>
              <dd>{about}</dd>
            </>
          ))}
          <dt>
            <kbd>Ctrl</kbd> <kbd>K</kbd>
          </dt>
          <dd>palette: pages, paths, commands</dd>
          {Object.entries(pageKeys).map(([key, page]) => (
            <>
              <dt>
                <kbd>g</kbd> <kbd>{key}</kbd>
              </dt>
              <dd>{page}</dd>
            </>
          ))}
        </dl>
      </section>
    </Dialog>
  );
}
