/** Every page, on a world in which everything lives, in light and dark, without a complaint. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing } from './browser.ts';
import { faultsOf } from './faults.ts';
import { useStage } from './stage.ts';
import { plantKafka, plantNodes, plantRecipes, plantReplay, type World } from './world.ts';

/** Each view and a text that only stands there when it has something to show. */
const views: readonly (readonly [path: string, text: RegExp])[] = [
  ['/overview', /standalone[\s\S]*Recent changes[\s\S]*\/consumers\//],
  ['/tree?path=/app/config', /"retries": 3/],
  ['/tree?path=/app/zipped', /"packed": true/],
  ['/tree?path=/app/blob', /00 01 02 03 ff fe/],
  ['/tree?path=/app/alive&tab=stat', /ephemeral[\s\S]*owner\s*0x/],
  ['/tree?path=/app&tab=acl', /delete children[\s\S]*and everything below/],
  ['/tree?path=/app&tab=children', /motd/],
  ['/tree?path=/app&tab=watches', /Nobody watches this node/],
  ['/tree?path=/app&tab=history', /the transaction logs are with the server/],
  ['/tree?find=conf', /\/app\/config/],
  ['/tree?path=/app&find=%3C1d&in=age', /changed in the last two hours[\s\S]*\/app\/motd/],
  ['/sessions', /this console/],
  ['/watches', /By session/],
  ['/recipes', /Deadlock[\s\S]*\/locks\/billing/],
  ['/kafka?topic=orders', /Topic orders[\s\S]*3 brokers/],
  ['/kafka?topic=orders&partition=0', /ISR of orders\/0[\s\S]*broker 1[\s\S]*Seen since/],
  ['/groups?name=billing', /Group billing[\s\S]*billing_a[\s\S]*\bok\b/],
  ['/alignment', /Progress in event time[\s\S]*clicks\/0/],
  ['/metrics', /Latency/],
  ['/audit', /Nothing was changed from here/],
  ['/shell', /The commands of/],
];

describe.skipIf(isBrowserMissing())('every page', () => {
  const stage = useStage();
  let world: World;

  beforeAll(async () => {
    world = await stage.startWorld();
    await plantNodes(world.client);
    stage.endsWith(await plantRecipes(world.server.address));
    stage.endsWith(await plantKafka(world.server.address, world.lag));
    stage.endsWith(await plantReplay(world.server.address));
  });

  const settled = async (tab: Page, path: string, text: RegExp) => {
    await tab.goto(world.url(path));
    // biome-ignore lint/performance/useDomNodeTextContent: what can be seen, not what is there
    const seen = () => tab.locator('body').innerText();
    await expect.poll(seen, { timeout: 20_000 }).toMatch(text);
  };

  test.each(views)('%s shows what lives there', async (path, text) => {
    const { tab, complaints, close } = await stage.openTab();
    await settled(tab, path, text);

    expect(complaints).toEqual([]);
    await close();
  });

  test.each([false, true])(
    'nothing serious stands in the way of anybody, dark %s',
    async (dark) => {
      const { tab, close } = await stage.openTab({ dark });
      const faults: string[] = [];
      for (const [path, text] of views) {
        await settled(tab, path, text);
        faults.push(...(await faultsOf(tab)).map((fault) => `${path}: ${fault}`));
      }
      await tab.keyboard.press('Control+k');
      await tab.getByRole('combobox').waitFor();
      faults.push(...(await faultsOf(tab)).map((fault) => `palette: ${fault}`));
      await tab.keyboard.press('Escape');
      await settled(tab, '/tree?path=/app/config', /"retries": 3/);
      for (const [name, open] of dialogs) {
        await open(tab);
        faults.push(...(await faultsOf(tab)).map((fault) => `${name}: ${fault}`));
        await tab.keyboard.press('Escape');
      }

      expect(faults).toEqual([]);
      await close();
    },
  );

  test('the keyboard alone reaches every page, the palette and the help', async () => {
    const { tab, complaints, close } = await stage.openTab();
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
    const one = await stage.openTab();
    await settled(one.tab, '/recipes', /Deadlock/);
    await one.tab.keyboard.press('/');
    await one.tab.keyboard.type('shipping');
    await one.tab.waitForURL('**/recipes?q=shipping');

    const other = await stage.openTab();
    await other.tab.goto(one.tab.url());
    await other.tab.locator('.panel').first().waitFor();
    expect(await other.tab.locator('section.panel h2').allInnerTexts()).toEqual([
      '/locks/shipping',
    ]);
    await one.close();
    await other.close();
  });

  test('hostile names and data are text wherever they stand', async () => {
    const { tab, complaints, close } = await stage.openTab();
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

/** What opens above the tree. */
const dialogs: readonly (readonly [name: string, open: (tab: Page) => Promise<void>])[] = [
  [
    'offered paths',
    async (tab) => {
      await tab.keyboard.press('/');
      await tab.keyboard.type('/app/');
      await tab.getByRole('option').first().waitFor();
    },
  ],
  [
    'delete',
    async (tab) => {
      await tab.keyboard.press('Delete');
      await tab.getByLabel('Type config to delete').waitFor();
    },
  ],
  [
    'new node',
    async (tab) => {
      await tab.keyboard.press('n');
      await tab.getByRole('dialog').waitFor();
    },
  ],
  [
    'import',
    async (tab) => {
      await tab.keyboard.press('i');
      await tab.getByRole('dialog').waitFor();
    },
  ],
  [
    'keys',
    async (tab) => {
      await tab.keyboard.press('?');
      await tab.getByRole('dialog').waitFor();
    },
  ],
  [
    'editor',
    async (tab) => {
      await tab.keyboard.press('e');
      await tab.locator('.cm-content').waitFor();
    },
  ],
];
