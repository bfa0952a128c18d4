/**
 * Takes the pictures in docs/screenshots: `npx tsx test/browser/screenshots.ts`, with a Chromium at hand.
 * Of the same world that the tests look at, after it has lived for a while.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import type { Client } from '../../src/client/index.ts';
import { chromiumPath, openTab, startBrowser, whyNot } from './browser.ts';
import {
  buildPage,
  plantKafka,
  plantNodes,
  plantRecipes,
  plantReplay,
  startOwnWorld,
  startWorld,
} from './world.ts';

const folder = process.argv[2] ?? resolve(import.meta.dirname, '../../docs/screenshots');
const warmUpMs = 20_000;
const awayMs = 5_000;

interface Picture {
  readonly path: string;
  /** Of a server with its console in one process, which tells more. */
  readonly isOwn?: true;
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
  copy: {
    path: '/tree?path=/app',
    act: async (tab) => {
      await tab.getByRole('button', { name: 'Copy to…' }).click();
      await tab.getByLabel('Path there').fill('/copy-of-app');
      await tab.getByRole('button', { name: 'Look first' }).click();
      await tab.getByText('Would create').waitFor();
    },
  },
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
  history: { path: '/tree?path=/app/config&tab=history', isOwn: true },
  sessions: { path: '/sessions', isOwn: true },
  watches: { path: '/watches', isOwn: true },
  recipes: { path: '/recipes' },
  kafka: { path: '/kafka?topic=orders&partition=0' },
  'kafka-dark': { path: '/kafka?topic=orders&partition=0', dark: true },
  groups: { path: '/groups?name=billing' },
  metrics: { path: '/metrics', isOwn: true },
  'metrics-dark': { path: '/metrics', dark: true, isOwn: true },
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
const dataDir = await mkdtemp(join(tmpdir(), 'drover-pictures-'));
const own = await startOwnWorld({ pageFolder: page.folder, dataDir });
const endings = [
  page.remove,
  () => rm(dataDir, { recursive: true, force: true }),
  () => world.close(),
  () => own.close(),
];
try {
  await plantNodes(own.client);
  endings.push(await plantRecipes(own.server.address));
  endings.push(await plantKafka(own.server.address));
  for (const retries of [4, 5]) {
    const config = { retries, hosts: ['a', 'b'], tls: true };
    await own.client.set('/app/config', JSON.stringify(config, null, 2));
  }
  endings.push(keepBusy(own.client));
  await plantNodes(world.client);
  for (const plant of [plantRecipes, plantKafka, plantReplay]) {
    endings.push(await plant(world.server.address, world.lag));
  }
  const browser = await startBrowser();
  endings.push(() => browser.close());
  await tinker(world.url('/'));
  // A broker goes and comes back, so that the timeline has something to tell.
  const { cast } = world.lag;
  await cast?.killBroker(1);
  await delay(awayMs);
  await cast?.addBroker(1, { autoBalance: false });
  const first = await openTab(browser);
  await first.tab.goto(world.url('/alignment'));
  const second = await openTab(browser);
  await second.tab.goto(own.url('/metrics'));
  await first.tab.waitForTimeout(warmUpMs);
  for (const [name, { path, dark = false, act, isOwn = false }] of Object.entries(pictures)) {
    const { tab, complaints, close } = await openTab(browser, { dark });
    await tab.goto((isOwn ? own : world).url(path));
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

/** Reads and writes at an even pace, so that there is something to measure. */
function keepBusy(client: Client): () => Promise<void> {
  let isOver = false;
  const loop = (async () => {
    for (let turn = 0; !isOver; turn += 1) {
      await Promise.all(Array.from({ length: 20 }, () => client.get('/app/config')));
      await client.children('/app');
      await client.set('/app/motd', `be kind\nto the herd\n${turn}\n`);
      await new Promise((done) => setTimeout(done, 50));
    }
  })();
  return async () => {
    isOver = true;
    await loop;
  };
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
