/**
 * Histories that are wrong on purpose, one for each thing that the checker has to find: an ideal one, made
 * by the model itself, and what was done to it.
 */

import { Random } from '../differential/random.ts';
import type { ViolationKind } from './checker.ts';
import { type Answer, type Asked, type History, isRead, type Landed, type Op } from './history.ts';
import { Model } from './model.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type LooseOp = Mutable<Op>;

export interface Made {
  readonly ops: LooseOp[];
  readonly log: Mutable<Landed>[];
  readonly mayExpire: Set<string>;
}

const sessions = ['101', '102', '103'];

/**
 * Three sessions on one tree, one of which expires at the end; every kind of op; one link each. Lists
 * grow with the history, so that one without them shows what the checker itself costs.
 */
export function idealHistory(seed: number, count: number, hasLists = true): Made {
  const random = new Random(seed);
  const model = new Model();
  const made: Made = { ops: [], log: [], mayExpire: new Set(['103']) };
  let at = 0;
  const xids = new Map<string, number>();
  const times = new Map<number, number>();
  const timed = (answer: Answer): Answer => {
    if (answer.stat === undefined) return answer;
    const { czxid, mzxid } = answer.stat;
    return {
      ...answer,
      stat: { ...answer.stat, ctime: times.get(czxid)!, mtime: times.get(mzxid)! },
    };
  };
  const land = (session: string, xid: number, type: string): number => {
    const zxid = made.log.length + 1;
    made.log.push({ zxid, session, xid, type });
    times.set(zxid, 1_000 + zxid);
    return zxid;
  };
  const ask = (session: string, asked: Asked, isHeard = true, isLanded = true) => {
    const xid = (xids.get(session) ?? 0) + 1;
    xids.set(session, xid);
    const op: LooseOp = {
      ...{ session, link: 1, xid, asked },
      ...{ askedAt: ++at, heardAt: Infinity, reply: undefined },
    };
    made.ops.push(op);
    if (!isLanded) return;
    const zxid = isRead(asked) ? made.log.length : land(session, xid, asked.kind);
    const answer = isRead(asked) ? model.read(asked) : model.write(session, asked, zxid);
    if (!isHeard) return;
    op.heardAt = ++at;
    op.reply = { zxid, answer: timed(answer) };
  };

  for (const session of sessions) land(session, 0, 'createSession');
  ask('101', { kind: 'create', path: '/q', data: '', mode: 'persistent' });
  for (let i = 0; i < count; i++) ask(random.pick(sessions), randomAsked(random, i, hasLists));
  ask('103', { kind: 'create2', path: '/e', data: 'e', mode: 'ephemeral' });
  model.endSession('103', land('103', 0, 'closeSession'));
  ask('101', { kind: 'exists', path: '/e' });
  ask('102', { kind: 'closeSession' });
  // The last requests of a killed server: one that landed unheard, and one that did not.
  ask('101', { kind: 'setData', path: '/q', data: 'landed', version: -1 }, false);
  ask('101', { kind: 'setData', path: '/q', data: 'gone', version: -1 }, false, false);
  return made;
}

function randomAsked(random: Random, i: number, hasLists: boolean): Asked {
  const path = `/${random.pick(['x', 'y', 'z'])}`;
  return random.weighted<Asked>([
    [3, { kind: 'create2', path, data: `d${i}`, mode: 'persistent' }],
    [4, { kind: 'setData', path, data: `s${i}`, version: -1 }],
    [2, { kind: 'delete', path, version: -1 }],
    [3, { kind: 'create', path: '/q/n-', data: '', mode: 'persistentSequential' }],
    [4, { kind: 'getData', path }],
    [hasLists ? 2 : 0, { kind: 'getChildren2', path: '/q' }],
    [
      3,
      {
        kind: 'multi',
        parts: [
          { kind: 'create', path: '/q/m-', data: '', mode: 'ephemeralSequential' },
          { kind: 'setData', path, data: `m${i}`, version: -1 },
        ],
      },
    ],
  ]);
}

const acked = (made: Made, kind: Asked['kind'], isGood = true) => {
  const found = made.ops.filter(
    (op) =>
      op.asked.kind === kind && op.reply !== undefined && (op.reply.answer.err === 0) === isGood,
  );
  return found[found.length >> 1]!;
};
const changeAnswer = (op: LooseOp, change: (answer: Answer) => Answer) => {
  op.reply = { zxid: op.reply!.zxid, answer: change(op.reply!.answer) };
};
const changeStat =
  (kind: Asked['kind'], change: Partial<Answer['stat'] & object>) => (made: Made) =>
    changeAnswer(acked(made, kind), (answer) => ({
      ...answer,
      stat: { ...answer.stat!, ...change },
    }));
const entryOf = (made: Made, op: LooseOp) =>
  made.log.find(({ session, xid }) => session === op.session && xid === op.xid)!;
const renumber = (made: Made) => {
  for (const [i, entry] of made.log.entries()) entry.zxid = i + 1;
};
const succeeded = (made: Made) => (op: LooseOp) =>
  op.reply!.answer.parts!.every(({ err }) => err === 0) && made;

/** What was done, and what it has to be called. */
export const plantedHistories: readonly [
  name: string,
  kind: ViolationKind,
  spoil: (made: Made) => void,
][] = [
  [
    'an acknowledged write is not in the log',
    'lost',
    (made) => {
      const entry = entryOf(made, acked(made, 'setData'));
      Object.assign(entry, { session: '101', xid: 0, type: 'error' });
    },
  ],
  [
    'the last acknowledged write is cut off with the tail',
    'lost',
    (made) => {
      const at = made.log.indexOf(entryOf(made, acked(made, 'closeSession')));
      made.log.splice(at);
    },
  ],
  [
    'an acknowledged write landed at another zxid',
    'lost',
    (made) => {
      const op = acked(made, 'setData');
      op.reply = { ...op.reply!, zxid: op.reply!.zxid + 1 };
    },
  ],
  [
    'one request landed twice',
    'twice',
    (made) => {
      const entry = entryOf(made, acked(made, 'setData'));
      made.log.push({ ...entry, zxid: made.log.length + 1 });
    },
  ],
  [
    'a txn that nobody asked for',
    'foreign',
    (made) => {
      made.log.push({ zxid: made.log.length + 1, session: '101', xid: 9_999, type: 'setData' });
    },
  ],
  [
    'a txn is missing from the middle',
    'gap',
    (made) => {
      made.log.splice(made.log.length >> 1, 1);
    },
  ],
  [
    'a read shows an old value',
    'answer',
    (made) => changeAnswer(acked(made, 'getData'), (answer) => ({ ...answer, data: 'old' })),
  ],
  [
    'a read shows a node that is not there',
    'answer',
    (made) => changeAnswer(acked(made, 'getData', false), () => ({ err: 0, data: 'ghost' })),
  ],
  [
    'a node is gone that is there',
    'answer',
    (made) => changeAnswer(acked(made, 'getData'), () => ({ err: -101 })),
  ],
  [
    'a child is missing from a list',
    'answer',
    (made) =>
      changeAnswer(acked(made, 'getChildren2'), (answer) => ({
        ...answer,
        children: answer.children!.slice(1),
      })),
  ],
  [
    'an ephemeral node outlives its session',
    'answer',
    (made) =>
      changeAnswer(made.ops.findLast(({ asked }) => asked.kind === 'exists')!, () => ({ err: 0 })),
  ],
  ['czxid', 'answer', changeStat('getData', { czxid: 1 })],
  ['mzxid', 'answer', changeStat('setData', { mzxid: 1 })],
  ['pzxid', 'answer', changeStat('getChildren2', { pzxid: 1 })],
  ['version', 'answer', changeStat('setData', { version: 77 })],
  ['cversion', 'answer', changeStat('getChildren2', { cversion: 77 })],
  ['ephemeralOwner', 'answer', changeStat('getData', { ephemeralOwner: '5' })],
  ['numChildren', 'answer', changeStat('getChildren2', { numChildren: 77 })],
  [
    'a multi that failed and yet did one of its parts',
    'answer',
    (made) => {
      // The parent counts a child that a failed multi must have taken back.
      const failed = made.ops.findIndex((op) => op.asked.kind === 'multi' && !succeeded(made)(op));
      const read = made.ops.find((op, i) => i > failed && op.asked.kind === 'getChildren2')!;
      changeAnswer(read, ({ stat, children, err }) => ({
        err,
        children: [...children!, 'm-0000099999'],
        stat: { ...stat!, numChildren: stat!.numChildren + 1 },
      }));
    },
  ],
  [
    'a part of a multi answers what it did not do',
    'answer',
    (made) => {
      const multi = made.ops.findLast((op) => op.asked.kind === 'multi' && succeeded(made)(op))!;
      changeAnswer(multi, (answer) => ({
        ...answer,
        parts: [{ err: 0, path: '/q/m-9' }, ...answer.parts!.slice(1)],
      }));
    },
  ],
  [
    'a write fails that must succeed',
    'answer',
    (made) => changeAnswer(acked(made, 'setData'), () => ({ err: -101 })),
  ],
  [
    'ctime changes',
    'time',
    (made) => {
      const op = made.ops.findLast(({ asked, reply }) => asked.kind === 'getChildren2' && reply)!;
      changeAnswer(op, (answer) => ({ ...answer, stat: { ...answer.stat!, ctime: 5 } }));
    },
  ],
  [
    'a sequence number is given again',
    'sequence',
    (made) => {
      const [first, second] = made.ops.filter(
        (op) => op.asked.kind === 'create' && op.reply?.answer.path?.startsWith('/q/n-'),
      );
      changeAnswer(second!, (answer) => ({ ...answer, path: first!.reply!.answer.path! }));
    },
  ],
  [
    'a read goes back behind what another client was told',
    'order',
    (made) => {
      const read = made.ops.findLast(({ asked, reply }) => asked.kind === 'getData' && reply)!;
      read.reply = { ...read.reply!, zxid: 4 };
    },
  ],
  [
    'a write takes its place before one that was acknowledged when it was asked',
    'order',
    (made) => {
      const writes = made.ops.filter(
        (op) => op.asked.kind === 'setData' && op.reply?.answer.err === 0,
      );
      const [a, b] = [entryOf(made, writes[2]!), entryOf(made, writes[3]!)];
      [a.zxid, b.zxid] = [b.zxid, a.zxid];
      made.log.sort((x, y) => x.zxid - y.zxid);
      writes[2]!.reply = { ...writes[2]!.reply!, zxid: a.zxid };
      writes[3]!.reply = { ...writes[3]!.reply!, zxid: b.zxid };
    },
  ],
  [
    'a session reads behind its own write',
    'session',
    (made) => {
      const read = made.ops.findLast(({ asked, reply }) => asked.kind === 'getData' && reply)!;
      read.reply = { ...read.reply!, zxid: 4 };
    },
  ],
  [
    'of two writes on one link the later landed and the earlier did not',
    'hole',
    (made) => {
      const [landed, gone] = made.ops.slice(-2);
      entryOf(made, landed!).xid = gone!.xid;
    },
  ],
  [
    'of two requests on one link the later was answered and the earlier not',
    'hole',
    (made) => {
      const op = acked(made, 'getData');
      op.reply = undefined;
      op.heardAt = Infinity;
    },
  ],
  [
    'a closed session writes',
    'dead',
    (made) => {
      const closing = entryOf(made, acked(made, 'closeSession'));
      made.log.splice(made.log.indexOf(closing), 1);
      made.log.splice(10, 0, closing);
      renumber(made);
    },
  ],
  [
    'a session that nobody made writes',
    'dead',
    (made) => {
      Object.assign(made.log[0]!, { session: '999' });
    },
  ],
  ['a session is ended that was kept alive', 'expired', (made) => made.mayExpire.clear()],
  [
    'a reply names a zxid that never was',
    'future',
    (made) => {
      const read = made.ops.findLast(({ asked, reply }) => asked.kind === 'exists' && reply)!;
      read.reply = { ...read.reply!, zxid: 1_000_000 };
    },
  ],
];

export const asHistory = (made: Made): History => made;
