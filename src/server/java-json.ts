/**
 * JSON as Jackson prints it: two spaces, blanks around colons, lists of plain values on one line.
 * Session ids are longs, and written as the numbers they are: `JSON.stringify` can't. Text that must not
 * be printed is escaped as JSON has it, so that it is read as what it is.
 */

import { escaped } from '../protocol/index.ts';
import { Double } from './metrics.ts';

export type JavaValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Double
  | readonly JavaValue[]
  | { readonly [name: string]: JavaValue };

type JavaObject = { readonly [name: string]: JavaValue };

export function javaJson(value: JavaValue, indent = ''): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return escaped(JSON.stringify(value));
  if (value instanceof Double) return value.toString();
  if (Array.isArray(value)) {
    const items = (value as readonly JavaValue[]).map((item) => javaJson(item, indent));
    return items.length === 0 ? '[ ]' : `[ ${items.join(', ')} ]`;
  }
  const entries = Object.entries(value as JavaObject);
  if (entries.length === 0) return '{ }';
  const inner = `${indent}  `;
  const lines = entries.map(
    ([name, each]) => `${inner}${escaped(JSON.stringify(name))} : ${javaJson(each, inner)}`,
  );
  return `{\n${lines.join(',\n')}\n${indent}}`;
}
