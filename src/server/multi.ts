/** A multi that writes: its parts prepared one upon the other, and all of them undone if one fails. */

import { encode, ProtocolError, type Type } from '../jute/index.ts';
import {
  ErrorTxn,
  type MultiPart,
  type Txn,
  type TxnBody,
  txns,
  wireOf,
} from '../protocol/index.ts';
import type { Changes, Outlook } from './outlook.ts';
import { type Asker, modesByFlags, type Prepare } from './prepare.ts';

const inconsistent = wireOf('RUNTIME_INCONSISTENCY');
const marshalling = wireOf('MARSHALLING_ERROR');
const quotaExceeded = wireOf('QUOTA_EXCEEDED');

/**
 * A part as Apache understands it once it has read it (MultiOperationRecord, Op.Create): the flags
 * have a say in which op a create is. What it can't read at all is a ProtocolError.
 */
function understood(part: MultiPart): MultiPart {
  switch (part.op) {
    case 'getData':
    case 'getChildren':
      throw new ProtocolError('a multi that reads is a multiRead, and does not write');
    case 'create':
    case 'create2':
    case 'createContainer': {
      const mode = modesByFlags.get(part.request.flags as 0);
      if (mode === undefined || mode.ttl) throw new ProtocolError('no such mode of create');
      return mode.container ? { op: 'createContainer', request: part.request } : part;
    }
    case 'createTTL': {
      const mode = modesByFlags.get(part.request.flags as 0);
      if (mode?.ttl) return part;
      return { op: mode?.container ? 'createContainer' : 'create', request: part.request };
    }
    default:
      return part;
  }
}

function preparePart(
  prepare: Prepare,
  part: MultiPart,
  asker: Asker,
  changes: Changes,
): TxnBody | number {
  switch (part.op) {
    case 'create':
    case 'create2':
    case 'createContainer':
      // A create that came as a createTTL still carries its ttl, which means nothing any more.
      return prepare.create(part.op, { ...part.request, ttl: -1n }, asker, changes);
    case 'createTTL':
      return prepare.create(part.op, part.request, asker, changes);
    case 'delete':
      return prepare.delete(part.request, asker, changes);
    case 'setData':
      return prepare.setData(part.request, asker, changes);
    case 'check':
      return prepare.check(part.request, asker);
    default:
      throw new ProtocolError(`${part.op} has no place in a multi`);
  }
}

/** One txn for all parts. One that fails leaves errors in the place of itself and all behind it. */
export function prepareMulti(
  prepare: Prepare,
  outlook: Outlook,
  asked: readonly MultiPart[],
  asker: Asker,
  changes: Changes,
): TxnBody | number {
  const parts = asked.map(understood);
  const { multiOpsMax, txnBytesMax } = prepare.limits;
  if (parts.length > multiOpsMax) return quotaExceeded;
  const made: Txn[] = [];
  let bytes = 4;
  let failed = false;
  for (const part of parts) {
    const body = failed ? inconsistent : preparePart(prepare, part, asker, changes);
    if (body === marshalling) {
      outlook.undo(changes);
      return marshalling; // not this part's error but the request's, as what Apache throws there is
    }
    let txn: Txn;
    if (typeof body === 'number') {
      if (!failed) outlook.undo(changes);
      failed = true;
      txn = { type: txns.error.code, data: encode(ErrorTxn, { err: body }) };
    } else {
      const { code, record } = txns[body.type];
      txn = { type: code, data: encode(record as Type<unknown>, body.txn) };
    }
    made.push(txn);
    bytes += 8 + txn.data!.length;
    if (bytes > txnBytesMax) {
      // Suffixes and expanded ACLs can make more of it than a frame may hold, and of all parts together
      // more than memory does: whatever follows is not looked at.
      outlook.undo(changes);
      return quotaExceeded;
    }
  }
  return { type: 'multi', txn: { txns: made } };
}
