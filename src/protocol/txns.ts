/** What stands in the log: each kind of transaction by its number, and the record behind its header. */

import { type Infer, ProtocolError, Reader, type Type } from '../jute/index.ts';
import {
  CheckVersionTxn,
  CloseSessionTxn,
  CreateContainerTxn,
  CreateSessionTxn,
  CreateTTLTxn,
  CreateTxn,
  CreateTxnV0,
  DeleteTxn,
  ErrorTxn,
  MultiTxn,
  SetACLTxn,
  SetDataTxn,
} from './records.ts';

// biome-ignore format: a table is read down its columns
export const txns = {
  create:          { code: 1,   record: CreateTxn },
  delete:          { code: 2,   record: DeleteTxn },
  setData:         { code: 5,   record: SetDataTxn },
  setACL:          { code: 7,   record: SetACLTxn },
  check:           { code: 13,  record: CheckVersionTxn },
  multi:           { code: 14,  record: MultiTxn },
  create2:         { code: 15,  record: CreateTxn },
  reconfig:        { code: 16,  record: SetDataTxn },
  createContainer: { code: 19,  record: CreateContainerTxn },
  deleteContainer: { code: 20,  record: DeleteTxn },
  createTTL:       { code: 21,  record: CreateTTLTxn },
  error:           { code: -1,  record: ErrorTxn },
  createSession:   { code: -10, record: CreateSessionTxn },
  closeSession:    { code: -11, record: CloseSessionTxn },
} as const satisfies Record<string, { code: number; record: Type<unknown> }>;

export type TxnName = keyof typeof txns;
export type TxnBody = {
  [N in TxnName]: { readonly type: N; readonly txn: Infer<(typeof txns)[N]['record']> };
}[TxnName];

const nameByCode = new Map<number, TxnName>(
  (Object.keys(txns) as TxnName[]).map((name) => [txns[name].code, name]),
);

export function txnNameOf(code: number): TxnName | undefined {
  return nameByCode.get(code);
}

/**
 * Reads the record that the header's `type` promises, and leaves the reader behind it. Two kinds are
 * shorter in old logs: a create without its parent's counter, and a close without its paths.
 */
export function readTxn(code: number, reader: Reader): TxnBody {
  const type = nameByCode.get(code);
  if (type === undefined) throw new ProtocolError(`no transaction has type ${code}`);
  if (type === 'closeSession' && reader.remaining === 0) {
    return { type, txn: { paths2Delete: [] } };
  }
  return { type, txn: txns[type].record.read(reader) } as TxnBody;
}

/** A create as 3.4 and earlier logged it, from a stretch that holds nothing else. */
export function readCreateV0(bytes: Buffer): Infer<typeof CreateTxnV0> {
  const reader = new Reader(bytes);
  const txn = CreateTxnV0.read(reader);
  reader.finish();
  return txn;
}
