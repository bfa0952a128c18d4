/**
 * Names, data, ACLs, groups and topics that want to be more than text, made by the hundred out of pieces, on
 * every page that shows them. A page has lost when any of them ran, made an element, asked for something
 * outside, or met the content policy: what the policy has to stop was let through by the page.
 *
 * CI looks at a sample. `HOSTILE=3000 npx vitest run --config test/browser/vitest.config.ts hostile` looks at
 * more, with another seed by SEED=…
 */
import fc from 'fast-check';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../../src/client/index.ts';
import { isBrowserMissing, openTab, startBrowser } from './browser.ts';
import { buildPage, startWorld, type World } from './world.ts';

const many = Number(process.env.HOSTILE ?? 40);
const seed = Number(process.env.SEED ?? 20261115);
/** Of these, nodes of Kafka and of recipes are made too; their pages list them all. */
const planted = Math.min(many, 40);

const run = 'globalThis.owned=1';
const pieces = [
  `<img src=x onerror=${run}>`,
  `<script>${run}</script>`,
  `"><svg/onload=${run}>`,
  `'><iframe srcdoc='<script>parent.${run}</script>'>`,
  `javascript:${run}//`,
  `data:text/html,<script>${run}</script>`,
  `</title></textarea></style></script><b onmouseover=${run}>`,
  `<math><mtext></form><form><mglyph><style></math><img src onerror=${run}>`,
  `<a href="javascript:${run}">x</a>`,
  `<style>@import'//evil.example/x'</style>`,
  `<link rel=stylesheet href=//evil.example/x.css>`,
  `<base href=//evil.example/>`,
  `<meta http-equiv=refresh content=0;url=//evil.example>`,
  `{{constructor.constructor('${run}')()}}`,
  `\${${run}}`,
  `");${run};//`,
  `\\u003cscript\\u003e`,
  '&lt;script&gt;&#60;img&#62;',
  '__proto__',
  'constructor',
  'toString',
  '%3Cscript%3E%00%2e%2e%2f',
  '\u202egnp.exe\u2066',
  '\u200b\ufeff\u2028',
  '?q=1&path=/#token=x',
  'x'.repeat(300),
];
const inData = [
  '\u0000\u001b[31m\u001b]0;title\u0007',
  '\r\nset-cookie: x=1\r\n',
  '\ud800',
  ']]>',
  '\u{1f600}\u0301\u0301',
];

const nameOf = fc
  .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 3 })
  // A slash would make two nodes of it, and these are the characters that a server refuses.
  .map((parts) => parts.join('').replaceAll('/', '\u2215'));
const dataOf = fc.oneof(
  fc.array(fc.constantFrom(...pieces, ...inData), { maxLength: 5 }).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom(...pieces), fc.constantFrom(...pieces, ...inData))
    .map(([key, value]) => `{"__proto__":1,${JSON.stringify(key)}:[${JSON.stringify(value)}]}`),
);
const payloads = fc.sample(fc.tuple(nameOf, dataOf), { numRuns: many, seed });

describe.skipIf(isBrowserMissing())(`${many} hostile names and data, seed ${seed}`, () => {
  let browser: Browser;
  let world: World;
  let paths: string[];
  const endings: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    const page = await buildPage();
    endings.push(page.remove);
    world = await startWorld({ pageFolder: page.folder, console: { write: true } });
    endings.push(() => world.close());
    paths = await plant(world.client);
    browser = await startBrowser();
    endings.push(() => browser.close());
  });

  afterAll(async () => {
    for (const end of endings.reverse()) await end();
  });

  /** A tab that also remembers whatever it wanted from elsewhere. */
  const open = async (path: string) => {
    const opened = await openTab(browser);
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

  test('each node, in each way to show it, is text', { timeout: 1_800_000 }, async () => {
    const { tab, complaints, close } = await open('/tree?path=/hostile');
    for (const [at, path] of paths.entries()) {
      const more = ['', '&tab=stat', '&tab=acl', '&as=text', '&as=json', '&as=hex'][at % 6];
      await walkTo(tab, `/tree?path=${encodeURIComponent(path)}${more}`);
      await tab.locator('section.detail .content > *').first().waitFor();
      expect(await harmOf(tab), path).toEqual([]);
    }
    expect(complaints).toEqual([]);
    await close();
  });

  test('lists, searches, charts and logs show them as text', { timeout: 600_000 }, async () => {
    const first = encodeURIComponent(paths[0]!);
    const { tab, complaints, close } = await open('/overview');
    for (const view of [
      '/tree?path=/hostile&tab=children',
      '/tree?path=/hostile&tab=children&q=%3C',
      '/tree?path=/&find=%3C',
      `/tree?path=/&find=${encodeURIComponent(run)}&in=data`,
      '/sessions?q=%3Cscript%3E',
      '/watches?q=hostile',
      '/recipes',
      `/recipes?q=${first}`,
      '/kafka',
      `/kafka?topic=${first}`,
      '/groups',
      `/groups?name=${encodeURIComponent(payloads[0]![0])}`,
      `/alignment?name=${first}`,
      '/metrics',
      '/audit',
      `/shell?line=${encodeURIComponent(`ls -R /hostile ; get '${paths[0]}'`)}`,
    ]) {
      await walkTo(tab, view);
      await tab.locator('h1, .content').first().waitFor({ state: 'attached' });
      await tab.evaluate(scrolling);
      expect(await harmOf(tab), view).toEqual([]);
    }
    expect(complaints.filter((text) => !/40[04]/.test(text))).toEqual([]);
    await close();
  });

  test('what happens to them is told as text: changes, dialogs, toasts, audit, shell, palette', async () => {
    const { tab, complaints, close } = await open('/overview');
    const [name, data] = payloads[1]!;
    const path = `/hostile/made ${name}`;
    await world.client.create(path, { data });
    await tab.locator('tr', { hasText: '/hostile/made' }).first().waitFor();
    await walkTo(tab, `/tree?path=${encodeURIComponent(path)}`);
    await tab.locator('section.detail .content > *').first().waitFor();
    await tab.keyboard.press('Delete');
    const field = tab.locator('dialog input');
    await field.fill((await tab.locator('dialog code').first().textContent()) ?? '');
    expect(await harmOf(tab)).toEqual([]);
    await tab.getByRole('button', { name: 'Delete 1 node' }).click();
    await tab.getByText('Deleted 1 node.').waitFor();
    expect(await world.client.exists(path)).toBeNull();
    await walkTo(tab, '/audit');
    await tab.getByRole('button', { name: /Diff/ }).first().click();
    await tab.locator('dialog .editor').waitFor();
    expect(await harmOf(tab)).toEqual([]);
    await tab.keyboard.press('Escape');
    await tab.keyboard.press('Control+k');
    await tab.keyboard.type('/hostile/');
    await tab.getByRole('option').nth(3).waitFor();
    expect(await harmOf(tab)).toEqual([]);
    await tab.keyboard.press('Escape');
    await walkTo(tab, '/shell');
    await tab.getByText('The commands of').waitFor();
    await tab.keyboard.type('tree /hostile');
    await tab.keyboard.press('Enter');
    await tab.getByText(/\d+ nodes/).waitFor();
    expect(await harmOf(tab)).toEqual([]);
    expect(complaints).toEqual([]);
    await close();
  });
});

/** As a link of the page does it, without loading it anew. (As text: the page's own types are not ours.) */
async function walkTo(tab: Page, path: string): Promise<void> {
  await tab.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
}

const scrolling = `(async () => {
  for (const element of document.querySelectorAll('.view, main')) {
    for (let step = 0; step < 40; step += 1) {
      const before = element.scrollTop;
      element.scrollTop += element.clientHeight;
      await new Promise((done) => requestAnimationFrame(done));
      if (element.scrollTop === before) break;
    }
  }
})()`;

/** Elements that only a payload can have made, and whether one ran. */
const made = [
  'script:not([src])',
  'iframe, object, embed, base, math, form[action], mglyph',
  'img:not([src="/icon.svg"])',
  'link[href*="evil"], meta[http-equiv=refresh]',
  '[onerror], [onload], [onmouseover]',
  'a[href^="javascript:" i], a[href^="data:" i], a[href*="//evil.example" i]',
];
const judging = `[
  ...[...document.querySelectorAll(${JSON.stringify(made.join(', '))})].map((one) => one.outerHTML.slice(0, 200)),
  ...(globalThis.owned === undefined ? [] : ['a payload ran']),
]`;

async function harmOf(tab: Page): Promise<string[]> {
  return await tab.evaluate<string[]>(judging);
}

async function plant(client: Client): Promise<string[]> {
  await client.create('/hostile');
  const paths: string[] = [];
  for (const [at, [name, text]] of payloads.entries()) {
    // Some are no UTF-8 at all.
    const rest = at % 7 === 0 ? [0xed, 0xa0, 0x80, 0xff] : [];
    const data = Buffer.concat([Buffer.from(text), Buffer.from(rest)]);
    const path = `/hostile/${at} ${name}`;
    const id = { scheme: 'digest', id: `<img src=x onerror=${run}>${at}:hash` };
    const acl = [
      { perms: 31, id: { scheme: 'world', id: 'anyone' } },
      { perms: 1, id },
    ];
    await client.create(path, { data, acl: at % 3 === 0 ? acl : acl.slice(0, 1) });
    paths.push(path);
    if (at >= planted) continue;
    const put = (where: string, bytes: string | Buffer = data) =>
      client.create(where, { data: bytes, parents: true });
    await put(`/consumers/${name}${at}/offsets/${name}/0`, String(at));
    await put(`/consumers/${name}${at}/ids/${name}`);
    await put(`/consumers/${name}${at}/owners/${name}/0`);
    await put(`/brokers/topics/${name}${at}`, '{"version":1,"partitions":{"0":[1]}}');
    await put(`/brokers/topics/${name}${at}/partitions/0/state`);
    await put(`/config/topics/${name}${at}`);
    await client.create(`/brokers/ids/${at}`, { data, parents: true, mode: 'ephemeral' });
    await client.create(`/locks/${name}${at}/lock-0000000000`, {
      data,
      parents: true,
      mode: 'ephemeral',
    });
    await client.get(path, { watch: () => {} });
  }
  return paths;
}
