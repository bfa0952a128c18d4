import { expectTypeOf, test } from 'vitest';
import type { Client } from '../client/index.ts';
import { ConfigStore } from './config.ts';

test('the type of a value is that of its schema, however the schema is written', () => {
  const open = (client: Client) =>
    new ConfigStore(client, '/c', {
      schemas: {
        plain: (value: unknown) => Number(value),
        parser: { parse: (value: unknown) => ({ text: String(value) }) },
        standard: {} as {
          readonly '~standard': {
            readonly validate: (value: unknown) => unknown;
            readonly types?: { readonly output: boolean } | undefined;
          };
        },
      },
    });
  type Values = ReturnType<typeof open>['snapshot']['values'];

  expectTypeOf<Values['plain']>().toEqualTypeOf<number>();
  expectTypeOf<Values['parser']>().toEqualTypeOf<{ text: string }>();
  expectTypeOf<Values['standard']>().toEqualTypeOf<boolean>();
  expectTypeOf<keyof Values>().toEqualTypeOf<'plain' | 'parser' | 'standard'>();
});
