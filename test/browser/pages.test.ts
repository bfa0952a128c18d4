/** Every page, on a world in which everything lives, in light and dark, without a complaint. */
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing, openTab, startBrowser } from './browser.ts';
import {
  buildPage,
  plantKafka,
  plantNodes,
  plantRecipes,
  plantReplay,
  startWorld,
  type World,
} from './world.ts';

/** Each view and a text that only stands there when it has something to show. */
const views: readonly (readonly [path: string, text: RegExp])[] = [
  ['/overview', /standalone[\s\S]*Recent changes[\s\S]*\/consumers\//],
  ['/tree?path=/app/config', /"retries": 3/],
  ['/tree?path=/app/zipped', /"packed": true/],
  ['/tree?path=/app/blob', /00 01 02 03 ff fe/],
  ['/tree?path=/app/alive&tab=stat', /ephemeral[\s\S]*owner\s*0x/],
  ['/tree?path=/app&tab=acl', /delete children[\s\S]*and everything below/],
  ['/tree?path=/app&tab=children', /motd/],
  ['/tree?find=conf', /\/app\/config/],
  ['/sessions', /this console/],
  ['/watches', /By session/],
  ['/recipes', /Deadlock[\s\S]*\/locks\/billing/],
  ['/kafka?topic=orders', /Topic orders[\s\S]*3 brokers/],
  ['/groups?name=billing', /Group billing[\s\S]*billing_a[\s\S]*\bok\b/],
  ['/alignment', /Progress in event time[\s\S]*clicks\/0/],
  ['/metrics', /Latency/],
  ['/audit', /Nothing was changed from here/],
  ['/shell', /The commands of/],
];

describe.skipIf(isBrowserMissing())('every page', () => {
  let browser: Browser;
  let world: World;
  const endings: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    const page = await buildPage();
    endings.push(page.remove);
    world = await startWorld({ pageFolder: page.folder, console: { write: true } });
    endings.push(() => world.close());
    await plantNodes(world.client);
    endings.push(await plantRecipes(world.server.address));
    endings.push(await plantKafka(world.server.address, world.lag));
    endings.push(await plantReplay(world.server.address));
    browser = await startBrowser();
    endings.push(() => browser.close());
  });

  afterAll(async () => {
    for (const end of endings.reverse()) await end();
  });

  const settled = async (tab: Page, path: string, text: RegExp) => {
    await tab.goto(world.url(path));
    // biome-ignore lint/performance/useDomNodeTextContent: what can be seen, not what is there
    const seen = () => tab.locator('body').innerText();
    await expect.poll(seen, { timeout: 20_000 }).toMatch(text);
  };

  test.each(views)('%s shows what lives there', async (path, text) => {
    const { tab, complaints, close } = await openTab(browser);
    await settled(tab, path, text);

    expect(complaints).toEqual([]);
    await close();
  });

  test.each([false, true])(
    'nothing serious stands in the way of anybody, dark %s',
    async (dark) => {
      const { tab, close } = await openTab(browser, { dark });
      const faults: string[] = [];
      for (const [path, text] of views) {
        await settled(tab, path, text);
        faults.push(...(await faultsOf(tab)).map((fault) => `${path}: ${fault}`));
      }
      await tab.keyboard.press('Control+k');
      await tab.getByRole('combobox').waitFor();
      faults.push(...(await faultsOf(tab)).map((fault) => `palette: ${fault}`));

      expect(faults).toEqual([]);
      await close();
    },
  );

  test('the keyboard alone reaches every page, the palette and the help', async () => {
    const { tab, complaints, close } = await openTab(browser);
    await settled(tab, '/overview', /Overview/);
    await tab.keyboard.press('g');
    await tab.keyboard.press('k');
    await tab.waitForURL('**/kafka');
    await tab.keyboard.press('Control+k');
    await tab.keyboard.type('/app/conf');
    await tab.getByRole('option', { name: '/app/config' }).first().waitFor();
    await tab.keyboard.press('ArrowDown');
    await tab.keyboard.press('Enter');
    await tab.waitForURL('**/tree?path=/app/config');
    await tab.locator('.node.at', { hasText: 'config' }).waitFor();
    await tab.keyboard.press('?');
    await tab.getByRole('dialog', { name: 'Keys' }).waitFor();
    await tab.keyboard.press('Escape');
    await tab.keyboard.press('j');
    await tab.waitForURL('**/tree?path=/app/empty');

    expect(complaints).toEqual([]);
    await close();
  });

  test('a filter is a URL: whoever is sent it sees the same', async () => {
    const one = await openTab(browser);
    await settled(one.tab, '/recipes', /Deadlock/);
    await one.tab.keyboard.press('/');
    await one.tab.keyboard.type('shipping');
    await one.tab.waitForURL('**/recipes?q=shipping');

    const other = await openTab(browser);
    await other.tab.goto(one.tab.url());
    await other.tab.locator('.panel').first().waitFor();
    expect(await other.tab.locator('section.panel h2').allInnerTexts()).toEqual([
      '/locks/shipping',
    ]);
    await one.close();
    await other.close();
  });

  test('hostile names and data are text wherever they stand', async () => {
    const { tab, complaints, close } = await openTab(browser);
    await settled(tab, '/tree?path=/hostile&tab=children', /<img src=x onerror=alert\(1\)>/);
    await settled(
      tab,
      '/tree?path=/hostile',
      /<script>alert\(1\)<\/script><svg onload=alert\(1\)>/,
    );
    await settled(tab, '/tree?find=alert', /below/);
    await settled(
      tab,
      `/tree?path=/hostile/${encodeURIComponent('<img src=x onerror=alert(1)>')}`,
      /onerror/,
    );
    await settled(
      tab,
      `/sessions?q=${encodeURIComponent('<script>alert(1)</script>')}`,
      /Sessions/,
    );

    expect(await tab.locator('img[src=x], svg[onload], script:not([src])').count()).toBe(0);
    expect(complaints).toEqual([]);
    await close();
  });
});

async function faultsOf(tab: Page): Promise<string[]> {
  // By the debugger's own door: the page's policy lets no other script in, and must not.
  await tab.evaluate(axe.source);
  const violations = await tab.evaluate(async () => {
    const run = (globalThis as unknown as { axe: typeof axe }).axe;
    return (await run.run()).violations;
  });
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes
        .slice(0, 3)
        .map(
          ({ html, failureSummary }) =>
            `${id} ${html.slice(0, 140)} ${failureSummary?.split('\n')[1] ?? ''}`,
        ),
    );
}
