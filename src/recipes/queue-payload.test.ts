import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodePayload, encodePayload } from './queue-payload.ts';

test('one item looks as Curator writes it', () => {
  expect(encodePayload([Buffer.from('hi')]).toString('hex')).toBe('0001000101000000026869' + '02');
});

test('whatever is put in comes out, and cut short anywhere it is refused', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 5 }), (parts) => {
      const payload = encodePayload(parts);

      expect(decodePayload(payload)?.map((part) => [...part])).toEqual(
        parts.map((part) => [...part]),
      );
      for (let end = 0; end < payload.length; end++) {
        expect(decodePayload(payload.subarray(0, end))).toBeNull();
      }
    }),
  );
});

test('other bytes are refused, never misread', () => {
  expect(decodePayload(null)).toBeNull();
  expect(decodePayload(Buffer.from('plain text'))).toBeNull();
  expect(decodePayload(Buffer.from('000100010300', 'hex'))).toBeNull();
  expect(decodePayload(Buffer.from('0001000101ffffffff02', 'hex'))).toBeNull();
});
