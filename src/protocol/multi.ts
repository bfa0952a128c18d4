/**
 * A multi and its results: lists whose items each come behind a header that names their kind.
 *
 *   request   (MultiHeader{type, done=false, err=-1}  request)*   MultiHeader{-1, done=true, -1}
 *   response  (MultiHeader{type, done=false, err}     result)*    MultiHeader{-1, done=true, -1}
 *
 * A failed item has type -1 and, as its result, an ErrorResponse with the same code as its header.
 */

import { type Infer, ProtocolError, type Reader, type Type, type Writer } from '../jute/index.ts';
import {
  CheckVersionRequest,
  Create2Response,
  CreateRequest,
  CreateTTLRequest,
  DeleteRequest,
  Empty,
  ErrorResponse,
  GetChildrenRequest,
  GetChildrenResponse,
  GetDataRequest,
  GetDataResponse,
  MultiHeader,
  PathResponse,
  SetDataRequest,
  StatResponse,
} from './records.ts';

interface Part {
  readonly code: number;
  readonly request: Type<unknown>;
  readonly response: Type<unknown>;
}

// biome-ignore format: a table is read down its columns
export const multiParts = {
  create:          { code: 1,  request: CreateRequest,       response: PathResponse },
  delete:          { code: 2,  request: DeleteRequest,       response: Empty },
  setData:         { code: 5,  request: SetDataRequest,      response: StatResponse },
  check:           { code: 13, request: CheckVersionRequest, response: Empty },
  create2:         { code: 15, request: CreateRequest,       response: Create2Response },
  createContainer: { code: 19, request: CreateRequest,       response: Create2Response },
  createTTL:       { code: 21, request: CreateTTLRequest,    response: Create2Response },
  getData:         { code: 4,  request: GetDataRequest,      response: GetDataResponse },
  getChildren:     { code: 8,  request: GetChildrenRequest,  response: GetChildrenResponse },
} as const satisfies Record<string, Part>;

export type MultiPartName = keyof typeof multiParts;
export type MultiPart = {
  [N in MultiPartName]: {
    readonly op: N;
    readonly request: Infer<(typeof multiParts)[N]['request']>;
  };
}[MultiPartName];

export type MultiResult =
  | {
      [N in MultiPartName]: {
        readonly op: N;
        readonly response: Infer<(typeof multiParts)[N]['response']>;
      };
    }[MultiPartName]
  | { readonly op: 'error'; readonly err: number };

const nameByCode = new Map<number, MultiPartName>(
  (Object.keys(multiParts) as MultiPartName[]).map((name) => [multiParts[name].code, name]),
);

function partOf(code: number): { name: MultiPartName; part: Part } {
  const name = nameByCode.get(code);
  if (name === undefined) throw new ProtocolError(`op ${code} has no place in a multi`);
  return { name, part: multiParts[name] };
}

const endMark = { type: -1, done: true, err: -1 };

function readItems<T>(reader: Reader, item: (type: number) => T): T[] {
  const items: T[] = [];
  for (;;) {
    const header = MultiHeader.read(reader);
    if (header.done) return items;
    items.push(item(header.type));
  }
}

export const MultiRequest: Type<MultiPart[]> = {
  name: 'MultiRequest',
  width: undefined,
  widthMin: 9,
  read: (reader) =>
    readItems(reader, (type) => {
      const { name, part } = partOf(type);
      return { op: name, request: part.request.read(reader) } as MultiPart;
    }),
  write(writer: Writer, parts) {
    for (const { op, request } of parts) {
      const part: Part = multiParts[op];
      MultiHeader.write(writer, { type: part.code, done: false, err: -1 });
      part.request.write(writer, request);
    }
    MultiHeader.write(writer, endMark);
  },
};

export const MultiResponse: Type<MultiResult[]> = {
  name: 'MultiResponse',
  width: undefined,
  widthMin: 9,
  read: (reader) =>
    readItems(reader, (type): MultiResult => {
      if (type === -1) return { op: 'error', err: ErrorResponse.read(reader).err };
      const { name, part } = partOf(type);
      return { op: name, response: part.response.read(reader) } as MultiResult;
    }),
  write(writer: Writer, results) {
    for (const result of results) {
      if (result.op === 'error') {
        MultiHeader.write(writer, { type: -1, done: false, err: result.err });
        ErrorResponse.write(writer, result);
        continue;
      }
      const part: Part = multiParts[result.op];
      MultiHeader.write(writer, { type: part.code, done: false, err: 0 });
      part.response.write(writer, result.response);
    }
    MultiHeader.write(writer, endMark);
  },
};
