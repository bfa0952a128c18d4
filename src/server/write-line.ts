/**
 * The line that all writes stand in, in the order of their zxids: from when each is taken until the tree has
 * it and its watchers were told.
 *
 * In: calls, prepared in the order in which they begin. Out: what came of each, in the same order, once the
 * log holds it.
 */

import {
  type DigestHalves,
  digestText,
  type Id,
  type OpName,
  type TxnBody,
} from '../protocol/index.ts';
import type { Applied, Tree } from '../tree/index.ts';
import { superId } from './auth.ts';
import { Call } from './call.ts';
import type { Connection } from './connection.ts';
import type { Moment } from './moment.ts';
import type { Outlook } from './outlook.ts';
import type { Pipeline } from './pipeline.ts';
import type { ServerSession, Sessions } from './sessions.ts';
import type { ServerStats } from './stats.ts';
import type { Watches } from './watches.ts';

type Session = ServerSession<Connection>;

export interface WriteLineParts {
  readonly tree: Tree;
  readonly outlook: Outlook;
  readonly watches: Watches;
  readonly sessions: Sessions<Connection>;
  readonly stats: ServerStats;
  readonly moment: Moment;
  readonly pipeline: Pipeline;
}

export class WriteLine {
  readonly #tree: Tree;
  readonly #outlook: Outlook;
  readonly #watches: Watches;
  readonly #sessions: Sessions<Connection>;
  readonly #stats: ServerStats;
  readonly #moment: Moment;
  readonly #pipeline: Pipeline;
  /** The last one given out. */
  zxid: number;

  constructor(parts: WriteLineParts) {
    this.#tree = parts.tree;
    this.#outlook = parts.outlook;
    this.#watches = parts.watches;
    this.#sessions = parts.sessions;
    this.#stats = parts.stats;
    this.#moment = parts.moment;
    this.#pipeline = parts.pipeline;
    this.zxid = parts.tree.lastZxid;
  }

  /** Before anything is prepared for it. It counts once it is submitted. */
  begin(
    op: OpName,
    xid: number,
    session: Session | undefined,
    connection: Connection | undefined,
    ids: readonly Id[],
    bytes: number,
  ): Call {
    const call = new Call({
      op,
      xid,
      session,
      connection,
      ids,
      zxid: this.zxid + 1,
      timeMs: this.#moment.wallMs,
      bytes,
      startMs: this.#moment.nowMs,
    });
    this.#outlook.begin(call);
    return call;
  }

  /** One that no link asked for, and so no chunk began with. */
  beginOwn(op: OpName, session: Session | undefined): Call {
    this.#moment.beginAside();
    return this.begin(op, 0, session, undefined, [superId], 0);
  }

  submit(call: Call, prepared: TxnBody | number): void {
    const { session, connection, zxid } = call;
    this.zxid = zxid;
    if (session !== undefined) session.lastZxid = zxid;
    if (typeof prepared === 'number') {
      call.body = { type: 'error', txn: { err: prepared } }; // Apache's errors carry no digest either
    } else {
      call.body = prepared;
      call.digest = this.#outlook.digest;
    }
    if (connection !== undefined) connection.wait(call);
    this.#pipeline.submit(call);
  }

  /** It is durable. */
  apply(call: Call): Applied {
    const { session, zxid } = call;
    const tree = this.#tree;
    const watches = this.#watches;
    tree.tellsEvents = !watches.isEmpty;
    const applied = tree.apply(call, call.body, call.first);
    if (call.digest !== undefined) this.#checkDigest(zxid, call.digest);
    this.#outlook.settle(call);
    if (tree.tellsEvents) watches.notify(tree.events, zxid);
    if (call.body.type === 'closeSession' && session !== undefined) this.#sessions.remove(session);
    if (call.done !== undefined) call.done(applied);
    return applied;
  }

  /**
   * The tree must have become what was foretold when the txn was prepared. Apache counts a mismatch,
   * says so in its log and goes on: one server of several, it may. Here nobody else has the data, and
   * which of the two is wrong can't be told: the tree, its memory, or what the log now holds. So it
   * stops before anybody hears of the txn. Memory that went bad is made anew from disk by a restart;
   * a txn that does not do what its digest says is named by it.
   */
  #checkDigest(zxid: number, expected: DigestHalves): void {
    const digest = this.#tree.digest!;
    if (digest.equals(expected)) return;
    this.#stats.digestMismatches += 1;
    throw new Error(
      `txn 0x${zxid.toString(16)} made another tree than was foretold: its digest is ${digestText(digest)}, not ${digestText(expected)}`,
    );
  }
}
