/** Every page in front of an Apache ensemble with its own, short whitelist: what it can't tell, it says. */
import { describe, expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { isBrowserMissing, openTab, startBrowser } from '../browser/browser.ts';
import { buildPage, consoleOf, plantKafka, plantNodes, plantReplay } from '../browser/world.ts';
import { findZooKeepers, startEnsemble } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();

for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});

/** Each view and what stands there of what nobody could tell. */
const views: readonly (readonly [path: string, ...texts: RegExp[]])[] = [
  ['/overview', /mntr is not on this server’s whitelist/, /last snapshot\s*not told/],
  ['/tree?path=/app&tab=history', /the transaction logs are with the server/],
  ['/sessions', /cons is not in its 4lw\.commands\.whitelist/],
  ['/watches', /wch[sp] is not in its 4lw\.commands\.whitelist/],
  ['/metrics', /mntr is not in its 4lw\.commands\.whitelist/],
  ['/kafka?topic=orders&partition=0', /Seen since this console runs/],
  [
    '/groups?name=billing',
    /Lag is unknown: brokers are not asked for the ends of partitions/,
    /unknown/,
  ],
  ['/alignment', /left\s*unknown: nobody tells how far the partitions reach/],
];

const suite = describe.skipIf(isBrowserMissing());

suite.each(found.slice(0, 1))('$name', { timeout: 240_000 }, (peer) => {
  test('what an ensemble does not tell is said on every page', async () => {
    const page = await buildPage();
    const ensemble = await startEnsemble(peer, 3, {
      tickTimeMs: 500,
      config: { '4lw.commands.whitelist': 'srvr' },
    });
    const client = await connect(ensemble.address, { sessionTimeoutMs: 10_000 });
    const running = await consoleOf(ensemble.address, {
      pageFolder: page.folder,
      console: { write: true },
    });
    const browser = await startBrowser();
    const endKafka = await plantKafka(ensemble.address);
    const endReplay = await plantReplay(ensemble.address);
    try {
      await plantNodes(client);
      const { tab, complaints } = await openTab(browser);
      // biome-ignore lint/performance/useDomNodeTextContent: what can be seen, not what is there
      const seen = () => tab.locator('body').innerText();
      for (const [path, ...texts] of views) {
        await tab.goto(new URL(path, running.url).href);
        for (const text of texts) await expect.poll(seen, { timeout: 45_000 }).toMatch(text);
      }

      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
      await endReplay();
      await endKafka();
      await running.close();
      await client.close();
      await ensemble[Symbol.asyncDispose]();
      await page.remove();
    }
  });
});
