/**
 * What every story in a browser stands on: the page, built once for a file of stories, a real browser, and
 * the worlds that were started here. All of it is gone when the file is done, the newest first.
 *
 * In: `useStage()` in a `describe`, before its own `beforeAll`. Out: worlds and tabs. It is apart from
 * world.ts because pictures are taken of the same world without Vitest.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { type Contexts, writeContexts } from '../../src/cli/contexts.ts';
import { type Client, connect } from '../../src/client/index.ts';
import { startServer } from '../../src/server/index.ts';
import { openTab, startBrowser } from './browser.ts';
import { buildPage, startWorld, type World, type WorldOptions } from './world.ts';

export interface Stage {
  readonly pageFolder: string;
  /** A tab of the browser: see `openTab` of browser.ts. */
  openTab(options?: Parameters<typeof openTab>[1]): ReturnType<typeof openTab>;
  /** A world whose console may write, unless told otherwise. */
  startWorld(options?: Omit<WorldOptions, 'pageFolder'>): Promise<World>;
  /** Another server, and a home in which it is saved as the contexts that are told. */
  startElsewhere(contextsOf: (servers: string) => Contexts['contexts']): Promise<Elsewhere>;
  /** A folder that is empty now. */
  makeFolder(prefix: string): Promise<string>;
  /** What else has to end: the last that was told ends first, and all before the page goes. */
  endsWith(ending: () => Promise<void>): void;
}

export interface Elsewhere {
  readonly client: Client;
  readonly home: string;
  readonly environment: Readonly<Record<string, string>>;
}

export function useStage(): Stage {
  let page: Awaited<ReturnType<typeof buildPage>> | undefined;
  let browser: Browser | undefined;
  const endings: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    page = await buildPage();
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    for (const end of endings.reverse()) await end();
    await page?.remove();
  });

  const stage: Stage = {
    get pageFolder() {
      return page!.folder;
    },
    openTab: (options) => openTab(browser!, options),
    async startWorld(options) {
      const world = await startWorld({
        pageFolder: stage.pageFolder,
        console: { write: true },
        ...options,
      });
      stage.endsWith(() => world.close());
      return world;
    },
    async startElsewhere(contextsOf) {
      const home = await stage.makeFolder('drover-home-');
      const server = await startServer({ port: 0, inMemory: true, fourLetterWords: '*' });
      stage.endsWith(() => server.close());
      const client = await connect(server.address);
      stage.endsWith(async () => void (await client.close()));
      const environment = { XDG_CONFIG_HOME: home };
      const contexts = contextsOf(server.address);
      await writeContexts(environment, { version: 1, selected: null, previous: null, contexts });
      return { client, home, environment };
    },
    async makeFolder(prefix) {
      const folder = await mkdtemp(join(tmpdir(), prefix));
      stage.endsWith(() => rm(folder, { recursive: true, force: true }));
      return folder;
    },
    endsWith: (ending) => {
      endings.push(ending);
    },
  };
  return stage;
}
