import { expect, test } from 'vitest';
import { deferred } from './deferred.ts';

test('each end settles its promise, and only the first does', async () => {
  const kept = deferred<number>();
  const broken = deferred<number>();

  kept.resolve(1);
  kept.reject(new Error('too late'));
  broken.reject(new Error('no'));

  await expect(kept.promise).resolves.toBe(1);
  await expect(broken.promise).rejects.toThrow('no');
});
