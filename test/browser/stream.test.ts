/** Stories of what is live: changes that come by themselves, a stream that goes and comes back. */
import { beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing } from './browser.ts';
import { useStage } from './stage.ts';
import { consoleOf, plantNodes, startWorld, type World } from './world.ts';

describe.skipIf(isBrowserMissing())('the stream', () => {
  const stage = useStage();
  let world: World;

  beforeAll(async () => {
    world = await stage.startWorld();
    await plantNodes(world.client);
  });

  test('a change is on the page without a reload, in the tree, the node and the overview', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/app/motd'));
    await tab.getByText('be kind').waitFor();

    await world.client.set('/app/motd', 'be quick');
    await tab.getByText('be quick').waitFor();
    await world.client.create('/app/zebra');
    await tab.locator('.node', { hasText: 'zebra' }).waitFor();
    await world.client.delete('/app/zebra');
    await tab.locator('.node', { hasText: 'zebra' }).waitFor({ state: 'detached' });
    await tab.goto(world.url('/overview'));
    await tab.locator('tr', { hasText: '/app/zebra' }).first().waitFor();

    expect(complaints).toEqual([]);
    await close();
  });

  test('a console that goes is told as stale; when it is back, all is as it is now', async () => {
    const first = await consoleOf(world.server.address, {
      pageFolder: stage.pageFolder,
      console: { write: true },
    });
    const { tab, close } = await stage.openTab();
    await tab.goto(new URL('/tree?path=/app/config', first.url).href);
    await tab.getByText('"retries": 3').waitFor();

    await first.close();
    await tab.getByText('Stale since').waitFor();
    await world.client.set('/app/config', '{"retries":4}');
    const again = await consoleOf(world.server.address, {
      pageFolder: stage.pageFolder,
      console: { write: true, port: first.port },
    });

    await tab.getByText('Stale since').waitFor({ state: 'hidden' });
    await tab.getByText('"retries": 4').waitFor();
    // Its token is another by now; the page asks for it once and goes on.
    await tab.keyboard.press('n');
    await tab.getByLabel('Name').fill('after');
    await tab.getByRole('button', { name: 'Create' }).click();
    await expect.poll(() => world.client.exists('/app/config/after')).not.toBeNull();
    await close();
    await again.close();
  });

  test('a node that goes while it is looked at says so', async () => {
    await world.client.create('/passing', { data: 'here' });
    const { tab, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/passing'));
    await tab.getByText('here', { exact: true }).waitFor();
    await world.client.delete('/passing');

    await tab.getByText('There is no such node').waitFor();
    await world.client.create('/passing', { data: 'back again' });
    await tab.getByText('back again').waitFor();
    await close();
  });

  test('an empty tree offers the demo, and one click brings every page to life', async () => {
    const empty = await startWorld({
      pageFolder: stage.pageFolder,
      demo: true,
      console: { write: true },
    });
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(empty.url('/overview'));
    await tab.getByRole('button', { name: 'Load the demo' }).click();

    await tab.getByText('Nothing is stored here yet').waitFor({ state: 'detached' });
    for (const [page, text] of [
      ['recipes', '/demo/locks/report'],
      ['kafka', '3 brokers'],
      ['groups', 'billing'],
      ['alignment', 'Progress in event time'],
    ] as const) {
      await tab.goto(empty.url(`/${page}`));
      await tab.getByText(text).first().waitFor();
    }
    expect(complaints).toEqual([]);
    await close();
    await empty.close();
  });
});
