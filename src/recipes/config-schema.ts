/**
 * What a value has to be, said in whichever way the caller likes: a function that returns the value
 * or throws, an object with `parse` (zod, valibot's parsers, and many more), or a Standard Schema.
 */

import { ArgumentError } from '../client/index.ts';

export interface StandardSchema<T> {
  readonly '~standard': {
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly output: T } | undefined;
  };
}

export type Schema<T> =
  | ((value: unknown) => T)
  | { readonly parse: (value: unknown) => T }
  | StandardSchema<T>;

export class SchemaError extends Error {
  override readonly name = 'SchemaError';
  readonly code = 'SCHEMA_MISMATCH';
}

/** The check that a schema stands for. What fails it throws a SchemaError. */
export function checkOf<T>(schema: Schema<T>, argument = 'schema'): (value: unknown) => T {
  const check = plainCheck(schema, argument);
  return (value) => {
    let checked: T;
    try {
      checked = check(value);
    } catch (cause) {
      if (cause instanceof SchemaError) throw cause;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new SchemaError(why, { cause });
    }
    if (checked instanceof Promise) {
      checked.catch(() => {});
      throw new SchemaError(
        'the schema answers with a promise; one that answers at once is wanted',
      );
    }
    return checked;
  };
}

function plainCheck<T>(schema: Schema<T>, argument: string): (value: unknown) => T {
  if (schema !== null && (typeof schema === 'object' || typeof schema === 'function')) {
    if ('~standard' in schema) return (value) => standard(schema, value);
    if ('parse' in schema && typeof schema.parse === 'function') {
      return (value) => schema.parse(value);
    }
    if (typeof schema === 'function') return schema;
  }
  throw new ArgumentError(
    argument,
    'a function, an object with parse(), or a Standard Schema is wanted',
  );
}

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[];
}

function standard<T>(schema: StandardSchema<T>, value: unknown): T {
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise) return result as T; // refused by whoever called
  const { issues, value: output } = result as { issues?: readonly Issue[]; value?: T };
  if (issues === undefined) return output as T;
  throw new SchemaError(issues.map(textOf).join('; '));
}

function textOf({ message, path = [] }: Issue): string {
  const where = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return where === '' ? message : `${where}: ${message}`;
}
