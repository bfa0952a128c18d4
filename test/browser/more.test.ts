/**
 * Stories of what was asked for besides: command lines in the audit, terms of elections, settings and moves of
 * Kafka, charsets, versions that were seen, nodes carried from one cluster to another.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { Election } from '../../src/recipes/index.ts';
import { runInProcess } from '../cli-run.ts';
import { isBrowserMissing } from './browser.ts';
import { faultsOf } from './faults.ts';
import { useStage } from './stage.ts';
import { plantNodes, type World } from './world.ts';

describe.skipIf(isBrowserMissing())('what else the pages do', () => {
  const stage = useStage();
  let world: World;
  let there: Client;
  let environment: Record<string, string>;

  beforeAll(async () => {
    const elsewhere = await stage.startElsewhere((servers) => ({ staging: { servers } }));
    there = elsewhere.client;
    environment = { ...elsewhere.environment, XDG_STATE_HOME: elsewhere.home };
    world = await stage.startWorld({ open: { contexts: 'all', environment } });
    await plantNodes(world.client);
  });

  const text = async (path: string, client = world.client) =>
    (await client.get(path)).data?.toString();

  test('what a command line writes is in the audit by itself, with its diff, and is undone there', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/audit'));
    await tab.getByText('Command lines are those of this user').waitFor();

    await runInProcess(world.server.address, ['set', '/app/motd', 'be loud'], { environment });
    const row = tab.locator('tr', { hasText: 'drover set' });
    await row.getByRole('button').click();
    const dialog = tab.getByRole('dialog');
    await dialog.getByText('be loud').waitFor();
    await dialog.getByText('be kind').waitFor();
    expect(await faultsOf(tab)).toEqual([]);
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await tab.getByText('Undone.').waitFor();

    expect(await text('/app/motd')).toBe('be kind\nto the herd\n');
    expect(complaints).toEqual([]);
    await close();
  });

  test('an election shows who led when, and all of its terms are a URL', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await world.client.create('/chosen');
    await tab.goto(world.url('/recipes'));
    await tab.getByRole('heading', { name: 'Recipes' }).waitFor();
    const ends: (() => void)[] = [];
    const lead = (id: string) =>
      new Election(world.client, '/chosen', { id }).lead(
        () => new Promise<void>((resolve) => ends.push(resolve)),
      );
    const ann = lead('ann');
    const terms = tab.getByLabel('Last terms');
    await terms.getByText('ann').waitFor();
    const bob = lead('bob');

    ends.shift()?.();
    await ann;
    await terms.getByText('bob').waitFor();
    await tab.getByRole('link', { name: 'All terms' }).click();
    await tab.waitForURL('**terms=/chosen');
    const rows = tab.getByLabel('Terms', { exact: true }).locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(2);
    await rows.first().getByText('leads').waitFor();
    expect(await rows.nth(1).textContent()).toContain('ann');
    expect(await faultsOf(tab)).toEqual([]);

    await expect.poll(() => ends.length).toBe(1);
    ends.shift()?.();
    await bob;
    expect(complaints).toEqual([]);
    await close();
  });

  test('settings and moves of a Kafka cluster are on its page, as they change', async () => {
    const { tab, complaints, close } = await stage.openTab();
    const put = (path: string, value: object) =>
      world.client.create(path, JSON.stringify(value), { parents: true });
    await put('/brokers/topics/orders', {
      version: 2,
      partitions: { 0: [1, 2] },
      adding_replicas: {},
      removing_replicas: {},
    });
    await tab.goto(world.url('/kafka'));
    await tab.getByText('No partition is being moved').waitFor();
    await tab.getByText('Nothing was changed').waitFor();

    await put('/config/brokers/<default>', { version: 1, config: { 'log.cleaner.threads': '2' } });
    await put('/config/users/ann', { version: 1, config: { 'SCRAM-SHA-256': 'salt=hush' } });
    await put('/admin/reassign_partitions', {
      version: 1,
      partitions: [{ topic: 'orders', partition: 0, replicas: [2, 3] }],
    });

    await tab.getByText('log.cleaner.threads = 2').waitFor();
    await tab.getByText('every broker').waitFor();
    await tab.getByText('secret, not shown').waitFor();
    expect(await tab.getByText('hush').count()).toBe(0);
    await tab.getByLabel('Reassignments').getByText('asked for').waitFor();
    expect(await faultsOf(tab)).toEqual([]);
    expect(complaints).toEqual([]);
    await close();
  });

  test('text is read and saved in the charset that was chosen, and earlier versions are at hand', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await world.client.create('/latin', Buffer.from('sch\xf6n', 'latin1'));
    await tab.goto(world.url('/tree?path=/latin&as=text'));
    await tab.getByText('Not UTF-8').waitFor();

    await tab.getByLabel('Charset').selectOption('latin-1');
    await tab.waitForURL('**charset=latin-1');
    await tab.getByText('schön').waitFor();
    await tab.getByRole('button', { name: 'Edit' }).click();
    const editor = tab.locator('.cm-content');
    await editor.waitFor();
    await editor.fill('grün');
    await tab.getByRole('button', { name: 'Review and save' }).click();
    await tab.getByRole('button', { name: 'Save as version 1' }).click();
    await tab.getByText('1 earlier version seen').click();
    await tab.getByRole('button', { name: 'version 0' }).waitFor();

    expect((await world.client.get('/latin')).data).toEqual(Buffer.from('gr\xfcn', 'latin1'));
    expect(await faultsOf(tab)).toEqual([]);
    expect(complaints).toEqual([]);
    await close();
  });

  test('a node is taken with Ctrl C and pasted into another cluster, looked at before it is done', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/app/config'));
    await tab.locator('.node.at', { hasText: 'config' }).waitFor();
    await tab.keyboard.press('Control+c');
    await tab.getByText('1 node to paste').waitFor();

    await tab.goto(world.url('/tree?path=/&context=staging'));
    await tab.locator('.node.at').waitFor();
    await tab.keyboard.press('Control+v');
    const dialog = tab.getByRole('dialog');
    await expect.poll(() => dialog.getByLabel('Path there').inputValue()).toBe('/config');
    await dialog.getByRole('button', { name: 'Look first' }).click();
    await dialog.getByText('Would create 1').waitFor();
    expect(await there.exists('/config')).toBeNull();
    await dialog.getByRole('button', { name: 'Copy 1 node' }).click();

    await tab.locator('.node', { hasText: 'config' }).waitFor();
    expect(await text('/config', there)).toBe(await text('/app/config'));
    expect(complaints).toEqual([]);
    await close();
  });

  test('a node that is dragged onto another is copied below it, looked at before it is done', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/app/motd'));
    const row = (name: string) => tab.getByRole('treeitem', { name }).first();
    await tab.locator('.node.at', { hasText: 'motd' }).waitFor();

    await tab.locator('.node', { hasText: 'motd' }).dragTo(row('hostile'));
    const dialog = tab.getByRole('dialog');
    await expect.poll(() => dialog.getByLabel('Path there').inputValue()).toBe('/hostile/motd');
    await dialog.getByRole('button', { name: 'Look first' }).click();
    await dialog.getByRole('button', { name: 'Copy 1 node' }).click();
    await tab.getByText('Copied 1 node').waitFor();

    expect(await text('/hostile/motd')).toBe(await text('/app/motd'));
    expect(complaints).toEqual([]);
    await close();
  });
});
