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

  test('tabs that nobody sees keep no connection, so that many of them leave the one in front free', async () => {
    const { tab, complaints, close } = await stage.openTab();
    const behind: (typeof tab)[] = [];
    for (let i = 0; i < 7; i++) {
      const other = await tab.context().newPage();
      await other.addInitScript(`
        let isHidden = true;
        Object.defineProperty(document, 'hidden', { get: () => isHidden });
        addEventListener('show', () => {
          isHidden = false;
          document.dispatchEvent(new Event('visibilitychange'));
        });
      `);
      await other.goto(world.url('/tree?path=/app/motd'));
      await other.locator('.node', { hasText: 'motd' }).waitFor();
      behind.push(other);
    }

    await tab.goto(world.url('/tree?path=/app/config'));
    await tab.locator('.node', { hasText: 'config' }).waitFor();
    await world.client.create('/app/in-front');
    await tab.locator('.node', { hasText: 'in-front' }).waitFor();
    await behind[0]!.evaluate(`dispatchEvent(new Event('show'))`);

    await behind[0]!.locator('.node', { hasText: 'in-front' }).waitFor();
    await world.client.delete('/app/in-front');
    await behind[0]!.locator('.node', { hasText: 'in-front' }).waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    await close();
  });

  test('a console that was started anew is given its token again, and what was being written stays', async () => {
    const guarded = { write: true, token: 'a-long-secret' };
    const { pageFolder } = stage;
    const first = await consoleOf(world.server.address, { pageFolder, console: guarded });
    await world.client.create('/draft', 'as it was');
    const { tab, close } = await stage.openTab();
    await tab.goto(new URL('/tree?path=/draft#token=a-long-secret', first.url).href);
    await tab.getByText('as it was').waitFor();
    await tab.keyboard.press('e');
    await tab.locator('.cm-content').first().click();
    await tab.keyboard.press('Control+a');
    await tab.keyboard.type('as it will be');
    const { port } = first;
    await first.close();
    const again = await consoleOf(world.server.address, {
      pageFolder,
      console: { ...guarded, port },
    });

    await tab.getByRole('button', { name: 'Enter the token' }).click();
    await tab.getByLabel('Token that').fill('a-long-secret');
    await tab.keyboard.press('Enter');
    await tab.getByText('Stale since').waitFor({ state: 'hidden' });
    await tab.getByRole('button', { name: 'Review and save' }).click();
    await tab.getByRole('button', { name: 'Save as version 1' }).click();

    await expect
      .poll(async () => String((await world.client.get('/draft')).data))
      .toBe('as it will be');
    await close();
    await again.close();
  });

  test('a node that goes while it is looked at says so', async () => {
    await world.client.create('/passing', 'here');
    const { tab, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/passing'));
    await tab.getByText('here', { exact: true }).waitFor();
    await world.client.delete('/passing');

    await tab.getByText('There is no such node').waitFor();
    await world.client.create('/passing', 'back again');
    await tab.getByText('back again').waitFor();
    await close();
  });

  test('the tree stays as it was while nobody answers, and goes on from there', async () => {
    await world.client.create('/away/one', '', { parents: true });
    const { tab, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/away/one'));
    await tab.locator('.node', { hasText: 'one' }).waitFor();

    const error = { code: 'SESSION_EXPIRED', message: 'no server answers' };
    const isChildren = (url: URL) => url.pathname === '/api/children';
    await tab.route(isChildren, (route) => route.fulfill({ status: 503, json: { error } }));
    await world.client.create('/away/two');
    await tab.getByText('no server answers').first().waitFor();
    expect(await tab.locator('.node', { hasText: 'one' }).count()).toBe(1);
    await tab.unroute(isChildren);
    await world.client.create('/away/three');
    for (const name of ['two', 'three']) await tab.locator('.node', { hasText: name }).waitFor();
    await close();
  });

  test('a branch that was emptied shows what comes into it again', async () => {
    await world.client.create('/line/first', '', { parents: true });
    const { tab, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/line/first'));
    await tab.locator('.node', { hasText: 'first' }).waitFor();

    await world.client.delete('/line/first');
    await tab.locator('.node', { hasText: 'first' }).waitFor({ state: 'detached' });
    await world.client.create('/line/second');

    await tab.locator('.node', { hasText: 'second' }).waitFor();
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
