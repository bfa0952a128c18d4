/** Stories of several places: a context is switched to, stays in the address, and is copied to. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { isBrowserMissing } from './browser.ts';
import { faultsOf } from './faults.ts';
import { useStage } from './stage.ts';
import { plantNodes, type World } from './world.ts';

describe.skipIf(isBrowserMissing())('several places', () => {
  const stage = useStage();
  let world: World;
  let there: Client;

  beforeAll(async () => {
    const { client, environment } = await stage.startElsewhere((servers) => ({
      staging: { servers },
      prod: { servers, readOnly: true },
    }));
    there = client;
    await there.create('/elsewhere', 'staging');
    world = await stage.startWorld({ open: { contexts: 'all', environment } });
    await plantNodes(world.client);
  });

  test.each([false, true])(
    'nothing serious stands in the way in its dialogs, dark %s',
    async (dark) => {
      const { tab, complaints, close } = await stage.openTab({ dark });
      await tab.goto(world.url('/tree?path=/app/config'));
      await tab.getByRole('button', { name: 'Copy to…' }).click();
      await tab.getByLabel('Path there').fill('/never');
      await tab.getByRole('button', { name: 'Look first' }).click();
      await tab.getByText('Would create 1').waitFor();
      const faults = (await faultsOf(tab)).map((fault) => `copy: ${fault}`);
      await tab.keyboard.press('Escape');
      await tab.keyboard.press('C');
      await tab.getByRole('dialog').getByText('staging').waitFor();
      faults.push(...(await faultsOf(tab)).map((fault) => `contexts: ${fault}`));

      expect([faults, complaints]).toEqual([[], []]);
      await close();
    },
  );

  test('the palette goes to a context by its name', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/overview'));
    await tab.getByText('Recent changes').waitFor();
    await tab.keyboard.press('Control+k');
    await tab.keyboard.type('context stag');
    await tab.getByRole('option', { name: 'context staging' }).waitFor();
    await tab.keyboard.press('Enter');

    await tab.waitForURL('**/overview?context=staging');
    await expect.poll(() => tab.title()).toBe('Overview · staging · drover');
    expect(complaints).toEqual([]);
    await close();
  });

  const choose = async (tab: Page, name: string) => {
    await tab.keyboard.press('C');
    await tab.getByRole('dialog', { name: 'Contexts' }).getByRole('button', { name }).click();
  };

  test('another context is one key away, live, and in the address of every page', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/app'));
    await tab.locator('.node.at').waitFor();

    await choose(tab, 'staging');
    await tab.waitForURL('**/tree?context=staging');
    await tab.locator('.node', { hasText: 'elsewhere' }).waitFor();
    expect(await tab.locator('.node', { hasText: 'hostile' }).count()).toBe(0);
    await there.create('/fresh');
    await tab.locator('.node', { hasText: 'fresh' }).waitFor();
    await tab.keyboard.press('g');
    await tab.keyboard.press('s');
    await tab.waitForURL('**/sessions?context=staging');
    await tab.getByText('this console').first().waitFor();
    expect(await tab.title()).toBe('Sessions · staging · drover');

    const sent = await stage.openTab();
    await sent.tab.goto(tab.url().replace('sessions', 'tree'));
    await sent.tab.locator('.node', { hasText: 'elsewhere' }).waitFor();
    await sent.close();
    await choose(tab, 'where the console was started for');
    await tab.waitForURL((url) => url.pathname === '/sessions' && url.search === '');
    await tab.goBack();
    await tab.waitForURL('**/sessions?context=staging');
    await expect.poll(() => tab.title()).toBe('Sessions · staging · drover');
    expect(complaints).toEqual([]);
    await close();
  });

  test('a context that is kept read-only says so and offers no change', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/elsewhere&context=prod'));
    await tab.getByText('staging', { exact: true }).first().waitFor();

    const badge = tab.locator('header .badge', { hasText: 'read-only' });
    expect(await badge.getAttribute('title')).toBe('read-only: the context prod is kept so');
    expect(await tab.getByRole('button', { name: /^(New|Delete|Import|Edit)/ }).count()).toBe(0);
    await tab.keyboard.press('n');
    expect(await tab.getByRole('dialog').count()).toBe(0);
    expect(complaints).toEqual([]);
    await close();
  });

  test('a context that is gone is said to be, and there is a way out', async () => {
    const { tab, close } = await stage.openTab();
    await tab.goto(world.url('/overview?context=gone'));
    await tab.getByText('there is no such context').waitFor();

    await tab.getByRole('button', { name: 'Leave the context gone' }).click();
    await tab.waitForURL((url) => url.search === '');
    await tab.getByText('Recent changes').waitFor();
    await close();
  });

  test('a subtree is looked at, copied into another context and taken back', async () => {
    await there.create('/app', 'theirs');
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/app'));
    await tab.getByRole('button', { name: 'Copy to…' }).click();
    const dialog = tab.getByRole('dialog');
    await dialog.getByLabel('Context').selectOption('staging');
    await dialog.getByRole('button', { name: 'Look first' }).click();
    await dialog
      .getByText(/Would create 5, overwrite 0, leave 1 that differ and 1 ephemeral/)
      .waitFor();
    expect(await there.exists('/app/config')).toBeNull();

    await dialog.getByLabel('Overwrite nodes').check();
    await dialog.getByRole('button', { name: 'Look first' }).click();
    const copy = dialog.getByRole('button', { name: 'Copy 6 nodes' });
    await copy.waitFor();
    expect(await copy.isDisabled()).toBe(true);
    await dialog.getByLabel(/Type app to overwrite 1 node/).fill('app');
    await copy.click();
    await tab.getByText('Copied 6 nodes').waitFor();
    expect((await there.get('/app/motd')).data?.toString()).toContain('be kind');

    await tab.goto(world.url('/audit?context=staging'));
    const row = tab.locator('tr', { hasText: 'copy' }).first();
    await row.waitFor();
    await row.getByRole('button').click();
    await tab.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
    await expect.poll(() => there.exists('/app/config')).toBeNull();
    expect((await there.get('/app')).data?.toString()).toBe('theirs');
    expect(complaints).toEqual([]);
    await close();
  });

  test('nothing can be copied into a context that is kept read-only', async () => {
    const { tab, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/app/motd'));
    await tab.getByRole('button', { name: 'Copy to…' }).click();
    const dialog = tab.getByRole('dialog');
    await dialog.getByLabel('Context').selectOption('prod');
    await dialog.getByLabel('Path there').fill('/never');
    await dialog.getByRole('button', { name: 'Look first' }).click();

    await dialog.getByText('prod is read-only: nothing can be copied there.').waitFor();
    expect(await dialog.getByRole('button', { name: 'Copy 1 node' }).isDisabled()).toBe(true);
    await close();
  });
});
