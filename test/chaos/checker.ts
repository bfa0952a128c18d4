/**
 * Checks a history in linear time. Every reply carries the zxid that it was given at, so the order of
 * things is told and need not be searched for: writes are replayed in the order of their zxids against a
 * model, and every read is compared with the model at its own zxid.
 *
 * Where a write whose reply never came stands, only the server's log can say. Nothing else is taken from
 * the log: what a txn did is computed from what its client had asked.
 *
 * What a history is found guilty of:
 *
 *   lost       a reply was given, and the log does not have the txn where the reply said
 *   twice      one request, two txns
 *   foreign    a txn that nobody asked for
 *   gap        zxids that do not follow each other
 *   answer     a reply other than the model's: a path, a value, an error, a Stat, a part of a multi
 *   time       ctime or mtime of a node changed while czxid or mzxid did not
 *   sequence   sequence numbers under one parent that do not rise
 *   order      a reply older than what was known, to anybody, when the request was made
 *   session    a session's own ops out of the order in which it asked them
 *   hole       on one link a later write landed, or a later request was answered, and an earlier one not
 *   dead       a write by a session that was over, or that never began
 *   expired    a session that was kept alive ended without being asked to
 *   future     a reply at a zxid that the log never reached
 */

import {
  type Answer,
  type History,
  isRead,
  type Landed,
  type Op,
  type SeenStat,
} from './history.ts';
import { Model, type ModelNode, parentOf } from './model.ts';

export const violationKinds = [
  'lost',
  'twice',
  'foreign',
  'gap',
  'answer',
  'time',
  'sequence',
  'order',
  'session',
  'hole',
  'dead',
  'expired',
  'future',
] as const;
export type ViolationKind = (typeof violationKinds)[number];

export interface Violation {
  readonly kind: ViolationKind;
  readonly message: string;
}

/** Of each kind, enough to see what is wrong: one fault tends to show in every read behind it. */
const violationsMax = 5;

export function checkHistory(history: History): Violation[] {
  const check = new Check(history);
  check.landings();
  check.replay();
  check.realTime();
  check.sessions();
  return check.violations;
}

const keyOf = (session: string, xid: number) => `${session}:${xid}`;

class Check {
  readonly violations: Violation[] = [];
  readonly #counts = new Map<ViolationKind, number>();
  readonly #history: History;
  /** Where each write landed, by request. */
  readonly #landed = new Map<string, Landed>();
  readonly #asked = new Map<string, Op>();
  readonly #model = new Model();
  readonly #live = new Set<string>();
  readonly #ended = new Set<string>();
  /** The last sequence number under a parent, by the parent's path and czxid. */
  readonly #sequences = new Map<string, number>();

  constructor(history: History) {
    this.#history = history;
  }

  #guilty(kind: ViolationKind, message: string): void {
    const count = this.#counts.get(kind) ?? 0;
    this.#counts.set(kind, count + 1);
    if (count < violationsMax) this.violations.push({ kind, message });
  }

  /** Every acknowledged write is in the log where its reply said, and nothing is there that nobody asked. */
  landings(): void {
    for (const op of this.#history.ops) this.#asked.set(keyOf(op.session, op.xid), op);
    let last = 0;
    for (const txn of this.#history.log) {
      if (txn.zxid !== last + 1) this.#guilty('gap', `zxid ${txn.zxid} after ${last}`);
      last = txn.zxid;
      if (txn.xid === 0) continue;
      const key = keyOf(txn.session, txn.xid);
      const op = this.#asked.get(key);
      const first = this.#landed.get(key);
      if (op === undefined || isRead(op.asked)) this.#guilty('foreign', textOf(txn));
      else if (first !== undefined) this.#guilty('twice', `${textOf(txn)}, first at ${first.zxid}`);
      else this.#landed.set(key, txn);
    }
    for (const op of this.#history.ops) {
      if (op.reply === undefined) continue;
      if (op.reply.zxid > last) this.#guilty('future', `${textOf(op)}, the log ends at ${last}`);
      if (isRead(op.asked)) continue;
      const landed = this.#landed.get(keyOf(op.session, op.xid));
      if (landed?.zxid === op.reply.zxid) continue;
      this.#guilty(
        'lost',
        `${textOf(op)}; in the log: ${landed === undefined ? 'no' : landed.zxid}`,
      );
    }
  }

  replay(): void {
    const reads = this.#history.ops.filter((op) => isRead(op.asked) && op.reply !== undefined);
    reads.sort((a, b) => a.reply!.zxid - b.reply!.zxid);
    let at = 0;
    const readUntil = (zxid: number) => {
      for (; at < reads.length && reads[at]!.reply!.zxid < zxid; at++) this.#read(reads[at]!);
    };
    for (const txn of this.#history.log) {
      readUntil(txn.zxid);
      this.#txn(txn);
    }
    readUntil(Infinity);
  }

  #txn(txn: Landed): void {
    const { session, zxid, type } = txn;
    if (type === 'createSession') {
      this.#live.add(session);
      return;
    }
    if (txn.xid === 0 && type === 'closeSession') {
      if (!this.#history.mayExpire?.has(session)) this.#guilty('expired', textOf(txn));
      this.#model.endSession(session, zxid);
      this.#end(session);
      return;
    }
    const op = this.#asked.get(keyOf(session, txn.xid));
    if (op === undefined || isRead(op.asked)) return; // told as foreign
    if (!this.#live.has(session)) {
      const when = this.#ended.has(session) ? 'after the end of' : 'before there was';
      this.#guilty('dead', `${textOf(txn)} ${when} its session`);
    }
    const expected = this.#model.write(session, op.asked, zxid);
    if (op.asked.kind === 'closeSession') this.#end(session);
    if (op.reply === undefined) return;
    this.#compare(op, expected);
    this.#sequence(op, op.reply.answer);
  }

  #end(session: string): void {
    this.#live.delete(session);
    this.#ended.add(session);
  }

  #read(op: Op): void {
    this.#compare(op, this.#model.read(op.asked));
  }

  #compare(op: Op, expected: Answer): void {
    const { answer } = op.reply!;
    const wrong = difference(answer, expected);
    if (wrong !== null) this.#guilty('answer', `${textOf(op)}: ${wrong}`);
    else if ('path' in op.asked && answer.stat !== undefined) {
      const node = this.#model.nodes.get(answer.path ?? op.asked.path);
      // A node is as its own write left it only until the next one: a later Stat is of a later mzxid.
      if (node !== undefined) this.#times(op, node, answer.stat);
    }
  }

  #times(op: Op, node: ModelNode, { ctime, mtime }: SeenStat): void {
    node.ctime ??= ctime;
    node.mtime ??= mtime;
    if (node.ctime === ctime && node.mtime === mtime) return;
    const was = `ctime ${node.ctime}, mtime ${node.mtime}`;
    this.#guilty('time', `${textOf(op)}: ctime ${ctime}, mtime ${mtime}, before ${was}`);
  }

  /** Besides the model's own count, which would be wrong in the same way as the server's if both were. */
  #sequence(op: Op, answer: Answer): void {
    const { asked } = op;
    if (asked.kind === 'multi') {
      for (const [i, part] of asked.parts.entries()) {
        this.#sequence({ ...op, asked: part }, answer.parts?.[i] ?? { err: -1 });
      }
      return;
    }
    if (asked.kind !== 'create' && asked.kind !== 'create2') return;
    if (!asked.mode.endsWith('Sequential') || answer.err !== 0 || answer.path === undefined) return;
    const parent = parentOf(asked.path);
    const key = `${parent}@${this.#model.nodes.get(parent)?.czxid}`;
    const number = Number(answer.path.slice(asked.path.length));
    const last = this.#sequences.get(key) ?? -1;
    if (!(number > last)) this.#guilty('sequence', `${textOf(op)}: ${number} after ${last}`);
    this.#sequences.set(key, number);
  }

  /** Who asks after somebody was told of zxid z is answered at z or later; a write takes a later one. */
  realTime(): void {
    const moments: { readonly at: number; readonly op: Op; readonly isReply: boolean }[] = [];
    for (const op of this.#history.ops) {
      moments.push({ at: op.askedAt, op, isReply: false });
      if (op.reply !== undefined) moments.push({ at: op.heardAt, op, isReply: true });
    }
    moments.sort((a, b) => a.at - b.at);
    let known = 0;
    const floors = new Map<Op, number>();
    for (const { op, isReply } of moments) {
      if (isReply) known = Math.max(known, op.reply!.zxid);
      else floors.set(op, known);
    }
    for (const op of this.#history.ops) {
      const zxid = op.reply?.zxid ?? this.#landed.get(keyOf(op.session, op.xid))?.zxid;
      if (zxid === undefined) continue;
      const floor = floors.get(op)!;
      if (zxid < floor || (zxid === floor && !isRead(op.asked))) {
        this.#guilty('order', `${textOf(op)} at ${zxid}, asked when ${floor} was known`);
      }
    }
  }

  sessions(): void {
    const bySession = new Map<string, Op[]>();
    for (const op of this.#history.ops) {
      const ops = bySession.get(op.session);
      if (ops === undefined) bySession.set(op.session, [op]);
      else ops.push(op);
    }
    for (const ops of bySession.values()) this.#inOrder(ops.sort((a, b) => a.xid - b.xid));
  }

  #inOrder(ops: readonly Op[]): void {
    let last = 0;
    let link = -1;
    let unanswered: Op | undefined;
    let unlanded: Op | undefined;
    for (const op of ops) {
      if (op.link !== link) {
        link = op.link;
        unanswered = undefined;
        unlanded = undefined;
      }
      const landed = this.#landed.get(keyOf(op.session, op.xid))?.zxid;
      const zxid = op.reply?.zxid ?? landed;
      if (op.reply === undefined) unanswered ??= op;
      else if (unanswered !== undefined) this.#hole(op, unanswered, 'no answer');
      if (!isRead(op.asked)) {
        if (zxid === undefined) unlanded ??= op;
        else if (unlanded !== undefined) this.#hole(op, unlanded, 'not landed');
      }
      if (zxid === undefined) continue;
      if (zxid < last || (zxid === last && !isRead(op.asked))) {
        this.#guilty('session', `${textOf(op)} at ${zxid}, behind one at ${last}`);
      }
      last = Math.max(last, zxid);
    }
  }

  #hole(op: Op, earlier: Op, what: string): void {
    this.#guilty('hole', `${textOf(op)}, while ${textOf(earlier)}, asked before it: ${what}`);
  }
}

/** What is not as it should be, in words; null where all is. */
function difference(found: Answer, wanted: Answer): string | null {
  if (found.err !== wanted.err) return `error ${found.err}, not ${wanted.err}`;
  if (found.path !== wanted.path) return `path ${found.path}, not ${wanted.path}`;
  if (found.data !== wanted.data) return `data ${short(found.data)}, not ${short(wanted.data)}`;
  const children = [found.children, wanted.children].map((names) => names && [...names].sort());
  if (`${children[0]}` !== `${children[1]}`) return `children ${children[0]}, not ${children[1]}`;
  if ((found.stat === undefined) !== (wanted.stat === undefined)) return 'a Stat, or none';
  for (const name of Object.keys(wanted.stat ?? {}) as (keyof SeenStat)[]) {
    if (name === 'ctime' || name === 'mtime') continue;
    const [is, should] = [found.stat![name], wanted.stat![name]];
    if (is !== should) return `${name} ${is}, not ${should}`;
  }
  if (found.parts?.length !== wanted.parts?.length) return `${found.parts?.length} parts`;
  for (const [i, part] of (wanted.parts ?? []).entries()) {
    const wrong = difference(found.parts![i]!, part);
    if (wrong !== null) return `part ${i}: ${wrong}`;
  }
  return null;
}

function short(text: string | undefined): string {
  if (text === undefined) return 'none';
  return text.length > 40 ? `${text.slice(0, 40)}… (${text.length})` : text;
}

function textOf(what: Op | Landed): string {
  if (!('asked' in what)) {
    return `txn ${what.zxid} (${what.type}) of 0x${BigInt(what.session).toString(16)}:${what.xid}`;
  }
  const { asked, session, xid, reply } = what;
  const path = 'path' in asked ? ` ${asked.path}` : '';
  const at = reply === undefined ? 'no reply' : `reply at ${reply.zxid}`;
  return `${asked.kind}${path} of 0x${BigInt(session).toString(16)}:${xid}, ${at}`;
}
