/** Stories of the tree: found, edited, fought over, deleted, and long. */
import type { Page, Route } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { deferred } from '../../src/support/index.ts';
import { isBrowserMissing } from './browser.ts';
import { useStage } from './stage.ts';
import { consoleOf, plantNodes, type World } from './world.ts';

const many = 300_000;

describe.skipIf(isBrowserMissing())('the tree', () => {
  const stage = useStage();
  let world: World;

  beforeAll(async () => {
    world = await stage.startWorld();
    await plantNodes(world.client);
  });

  const at = async (path: string) => {
    const opened = await stage.openTab();
    await opened.tab.goto(world.url(`/tree?path=${path}`));
    await opened.tab.locator('.node.at').waitFor();
    return opened;
  };
  const textOf = async (client: Client, path: string) => (await client.get(path)).data?.toString();

  test('an edit shows what it changes, and another browser sees it at once', async () => {
    await world.client.create('/edit', 'one\ntwo\n');
    const one = await at('/edit');
    const other = await at('/edit');
    await other.tab.getByText('one\ntwo').waitFor();

    await edit(one.tab, 'one\nthree\n');
    await one.tab.getByRole('button', { name: 'Review and save' }).click();
    await one.tab.locator('dialog .cm-deletedChunk', { hasText: 'two' }).waitFor();
    await one.tab.locator('dialog .cm-changedLine', { hasText: 'three' }).waitFor();
    await one.tab.getByRole('button', { name: 'Save as version 1' }).click();

    await other.tab.getByText('one\nthree').waitFor();
    expect(await textOf(world.client, '/edit')).toBe('one\nthree\n');
    expect([...one.complaints, ...other.complaints]).toEqual([]);
    await one.close();
    await other.close();
  });

  test('line ends stay what they are, and the diff shows where they do not', async () => {
    await world.client.create('/crlf', 'one\r\ntwo\r\n');
    await world.client.create('/mixed', 'one\rtwo\r\nthree\n');
    for (const path of ['/crlf', '/mixed']) {
      const { tab, complaints, close } = await at(path);
      await tab.keyboard.press('e');
      await tab.locator('.cm-content').first().click();
      await tab.keyboard.press('Control+End');
      await tab.keyboard.type('four\nfive');
      await tab.getByRole('button', { name: 'Review and save' }).click();
      await tab.getByRole('button', { name: 'Save as version 1' }).click();
      await tab.getByText('as version 1.').waitFor();
      expect(complaints).toEqual([]);
      await close();
    }

    expect(await textOf(world.client, '/crlf')).toBe('one\r\ntwo\r\nfour\r\nfive');
    expect(await textOf(world.client, '/mixed')).toBe('one\rtwo\r\nthree\nfour\nfive');
  });

  test('nobody overwrites what they have not seen', async () => {
    await world.client.create('/fight', 'old');
    const { tab, close } = await at('/fight');
    await edit(tab, 'mine');
    await world.client.set('/fight', 'theirs');

    await tab.getByText('Somebody changed this node').waitFor();
    await tab.getByRole('button', { name: 'Review and save' }).click();
    await tab.locator('dialog .cm-deletedChunk', { hasText: 'theirs' }).waitFor();
    expect(await textOf(world.client, '/fight')).toBe('theirs');
    await tab.getByRole('button', { name: 'Save as version 2' }).click();

    await expect.poll(() => textOf(world.client, '/fight')).toBe('mine');
    await close();
  });

  test('a delete counts, names what goes and wants the name typed; undo brings it back', async () => {
    await world.client.create('/doomed', 'root');
    for (const name of ['a', 'b']) await world.client.create(`/doomed/${name}`, name);
    const { tab, complaints, close } = await at('/doomed');
    await tab.keyboard.press('Delete');
    const go = tab.getByRole('button', { name: 'Delete 3 nodes' });
    await go.waitFor();
    expect(await go.isDisabled()).toBe(true);
    await tab.getByLabel('Type doomed to delete').fill('doome');
    expect(await go.isDisabled()).toBe(true);
    await tab.getByLabel('Type doomed to delete').fill('doomed');
    await go.click();

    await tab.getByText('Deleted 3 nodes.').waitFor();
    expect(await world.client.exists('/doomed')).toBeNull();
    await tab.locator('.node', { hasText: 'doomed' }).waitFor({ state: 'detached' });

    await tab.goto(world.url('/audit'));
    await tab.locator('tr', { hasText: '/doomed' }).getByRole('button').click();
    await tab.getByRole('button', { name: 'Undo', exact: true }).click();
    await expect.poll(() => world.client.exists('/doomed/b')).not.toBeNull();
    expect(complaints).toEqual([]);
    await close();
  });

  test('a node is created from the page, and stands in the tree of everybody', async () => {
    const one = await at('/app');
    const other = await at('/app');
    await other.tab.keyboard.press('Enter');
    await one.tab.keyboard.press('n');
    await one.tab.getByLabel('Name').fill('fresh');
    await one.tab.getByLabel('Data, as text').fill('hello');
    await one.tab.getByRole('button', { name: 'Create' }).click();

    await one.tab.waitForURL('**/tree?path=/app/fresh');
    await other.tab.locator('.node', { hasText: 'fresh' }).waitFor();
    expect(await textOf(world.client, '/app/fresh')).toBe('hello');
    await one.close();
    await other.close();
  });

  test('a node that comes while its list is on the way is in the list', async () => {
    await world.client.create('/slow');
    await world.client.create('/slow/first');
    const { tab, complaints, close } = await at('/slow');
    // The answer is from before the node, and comes after the page was told of it.
    await tab.route(
      /\/api\/children\?path=%2Fslow&/,
      async (route) => {
        const response = await route.fetch();
        const { stat } = await world.client.create('/slow/second');
        await tab.getByText(`zxid 0x${stat!.czxid.toString(16)}`).waitFor();
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await tab.keyboard.press('Enter');

    await tab.locator('.node', { hasText: 'first' }).waitFor();
    await tab.locator('.node', { hasText: 'second' }).waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('a node that comes after its list and before the stream of changes is in the list', async () => {
    await world.client.create('/early');
    await world.client.create('/early/first');
    const other = await at('/early/first');
    const { tab, complaints, close } = await stage.openTab();
    const told = deferred<void>();
    const hold = async (route: Route) => {
      await told.promise;
      await route.continue();
    };
    await tab.route('**/api/events', hold, { times: 1 });
    await tab.goto(world.url('/tree?path=/early/first'));
    await tab.locator('.node.at').waitFor();

    await world.client.create('/early/second');
    await other.tab.locator('.node', { hasText: 'second' }).waitFor();
    told.resolve();

    await tab.locator('.node', { hasText: 'second' }).waitFor();
    expect(complaints).toEqual([]);
    await close();
    await other.close();
  });

  test('a node that is not there yet stands in the tree as soon as it is', async () => {
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/tree?path=/soon/there'));
    await tab.getByText('There is no such node').waitFor();
    await world.client.create('/soon/there', 'by now', { parents: true });

    await tab.getByText('by now').waitFor();
    await tab.locator('.node.at', { hasText: 'there' }).waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('a draft stays while the node can not be read', async () => {
    await world.client.create('/kept', 'old');
    const { tab, close } = await at('/kept');
    await edit(tab, 'long thought about');
    await tab.route(/\/api\/node\?/, (route) => route.abort(), { times: 1 });
    await world.client.set('/kept', 'theirs');

    await tab.getByText('It could not be read again').waitFor();
    await tab.locator('.cm-content', { hasText: 'long thought about' }).waitFor();
    await world.client.set('/kept', 'theirs again');
    await tab.getByText('it is at version 2').waitFor();
    await tab.locator('.cm-content', { hasText: 'long thought about' }).waitFor();
    await close();
  });

  test('a draft stays though somebody deletes its node', async () => {
    await world.client.create('/deleted', 'old');
    const { tab, close } = await at('/deleted');
    await edit(tab, 'long thought about');
    await world.client.delete('/deleted');

    await tab.getByText('Somebody deleted this node').waitFor();
    await tab.locator('.cm-content', { hasText: 'long thought about' }).waitFor();
    await world.client.create('/deleted', 'made anew');
    await tab.getByText('Somebody deleted this node').waitFor({ state: 'detached' });
    await tab.locator('.cm-content', { hasText: 'long thought about' }).waitFor();
    await world.client.delete('/deleted');
    await tab.getByText('Somebody deleted this node').waitFor();
    await tab.getByRole('button', { name: 'Discard' }).click();
    await tab.getByText('There is no such node').waitFor();
    await close();
  });

  test('read-only offers no change', async () => {
    const looking = await consoleOf(world.server.address, { pageFolder: stage.pageFolder });
    const { tab, close } = await stage.openTab();
    await tab.goto(new URL('/tree?path=/app/config', looking.url).href);
    await tab.getByText('"retries": 3').waitFor();

    expect(await tab.getByText('read-only').count()).toBe(1);
    expect(await tab.getByRole('button', { name: /Edit|Delete|New|Import/ }).count()).toBe(0);
    await tab.keyboard.press('e');
    await tab.keyboard.press('Delete');
    expect(await tab.locator('.editor, dialog').count()).toBe(0);
    await close();
    await looking.close();
  });

  test('a token opens the page, and stays in no address', async () => {
    const guarded = await consoleOf(world.server.address, {
      pageFolder: stage.pageFolder,
      console: { token: 'a-long-secret' },
    });
    const { tab, close } = await stage.openTab();
    await tab.goto(guarded.url);
    await tab.getByLabel('Token').fill('wrong-secret');
    await tab.getByRole('button', { name: 'Enter' }).click();
    await tab.getByRole('alert').waitFor();
    await tab.goto(new URL('/tree#token=a-long-secret', guarded.url).href);
    await tab.locator('.node').first().waitFor();

    expect(tab.url()).toBe(new URL('/tree', guarded.url).href);
    await close();
    await guarded.close();
  });

  test('300,000 children: a first link into their midst, scrolling, a filter, and little memory', {
    timeout: 300_000,
  }, async () => {
    await world.client.create('/big');
    await plantMany(world.client);
    // A console that has never heard of them, and a link that leads deep into them.
    const fresh = await consoleOf(world.server.address, { pageFolder: stage.pageFolder });
    const url = (path: string) => new URL(path, fresh.url).href;
    const { tab, complaints, close } = await stage.openTab();
    const asked: string[] = [];
    tab.on('request', (request) => {
      if (request.url().includes('path=%2Fbig&')) asked.push(request.url());
    });
    const startMs = performance.now();
    await tab.goto(url('/tree?path=/big/n250000'), { waitUntil: 'commit' });
    await tab.locator('.node.at', { hasText: 'n250000' }).waitFor();
    console.info(
      `300,000 children: first rows after ${Math.round(performance.now() - startMs)} ms`,
    );
    await tab.locator('.node', { hasText: 'n250001' }).waitFor();
    // Nothing loads all of them: one page, found in one go, its neighbour, and the first. Each is asked for
    // once more where the stream of changes began only after it.
    expect(new Set(asked).size, asked.join(' ')).toBeLessThanOrEqual(3);
    expect(asked.length, asked.join(' ')).toBeLessThanOrEqual(6);

    for (const [part, name] of [
      [0, /n00000\d/],
      [0.5, /n1[45]\d{4}/],
      [0.9, /n2[67]\d{4}/],
      [1, /n299999/],
    ] as const) {
      await tab.locator('.view').evaluate((element, share) => {
        element.scrollTop = element.scrollHeight * share;
      }, part);
      await tab.locator('.node', { hasText: name }).first().waitFor();
      expect(await tab.locator('.node').count()).toBeLessThan(100);
    }
    // Row after row, as a wheel does it: whatever passes by is filled in when it stays.
    for (let turn = 0; turn < 100; turn += 1) await tab.mouse.wheel(0, -400);
    await tab.goto(url('/tree?path=/big&tab=children&q=99999'));
    await tab.locator('.node.child', { hasText: 'n299999' }).waitFor();
    expect(await tab.locator('.node.child').count()).toBe(3);

    const session = await tab.context().newCDPSession(tab);
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    console.info(`300,000 children: the page holds ${Math.round(usedSize / 1024)} KB`);
    expect(usedSize).toBeLessThan(32 * 1024 * 1024);
    expect(complaints).toEqual([]);
    await close();
    await fresh.close();
  });
});

async function edit(tab: Page, text: string): Promise<void> {
  await tab.getByRole('button', { name: 'Edit' }).click();
  await tab.locator('.cm-content').click();
  await tab.keyboard.press('Control+a');
  await tab.keyboard.insertText(text);
}

async function plantMany(client: Client): Promise<void> {
  const size = 1_000;
  for (let from = 0; from < many; from += size) {
    await client.multi(
      Array.from({ length: size }, (_, index) => ({
        op: 'create' as const,
        path: `/big/n${String(from + index).padStart(6, '0')}`,
      })),
    );
  }
}
