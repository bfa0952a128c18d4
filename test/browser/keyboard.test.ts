/** Stories without a mouse: every page, every change; and what the eyes may choose: light, dark, a filter. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing } from './browser.ts';
import { useStage } from './stage.ts';
import { plantNodes, type World } from './world.ts';

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
  const stage = useStage();
  let world: World;

  beforeAll(async () => {
    world = await stage.startWorld();
    await plantNodes(world.client);
    await world.client.create('/brokers/topics/orders', '', { parents: true });
  });

  const textOf = async (path: string) => (await world.client.get(path)).data?.toString();
  const ready = async (tab: Page, path: string) => {
    await tab.goto(world.url(path));
    await tab.locator('h1').first().waitFor();
  };

  test('two keys lead from any page to any other', async () => {
    const { tab, complaints, close } = await stage.openTab();
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
    const { tab, complaints, close } = await stage.openTab();
    await ready(tab, '/tree?path=/app');
    await tab.locator('.node.at', { hasText: 'app' }).waitFor();
    await tab.keyboard.press('n');
    await tab.keyboard.type('typed');
    await tab.keyboard.press('Enter');
    await tab.waitForURL('**/tree?path=/app/typed');
    await tab.locator('.node.at', { hasText: 'typed' }).waitFor();

    // Its row may be there before its data is, and what is not there can't be edited.
    await tab.getByRole('button', { name: 'Edit' }).waitFor();
    await tab.keyboard.press('e');
    await tab.locator('.cm-content:focus').waitFor();
    await tab.keyboard.type('by hand');
    await tab.keyboard.press('Control+s');
    await tab.locator('dialog .cm-changedLine, dialog .cm-insertedLine').first().waitFor();
    await tab.keyboard.press('Enter');
    // No key counts while the dialog or the editor is open: the server knows of the change before the page does.
    await tab.getByText('Saved /app/typed as version 1.').waitFor();
    expect(await textOf('/app/typed')).toBe('by hand');
    await tab.locator('dialog').waitFor({ state: 'detached' });
    await tab.locator('.cm-content').waitFor({ state: 'detached' });
    await tab.keyboard.press('3');
    await tab.waitForURL('**tab=acl');
    await tab.getByLabel('write, entry 1').focus();
    await tab.keyboard.press('Space');
    await tab.getByRole('button', { name: 'Set ACL' }).focus();
    await tab.keyboard.press('Enter');
    await tab.getByText('The ACL of /app/typed is set.').waitFor();
    expect((await world.client.getAcl('/app/typed')).acl[0]?.perms).toBe(31 - 2);

    await tab.locator('.view').first().focus();
    await tab.keyboard.press('Space');
    await tab.getByRole('button', { name: 'Delete 1 marked' }).waitFor();
    await tab.keyboard.press('Delete');
    await tab.locator('dialog input:focus').waitFor();
    await tab.keyboard.type('typed');
    await tab.keyboard.press('Enter');
    await tab.getByText('Deleted 1 node.').waitFor();
    expect(await world.client.exists('/app/typed')).toBeNull();
    expect(complaints).toEqual([]);
    await close();
  });

  test('the bar above the tree takes the letters of a path, and an age', async () => {
    const { tab, complaints, close } = await stage.openTab();
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
    const { tab, complaints, close } = await stage.openTab();
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
    await tab.locator('dialog').waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    await close();
  });

  test('the shell can be typed into as soon as it is seen', async () => {
    const { tab, complaints, close } = await stage.openTab();
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

  test('what is done as soon as it can be is not undone: a draft, a right, a path', async () => {
    await world.client.create('/quick', 'old');
    const { tab, complaints, close } = await stage.openTab();
    /** Does something in the page at the very moment that an element is there. */
    const atOnce = (selector: string, work: string) =>
      tab.evaluate<void>(`new Promise((done) => {
        const look = () => {
          const found = document.querySelector(${JSON.stringify(selector)});
          if (found) { self.disconnect(); ${work}; done(); }
        };
        const self = new MutationObserver(look);
        self.observe(document.body, { childList: true, subtree: true });
      })`);
    const key = (name: string) =>
      `document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '${name}', bubbles: true }))`;
    await ready(tab, '/tree');
    await tab.locator('.node', { hasText: 'quick' }).waitFor();
    const edited = atOnce('section.data', key('e'));
    await tab.locator('.node', { hasText: 'quick' }).click();
    await edited;
    await tab.locator('.cm-content:focus', { hasText: 'old' }).waitFor();

    const taken = atOnce('[aria-label="write, entry 1"]', 'found.click()');
    await tab.getByRole('link', { name: 'ACL' }).click();
    await taken;
    await tab.getByRole('button', { name: 'Set ACL' }).click();
    await tab.getByText('The ACL of /quick is set.').waitFor();
    expect((await world.client.getAcl('/quick')).acl[0]?.perms).toBe(31 - 2);

    const typed = atOnce(
      '.crumbs a[href="/tree?path=/app"]',
      `const field = document.querySelector('[data-filter]');
       field.value = '/bro';
       field.dispatchEvent(new InputEvent('input', { bubbles: true }))`,
    );
    await tab.evaluate(`history.pushState(null, '', '/tree?path=/app/config');
      dispatchEvent(new PopStateEvent('popstate'))`);
    await typed;
    await tab.getByRole('option', { name: '/brokers', exact: true }).waitFor();
    expect(await tab.locator('[data-filter]').first().inputValue()).toBe('/bro');
    expect(complaints).toEqual([]);
    await close();
  });

  test('light and dark follow the system until somebody chooses, and the choice stays', async () => {
    const { tab, close } = await stage.openTab({ dark: true });
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
