/** The console's page in front of three real Apache servers, one of which is killed while it is looked at. */
import { describe, expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { isBrowserMissing, openTab, startBrowser } from '../browser/browser.ts';
import { buildPage, consoleOf, plantNodes, plantRecipes } from '../browser/world.ts';
import { findZooKeepers, startEnsemble } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

const suite = describe.skipIf(isBrowserMissing());

suite.each(found.slice(0, 1))('$name', { timeout: 240_000 }, (peer) => {
  test('shows an ensemble as far as it tells, and goes on when a server is killed', async () => {
    const page = await buildPage();
    const ensemble = await startEnsemble(peer, 3, { tickTimeMs: 500 });
    const client = await connect(ensemble.address, { sessionTimeoutMs: 10_000 });
    const running = await consoleOf(ensemble.address, {
      pageFolder: page.folder,
      console: { write: true },
    });
    const browser = await startBrowser();
    const endRecipes = await plantRecipes(ensemble.address);
    try {
      await plantNodes(client);
      const { tab, complaints } = await openTab(browser);
      const open = (path: string) => tab.goto(new URL(path, running.url).href);

      await open('/overview');
      await tab.locator('.badge', { hasText: 'leader' }).waitFor();
      expect(await tab.locator('.badge', { hasText: 'follower' }).count()).toBe(2);
      await open('/recipes');
      await tab.getByText('Deadlock').waitFor();
      for (const path of ['/sessions', '/watches', '/metrics', '/kafka', '/groups', '/alignment']) {
        await open(path);
        await tab.locator('h1').waitFor();
      }
      await tab.getByText('Nobody aligns anything here').waitFor();

      const down = await ensemble.leader();
      await open('/overview');
      await tab.locator('.badge', { hasText: 'leader' }).waitFor();
      await ensemble.kill(down);
      await tab.locator('.badge', { hasText: 'down' }).waitFor({ timeout: 60_000 });
      await expect
        .poll(() => tab.locator('.badge', { hasText: 'leader' }).count(), { timeout: 60_000 })
        .toBe(1);
      await client.set('/app/motd', 'two are enough');
      await open('/tree?path=/app/motd');
      await tab.getByText('two are enough').waitFor();

      expect(complaints.filter((text) => !/503/.test(text))).toEqual([]);
    } finally {
      await browser.close();
      await endRecipes();
      await running.close();
      await client.close();
      await ensemble[Symbol.asyncDispose]();
      await page.remove();
    }
  });
});
