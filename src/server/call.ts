/**
 * A write on its way: from when it was asked until its reply. One object for all that is known of it:
 * the head of its txn, who asks, and what waits for it on the link.
 */

import type { DigestHalves, Id, OpName, TxnBody } from '../protocol/index.ts';
import type { Applied, TxnHead } from '../tree/index.ts';
import type { Connection } from './connection.ts';
import type { Change, Changes } from './outlook.ts';
import type { Asker } from './prepare.ts';
import type { ServerSession } from './sessions.ts';

export interface Asked {
  /** The request without its header. */
  readonly request: Buffer;
  readonly ids: readonly Id[];
}

/** What is asked, and by whom. */
export interface CallStart {
  readonly op: OpName;
  readonly xid: number;
  readonly session: ServerSession<Connection> | undefined;
  /** Where the reply goes. None for what the server itself asks: expiry, the reaper. */
  readonly connection: Connection | undefined;
  readonly ids: readonly Id[];
  readonly zxid: number;
  readonly timeMs: number;
  readonly bytes: number;
  readonly startMs: number;
}

const nothing: TxnBody = { type: 'error', txn: { err: 0 } };

export class Call implements TxnHead, Asker, Changes {
  readonly kind = 'call';
  readonly op: OpName;
  readonly xid: number;
  readonly session: ServerSession<Connection> | undefined;
  readonly connection: Connection | undefined;
  readonly ids: readonly Id[];
  readonly clientId: bigint;
  readonly zxid: number;
  readonly timeMs: number;
  readonly bytes: number;
  readonly startMs: number;
  /** What it will change, as a chain. */
  first: Change | undefined = undefined;
  last: Change | undefined = undefined;
  /** What will be done, once it is prepared. */
  body: TxnBody = nothing;
  /** The tree's digest as the txn will leave it. */
  digest: DigestHalves | undefined = undefined;
  /** What was asked and by whom, where somebody listens to commits. */
  asked: Asked | undefined = undefined;
  /** For a call without a link: the session that ends, and has more nodes than its last txn can name. */
  aheadOf: bigint | undefined = undefined;
  /** For a call without a link: it is applied. */
  done: ((applied: Applied) => void) | undefined = undefined;

  constructor(start: CallStart) {
    this.op = start.op;
    this.xid = start.xid;
    this.session = start.session;
    this.connection = start.connection;
    this.ids = start.ids;
    this.clientId = start.session === undefined ? 0n : start.session.id;
    this.zxid = start.zxid;
    this.timeMs = start.timeMs;
    this.bytes = start.bytes;
    this.startMs = start.startMs;
  }

  get head(): TxnHead {
    return this;
  }

  get cxid(): number {
    return this.xid;
  }

  get sessionId(): bigint {
    return this.clientId;
  }

  get sessionClosing(): boolean {
    return this.session?.closing ?? false;
  }
}
