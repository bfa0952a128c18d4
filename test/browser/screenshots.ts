/**
 * Takes the pictures in docs/screenshots: `npx tsx test/browser/screenshots.ts`, with a Chromium at hand.
 * Of the same world that the tests look at, after it has lived for a while.
 */
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { chromiumPath, openTab, startBrowser, whyNot } from './browser.ts';
import {
  buildPage,
  plantKafka,
  plantNodes,
  plantRecipes,
  plantReplay,
  startWorld,
} from './world.ts';

const folder = process.argv[2] ?? resolve(import.meta.dirname, '../../docs/screenshots');
const warmUpMs = 20_000;

interface Picture {
  readonly path: string;
  readonly dark?: boolean;
  readonly act?: (tab: Page) => Promise<void>;
}

const pictures: Readonly<Record<string, Picture>> = {
  // First, while the replay goes on.
  alignment: { path: '/alignment' },
  'alignment-dark': { path: '/alignment', dark: true },
  overview: { path: '/overview' },
  'overview-dark': { path: '/overview', dark: true },
  tree: { path: '/tree?path=/app/config' },
  edit: {
    path: '/tree?path=/app/config',
    act: async (tab) => {
      await tab.keyboard.press('e');
      await tab.locator('.cm-content').click();
      await tab.keyboard.press('Control+a');
      await tab.keyboard.insertText(
        '{\n  "retries": 5,\n  "hosts": [\n    "a",\n    "b"\n  ],\n  "tls": true\n}',
      );
      await tab.keyboard.press('Control+s');
      await tab.locator('dialog .cm-changedLine').first().waitFor();
    },
  },
  palette: {
    path: '/overview',
    act: async (tab) => {
      await tab.keyboard.press('Control+k');
      await tab.keyboard.type('kafka');
    },
  },
  sessions: { path: '/sessions' },
  watches: { path: '/watches' },
  recipes: { path: '/recipes' },
  kafka: { path: '/kafka?topic=orders' },
  groups: { path: '/groups?name=billing' },
  metrics: { path: '/metrics' },
  audit: { path: '/audit' },
  shell: {
    path: '/shell',
    act: async (tab) => {
      await tab.keyboard.type('tree /app');
      await tab.keyboard.press('Enter');
      await tab.getByText('7 nodes').waitFor();
    },
  },
};

if (chromiumPath === null) throw new Error(whyNot);
await mkdir(folder, { recursive: true });
const page = await buildPage();
const world = await startWorld({ pageFolder: page.folder, console: { write: true } });
const endings = [page.remove, () => world.close()];
try {
  await plantNodes(world.client);
  for (const plant of [plantRecipes, plantKafka, plantReplay]) {
    endings.push(await plant(world.server.address, world.lag));
  }
  const browser = await startBrowser();
  endings.push(() => browser.close());
  await tinker(world.url('/'));
  const first = await openTab(browser);
  await first.tab.goto(world.url('/alignment'));
  await first.tab.waitForTimeout(warmUpMs);
  for (const [name, { path, dark = false, act }] of Object.entries(pictures)) {
    const { tab, complaints, close } = await openTab(browser, { dark });
    await tab.goto(world.url(path));
    await tab.waitForTimeout(2_500);
    await act?.(tab);
    await tab.waitForTimeout(500);
    await tab.screenshot({ path: join(folder, `${name}.png`) });
    for (const complaint of complaints) console.error(`${name}: ${complaint}`);
    await close();
  }
} finally {
  for (const end of endings.reverse()) await end();
}

/** A few changes, so that the audit has something to tell. */
async function tinker(base: string): Promise<void> {
  const session = (await (await fetch(new URL('/api/session', base))).json()) as { csrf: string };
  const post = async (path: string, body: object) => {
    const answer = await fetch(new URL(path, base), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-drover-token': session.csrf,
        origin: base.replace(/\/$/, ''),
      },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
  };
  const data = (text: string) => Buffer.from(text).toString('base64');
  await post('/api/node/create', { path: '/app/flags', data: data('beta=off\n') });
  await post('/api/node/set', { path: '/app/flags', data: data('beta=on\n'), version: 0 });
  await post('/api/node/delete', { paths: ['/app/flags'], confirm: 'flags', count: 1 });
}
