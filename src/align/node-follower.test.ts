import { expect, test } from 'vitest';
import { type Client, connect, isZkError } from '../client/index.ts';
import { deferred, systemClock } from '../support/index.ts';
import { startTestServer } from '../testing/index.ts';
import { FolderFollower } from './node-follower.ts';

test('a node that goes and comes again while the list of all is read is followed on', async () => {
  await using server = await startTestServer();
  await using witness = await connect(server.address);
  await using client = await connect(server.address);
  await witness.create('/members');
  await witness.create('/members/a', 'old');
  let held: Promise<void> | undefined;
  const missed = deferred();
  const slow = new Proxy(client, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name === 'children')
        return async (...asked: Parameters<Client['children']>) => {
          await held;
          return target.children(...asked);
        };
      if (name === 'get')
        return async (...asked: Parameters<Client['get']>) =>
          target.get(...asked).catch((error: unknown) => {
            if (isZkError(error, 'NO_NODE')) setImmediate(missed.resolve);
            throw error;
          });
      return value.bind(target);
    },
  });
  const seen: (string | null)[] = [];
  const follower = new FolderFollower(slow, '/members', {
    clock: systemClock,
    onFailure: (error) => seen.push(String(error)),
    onNode: (_, node) => seen.push(node === null ? null : String(node.data)),
    onListed: () => {},
  }).start();
  await expect.poll(() => seen).toEqual(['old']);

  const letGo = deferred();
  held = letGo.promise;
  await witness.delete('/members/a');
  await missed.promise;
  await witness.create('/members/a', 'new');
  letGo.resolve();

  await expect.poll(() => seen.at(-1)).toBe('new');
  await witness.set('/members/a', 'newer');
  await expect.poll(() => seen.at(-1)).toBe('newer');
  await follower.close();
});
