/** From a write's bytes to its txn: reads the request that the op's row in the table names. */

import type { Reader } from '../jute/index.ts';
import { MultiRequest, type OpName, ops, type TxnBody } from '../protocol/index.ts';
import { prepareMulti } from './multi.ts';
import type { Changes, Outlook } from './outlook.ts';
import type { Asker, Prepare } from './prepare.ts';

/** A txn's body, or an error's number. A request that can't be read throws a ProtocolError. */
export function decodeAndPrepare(
  op: OpName,
  reader: Reader,
  prepare: Prepare,
  outlook: Outlook,
  asker: Asker,
  changes: Changes,
): TxnBody | number {
  switch (op) {
    case 'setData':
      return prepare.setData(ops.setData.request.read(reader), asker, changes);
    case 'create':
    case 'create2':
    case 'createContainer':
      return prepare.create(op, ops[op].request.read(reader), asker, changes);
    case 'createTTL':
      return prepare.create(op, ops.createTTL.request.read(reader), asker, changes);
    case 'delete':
      return prepare.delete(ops.delete.request.read(reader), asker, changes);
    case 'deleteContainer':
      return prepare.deleteContainer(reader.ustring(), asker, changes);
    case 'setACL':
      return prepare.setACL(ops.setACL.request.read(reader), asker, changes);
    case 'multi':
      return prepareMulti(prepare, outlook, MultiRequest.read(reader), asker, changes);
    case 'reconfig':
      ops.reconfig.request.read(reader);
      return prepare.reconfig(asker);
    case 'closeSession':
      return prepare.closeSession(asker.sessionId, changes);
    default:
      throw new Error(`${op} is no write that a link may ask for`);
  }
}
