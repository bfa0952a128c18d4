/** Stories of Kafka's pages: who left the ISR and came back, leaders, offsets, lag, the rule of a replay. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing } from './browser.ts';
import { faultsOf } from './faults.ts';
import { useStage } from './stage.ts';
import { plantKafka, plantReplay, type World } from './world.ts';

describe.skipIf(isBrowserMissing())('Kafka', () => {
  const stage = useStage();
  let world: World;

  beforeAll(async () => {
    world = await stage.startWorld();
    stage.endsWith(await plantKafka(world.server.address, world.lag));
    stage.endsWith(await plantReplay(world.server.address));
  });

  /** The newest entry of the audit with this word is taken back, after its diff was shown. */
  const undo = async (tab: Page, word: string) => {
    await tab.goto(world.url('/audit'));
    await tab.locator('tr', { hasText: word }).first().getByRole('button').click();
    await tab.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
  };
  const text = async (path: string) => (await world.client.get(path)).data?.toString();

  test('a broker goes and comes back: the timeline tells it, and its leaders are elected again', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/kafka?topic=orders'));
    const rows = tab.getByLabel('Partitions').locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(6);
    await tab.getByRole('button', { name: 'ISR timeline of partition 0' }).click();
    await tab.waitForURL('**partition=0');
    await tab.getByText('ISR of orders/0').waitFor();
    const replica = rows.first().locator('.badge').first();
    const preferred = Number((await replica.textContent())?.trim());
    const cast = world.lag.cast!;

    await cast.killBroker(preferred);
    await tab.getByText(`${preferred} fell out of sync`).first().waitFor();
    await tab.locator('.fill.outofsync').first().waitFor();
    await cast.addBroker(preferred, { autoBalance: false });
    await tab.getByText(`${preferred} came back in sync`).first().waitFor();
    await tab.getByRole('button', { name: 'Elect leaders…' }).click();
    const dialog = tab.getByRole('dialog');
    const elect = dialog.getByRole('button', { name: /^Elect \d+ leader/ });
    await dialog.getByText('can be elected').first().waitFor();
    expect(await elect.isDisabled()).toBe(true);
    expect(await faultsOf(tab)).toEqual([]);
    await dialog.getByLabel(/Type orders/).fill('orders');
    await elect.click();

    await tab
      .getByText(new RegExp(`leader \\d → ${preferred}, epoch`))
      .first()
      .waitFor();
    await tab.goto(world.url('/audit'));
    await tab.locator('tr', { hasText: 'elect' }).first().waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('a topic is marked with a star, and the filter for those is a URL', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/kafka'));
    await tab.getByRole('button', { name: 'favourite payments' }).click();
    await tab.getByRole('button', { name: 'favourites', exact: true }).click();
    await tab.waitForURL('**only=favourites');

    const topics = tab.getByLabel('Topics', { exact: true }).locator('tbody tr');
    await expect.poll(() => topics.count()).toBe(1);
    await tab.reload();
    await expect.poll(() => topics.count()).toBe(1);
    await tab.getByRole('button', { name: 'favourite payments' }).click();
    await tab.getByText('No topic is marked with a star').waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('offsets of a stopped group are looked at, set once its name is typed, and taken back', async () => {
    for (const partition of [0, 1]) {
      const path = `/consumers/stopped/offsets/orders/${partition}`;
      await world.client.create(path, '10', { parents: true });
    }
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/groups?name=stopped'));
    await tab.getByText('never: nobody reads').first().waitFor();
    await tab.getByRole('button', { name: 'Offsets…' }).click();
    const dialog = tab.getByRole('dialog');
    await dialog.getByLabel('Where to').selectOption('shift');
    await dialog.getByLabel('Records on').fill('-4');
    await dialog.getByRole('button', { name: 'Look first' }).click();
    await expect.poll(() => dialog.getByText('would be set').count()).toBe(2);
    expect(await text('/consumers/stopped/offsets/orders/0')).toBe('10');

    expect(await faultsOf(tab)).toEqual([]);
    const change = dialog.getByRole('button', { name: 'Change 2 offsets' });
    expect(await change.isDisabled()).toBe(true);
    await dialog.getByLabel(/Type stopped/).fill('stopped');
    await change.click();
    await tab.getByText('2 offsets of stopped changed').waitFor();
    expect(await text('/consumers/stopped/offsets/orders/1')).toBe('6');
    await undo(tab, 'offsets');
    await expect.poll(() => text('/consumers/stopped/offsets/orders/1')).toBe('10');
    expect(complaints).toEqual([]);
    await close();
  });

  test('what a running group reads is left alone, and the page says why', async () => {
    const { tab, close } = await stage.openTab();
    await tab.goto(world.url('/groups?name=billing'));
    await tab.getByRole('button', { name: 'Offsets…' }).click();
    const dialog = tab.getByRole('dialog');
    await dialog.getByText('2 members of this group are running').waitFor();
    await dialog.getByRole('button', { name: 'Look first' }).click();

    await expect.poll(() => dialog.getByText('a member reads it').count()).toBe(6);
    expect(await dialog.getByRole('button', { name: /^Change 0/ }).isDisabled()).toBe(true);
    await close();
  });

  test('a lag is told in records and in time, with whether it will go; without brokers it is unknown, and why', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/groups?name=billing'));
    const row = tab.getByLabel('Groups', { exact: true }).locator('tr', { hasText: 'billing' });
    await row.getByText('caught up').waitFor();
    const { ends } = world.lag;
    delete world.lag.ends;
    await tab.reload();
    await tab.getByText('Lag is unknown:').first().waitFor();
    await row.getByText('unknown').first().waitFor();
    if (ends !== undefined) world.lag.ends = ends;

    await tab.reload();
    await row.getByText('caught up').waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('the rule of a replay is changed from its page, and taken back', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/alignment?name=replay-jan'));
    await tab.getByText('period 5 min').first().waitFor();
    await tab.getByRole('button', { name: 'Change the rule…' }).click();
    const dialog = tab.getByRole('dialog');
    await dialog.getByLabel('Period, as').fill('ten');
    expect(await dialog.getByRole('button', { name: 'Change the rule' }).isDisabled()).toBe(true);
    expect(await faultsOf(tab)).toEqual([]);
    await dialog.getByLabel('Period, as').fill('10m');
    await dialog.getByRole('button', { name: 'Change the rule' }).click();

    await tab.getByText('The rule of replay-jan was changed').waitFor();
    await expect.poll(() => text('/align/replay-jan/config')).toContain('600000');
    await undo(tab, 'rule');
    await expect.poll(() => text('/align/replay-jan/config')).toContain('300000');
    expect(complaints).toEqual([]);
    await close();
  });
});
