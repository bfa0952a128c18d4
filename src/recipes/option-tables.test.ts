import { expect, test } from 'vitest';
import { ArgumentError, type Client } from '../client/index.ts';
import * as recipes from './index.ts';

type Recipe = new (client: Client | undefined, path: string, options?: object) => unknown;

/** Made by other recipes, or abstract: callers hand them no options. */
const notForCallers =
  /Error$|^(Candidate|DeadLetters|DubboMonitor|DubboSubscription|Grant|GrantSet|Holding|NotificationReceipt|QueueItem|Registration|ServiceCache)$/;

const constructors = Object.entries(recipes).filter(
  ([name, value]) =>
    typeof value === 'function' &&
    /^class\b/.test(String(value)) &&
    /constructor\(client\b/.test(String(value)) &&
    !notForCallers.test(name),
) as unknown as [string, Recipe][];

test('the recipes that are checked are found', () => {
  expect(constructors.length).toBeGreaterThan(20);
});

test.each(constructors)('%s without a client is refused where it is made', (name, Recipe) => {
  for (const client of [undefined, null, '127.0.0.1:2181']) {
    const make = () => new Recipe(client as never, '/x', {});

    expect(make).toThrow(ArgumentError);
    expect(make).toThrow(`client: ${name} needs a connected client, got `);
  }
});

const parametersOf = (Recipe: Recipe) =>
  /constructor\(([^)]*)\)/
    .exec(String(Recipe))![1]!
    .split(',')
    .map((one) => one.trim());
const takesOptions = constructors.filter(([, Recipe]) =>
  parametersOf(Recipe).some((one) => one.startsWith('options')),
);

test.each(takesOptions)('%s refuses an option that it does not know', (name, Recipe) => {
  const args = parametersOf(Recipe).map((one) =>
    one === 'client' ? {} : one.startsWith('options') ? { nope: true } : '/x',
  );
  const make = () => Reflect.construct(Recipe, args);

  expect(make).toThrow(ArgumentError);
  expect(make).toThrow(`nope: ${name} has no such option.`);
});
