/**
 * The console's page in front of three real Apache servers on which everything lives that it knows of, one of
 * which, the leader, is killed while it is looked at: every page shows what there is, says what such servers
 * can't tell, and goes on.
 */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { isBrowserMissing, openTab, startBrowser } from '../browser/browser.ts';
import {
  buildPage,
  consoleOf,
  plantKafka,
  plantNodes,
  plantRecipes,
  plantReplay,
} from '../browser/world.ts';
import { findZooKeepers, startEnsemble } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

const suite = describe.skipIf(isBrowserMissing());

/** Each page and what stands on it, whoever of the three leads. */
const views: readonly (readonly [path: string, text: RegExp])[] = [
  ['/overview', /leader[\s\S]*Recent changes/],
  ['/tree?path=/app/config', /"retries": 3/],
  ['/tree?path=/app/config&tab=history', /the transaction logs are with the server/],
  ['/tree?path=/app&tab=children', /motd/],
  ['/tree?path=/app&tab=watches', /Nobody watches this node|sessions?/],
  ['/sessions', /this console[\s\S]*in all/],
  ['/watches', /By session[\s\S]*only the console of drover serve/],
  ['/recipes', /Deadlock[\s\S]*\/locks\/billing/],
  ['/kafka?topic=orders', /Topic orders[\s\S]*\d brokers?\b/],
  ['/groups?name=billing', /Group billing[\s\S]*orders/],
  ['/alignment', /Progress in event time/],
  ['/metrics', /Latency[\s\S]*only the console of drover serve/],
  ['/audit', /Nothing was changed from here/],
  ['/shell', /The commands of/],
];

suite.each(found.slice(0, 1))('$name', { timeout: 300_000 }, (peer) => {
  test('every page shows an ensemble as far as it tells, and goes on when its leader is killed', async () => {
    const endings: (() => Promise<unknown>)[] = [];
    try {
      const page = await buildPage();
      endings.push(page.remove);
      const ensemble = await startEnsemble(peer, 3, { tickTimeMs: 500 });
      endings.push(() => ensemble[Symbol.asyncDispose]());
      const client = await connect(ensemble.address, { sessionTimeoutMs: 10_000 });
      endings.push(() => client.close());
      const lag = {};
      const running = await consoleOf(ensemble.address, {
        pageFolder: page.folder,
        console: { write: true },
      });
      endings.push(() => running.close());
      await plantNodes(client);
      endings.push(await plantRecipes(ensemble.address));
      endings.push(await plantKafka(ensemble.address, lag));
      endings.push(await plantReplay(ensemble.address));
      const browser = await startBrowser();
      endings.push(() => browser.close());
      const { tab, complaints } = await openTab(browser);
      const lookAtAll = async () => {
        for (const [path, text] of views) await shows(tab, new URL(path, running.url).href, text);
      };

      await lookAtAll();
      await tab.goto(new URL('/overview', running.url).href);
      await tab.locator('.badge', { hasText: 'leader' }).waitFor();
      expect(await tab.locator('.badge', { hasText: 'follower' }).count()).toBe(2);

      await ensemble.kill(await ensemble.leader());
      await tab.locator('.badge', { hasText: 'down' }).waitFor({ timeout: 60_000 });
      await expect
        .poll(() => tab.locator('.badge', { hasText: 'leader' }).count(), { timeout: 60_000 })
        .toBe(1);
      await tab.getByText('Stale since').waitFor({ state: 'hidden', timeout: 60_000 });
      await lookAtAll();
      await client.set('/app/motd', 'two are enough');
      await tab.goto(new URL('/tree?path=/app/motd', running.url).href);
      await tab.getByText('two are enough').waitFor();

      expect(complaints.filter((text) => !/503/.test(text))).toEqual([]);
    } finally {
      for (const end of endings.reverse()) await end();
    }
  });
});

async function shows(tab: Page, url: string, text: RegExp): Promise<void> {
  await tab.goto(url);
  // biome-ignore lint/performance/useDomNodeTextContent: what can be seen, not what is there
  const seen = () => tab.locator('body').innerText();
  await expect.poll(seen, { timeout: 60_000 }).toMatch(text);
}
