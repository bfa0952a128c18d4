/** Stories of changes: rights, files in and out, many nodes at once, and the way back from each. */
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing } from './browser.ts';
import { useStage } from './stage.ts';
import type { World } from './world.ts';

describe.skipIf(isBrowserMissing())('changes', () => {
  const stage = useStage();
  let world: World;

  beforeAll(async () => {
    world = await stage.startWorld();
  });

  const at = async (path: string) => {
    const opened = await stage.openTab();
    await opened.tab.goto(world.url(path));
    await opened.tab.locator('.node.at').waitFor();
    return opened;
  };
  const textOf = async (path: string) => (await world.client.get(path)).data?.toString();
  const permsOf = async (path: string) => (await world.client.getAcl(path)).acl[0]?.perms;

  /** Opens the newest entry of the audit that names the path, and takes the change back. */
  const undo = async (tab: Page, path: string) => {
    await tab.goto(world.url(`/audit?q=${encodeURIComponent(path)}`));
    await tab.getByRole('button', { name: 'Diff, undo' }).first().click();
    await tab.getByRole('button', { name: 'Undo', exact: true }).click();
    await tab.getByText('Undone.').first().waitFor();
  };

  test('rights are taken away by a click, of all below by a typed name, and given back', async () => {
    for (const name of ['', '/a', '/a/b']) await world.client.create(`/rights${name}`);
    const { tab, complaints, close } = await at('/tree?path=/rights&tab=acl');
    const set = tab.getByRole('button', { name: 'Set ACL' });
    expect(await set.isDisabled()).toBe(true);
    await tab.getByLabel('write, entry 1').uncheck();
    await set.click();
    await tab.getByText('The ACL of /rights is set.').waitFor();
    expect(await permsOf('/rights')).toBe(31 - 2);
    expect(await permsOf('/rights/a')).toBe(31);

    await undo(tab, '/rights');
    expect(await permsOf('/rights')).toBe(31);

    await tab.goto(world.url('/tree?path=/rights&tab=acl'));
    await tab.getByLabel('create children, entry 1').uncheck();
    await tab.getByLabel('and everything below').check();
    await set.click();
    const all = tab.getByRole('button', { name: 'Set 3 ACLs' });
    await all.waitFor();
    expect(await all.isDisabled()).toBe(true);
    await tab.getByLabel('Type rights to set them').fill('rights');
    await all.click();
    await tab.getByText('The ACL of /rights is set.').waitFor();
    expect(await permsOf('/rights/a/b')).toBe(31 - 4);
    await undo(tab, '/rights');
    expect(await Promise.all(['/rights', '/rights/a/b'].map(permsOf))).toEqual([31, 31]);
    expect(complaints).toEqual([]);
    await close();
  });

  test('an entry is added to an ACL, and a right that nobody knows is refused in words', async () => {
    await world.client.create('/shared');
    const { tab, close } = await at('/tree?path=/shared&tab=acl');
    await tab.getByRole('button', { name: 'Add' }).click();
    await tab.getByLabel('Scheme 2').fill('ip');
    await tab.getByLabel('Id 2').fill('not an address');
    await tab.getByRole('button', { name: 'Set ACL' }).click();
    await tab.getByText(/INVALID_ACL/).waitFor();
    await tab.getByLabel('Id 2').fill('10.0.0.0/8');
    await tab.getByRole('button', { name: 'Set ACL' }).click();

    await expect
      .poll(async () => (await world.client.getAcl('/shared')).acl.map(({ id }) => id.id))
      .toEqual(['anyone', '10.0.0.0/8']);
    await close();
  });

  test('what is exported is imported elsewhere: tried first, then written, and taken back', async () => {
    for (const [path, data] of [
      ['/out', 'root'],
      ['/out/a', 'a'],
      ['/out/b', 'b'],
      ['/out/b/c', 'c'],
    ] as const)
      await world.client.create(path, data);
    await world.client.create('/in', 'there before');
    const { tab, complaints, close } = await at('/tree?path=/out');
    const download = tab.waitForEvent('download');
    await tab.getByRole('button', { name: 'Export' }).click();
    const file = await (await download).path();
    expect((await download).suggestedFilename()).toBe('out.json');
    expect(JSON.parse(await readFile(file, 'utf8')).nodes).toHaveLength(4);

    await tab.goto(world.url('/tree?path=/in'));
    await tab.locator('.node.at').waitFor();
    await tab.keyboard.press('i');
    await tab.getByLabel('A file that Export wrote').setInputFiles(file);
    await tab.getByRole('button', { name: 'Try without writing' }).click();
    await tab.getByText('Would create 3, overwrite 0, skip 0; 0 are the same.').waitFor();
    expect(await world.client.exists('/in/a')).toBeNull();
    await tab.getByLabel('Where a node is there already').selectOption('overwrite');
    await tab.getByRole('button', { name: 'Try without writing' }).click();
    await tab.getByRole('button', { name: 'Write 4 nodes' }).click();

    await tab.getByText('Imported: 3 created, 1 overwritten.').waitFor();
    expect(await world.client.exists('/in/b/c')).not.toBeNull();
    expect(await textOf('/in')).toBe('root');
    await undo(tab, '/in');
    expect(await textOf('/in')).toBe('there before');
    expect(await world.client.exists('/in/a')).toBeNull();
    expect(complaints).toEqual([]);
    await close();
  });

  test('marked nodes are exported as one file, and go with one delete that wants the count', async () => {
    await world.client.create('/many');
    for (const name of ['one', 'two', 'three', 'two/deep'])
      await world.client.create(`/many/${name}`, name);
    const { tab, complaints, close } = await at('/tree?path=/many&tab=children');
    for (const name of ['one', 'two']) await tab.getByLabel(`Mark ${name}`).check();
    const download = tab.waitForEvent('download');
    await tab.getByRole('button', { name: 'Export 2 marked' }).click();
    const { path, nodes } = JSON.parse(await readFile(await (await download).path(), 'utf8'));
    expect(path).toBe('/many');
    expect(nodes.map((node: { path: string }) => node.path)).toEqual(['/one', '/two', '/two/deep']);

    await tab.getByRole('button', { name: 'Delete 2 marked' }).click();
    const go = tab.getByRole('button', { name: 'Delete 3 nodes' });
    await go.waitFor();
    await tab.getByLabel('Type 3 to delete').fill('2');
    expect(await go.isDisabled()).toBe(true);
    // Somebody adds one meanwhile: more would go than was shown, so none does.
    await world.client.create('/many/two/late');
    await tab.getByLabel('Type 3 to delete').fill('3');
    await go.click();
    await tab.getByRole('alert').waitFor();
    expect(await world.client.exists('/many/one')).not.toBeNull();

    await tab.getByRole('button', { name: 'Cancel' }).click();
    await tab.getByRole('button', { name: 'Delete 2 marked' }).click();
    await tab.getByLabel('Type 4 to delete').fill('4');
    await tab.getByRole('button', { name: 'Delete 4 nodes' }).click();
    await tab.getByText('Deleted 4 nodes.').waitFor();
    expect(await world.client.children('/many')).toEqual(['three']);
    await undo(tab, '/many/one');
    expect((await world.client.children('/many')).sort()).toEqual(['one', 'three', 'two']);
    expect(complaints.filter((text) => !/409/.test(text))).toEqual([]);
    await close();
  });

  test('who is a moment too late with a save is told, sees both, and may save again', async () => {
    await world.client.create('/race', 'old');
    const { tab, close } = await at('/tree?path=/race');
    // The save is held back until somebody else has written: the page can't know of it.
    await tab.route(
      '**/api/node/set',
      async (route) => {
        await world.client.set('/race', 'theirs');
        await route.continue();
      },
      { times: 1 },
    );
    await tab.getByRole('button', { name: 'Edit' }).click();
    await tab.locator('.cm-content').click();
    await tab.keyboard.press('Control+a');
    await tab.keyboard.insertText('mine');
    await tab.keyboard.press('Control+s');
    await tab.getByRole('button', { name: 'Save as version 1' }).click();

    await tab.getByText('Somebody was faster').waitFor();
    expect(await textOf('/race')).toBe('theirs');
    await tab.getByRole('button', { name: 'Back' }).click();
    await tab.getByText('Somebody changed this node').waitFor();
    await tab.getByRole('button', { name: 'Review and save' }).click();
    await tab.locator('dialog .cm-deletedChunk', { hasText: 'theirs' }).waitFor();
    await tab.getByRole('button', { name: 'Save as version 2' }).click();
    await tab.getByText('Saved /race as version 2.').waitFor();
    expect(await textOf('/race')).toBe('mine');

    await undo(tab, '/race');
    expect(await textOf('/race')).toBe('theirs');
    await close();
  });

  test('a name that nobody can type is confirmed as it is shown', async () => {
    await world.client.create('/\u202egnp');
    const { tab, close } = await at(`/tree?path=${encodeURIComponent('/\u202egnp')}`);
    await tab.keyboard.press('Delete');
    await tab.getByLabel('Type \\u202egnp to delete').fill('\\u202egnp');
    await tab.getByRole('button', { name: 'Delete 1 node' }).click();

    await expect.poll(() => world.client.exists('/\u202egnp')).toBeNull();
    await close();
  });

  test('what the shell changes is in the audit with before and after, and can be taken back', async () => {
    await world.client.create('/typed', 'before');
    const { tab, complaints, close } = await stage.openTab();
    await tab.goto(world.url('/shell'));
    await tab.getByText('The commands of').waitFor();
    await tab.keyboard.type('set /typed after');
    await tab.keyboard.press('Enter');
    await tab.locator('.said', { hasText: 'set /typed after' }).waitFor();
    expect(await textOf('/typed')).toBe('after');

    await tab.goto(world.url('/audit?q=/typed'));
    await tab.getByRole('button', { name: 'Diff, undo' }).click();
    await tab.locator('dialog .cm-deletedChunk', { hasText: 'before' }).waitFor();
    await tab.getByRole('button', { name: 'Undo', exact: true }).click();
    await expect.poll(() => textOf('/typed')).toBe('before');
    expect(complaints).toEqual([]);
    await close();
  });
});
