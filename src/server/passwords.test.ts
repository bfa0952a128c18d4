import { expect, test } from 'vitest';
import { passwordOf, SessionPasswords } from './passwords.ts';

test('passwords are what java.util.Random gives for the same seed', () => {
  for (const [id, password] of golden) expect(passwordOf(id).toString('hex')).toBe(password);
});

test('only the whole password is right', () => {
  for (const passwords of [new SessionPasswords('secret'), new SessionPasswords('apache')]) {
    const password = passwords.of(7n);

    expect(passwords.isOf(7n, password)).toBe(true);
    expect(passwords.isOf(8n, password)).toBe(false);
    expect(passwords.isOf(7n, password.subarray(0, 15))).toBe(false);
    expect(passwords.isOf(7n, null)).toBe(false);
    expect(passwords.isOf(0n, passwords.of(0n))).toBe(false);
  }
});

test('by a secret no password follows from the id alone, but for sessions that came from Apache', () => {
  const secret = Buffer.alloc(32, 1);
  const passwords = new SessionPasswords('secret', { secret, apacheSessions: new Set([5n]) });

  expect(passwords.isOf(7n, passwordOf(7n))).toBe(false);
  expect(new SessionPasswords('secret').of(7n)).not.toEqual(passwords.of(7n));
  expect(new SessionPasswords('secret', { secret }).of(7n)).toEqual(passwords.of(7n));
  expect(passwords.of(5n)).toEqual(passwordOf(5n));
});

test('where the rule is changed to that of Apache, what was given out before is still taken', () => {
  const secret = Buffer.alloc(32, 1);
  const before = new SessionPasswords('secret', { secret }).of(7n);
  const after = new SessionPasswords('apache', { secret });

  expect(after.isOf(7n, before)).toBe(true);
  expect(after.of(7n)).toEqual(passwordOf(7n));
});

const golden: [id: bigint, password: string][] = [
  [0x1n, '054cc74a37327db215e702e20c73f005'],
  [0x100001a2b3c0000n, '065cdb381bc43020548dd85f5ced3f15'],
  [0x7fffffffffffffffn, '20f62cb5648dc2d771471c8a2486a9ee'],
];
