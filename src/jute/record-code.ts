/**
 * How a record is read and written: a function of its own for each, put together from its fields.
 *
 * A loop over the fields would look up each name and each type anew for every record; as a function of
 * its own it is compiled for just these fields, and costs a third. Its text holds names and places of
 * the fields and nothing from outside. Where code may not be made at run time
 * (`node --disallow-code-generation-from-strings`), the loop does the same.
 */

import type { Reader } from './reader.ts';
import type { Fields, Type } from './types.ts';
import type { Writer } from './writer.ts';

export interface RecordCode {
  read(reader: Reader): Record<string, unknown>;
  write(writer: Writer, value: Readonly<Record<string, unknown>>): void;
}

export function recordCode(fields: Fields): RecordCode {
  try {
    return compiled(fields);
  } catch (error) {
    if (error instanceof EvalError) return looped(fields);
    throw error;
  }
}

function compiled(fields: Fields): RecordCode {
  const names = Object.keys(fields);
  for (const name of names) {
    if (!/^[a-z]\w*$/i.test(name)) throw new Error(`${name} can't be the name of a field`);
  }
  const types = Object.values(fields);
  const reads = names.map((name, i) => {
    const plain = types[i]!.method;
    return `${name}: ${plain === undefined ? `t${i}.read(reader)` : `reader.${plain}()`}`;
  });
  const writes = names.map((name, i) => {
    const plain = types[i]!.method;
    return plain === undefined
      ? `t${i}.write(writer, value.${name});`
      : `writer.${plain}(value.${name});`;
  });
  const make = new Function(
    ...names.map((_, i) => `t${i}`),
    `return {
      read(reader) { return { ${reads.join(', ')} }; },
      write(writer, value) { ${writes.join(' ')} },
    };`,
  ) as (...types: Type<unknown>[]) => RecordCode;
  return make(...types);
}

export function looped(fields: Fields): RecordCode {
  const names = Object.keys(fields);
  const types = Object.values(fields);
  // Cloned for each record, so that all of one kind share a shape and access to them stays fast.
  const blank = Object.fromEntries(names.map((field) => [field, null]));
  return {
    read(reader) {
      const value: Record<string, unknown> = { ...blank };
      for (let i = 0; i < names.length; i++) value[names[i]!] = types[i]!.read(reader);
      return value;
    },
    write(writer, value) {
      for (let i = 0; i < names.length; i++) types[i]!.write(writer, value[names[i]!]);
    },
  };
}
