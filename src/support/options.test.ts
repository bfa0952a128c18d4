import { expect, test } from 'vitest';
import { ArgumentError } from './argument-error.ts';
import { checkOptions, type OptionTable, optionKinds } from './options.ts';

interface Example {
  readonly sessionTimeoutMs?: number;
  readonly mode?: string;
  readonly signal?: AbortSignal;
  readonly watch?: () => void;
}

const { number, oneOf, signal, callback } = optionKinds;
const table = {
  sessionTimeoutMs: number,
  mode: oneOf('persistent', 'ephemeral'),
  signal,
  watch: callback,
} satisfies OptionTable<Example>;

const check = (options: unknown) => checkOptions('connect', options, table);

test.each<[string, unknown]>([
  ['no options', undefined],
  ['an empty object', {}],
  ['an object without a prototype', Object.create(null)],
  ['an option that is undefined, which means the default', { mode: undefined }],
  ['every option', { sessionTimeoutMs: 1, mode: 'ephemeral', watch() {} }],
  ['no limit', { sessionTimeoutMs: Number.POSITIVE_INFINITY }],
])('%s passes', (_, options) => {
  expect(() => check(options)).not.toThrow();
});

test.each<[string, unknown, string]>([
  ['null', null, 'options: connect takes an object of options, got null'],
  ['a list', [], 'options: connect takes an object of options, got an empty list'],
  ['text', 'x', 'options: connect takes an object of options, got "x"'],
  [
    'a key without its unit',
    { sessionTimeout: 1 },
    'sessionTimeout: connect has no such option. Did you mean "sessionTimeoutMs"?',
  ],
  ['a misspelt key', { singal: 1 }, 'singal: connect has no such option. Did you mean "signal"?'],
  [
    'a habit from another client',
    { ephemeral: true },
    'ephemeral: connect has no such option. Did you mean "mode: \'ephemeral\'"?',
  ],
  [
    'a key like no other',
    { x: 1 },
    'x: connect has no such option. It knows sessionTimeoutMs, mode, signal, watch',
  ],
  [
    'the name of a method of every object',
    { toString: 1 },
    'toString: connect has no such option.',
  ],
  ['text for a number', { sessionTimeoutMs: '5' }, 'sessionTimeoutMs: must be a number, got "5"'],
  ['NaN', { sessionTimeoutMs: Number.NaN }, 'sessionTimeoutMs: must be a number, got NaN'],
  ['null for an option', { mode: null }, 'mode: must be one of persistent, ephemeral, got null'],
  ['an object that is no signal', { signal: {} }, 'signal: must be an AbortSignal, got an object'],
  ['a value that is no function', { watch: true }, 'watch: must be a function, got true'],
])('%s is refused, and the message says what was meant', (_, options, why) => {
  expect(() => check(options)).toThrow(ArgumentError);
  expect(() => check(options)).toThrow(why);
});

test('options that are inherited are checked too', () => {
  expect(() => check(Object.create({ sessionTimeout: 1 }))).toThrow(/sessionTimeoutMs/);
});

test('a very long key is cut in the message', () => {
  expect(() => check({ ['x'.repeat(2 ** 20)]: 1 })).toThrow(/^.{0,600}$/);
});
