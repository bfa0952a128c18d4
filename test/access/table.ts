/**
 * Access control as a table: for each op of the protocol, which permission it needs and on which node.
 * From it follows the answer to every combination of op, kind of node, ACL and connection.
 *
 * The rules are written down here by hand, from ZooKeeper's documentation of ACLs and from what Apache's
 * server answers. They use nothing of the server's own code, so that they can contradict it.
 */

import { digestId, type Id, multiParts, type OpName } from '../../src/protocol/index.ts';

export const perms = { read: 1, write: 2, create: 4, delete: 8, admin: 16 } as const;

// biome-ignore format: a table is read down its columns
export const codes = {
  ok: 0, unimplemented: -6, badArguments: -8, noNode: -101, noAuth: -102, badVersion: -103,
  noChildrenForEphemerals: -108, notEmpty: -111, noWatcher: -121, reconfigDisabled: -123,
} as const;

/** What stands at the path that an op names. */
export const kinds = [
  'leaf',
  'parent',
  'ephemeral',
  'own ephemeral',
  'container',
  'TTL',
  'missing',
] as const;
export type Kind = (typeof kinds)[number];

interface Rule {
  /** Any of these permissions will do. None: the op asks for no permission. */
  readonly needs: number;
  /** The node whose ACL is asked. */
  readonly of: 'node' | 'parent' | 'none';
  /** The answer to a connection that has the permission, where it is not 0. */
  readonly answers?: Partial<Record<Kind, number>>;
}

const { read, write, create, delete: remove, admin } = perms;
const missing = { missing: codes.noNode };
/** The child is made below the node. */
const creates: Rule = {
  needs: create,
  of: 'node',
  answers: {
    ...missing,
    ephemeral: codes.noChildrenForEphemerals,
    'own ephemeral': codes.noChildrenForEphemerals,
  },
};
const reads: Rule = { needs: read, of: 'node', answers: missing };
const nothing: Rule = { needs: 0, of: 'none' };
/** The connection has no watch on the node. */
const noWatch: Rule = {
  ...nothing,
  answers: Object.fromEntries(kinds.map((kind) => [kind, codes.noWatcher])),
};

/** Ops that name a node. */
// biome-ignore format: a table is read down its columns
export const rules = {
  create:               creates,
  create2:              creates,
  createContainer:      creates,
  createTTL:            creates,
  delete:               { needs: remove, of: 'parent', answers: { ...missing, parent: codes.notEmpty } },
  deleteContainer:      { needs: remove, of: 'parent', answers: { ...missing, parent: codes.notEmpty,
                          ephemeral: codes.badVersion, 'own ephemeral': codes.badVersion } },
  setData:              { needs: write, of: 'node', answers: missing },
  setACL:               { needs: admin, of: 'node', answers: missing },
  check:                reads,
  exists:               reads,
  getData:              reads,
  getChildren:          reads,
  getChildren2:         reads,
  getAllChildrenNumber: reads,
  getACL:               { needs: read | admin, of: 'node', answers: missing },
  sync:                 nothing,
  getEphemerals:        nothing,
  checkWatches:         noWatch, // before the ops that set watches
  removeWatches:        noWatch,
  addWatch:             nothing,
  setWatches:           nothing,
  setWatches2:          nothing,
} as const satisfies Partial<Record<OpName, Rule>>;

export type RuledOp = keyof typeof rules;
export const ruledOps = Object.keys(rules) as RuledOp[];

/** Ops that name no node: the right to them is not a question of ACLs. */
export const withoutNode = {
  multi: 'its parts ask, each as the op that it is',
  multiRead: 'its parts ask, each as the op that it is',
  ping: 'says nothing of the tree',
  whoAmI: "says the connection's own ids",
  auth: 'proves an id',
  sasl: 'proves an id',
  closeSession: "ends the connection's own session",
  createSession: 'no connection may ask for it: sessions are made by the handshake',
  reconfig: 'a standalone server refuses it before it asks for a permission',
} as const satisfies Record<Exclude<OpName, RuledOp>, string>;

/** How a request comes: by itself, or as a part of another. */
export type Way = 'alone' | 'multi' | 'multiRead';

const waysOf = (op: RuledOp): readonly Way[] => {
  if (op === 'check') return ['multi'];
  if (op === 'getData' || op === 'getChildren') return ['alone', 'multiRead'];
  return op in multiParts ? ['alone', 'multi'] : ['alone'];
};

/** Every permission alone, all but each, none, and all. */
export const permSets: readonly number[] = [
  0,
  ...Object.values(perms),
  ...Object.values(perms).map((perm) => 31 & ~perm),
  31,
];

export const owner = 'ann:secret';
export const other = 'bob:secret';

/** Connections by what they have proved. Each comes from 127.0.0.1. */
export const askers = ['stranger', 'ann', 'bob', 'sasl user', 'super'] as const;
export type Asker = (typeof askers)[number];

interface Subject {
  readonly id: Id;
  readonly means: readonly Asker[];
}

/** Entries of an ACL by scheme, and which connections each of them means. The super user needs none. */
// biome-ignore format: a table is read down its columns
export const subjects = {
  world:          { id: { scheme: 'world', id: 'anyone' },                 means: ['stranger', 'ann', 'bob', 'sasl user'] },
  auth:           { id: { scheme: 'auth', id: '' },                        means: ['ann'] }, // ann makes the node
  digest:         { id: digestId(owner),                                   means: ['ann'] },
  'ip':           { id: { scheme: 'ip', id: '127.0.0.1' },                 means: ['stranger', 'ann', 'bob', 'sasl user'] },
  'ip range':     { id: { scheme: 'ip', id: '127.0.0.0/8' },               means: ['stranger', 'ann', 'bob', 'sasl user'] },
  'another ip':   { id: { scheme: 'ip', id: '10.0.0.0/8' },                means: [] },
  sasl:           { id: { scheme: 'sasl', id: 'ann' },                     means: ['sasl user'] },
  'another sasl': { id: { scheme: 'sasl', id: 'bob' },                     means: [] },
  x509:           { id: { scheme: 'x509', id: 'CN=ann' },                  means: [] },
} as const satisfies Record<string, Subject>;

export type SubjectName = keyof typeof subjects;

/** One request, and all that its answer depends on. */
export interface Cell {
  readonly op: RuledOp;
  readonly way: Way;
  readonly kind: Kind;
  readonly asker: Asker;
  readonly subject: SubjectName;
  /** Which of the two ACLs grants no more than `perms` to the subject. The other one is open. */
  readonly closed: 'node' | 'parent';
  readonly perms: number;
}

export function expected({ op, kind, asker, subject, closed, perms: granted }: Cell): number {
  const { needs, of, answers = {} }: Rule = rules[op];
  const isMeant = (subjects[subject].means as readonly Asker[]).includes(asker);
  const has = asker === 'super' ? 31 : isMeant ? granted : 0;
  // A node that is missing has no ACL to ask; its parent's is asked before it is looked at.
  const isAsked = of === closed && !(of === 'node' && kind === 'missing');
  if (isAsked && (has & needs) === 0) return codes.noAuth;
  return answers[kind] ?? codes.ok;
}

/** The nodes that every server has, by what a stranger may do with them. None of them can be deleted. */
const systemNodes = {
  '/': 31,
  '/zookeeper': 31,
  '/zookeeper/quota': 31,
  '/zookeeper/config': perms.read,
} as const;

export interface SystemCell {
  readonly op: RuledOp;
  readonly way: Way;
  readonly path: keyof typeof systemNodes;
}

export function systemCells(): SystemCell[] {
  const paths = Object.keys(systemNodes) as SystemCell['path'][];
  return paths.flatMap((path) =>
    ruledOps.flatMap((op) => waysOf(op).map((way) => ({ op, way, path }))),
  );
}

export function expectedOfSystem({ op, path }: SystemCell): number {
  const { needs, of, answers = {} }: Rule = rules[op];
  if (of === 'parent') return codes.badArguments;
  if (needs !== 0 && (systemNodes[path] & needs) === 0) return codes.noAuth;
  return answers.parent ?? codes.ok;
}

/** Every kind of node under every set of permissions; and every scheme of ACL before every connection. */
export function cells(): Cell[] {
  const all: Cell[] = [];
  for (const op of ruledOps) {
    for (const way of waysOf(op)) {
      for (const closed of ['node', 'parent'] as const) {
        const asked = { op, way, closed };
        for (const granted of permSets) {
          for (const kind of kinds) {
            all.push({ ...asked, kind, asker: 'ann', subject: 'digest', perms: granted });
          }
        }
        const { needs } = rules[op];
        for (const subject of Object.keys(subjects) as SubjectName[]) {
          for (const asker of askers) {
            for (const granted of [needs, 31 & ~needs]) {
              all.push({ ...asked, kind: 'leaf', asker, subject, perms: granted });
            }
          }
        }
      }
    }
  }
  return all;
}

/** The cells that a server does not answer as expected, in words. */
export function differences(all: readonly Cell[], answers: readonly number[]): string[] {
  return all.flatMap((cell, at) => {
    const right = expected(cell);
    return answers[at] === right ? [] : [`${printCell(cell)}: ${answers[at]}, expected ${right}`];
  });
}

function printCell({ op, way, kind, asker, subject, closed, perms: granted }: Cell): string {
  const request = way === 'alone' ? op : `${op} in a ${way}`;
  return `${asker} sends ${request} for a node (${kind}) whose ${closed === 'node' ? 'own ACL' : "parent's ACL"} grants ${granted} to ${subject}`;
}
