import { expect, test } from 'vitest';
import { unlessAborted } from './unless-aborted.ts';

test('a promise is waited for until any of the signals aborts', async () => {
  const [one, two] = [new AbortController(), new AbortController()];
  const never = new Promise<never>(() => {});

  const waiting = unlessAborted(never, one.signal, two.signal);
  two.abort(new Error('second'));

  await expect(waiting).rejects.toThrow('second');
  await expect(unlessAborted(Promise.reject(new Error('late')), two.signal)).rejects.toThrow(
    'second',
  );
  await expect(unlessAborted(Promise.resolve(7), one.signal)).resolves.toBe(7);
});
