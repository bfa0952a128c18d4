/** A write on its way: from when it was asked until its reply. */

import type { DigestHalves, Id, OpName, TxnBody } from '../protocol/index.ts';
import type { Applied, TxnHead } from '../tree/index.ts';
import type { Connection } from './connection.ts';
import type { Changes } from './outlook.ts';
import type { ServerSession } from './sessions.ts';

export interface Asked {
  /** The request without its header. */
  readonly request: Buffer;
  readonly ids: readonly Id[];
}

export interface Call {
  readonly op: OpName;
  readonly xid: number;
  readonly session: ServerSession<Connection> | undefined;
  /** Where the reply goes. None for what the server itself asks: expiry, the reaper. */
  readonly connection: Connection | undefined;
  readonly head: TxnHead;
  readonly body: TxnBody;
  /** The tree's digest as the txn will leave it. */
  readonly digest: DigestHalves | undefined;
  readonly changes: Changes;
  readonly bytes: number;
  readonly startMs: number;
  /** What was asked and by whom, where somebody listens to commits. */
  readonly asked?: Asked | undefined;
  /** For a call without a link: it is applied. */
  readonly done?: ((applied: Applied) => void) | undefined;
}
