import { expect, test } from 'vitest';
import { encode, ProtocolError, Reader } from '../jute/index.ts';
import { openAcl } from './acls.ts';
import { CreateTxn, CreateTxnV0, DeleteTxn } from './records.ts';
import { readCreateV0, readTxn, txnNameOf, txns } from './txns.ts';

const created = { path: '/a', data: null, acl: [...openAcl], ephemeral: true };

test('a transaction is read by its number, and the reader is left behind it', () => {
  const bytes = encode(DeleteTxn, { path: '/a' });
  const reader = new Reader(Buffer.concat([bytes, Buffer.of(1, 2)]));

  expect(readTxn(2, reader)).toEqual({ type: 'delete', txn: { path: '/a' } });
  expect(reader.remaining).toBe(2);
});

test('every kind is found by its number, and no other is read', () => {
  for (const [name, { code }] of Object.entries(txns)) expect(txnNameOf(code)).toBe(name);
  for (const code of [0, 3, 4, 22, 100, -2, -12]) {
    expect(txnNameOf(code)).toBeUndefined();
    expect(() => readTxn(code, new Reader(Buffer.alloc(64)))).toThrow(ProtocolError);
  }
});

test('a closed session without its paths, as old servers logged it, has none', () => {
  expect(readTxn(-11, new Reader(Buffer.alloc(0)))).toEqual({
    type: 'closeSession',
    txn: { paths2Delete: [] },
  });
});

test('an old create, without its parent’s counter, is read as what it is', () => {
  const old = encode(CreateTxnV0, created);

  expect(() => readTxn(1, new Reader(old))).toThrow(ProtocolError);
  expect(readCreateV0(old)).toEqual(created);
  const now = encode(CreateTxn, { ...created, parentCVersion: 3 });
  expect(() => readCreateV0(now)).toThrow(ProtocolError);
});
