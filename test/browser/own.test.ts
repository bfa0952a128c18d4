/** Stories of a server with its console in one process: what only it can tell, and that it goes and comes back. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { startServer } from '../../src/server/index.ts';
import { isBrowserMissing } from './browser.ts';
import { useStage } from './stage.ts';
import { consoleOf, startOwnWorld } from './world.ts';

type OwnWorld = Awaited<ReturnType<typeof startOwnWorld>>;

describe.skipIf(isBrowserMissing())('a server of our own', () => {
  const stage = useStage();
  let world: OwnWorld;

  beforeAll(async () => {
    const dataDir = await stage.makeFolder('drover-own-');
    world = await startOwnWorld({ pageFolder: stage.pageFolder, dataDir });
    stage.endsWith(() => world.close());
  });

  const open = async (path: string) => {
    const opened = await stage.openTab();
    await opened.tab.goto(world.url(path));
    return opened;
  };

  test('the life of a node is told out of the logs, change by change', async () => {
    await world.client.create('/life', 'born');
    await world.client.set('/life', 'grown');
    await world.client.set('/life', 'wise');
    const { tab, complaints, close } = await open('/tree?path=/life&tab=history');

    await tab.locator('tbody tr').nth(2).waitFor();
    expect(await tab.locator('tbody tr td:nth-child(2)').allInnerTexts()).toEqual([
      'dataSet',
      'dataSet',
      'created',
    ]);
    await tab.locator('.cm-deletedChunk', { hasText: 'grown' }).waitFor();
    await tab.getByRole('button', { name: 'diff' }).nth(1).click();
    await tab.locator('.cm-deletedChunk', { hasText: 'born' }).waitFor();
    await tab.waitForURL('**entry=1');
    // A change that comes while it is looked at stands there too.
    await world.client.set('/life', 'old');
    await tab.locator('tbody tr').nth(3).waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('latency and throughput stand there op by op, over a minute, a quarter and six hours', async () => {
    await world.client.create('/busy');
    for (let i = 0; i < 50; i++) {
      await world.client.get('/busy');
      await world.client.set('/busy', String(i));
    }
    const { tab, complaints, close } = await open('/metrics');
    const table = tab.getByRole('region', { name: 'Latency by op' });
    const row = (op: string) =>
      table.locator('tbody tr', { has: tab.getByText(op, { exact: true }) });
    await row('setData').waitFor();
    const cells = await row('getData').locator('td').allInnerTexts();
    expect(cells).toHaveLength(8);
    for (const cell of cells.slice(3)) expect(cell).toMatch(/ms|s$/);
    await expect
      .poll(() => tab.locator('section.panel h2').allInnerTexts(), { timeout: 60_000 })
      .toEqual(
        expect.arrayContaining(['Latency by op, p99', 'Throughput by op', 'Disk', 'Process']),
      );
    for (const [ring, words] of [
      ['15m', 'quarter of an hour'],
      ['6h', 'six hours'],
    ] as const) {
      await tab.getByText(ring, { exact: true }).click();
      await tab.waitForURL(`**ring=${ring}`);
      await tab.getByText(`By op, over the last ${words}`).waitFor();
      await row('setData').waitFor();
    }
    expect(complaints).toEqual([]);
    await close();
  });

  test('a bench is run from the page, and compared with the one before', async () => {
    const { tab, complaints, close } = await open('/metrics');
    const rows = tab.getByRole('region', { name: 'Benches' }).locator('tbody tr');
    await tab.getByRole('button', { name: 'Run 3 s' }).click();
    await tab.getByText('reads, 10 at once').waitFor();
    await tab.getByRole('button', { name: 'Run 3 s' }).click();
    await expect.poll(() => rows.count()).toBe(2);
    expect(await rows.first().textContent()).toMatch(/the same|[+-]\d+ %/);
    await tab.reload();
    await tab.getByText('reads, 10 at once').first().waitFor();
    expect(await rows.count()).toBe(2);
    expect(complaints).toEqual([]);
    await close();
  });

  test('a session is looked into, and ended by who types its name', async () => {
    const guest = await connect(world.server.address);
    const id = `0x${BigInt.asUintN(64, guest.sessionId!).toString(16)}`;
    await guest.create('/guest', '', { mode: 'ephemeral' });
    const { tab, complaints, close } = await open(`/sessions?name=${id}`);
    await tab.getByRole('link', { name: '/guest' }).waitFor();
    await tab
      .locator('tr.at')
      .getByRole('img', { name: / of (30|40) s/ })
      .waitFor();
    await tab.getByRole('button', { name: 'Expire' }).click();
    const end = tab.locator('dialog').getByRole('button', { name: 'Expire' });
    await tab.getByLabel('Type the session id').fill(id.slice(0, -1));
    expect(await end.isDisabled()).toBe(true);
    await tab.getByLabel('Type the session id').fill(id);
    await end.click();

    await expect.poll(() => world.client.exists('/guest')).toBeNull();
    await expect.poll(() => guest.state.name).toBe('expired');
    await tab.locator('tr', { hasText: id }).waitFor({ state: 'detached' });
    await tab.goto(world.url(`/audit?q=${id}`));
    await tab.locator('tr', { hasText: 'expire' }).waitFor();
    expect(complaints).toEqual([]);
    await close();
    await guest.close();
  });

  test('watches are told with their kinds, by path and on the node', async () => {
    await world.client.create('/watched/a', '', { parents: true });
    await world.client.get('/watched/a', { watch: () => {} });
    await world.client.addWatch('/watched', 'persistent', () => {});
    const { tab, complaints, close } = await open('/watches?q=watched');
    const row = tab.locator('tr', { hasText: '/watched/a' });
    await row.getByText('data').waitFor();
    await tab
      .locator('tr', { has: tab.getByRole('link', { name: '/watched', exact: true }) })
      .getByText('persistent')
      .waitFor();
    await row.getByRole('link', { name: '/watched/a' }).click();
    await tab.locator('.node.at').waitFor();
    await tab.keyboard.press('5');
    await tab.getByText('1 session · data').waitFor();
    await world.client.set('/watched/a', 'told');

    await tab.getByText('Nobody watches this node').waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('a server that goes is stale since then, and when it is back the page goes on by itself', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'drover-again-'));
    const first = await startServer({ port: 0, dataDir: directory });
    const looking = await consoleOf(first.address, { pageFolder: stage.pageFolder });
    const before = await connect(first.address);
    await before.create('/kept', 'before');
    await before.close();
    const { tab, close } = await stage.openTab();
    await tab.goto(new URL('/tree?path=/kept', looking.url).href);
    await tab.getByText('before', { exact: true }).waitFor();

    await first.close();
    await tab.getByText('Stale since').waitFor();
    await tab.getByText('no session with ZooKeeper').waitFor();
    const again = await startServer({ port: first.port, dataDir: directory });
    await tab.getByText('Stale since').waitFor({ state: 'hidden' });
    const after = await connect(again.address);
    await after.set('/kept', 'after');

    await tab.getByText('after', { exact: true }).waitFor();
    await after.close();
    await close();
    await looking.close();
    await again.close();
    await rm(directory, { recursive: true, force: true });
  });
});
