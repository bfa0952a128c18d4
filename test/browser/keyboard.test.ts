/** Stories without a mouse: every page, every change; and what the eyes may choose: light, dark, a filter. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing, openTab, startBrowser } from './browser.ts';
import { buildPage, plantNodes, startWorld, type World } from './world.ts';

const pages: Readonly<Record<string, string>> = {
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

describe.skipIf(isBrowserMissing())('without a mouse', () => {
  let browser: Browser;
  let world: World;
  const endings: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    const page = await buildPage();
    endings.push(page.remove);
    world = await startWorld({ pageFolder: page.folder, console: { write: true } });
    endings.push(() => world.close());
    await plantNodes(world.client);
    await world.client.create('/brokers/topics/orders', { parents: true });
    browser = await startBrowser();
    endings.push(() => browser.close());
  });

  afterAll(async () => {
    for (const end of endings.reverse()) await end();
  });

  const textOf = async (path: string) => (await world.client.get(path)).data?.toString();
  const ready = async (tab: Page, path: string) => {
    await tab.goto(world.url(path));
    await tab.locator('h1').first().waitFor();
  };

  test('two keys lead from any page to any other', async () => {
    const { tab, complaints, close } = await openTab(browser);
    await ready(tab, '/overview');
    for (const [key, name] of Object.entries(pages)) {
      await tab.keyboard.press('Escape'); // the shell has the focus in its field
      await tab.keyboard.press('g');
      await tab.keyboard.press(key);
      await tab.waitForURL(`**/${name}`);
      await tab.locator('h1').first().waitFor({ state: 'attached' });
      expect(await tab.title()).toBe(`${name[0]!.toUpperCase()}${name.slice(1)} · drover`);
    }
    await tab.goBack();
    await tab.waitForURL('**/audit');
    expect(complaints).toEqual([]);
    await close();
  });

  test('a node is made, edited, given other rights, marked and deleted by keys alone', async () => {
    const { tab, complaints, close } = await openTab(browser);
    await ready(tab, '/tree?path=/app');
    await tab.locator('.node.at', { hasText: 'app' }).waitFor();
    await tab.keyboard.press('n');
    await tab.keyboard.type('typed');
    await tab.keyboard.press('Enter');
    await tab.waitForURL('**/tree?path=/app/typed');
    await tab.locator('.node.at', { hasText: 'typed' }).waitFor();

    await tab.keyboard.press('e');
    await tab.locator('.cm-content:focus').waitFor();
    await tab.keyboard.type('by hand');
    await tab.keyboard.press('Control+s');
    await tab.locator('dialog .cm-changedLine, dialog .cm-insertedLine').first().waitFor();
    await tab.keyboard.press('Enter');
    await expect.poll(() => textOf('/app/typed')).toBe('by hand');

    // No key counts while the dialog or the editor is open: the server knows of the change before the page does.
    await tab.locator('dialog').waitFor({ state: 'detached' });
    await tab.locator('.cm-content').waitFor({ state: 'detached' });
    await tab.keyboard.press('3');
    await tab.waitForURL('**tab=acl');
    await tab.getByLabel('write, entry 1').focus();
    await tab.keyboard.press('Space');
    await tab.getByRole('button', { name: 'Set ACL' }).focus();
    await tab.keyboard.press('Enter');
    await expect
      .poll(async () => (await world.client.getAcl('/app/typed')).acl[0]?.perms)
      .toBe(31 - 2);

    await tab.locator('.view').first().focus();
    await tab.keyboard.press('Space');
    await tab.getByRole('button', { name: 'Delete 1 marked' }).waitFor();
    await tab.keyboard.press('Delete');
    await tab.getByLabel('Type typed to delete').waitFor();
    await tab.getByLabel('Type typed to delete').focus();
    await tab.keyboard.type('typed');
    await tab.keyboard.press('Enter');
    await expect.poll(() => world.client.exists('/app/typed')).toBeNull();
    expect(complaints).toEqual([]);
    await close();
  });

  test('the bar above the tree takes the letters of a path, and an age', async () => {
    const { tab, complaints, close } = await openTab(browser);
    await ready(tab, '/tree');
    await tab.locator('.node').first().waitFor();
    await tab.keyboard.press('/');
    await tab.keyboard.type('/br/to');
    await tab.getByRole('option', { name: '/brokers/topics', exact: true }).waitFor();
    await tab.keyboard.press('Enter');
    await tab.waitForURL('**/tree?path=/brokers/topics');
    await tab.locator('.node.at', { hasText: 'topics' }).waitFor();

    await tab.keyboard.press('/');
    await tab.keyboard.type('/app/');
    await tab.getByRole('option', { name: '/app/alive' }).waitFor();
    await tab.keyboard.press('ArrowDown');
    await tab.keyboard.press('ArrowDown');
    await tab.keyboard.press('Enter');
    await tab.waitForURL(/tree\?path=\/app\/\w+$/);

    await ready(tab, '/tree?path=/app&find=%3C1h&in=age');
    await tab.getByRole('link', { name: '/app/config' }).waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('the palette finds pages, paths and commands, and brings a command to the shell', async () => {
    const { tab, complaints, close } = await openTab(browser);
    await ready(tab, '/overview');
    await tab.keyboard.press('Control+k');
    await tab.keyboard.type('metr');
    await tab.keyboard.press('Enter');
    await tab.waitForURL('**/metrics');
    await tab.keyboard.press('Control+k');
    await tab.keyboard.type('/br/to/or');
    await tab.getByRole('option', { name: '/brokers/topics/orders' }).waitFor();
    await tab.keyboard.press('ArrowDown');
    await tab.keyboard.press('Enter');
    await tab.waitForURL('**/tree?path=/brokers/topics/orders');
    await tab.keyboard.press('Control+k');
    await tab.keyboard.type('getAllChildren');
    await tab.getByRole('option', { name: /getAllChildrenNumber/ }).waitFor();
    await tab.keyboard.press('Enter');
    await tab.waitForURL('**/shell?line=getAllChildrenNumber');
    await tab.keyboard.press('Control+k');
    await tab.keyboard.press('Escape');
    expect(await tab.locator('dialog').count()).toBe(0);
    expect(complaints).toEqual([]);
    await close();
  });

  test('the shell can be typed into as soon as it is seen', async () => {
    const { tab, complaints, close } = await openTab(browser);
    await ready(tab, '/overview');
    // Who has the focus at the moment the field is there, not a frame later.
    const focused = tab.evaluate<string>(`new Promise((done) => {
      new MutationObserver((_, self) => {
        if (!document.querySelector('#line')) return;
        self.disconnect();
        done(document.activeElement.id);
      }).observe(document.body, { childList: true, subtree: true });
    })`);
    await tab.keyboard.press('g');
    await tab.keyboard.press('c');
    expect(await focused).toBe('line');
    expect(complaints).toEqual([]);
    await close();
  });

  test('light and dark follow the system until somebody chooses, and the choice stays', async () => {
    const { tab, close } = await openTab(browser, { dark: true });
    await ready(tab, '/overview');
    const ground = () => tab.evaluate<string>('getComputedStyle(document.body).color');
    const dark = await ground();
    await tab.emulateMedia({ colorScheme: 'light' });
    const light = await ground();
    expect(light).not.toBe(dark);

    await tab.keyboard.press('T');
    await tab.keyboard.press('T');
    const choices = [await ground()];
    await tab.keyboard.press('T');
    choices.push(await ground());
    expect(new Set([...choices, light, dark]).size).toBe(2);
    while ((await ground()) !== dark) await tab.keyboard.press('T');
    await tab.reload();
    await tab.locator('h1').waitFor();
    expect(await ground()).toBe(dark);
    await close();
  });
});
