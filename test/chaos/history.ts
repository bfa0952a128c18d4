/**
 * What clients saw, op by op, in the order in which they saw it.
 *
 * One process runs all clients, so that a plain counter tells what came before what: `askedAt` when the
 * request was handed to the link, `heardAt` when its reply was read. A reply that never came is an
 * outcome too: the write may have landed or not, and the log says which (checker.ts).
 */

export type Asked =
  | { readonly kind: 'create'; readonly path: string; readonly data: string; readonly mode: Mode }
  | { readonly kind: 'create2'; readonly path: string; readonly data: string; readonly mode: Mode }
  | {
      readonly kind: 'setData';
      readonly path: string;
      readonly data: string;
      readonly version: number;
    }
  | { readonly kind: 'delete' | 'check'; readonly path: string; readonly version: number }
  | { readonly kind: 'multi'; readonly parts: readonly Asked[] }
  | { readonly kind: 'closeSession' }
  | { readonly kind: 'getData' | 'exists' | 'getChildren2'; readonly path: string };

export type Mode = 'persistent' | 'ephemeral' | 'persistentSequential' | 'ephemeralSequential';
export const modeFlags: Readonly<Record<Mode, number>> = {
  persistent: 0,
  ephemeral: 1,
  persistentSequential: 2,
  ephemeralSequential: 3,
};

const reads = new Set<Asked['kind']>(['getData', 'exists', 'getChildren2']);
export const isRead = ({ kind }: Asked): boolean => reads.has(kind);

/** A Stat with its longs as numbers, but for the owner, which may be any 64 bits. */
export interface SeenStat {
  readonly czxid: number;
  readonly mzxid: number;
  readonly pzxid: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: string;
  readonly dataLength: number;
  readonly numChildren: number;
  readonly ctime: number;
  readonly mtime: number;
}

/** What a reply said. Which fields there are depends on what was asked. */
export interface Answer {
  readonly err: number;
  readonly path?: string;
  readonly data?: string;
  readonly children?: readonly string[];
  readonly stat?: SeenStat;
  readonly parts?: readonly Answer[];
}

export interface Op {
  readonly session: string;
  /** Counts the links of a session: on one link replies come in the order of requests. */
  readonly link: number;
  /** Rises over all links of a session, so that a session's xid names one request. */
  readonly xid: number;
  readonly asked: Asked;
  readonly askedAt: number;
  heardAt: number;
  /** Undefined: no reply came. */
  reply: { readonly zxid: number; readonly answer: Answer } | undefined;
}

/** A txn of the server's log: that it landed and where, not what it did. */
export interface Landed {
  readonly zxid: number;
  readonly session: string;
  /** 0 where the server asked itself: a session made, or expired. */
  readonly xid: number;
  readonly type: string;
}

export interface History {
  readonly ops: readonly Op[];
  /** Every txn from zxid 1 on. */
  readonly log: readonly Landed[];
  /** Sessions that nobody kept alive, by id. No other may end but by its own request. */
  readonly mayExpire?: ReadonlySet<string>;
}

export class Recorder {
  readonly ops: Op[];
  #at: number;

  /** Goes on behind what was seen before. */
  constructor(ops: readonly Op[] = []) {
    this.ops = [...ops];
    // Unheard is unheard for ever; all else came before what comes now.
    this.#at = 2 * ops.length;
  }

  asked(session: string, link: number, xid: number, asked: Asked): Op {
    const askedAt = ++this.#at;
    const op: Op = { session, link, xid, asked, askedAt, heardAt: Infinity, reply: undefined };
    this.ops.push(op);
    return op;
  }

  heard(op: Op, zxid: number, answer: Answer): void {
    op.heardAt = ++this.#at;
    op.reply = { zxid, answer };
  }
}
