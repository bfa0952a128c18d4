/**
 * Names, data, ACLs, groups and topics that want to be more than text, made by the hundred out of pieces, on
 * every page that shows them. A page has lost when any of them ran, made an element, asked for something
 * outside, or met the content policy: what the policy has to stop was let through by the page.
 *
 * CI looks at a sample. `HOSTILE=100000 npx vitest run --config test/browser/vitest.config.ts hostile` looks
 * at more, a thousand at a time, each thousand in a world of its own; with another seed by SEED=…
 */
import { describe, expect, test } from 'vitest';
import { isBrowserMissing } from './browser.ts';
import { counted, harmOf, type Look, look } from './hostile-look.ts';
import {
  changeAll,
  folderRows,
  type Payload,
  type Planted,
  packed,
  payloadsOf,
  plant,
  run,
  slices,
} from './hostile-payloads.ts';
import { useStage } from './stage.ts';
import { startWorld, type World } from './world.ts';

const many = Number(process.env.HOSTILE ?? 40);
const seed = Number(process.env.SEED ?? 20261115);
const roundSize = 1_000;
/** Of a round, these are looked at one by one as well. */
const alone = many > roundSize ? 10 : 40;
/** Rows of a page with a pager. */
const pageRows = 100;

describe.skipIf(isBrowserMissing())(`${many} hostile names and data, seed ${seed}`, () => {
  const stage = useStage();

  /** A tab that also remembers whatever it wanted from elsewhere. */
  const open = async (world: World, path: string) => {
    const opened = await stage.openTab({ height: 1_600 });
    const { origin } = new URL(world.url('/'));
    opened.tab.on('request', (request) => {
      const url = new URL(request.url());
      const isOurs = url.origin === origin || url.protocol === 'blob:';
      if (!isOurs) opened.complaints.push(`asked for ${request.url()}`);
    });
    await opened.tab.goto(world.url(path));
    await opened.tab.locator('h1').first().waitFor({ state: 'attached' });
    return opened;
  };

  const rounds = slices(Array.from({ length: many }), roundSize).map(({ length }, at) => ({
    payloads: payloadsOf(length, seed + at),
    round: at + 1,
  }));

  test.each(rounds)(
    'round $round: in every view each of them is text',
    {
      timeout: 900_000,
    },
    async ({ payloads }) => {
      const world = await startWorld({ pageFolder: stage.pageFolder, console: { write: true } });
      const planted = await plant(world, payloads);
      await changeAll(world.console.url, payloads);
      const { tab, complaints, close } = await open(world, '/overview');

      for (const one of looks(payloads, planted))
        expect(await look(tab, one), `${one.view}, ${one.path}`).toEqual([]);
      await look(tab, { view: 'other', path: '/shell', selector: '.console label' });
      for (const [at, path] of planted.folders.entries()) {
        await tab.locator('#line').fill(`ls ${path}`);
        await tab.keyboard.press('Enter');
        const fresh = Math.min(folderRows, payloads.length - at * folderRows);
        expect(await look(tab, { view: 'shell', path: null, fresh })).toEqual([]);
      }

      const seen = await counted(tab);
      const whole = Object.entries(seen).filter(([view]) => !partial.has(view));
      expect(whole).toEqual(whole.map(([view]) => [view, payloads.length]));
      expect(whole).toHaveLength(16);
      // A payload that is asked for as a path or a name of its own may be refused: that is an answer.
      expect(complaints.filter((text) => !/40[04]/.test(text))).toEqual([]);
      await close();
      await world.close();
    },
  );

  test('what happens to them is told as text: changes, dialogs, toasts, audit, shell, palette', async () => {
    const world = await startWorld({ pageFolder: stage.pageFolder, console: { write: true } });
    const payloads = payloadsOf(40, seed);
    await plant(world, payloads);
    const { tab, complaints, close } = await open(world, '/overview');
    const { name, data } = payloads[1]!;
    const path = `/hostile/made ${name}`;
    await world.client.create(path, data);
    await tab.locator('tr', { hasText: '/hostile/made' }).first().waitFor();
    const node = `/tree?path=${encodeURIComponent(path)}`;
    await look(tab, { view: 'node', path: node, wanted: [1], selector: '.detail .content' });
    await tab.keyboard.press('Delete');
    const field = tab.locator('dialog input');
    await field.fill((await tab.locator('dialog code').first().textContent()) ?? '');
    expect(await harmOf(tab)).toEqual([]);
    await tab.getByRole('button', { name: 'Delete 1 node' }).click();
    await tab.getByText('Deleted 1 node.').waitFor();
    expect(await world.client.exists(path)).toBeNull();
    await look(tab, { view: 'audit', path: '/audit', wanted: [1] });
    await tab.getByRole('button', { name: /Diff/ }).first().click();
    await tab.locator('dialog .cm-content').first().waitFor();
    expect(await harmOf(tab)).toEqual([]);
    await tab.keyboard.press('Escape');
    await tab.locator('dialog').waitFor({ state: 'detached' });
    await tab.keyboard.press('Control+k');
    await tab.keyboard.type('/hostile/f0/');
    await tab.getByRole('option').nth(3).waitFor();
    expect(await harmOf(tab)).toEqual([]);
    await tab.keyboard.press('Escape');
    await tab.locator('dialog').waitFor({ state: 'detached' });
    await look(tab, { view: 'other', path: '/shell', selector: '.console label' });
    await tab.keyboard.type('tree /hostile');
    await tab.keyboard.press('Enter');
    await tab.getByText(/\d+ nodes/).waitFor();
    expect(await harmOf(tab)).toEqual([]);
    expect(complaints).toEqual([]);
    await close();
    await world.close();
  });
});

/** Views that show some of them, each in its turn, and not all. */
const partial: ReadonlySet<string> = new Set(['overview', 'alone', 'other', 'hex', 'base64']);

function* looks(payloads: readonly Payload[], planted: Planted): Generator<Look> {
  const e = encodeURIComponent;
  const total = payloads.length;
  const within = 'section.detail';
  const left = (at: number, size: number) => Math.min(size, total - at * size);
  yield { view: 'overview', path: '/overview', fresh: 1 };
  for (const [at, folder] of planted.folders.entries()) {
    const fresh = left(at, folderRows);
    const first = planted.paths[at * folderRows]!;
    yield { view: 'children', path: `/tree?path=${folder}&tab=children`, fresh, within };
    yield {
      view: 'children, filtered',
      path: `/tree?path=${folder}&tab=children&q=~`,
      fresh,
      within,
    };
    yield { view: 'tree', path: `/tree?path=${e(first)}&tab=stat`, fresh, within: '.side' };
    yield { view: 'found by name', path: `/tree?path=${folder}&find=~`, fresh, within };
    yield { view: 'found by data', path: `/tree?path=${folder}&find=~&in=data`, fresh, within };
    yield { view: 'recipes', path: `/recipes?path=${planted.locks[at]}`, fresh };
  }
  for (const [at, pack] of planted.packs.entries()) {
    const fresh = left(at, packed);
    const node = (name: string, as: string) => `/tree?path=${pack}/${name}&as=${as}`;
    yield { view: 'text', path: node('text', 'text'), fresh, within };
    yield { view: 'json', path: node('json', 'json'), fresh, within };
    yield { view: 'json as text', path: node('json', 'text'), fresh, within };
    yield { view: 'gzip', path: node('gzip', 'gzip'), fresh, within };
    yield { view: 'hex', path: node('text', 'hex'), selector: 'section.data.hex pre' };
    yield { view: 'base64', path: node('json', 'base64'), selector: 'section.data.base64 pre' };
    yield { view: 'acl', path: `/tree?path=${pack}&tab=acl`, fresh, within };
  }
  for (let at = 0; at * pageRows < total; at += 1) {
    const fresh = left(at, pageRows);
    const offset = at === 0 ? '' : `&offset=${at * pageRows}`;
    for (const [view, page, table] of [
      ['topics', 'kafka', 'Topics'],
      ['groups', 'groups', 'Groups'],
      ['watches', 'watches', 'Watches by path'],
      ['audit', 'audit', 'Changes'],
    ] as const) {
      const rows = `section[aria-label="${table}"]`;
      yield { view, path: `/${page}?q=~${offset}`, fresh, within: rows };
    }
  }
  for (const [at, path] of planted.paths.slice(0, alone).entries()) {
    const more = ['', '&tab=stat', '&tab=acl', '&as=text', '&as=json', '&as=hex'][at % 6];
    const selector = 'section.detail .content';
    yield { view: 'alone', path: `/tree?path=${e(path)}${more}`, wanted: [at], within, selector };
    const name = e(payloads[at]!.name);
    yield { view: 'other', path: `/kafka?topic=${name}`, wanted: [at] };
    yield { view: 'other', path: `/groups?name=${name}`, wanted: [at] };
  }
  const first = e(planted.paths[0]!);
  for (const path of [
    `/tree?path=/&find=${e(run)}&in=data`,
    '/sessions?q=%3Cscript%3E',
    `/recipes?q=${first}`,
    `/alignment?name=${first}`,
    '/metrics',
    `/shell?line=${e(`get '${planted.paths[0]}'`)}`,
  ])
    yield { view: 'other', path, selector: 'h1, .content' };
}
