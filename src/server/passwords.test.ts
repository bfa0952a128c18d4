import { expect, test } from 'vitest';
import { isPasswordOf, passwordOf } from './passwords.ts';

test('passwords are what java.util.Random gives for the same seed', () => {
  for (const [id, password] of golden) expect(passwordOf(id).toString('hex')).toBe(password);
});

test('only the whole password is right', () => {
  const password = passwordOf(7n);

  expect(isPasswordOf(7n, password)).toBe(true);
  expect(isPasswordOf(7n, password.subarray(0, 15))).toBe(false);
  expect(isPasswordOf(7n, null)).toBe(false);
  expect(isPasswordOf(0n, passwordOf(0n))).toBe(false);
});

const golden: [id: bigint, password: string][] = [
  [0x1n, '054cc74a37327db215e702e20c73f005'],
  [0x100001a2b3c0000n, '065cdb381bc43020548dd85f5ced3f15'],
  [0x7fffffffffffffffn, '20f62cb5648dc2d771471c8a2486a9ee'],
];
