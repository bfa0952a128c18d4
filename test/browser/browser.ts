/**
 * A real Chromium for the tests of the page: Debian's, driven by playwright-core.
 *
 * Where there is none, tests are skipped with a sentence; with CI=true that is a failure, so that nobody
 * takes a green run for a tested page.
 */
import { existsSync } from 'node:fs';
import { type Browser, type ConsoleMessage, chromium, type Page } from 'playwright-core';

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

/** A tab that remembers whatever the page complained about: errors, refusals by policy, dialogs. */
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
    if (message.type() === 'error') complaints.push(`console: ${message.text()}`);
  });
  tab.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { tab, complaints, close: () => context.close() };
}
