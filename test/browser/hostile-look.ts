/**
 * A tab that looks at one view after the other, judges each, and counts which payloads it has seen where.
 *
 * Judging happens inside the page, as soon as what is expected is there, and again after each step of a
 * list that scrolls. (As text: the page's own types are not ours.)
 */
import type { Page } from 'playwright-core';

/** Elements that only a payload can have made. */
const made = [
  'script:not([src])',
  'iframe, object, embed, base, math, form[action], mglyph',
  'img:not([src="/icon.svg"])',
  'link[href*="evil"], meta[http-equiv=refresh]',
  '[onerror], [onload], [onmouseover]',
  'a[href^="javascript:" i], a[href^="data:" i], a[href*="//evil.example" i]',
];

/** What a payload did: elements that it made, and whether it ran. */
const judging = `[
  ...[...document.querySelectorAll(${JSON.stringify(made.join(', '))})].map((one) => one.outerHTML.slice(0, 200)),
  ...(globalThis.owned === undefined ? [] : ['a payload ran']),
]`;

const looking = `async ({ view, path, fresh, wanted, within, selector, timeoutMs }) => {
  const endMs = performance.now() + timeoutMs;
  const turn = () => new Promise((done) => requestAnimationFrame(done));
  // A browser lets a page move only so often; then it has to wait.
  const to = new URL(path ?? location.href, location.href).href;
  while (location.href !== to) {
    if (performance.now() > endMs) return { harm: [], why: 'the page can not be moved' };
    history.replaceState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
    if (location.href !== to) await new Promise((done) => setTimeout(done, 100));
  }
  const all = (globalThis.seenIn ??= {});
  const seen = (all[view] ??= new Set());
  const before = seen.size;
  const want = new Set(wanted);
  const read = () => {
    const place = document.querySelector(within);
    if (place === null) return;
    let text = place.textContent;
    for (const field of place.querySelectorAll('input, textarea')) text += ' ' + field.value;
    for (const [, number] of text.matchAll(/~(\\d+)~/g)) {
      seen.add(number);
      want.delete(Number(number));
    }
  };
  for (let step = 0; ; step += 1) {
    await turn();
    const harm = ${judging};
    if (harm.length > 0) return { harm, why: null };
    if (selector === null || document.querySelector(selector)?.textContent) {
      read();
      if (seen.size - before >= fresh && want.size === 0) return { harm: ${judging}, why: null };
    }
    if (performance.now() > endMs)
      return { harm: [], why: 'saw ' + (seen.size - before) + ' of ' + fresh + ' new ones, and not ' + [...want].slice(0, 5) };
    if (step % 2 !== 1) continue;
    for (const one of document.querySelectorAll('.view, main, section.scroll')) {
      const isAtEnd = one.scrollTop + one.clientHeight >= one.scrollHeight - 1;
      one.scrollTop = isAtEnd ? 0 : one.scrollTop + one.clientHeight * 0.9;
    }
  }
}`;

export interface Look {
  /** Under which name it is counted what was seen. */
  readonly view: string;
  /** Null: where the tab is. */
  readonly path: string | null;
  /** So many that were not seen in this view before have to come. */
  readonly fresh?: number;
  /** And these, seen before or not. */
  readonly wanted?: readonly number[];
  /** They count only in here. */
  readonly within?: string;
  /** Only once this is there and not empty. */
  readonly selector?: string;
}

/** What was harmful in a view; empty, if it showed what it should as text. */
export async function look(tab: Page, one: Look): Promise<string[]> {
  const { fresh = 0, wanted = [], within = 'main', selector = null } = one;
  const given = JSON.stringify({ ...one, fresh, wanted, within, selector, timeoutMs: 30_000 });
  const { harm, why } = await tab.evaluate<{ harm: string[]; why: string | null }>(
    `(${looking})(${given})`,
  );
  if (why !== null) throw new Error(`${one.view}, ${one.path}: ${why}`);
  return harm;
}

export async function harmOf(tab: Page): Promise<string[]> {
  return await tab.evaluate<string[]>(judging);
}

/** How many payloads each view has shown. */
export async function counted(tab: Page): Promise<Record<string, number>> {
  return await tab.evaluate<Record<string, number>>(
    'Object.fromEntries(Object.entries(globalThis.seenIn ?? {}).map(([view, seen]) => [view, seen.size]))',
  );
}
