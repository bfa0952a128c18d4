import { expect, test } from 'vitest';
import { Clients } from './clients.ts';
import type { ConsoleSources } from './sources.ts';

test('pages that are open at once ask once, and only the end of the console calls that off', async () => {
  const closing = new AbortController();
  const signals: AbortSignal[] = [];
  const ask: ConsoleSources['ask'] = async (_, signal) => {
    signals.push(signal);
    return [{ server: 'zk', text: '/watched\n\t0x1\n' }];
  };
  const sources = { ask, client: { chroot: '' } } as unknown as ConsoleSources;
  const clients = new Clients(sources, closing.signal);

  const views = await Promise.all([clients.watchesOf('/watched'), clients.watchesOf('/watched')]);

  expect(views.map(({ sessions }) => sessions)).toEqual([['0x1'], ['0x1']]);
  expect(signals).toEqual([closing.signal]);
});
