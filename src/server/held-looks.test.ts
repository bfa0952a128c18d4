import { expect, test, vi } from 'vitest';
import { RawClient, startTestServer } from '../testing/index.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string) => ({ path, data: null, acl: open, flags: 0 });

test('without a disk, a client that watches children sees a change before many more are made', async () => {
  const seen: number[] = [];
  await using zk = await startTestServer({
    onRequest: ({ op }) => {
      if (op !== 'getChildren') return undefined;
      const { tree } = zk.engine;
      seen.push(tree.nodes.childCount(tree.find('/q')));
      return undefined;
    },
  });
  const [a, b] = [await RawClient.connect(zk.port), await RawClient.connect(zk.port)];
  await a.ask('create', node('/q'));
  await b.ask('getChildren', { path: '/q', watch: true });

  vi.spyOn(zk.clock, 'nowMs').mockReturnValue(zk.clock.nowMs()); // it is waited by turns of the event loop then

  // Both write again as soon as they have their reply. The thread that looks is woken a little later.
  await a.ask('create', node('/q/1'));
  await b.until(() => b.heard.includes('childrenChanged /q'));
  const more = [a.send('create', node('/q/2')), b.send('create', node('/q/3'))];
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  await b.ask('getChildren', { path: '/q', watch: true });
  expect((await a.reply(more[0]!)).err).toBe(0);
  expect((await b.reply(more[1]!)).err).toBe(0);

  expect(seen).toEqual([0, 1]);
});
