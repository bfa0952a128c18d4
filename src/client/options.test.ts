import { expect, test } from 'vitest';
import { frameBytesMax } from '../protocol/index.ts';
import { ArgumentError, systemClock } from '../support/index.ts';
import { type ClientOptions, settingsOf } from './options.ts';

test('what is not said is what the options promise', () => {
  const { session, ...rest } = settingsOf('a:1,b:2/app', {});

  expect(rest).toEqual({
    chroot: '/app',
    connectTimeoutMs: 15_000,
    requestTimeoutMs: undefined,
    readRetries: 3,
    renew: false,
  });
  expect(session).toMatchObject({
    sessionTimeoutMs: 30_000,
    allowReadOnly: false,
    requestBytesMax: frameBytesMax,
    inFlightMax: 1_000,
    waitingMax: 100_000,
    closeTimeoutMs: 5_000,
    clock: systemClock,
  });
  expect(session.dialer).toMatchObject({
    hosts: [
      { name: 'a', port: 1 },
      { name: 'b', port: 2 },
    ],
    attemptTimeoutMs: undefined,
    sessionTimeoutMs: 30_000,
    roundsMax: Number.POSITIVE_INFINITY,
    backoffFirstMs: 50,
    backoffMaxMs: 5_000,
  });
});

const numbers = [
  'sessionTimeoutMs',
  'connectTimeoutMs',
  'attemptTimeoutMs',
  'connectRoundsMax',
  'requestTimeoutMs',
  'inFlightMax',
  'waitingMax',
  'frameBytesMax',
  'requestBytesMax',
  'closeTimeoutMs',
] as const;

test.each(
  numbers.flatMap((name) => [0, -1, Number.NaN, '5', null, 5n].map((value) => [name, value])),
)('%s of %s is refused by name', (name, value) => {
  const settings = () => settingsOf('a', { [name as string]: value } as ClientOptions);

  expect(settings).toThrow(ArgumentError);
  expect(settings).toThrow(`${name}: `);
});

test.each<[string, unknown, RegExp]>([
  ['sessionTimeoutMs', 2 ** 31, /^sessionTimeoutMs: whole milliseconds below 2\^31/],
  ['sessionTimeoutMs', 1.5, /^sessionTimeoutMs: whole milliseconds/],
  ['readRetries', -1, /^readRetries: /],
  ['readRetries', Number.NaN, /^readRetries: /],
  ['backoff', { firstMs: -1 }, /^backoff\.firstMs: /],
  ['backoff', { maxMs: 'soon' }, /^backoff\.maxMs: /],
  [
    'identity',
    { sessionId: 5, password: Buffer.alloc(16), timeoutMs: 1 },
    /^identity\.sessionId: /,
  ],
  ['identity', { sessionId: 5n, password: 'secret', timeoutMs: 1 }, /^identity\.password: /],
  ['identity', { sessionId: 5n, password: Buffer.alloc(16) }, /^identity\.timeoutMs: /],
])('a bad %s is refused', (name, value, why) => {
  const settings = () => settingsOf('a', { [name]: value } as ClientOptions);

  expect(settings).toThrow(ArgumentError);
  expect(settings).toThrow(why);
});
