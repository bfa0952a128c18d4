/**
 * Checks the options that callers hand in. Each option type of the public interface has one table that
 * says what each key must be; a key that the table lacks is refused with the nearest known one, because
 * an option that is silently ignored (`sessionTimeout`, `ephemeral`) is found out in production.
 */

import { ArgumentError } from './argument-error.ts';
import { nearest } from './nearest.ts';

/** What one option must be. `undefined` always passes: it means the default. */
export interface OptionKind {
  /** Completes the sentence "sessionTimeoutMs: must be …". */
  readonly expected: string;
  accepts(value: unknown): boolean;
}

/** One entry per key of `T`; the compiler finds a key that is missing here. */
export type OptionTable<T> = { readonly [K in keyof Required<T>]: OptionKind };

const kind = (expected: string, accepts: (value: unknown) => boolean): OptionKind => ({
  expected,
  accepts,
});

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isFunction = (value: unknown) => typeof value === 'function';
const hasMethods =
  (...names: readonly string[]) =>
  (value: unknown): boolean =>
    isObject(value) && names.every((name) => isFunction(Reflect.get(value, name)));

const text = kind('a string', (value) => typeof value === 'string');
const number = kind('a number', (value) => typeof value === 'number' && !Number.isNaN(value));
const either = (...kinds: readonly OptionKind[]): OptionKind =>
  kind(kinds.map(({ expected }) => expected).join(' or '), (value) =>
    kinds.some((one) => one.accepts(value)),
  );

/** The kinds that tables are made of. They look at the type; ranges are checked where they are known. */
export const optionKinds = {
  text,
  number,
  either,
  textOrNumber: either(text, number),
  flag: kind('true or false', (value) => typeof value === 'boolean'),
  callback: kind('a function', isFunction),
  list: kind('a list', Array.isArray),
  object: kind('an object', (value) => isObject(value) && !Array.isArray(value)),
  anything: kind('anything', () => true),
  nothing: kind('null', (value) => value === null),
  bigint: kind('a bigint', (value) => typeof value === 'bigint'),
  signal: kind('an AbortSignal', (value) => value instanceof AbortSignal),
  data: kind(
    'a string, a Uint8Array or null',
    (value) => value === null || typeof value === 'string' || value instanceof Uint8Array,
  ),
  clock: kind('a Clock', hasMethods('nowMs', 'after')),
  logger: kind(
    'a logger with debug, info, warn and error',
    hasMethods('debug', 'info', 'warn', 'error'),
  ),
  oneOf: (...values: readonly string[]): OptionKind =>
    kind(`one of ${values.join(', ')}`, (value) => values.includes(value as string)),
} as const;

/** Mistakes that no distance between names finds, because they are options of other clients. */
const habits: Readonly<Record<string, string>> = {
  ephemeral: "mode: 'ephemeral'",
  sequence: "mode: 'persistentSequential'",
  sequential: "mode: 'persistentSequential'",
  makepath: 'parents: true',
  recursive: 'parents: true',
  timeout: 'timeoutMs',
  ttl: 'ttlMs',
};

/**
 * Checks that `options` has only keys of the table, each with a value of its kind. `prefix` is put before
 * a key's name in messages, for options inside of options.
 *
 * @throws ArgumentError that names the option, what it must be, and the key that was probably meant.
 */
export function checkOptions(
  of: string,
  options: unknown,
  table: Readonly<Record<string, OptionKind>>,
  prefix = '',
): void {
  if (options === undefined) return;
  if (!isObject(options) || Array.isArray(options)) {
    throw new ArgumentError('options', `${of} takes an object of options, got ${shown(options)}`);
  }
  // `for…in` sees getters and inherited options too, and makes no array.
  for (const key in options) {
    if (!Object.hasOwn(table, key)) throw unknownKey(of, prefix + key, key, table);
    const value = (options as Record<string, unknown>)[key];
    const { expected, accepts } = table[key]!;
    if (value !== undefined && !accepts(value)) {
      throw new ArgumentError(prefix + key, `must be ${expected}, got ${shown(value)}`);
    }
  }
}

function unknownKey(
  of: string,
  argument: string,
  key: string,
  table: Readonly<Record<string, OptionKind>>,
): ArgumentError {
  const known = Object.keys(table);
  const habit = Object.hasOwn(habits, key) ? habits[key] : undefined;
  const isHabitHere = habit !== undefined && known.includes(habit.split(':')[0]!);
  // `sessionTimeout` for `sessionTimeoutMs`: a missing unit is more than a third of a short name.
  const withUnit = known.find((one) => one === `${key}Ms`);
  const meant = isHabitHere ? habit : (withUnit ?? nearest(key, known));
  const advice = meant ? `Did you mean "${meant}"?` : `It knows ${known.join(', ')}`;
  return new ArgumentError(argument, `${of} has no such option. ${advice}`);
}

/** A value as a message shows it: short, and never the content of an object. */
export function shown(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'undefined') {
    return String(value);
  }
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 100));
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value !== 'object') return `a ${typeof value}`;
  return `an object (${value.constructor?.name ?? 'no class'})`;
}
