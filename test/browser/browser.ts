/**
 * A real Chromium for the tests of the page: Debian's, driven by playwright-core.
 *
 * Where there is none, tests are skipped with a sentence; with CI=true that is a failure, so that nobody
 * takes a green run for a tested page.
 */
import { existsSync } from 'node:fs';
import {
  type Browser,
  type ConsoleMessage,
  chromium,
  type Page,
  type Request,
} from 'playwright-core';

const places = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

export const chromiumPath = places.find((path) => path !== undefined && existsSync(path)) ?? null;

export const whyNot =
  'no Chromium here (apt-get install chromium, or name one in CHROMIUM): the page is not tested';

export function isBrowserMissing(): boolean {
  if (chromiumPath !== null) return false;
  if (process.env.CI === 'true') throw new Error(whyNot);
  console.warn(whyNot);
  return true;
}

export async function startBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: chromiumPath!,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
}

/** Answers that are no fault of the page: it asked for a node just when that went. */
const wentMeanwhile = /^\/api\/(node|children|history)\b/;

/**
 * A tab that remembers whatever the page complained about: errors, refusals by policy, dialogs. When its
 * story fails, it says where it stood: address, focus, and what could be seen.
 */
export async function openTab(
  browser: Browser,
  options: { readonly dark?: boolean; readonly width?: number; readonly height?: number } = {},
): Promise<{ tab: Page; complaints: string[]; close: () => Promise<void> }> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1360, height: options.height ?? 860 },
    colorScheme: options.dark ? 'dark' : 'light',
    timezoneId: 'UTC',
  });
  const tab = await context.newPage();
  const complaints: string[] = [];
  tab.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  tab.on('console', (message: ConsoleMessage) => {
    if (message.type() !== 'error') return;
    const { url } = message.location();
    const path = URL.canParse(url) ? new URL(url).pathname : '';
    if (wentMeanwhile.test(path) && /status of 404/.test(message.text())) return;
    complaints.push(`console: ${message.text()} ${path}`.trimEnd());
  });
  tab.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  if (process.env.VITEST !== undefined) await tellIfFailed(tab, complaints);
  return { tab, complaints, close: () => context.close() };
}

async function tellIfFailed(tab: Page, complaints: readonly string[]): Promise<void> {
  const { onTestFailed } = await import('vitest'); // pictures are taken without it
  const asked = new Set<Request>();
  tab.on('request', (request) => asked.add(request));
  tab.on('requestfinished', (request) => asked.delete(request));
  tab.on('requestfailed', (request) => asked.delete(request));
  onTestFailed(async () => {
    if (tab.isClosed()) return;
    const waiting = [...asked].map((request) => `${request.method()} ${request.url()}`);
    const seen = await tab.evaluate<string>(stateOfPage).catch((error: Error) => error.message);
    console.error(
      [`the tab stood at ${tab.url()}`, `complaints: ${complaints.join('; ') || 'none'}`]
        .concat([`unanswered: ${waiting.join(', ') || 'none'}`, seen])
        .join('\n'),
    );
    await tab.context().close();
  });
}

/** As text: the page's own types are not ours. */
const stateOfPage = `(() => {
  const name = (one) => one === null ? 'nothing' : one.tagName.toLowerCase()
    + (one.id ? '#' + one.id : '')
    + [...one.classList].map((word) => '.' + word).join('')
    + (one.getAttribute('aria-label') ? ' "' + one.getAttribute('aria-label') + '"' : '')
    + ('value' in one && one.value ? ' = ' + JSON.stringify(one.value) : '');
  return 'focus: ' + name(document.activeElement)
    + '\\nopen dialogs: ' + ([...document.querySelectorAll('dialog[open]')].map(name).join(', ') || 'none')
    + '\\nseen:\\n' + document.body.innerText.slice(0, 4000);
})()`;
