import { expect, test } from 'vitest';
import { decode, encode, ProtocolError } from '../jute/index.ts';
import { type MultiPart, MultiRequest, MultiResponse, type MultiResult } from './multi.ts';

const hex = (...parts: string[]) => Buffer.from(parts.join('').replaceAll(' ', ''), 'hex');
/** type -1, done, err -1. */
const endMark = 'ffffffff 01 ffffffff';

test('a multi is its parts, each behind a header, and an end mark', () => {
  const parts: MultiPart[] = [
    { op: 'check', request: { path: '/a', version: 3 } },
    { op: 'delete', request: { path: '/b', version: -1 } },
  ];

  const bytes = encode(MultiRequest, parts);

  expect(bytes).toEqual(
    hex(
      '0000000d 00 ffffffff',
      '00000002 2f61 00000003',
      '00000002 00 ffffffff',
      '00000002 2f62 ffffffff',
      endMark,
    ),
  );
  expect(decode(MultiRequest, bytes)).toEqual(parts);
});

test('results stand behind their kind; failures have kind -1 and their code twice', () => {
  const results: MultiResult[] = [
    { op: 'create', response: { path: '/a' } },
    { op: 'error', err: -110 },
    { op: 'check', response: {} },
  ];

  const bytes = encode(MultiResponse, results);

  expect(bytes).toEqual(
    hex(
      '00000001 00 00000000',
      '00000002 2f61',
      'ffffffff 00 ffffff92',
      'ffffff92',
      '0000000d 00 00000000',
      endMark,
    ),
  );
  expect(decode(MultiResponse, bytes)).toEqual(results);
});

test('an empty multi is an end mark', () => {
  expect(encode(MultiRequest, [])).toEqual(hex(endMark));
  expect(decode(MultiRequest, hex(endMark))).toEqual([]);
  expect(decode(MultiResponse, hex(endMark))).toEqual([]);
});

test('an op that has no place in a multi is refused', () => {
  for (const code of ['00000003', '0000000e', '00000000', '7fffffff', 'fffffff6']) {
    const bytes = hex(code, '00 ffffffff', '00000002 2f61 00', endMark);
    expect(() => decode(MultiRequest, bytes)).toThrow(ProtocolError);
    expect(() => decode(MultiResponse, bytes)).toThrow(ProtocolError);
  }
  // A failure is a result, and nothing to ask for.
  const failure = hex('ffffffff 00 ffffff92', 'ffffff92', endMark);
  expect(() => decode(MultiRequest, failure)).toThrow(ProtocolError);
});

test('a multi without its end, or with more behind it, is refused', () => {
  const one = hex('00000002 00 ffffffff', '00000002 2f62 ffffffff');

  expect(() => decode(MultiRequest, one)).toThrow(ProtocolError);
  expect(() => decode(MultiRequest, hex(one.toString('hex'), endMark, '00'))).toThrow(
    ProtocolError,
  );
});
