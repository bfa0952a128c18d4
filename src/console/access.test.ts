import { expect, test } from 'vitest';
import { Access, type Asking } from './access.ts';
import { ConsoleError } from './console-error.ts';

const token = 'the-right-token';
const asking = (address: string, more: Partial<Asking> = {}): Asking => ({
  address,
  method: 'POST',
  host: 'localhost:4180',
  origin: 'http://localhost:4180',
  fetchSite: undefined,
  contentType: undefined,
  cookie: undefined,
  authorization: undefined,
  changeToken: undefined,
  ...more,
});

function accessAt(clock: { nowMs: number }): Access {
  const access = new Access({ write: true, token }, () => clock.nowMs);
  access.listensOn(['localhost'], 4180);
  return access;
}

/** The code of the refusal, or `in`. */
function tried(access: Access, given: string, address: string): string {
  try {
    access.login(given, asking(address));
    return 'in';
  } catch (error) {
    if (error instanceof ConsoleError) return error.code;
    throw error;
  }
}

test('wrong tokens of one address keep no other address out', () => {
  const clock = { nowMs: 0 };
  const access = accessAt(clock);

  const answers = Array.from({ length: 25 }, (_, i) => tried(access, `guess-${i}`, '10.0.0.1'));

  expect(answers.filter((one) => one === 'NEEDS_TOKEN')).toHaveLength(20);
  expect(tried(access, token, '10.0.0.1')).toBe('TOO_MANY');
  expect(tried(access, token, '10.0.0.2')).toBe('in');
  const bearer = asking('10.0.0.3', { authorization: `Bearer ${token}` });
  expect(access.caller(bearer).role).toBe('editor');
  clock.nowMs = 60_000;
  expect(tried(access, token, '10.0.0.1')).toBe('in');
});

test('the addresses of one IPv6 network are counted as one', () => {
  const access = accessAt({ nowMs: 0 });

  for (let i = 0; i < 20; i++) tried(access, `guess-${i}`, `2001:db8:1:2::${i + 1}`);

  expect(tried(access, token, '2001:db8:1:2:ffff::1')).toBe('TOO_MANY');
  expect(tried(access, token, '2001:db8:1:3::1')).toBe('in');
});

test('a login ends after twelve hours, in the browser and here', () => {
  const clock = { nowMs: 0 };
  const access = accessAt(clock);

  const { cookie } = access.login(token, asking('127.0.0.1'));
  const [name = ''] = cookie.split(';');
  const role = () => access.caller(asking('127.0.0.1', { cookie: name })).role;

  expect(cookie).toContain('; Max-Age=43200; ');
  clock.nowMs = 12 * 3_600_000 - 1;
  expect(role()).toBe('editor');
  clock.nowMs += 1;
  expect(role()).toBe('nobody');
});

test('the cookie of a page behind TLS is sent over TLS alone', () => {
  const access = accessAt({ nowMs: 0 });
  const cookieFor = (origin: string) => access.login(token, asking('127.0.0.1', { origin })).cookie;

  expect(cookieFor('https://localhost:4180')).toMatch(/; Secure$/);
  expect(cookieFor('http://localhost:4180')).not.toContain('Secure');
});
