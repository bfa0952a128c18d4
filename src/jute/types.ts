/**
 * The jute types, and `record()`, from which every record of the protocol is declared once.
 *
 * A record whose fields all have a fixed width (Stat, the headers) is not decoded field by field:
 * reading it takes its bytes, and each field is decoded when somebody looks at it. That is how a
 * 64-bit value is a `bigint` for whoever asks and costs nothing for whoever does not.
 */

import { inspect } from 'node:util';
import type { Reader } from './reader.ts';
import { recordCode } from './record-code.ts';
import type { Writer } from './writer.ts';

export interface Type<T> {
  readonly name: string;
  /** Bytes on the wire, where that is always the same. */
  readonly width: number | undefined;
  /** Fewest bytes that a value can take: what a vector's count is checked against. */
  readonly widthMin: number;
  /** Reader and writer do it by themselves, by this method. */
  readonly method?: 'bool' | 'int' | 'long' | 'ustring' | 'buffer' | undefined;
  read(reader: Reader): T;
  write(writer: Writer, value: T): void;
}

export type Infer<R> = R extends Type<infer T> ? T : never;

const scalar = <T>(
  name: string,
  width: number | undefined,
  read: (reader: Reader) => T,
  write: (writer: Writer, value: T) => void,
  method?: Type<T>['method'],
): Type<T> => ({ name, width, widthMin: width ?? 4, read, write, method });

export const bool: Type<boolean> = scalar(
  'boolean',
  1,
  (reader) => reader.bool(),
  (writer, value) => writer.bool(value),
  'bool',
);

export const int: Type<number> = scalar(
  'int',
  4,
  (reader) => reader.int(),
  (writer, value) => writer.int(value),
  'int',
);

export const long: Type<bigint> = scalar(
  'long',
  8,
  (reader) => reader.long(),
  (writer, value) => writer.long(value),
  'long',
);

export const ustring: Type<string> = scalar(
  'ustring',
  undefined,
  (reader) => reader.ustring(),
  (writer, value) => writer.ustring(value),
  'ustring',
);

/** The few strings that peers do leave out. Everywhere else null is refused. */
export const ustringOrNull: Type<string | null> = scalar(
  'ustring?',
  undefined,
  (reader) => reader.ustringOrNull(),
  (writer, value) => (value === null ? writer.int(-1) : writer.ustring(value)),
);

/** Null reads as empty: kazoo writes every empty string as null, and so the id of `auth` in an ACL. */
export const ustringOrEmpty: Type<string> = scalar(
  'ustring',
  undefined,
  (reader) => reader.ustringOrNull() ?? '',
  (writer, value) => writer.ustring(value),
);

export const buffer: Type<Buffer | null> = scalar(
  'buffer',
  undefined,
  (reader) => reader.buffer(),
  (writer, value) => writer.buffer(value),
  'buffer',
);

/** A list. Null on the wire reads as empty, as every use of it in ZooKeeper means the same. */
export function vector<T>(item: Type<T>): Type<T[]> & { readonly item: Type<T> } {
  // Against what is left, a count of items that take nothing could never be found too high.
  if (item.widthMin === 0) throw new Error(`${item.name} takes no bytes and can't stand in a list`);
  return {
    name: `vector<${item.name}>`,
    width: undefined,
    widthMin: 4,
    item,
    read(reader) {
      const count = reader.count(item.widthMin);
      const items: T[] = [];
      for (let i = 0; i < count; i++) items.push(item.read(reader));
      return items;
    },
    write(writer, items) {
      writer.int(items.length);
      for (const value of items) item.write(writer, value);
    },
  };
}

export type Fields = Readonly<Record<string, Type<unknown>>>;
export type Values<F extends Fields> = { readonly [K in keyof F]: Infer<F[K]> };

export interface RecordType<F extends Fields> extends Type<Values<F>> {
  readonly fields: F;
}

/** What a fixed-width record reads as: its fields, and a way to a plain object. */
export interface View<T> {
  /** The same values as an object of their own, to spread, compare or keep. */
  toObject(): T;
  /** As `toObject`, with each long as decimal text, since JSON has no 64-bit numbers. */
  toJSON(): Record<string, unknown>;
}

export interface FixedRecordType<F extends Fields> extends RecordType<F> {
  readonly width: number;
  read(reader: Reader): Values<F> & View<Values<F>>;
}

/** A record of fixed-width fields alone. */
export function fixedRecord<F extends Fields>(name: string, fields: F): FixedRecordType<F> {
  const names = Object.keys(fields);
  const ViewClass = viewClass(name, fields);
  const width = names.reduce((sum, field) => sum + fields[field]!.width!, 0);
  return {
    name,
    fields,
    width,
    widthMin: width,
    read: (reader) => new ViewClass(reader.take(width)) as unknown as Values<F> & View<Values<F>>,
    write(writer, value) {
      if (value instanceof ViewClass) return writer.raw(value.bytes);
      for (const field of names) fields[field]!.write(writer, value[field]);
    },
  };
}

export function record<F extends Fields>(name: string, fields: F): RecordType<F> {
  // Most programs use a few of the records alone, so each gets its code with the first that is needed.
  const made = () => {
    const code = recordCode(fields) as Pick<RecordType<F>, 'read' | 'write'>;
    type.read = code.read;
    type.write = code.write;
    return code;
  };
  const type: { -readonly [K in keyof RecordType<F>]: RecordType<F>[K] } = {
    name,
    fields,
    width: undefined,
    widthMin: Object.values(fields).reduce((sum, { widthMin }) => sum + widthMin, 0),
    read: (reader) => made().read(reader),
    write: (writer, value) => made().write(writer, value),
  };
  return type;
}

interface ViewInstance {
  readonly bytes: Buffer;
}

function viewClass(name: string, fields: Fields): new (bytes: Buffer) => ViewInstance {
  class RecordView implements ViewInstance {
    declare readonly bytes: Buffer;

    constructor(bytes: Buffer) {
      this.bytes = bytes;
    }

    toObject(): Record<string, unknown> {
      const self = this as unknown as Record<string, unknown>;
      return Object.fromEntries(Object.keys(fields).map((field) => [field, self[field]]));
    }

    toJSON(): Record<string, unknown> {
      return Object.fromEntries(
        Object.entries(this.toObject()).map(([field, value]) => [
          field,
          typeof value === 'bigint' ? value.toString() : value,
        ]),
      );
    }

    [inspect.custom](): unknown {
      return this.toObject();
    }
  }
  Object.defineProperty(RecordView, 'name', { value: name });
  let offset = 0;
  for (const [field, type] of Object.entries(fields)) {
    if (type.width === undefined) throw new Error(`${name}.${field} has no fixed width`);
    Object.defineProperty(RecordView.prototype, field, { get: getter(type, offset) });
    offset += type.width;
  }
  return RecordView;
}

function getter(type: Type<unknown>, at: number): (this: ViewInstance) => unknown {
  switch (type) {
    case int:
      return function (this: ViewInstance) {
        return this.bytes.readInt32BE(at);
      };
    case long:
      return function (this: ViewInstance) {
        return this.bytes.readBigInt64BE(at);
      };
    case bool:
      return function (this: ViewInstance) {
        return this.bytes[at] !== 0;
      };
    default:
      throw new Error(`${type.name} can't stand in a fixed-width record`);
  }
}
