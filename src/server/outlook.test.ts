import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Acl,
  digestId,
  type Id,
  type MultiPart,
  openAcl,
  type TxnBody,
} from '../protocol/index.ts';
import { pathHash, Tree } from '../tree/index.ts';
import { Auth } from './auth.ts';
import { limitsOf } from './limits.ts';
import { prepareMulti } from './multi.ts';
import { type Changes, noChanges, Outlook } from './outlook.ts';
import { type Asker, Prepare } from './prepare.ts';

test('as many ephemeral nodes as one multi holds are counted as they come, and forgotten with it', () => {
  const session = 1n;
  const outlook = new Outlook(new Tree());
  const changes = noChanges();
  outlook.begin({ clientId: session, cxid: 1, zxid: 1, timeMs: 0 });
  for (let i = 0; i < 50_000; i++) {
    const path = `/é${String(i).padStart(5, '0')}`;
    const parent = outlook.get('/')!;
    outlook.create(changes, parent, path, pathHash(path), null, openAcl, session, session);
    if (i < 100) outlook.setData(changes, outlook.get(path)!, null, 1);
    const { count, pathBytes } = outlook.ephemeralUse(session);
    if (count !== i + 1 || pathBytes !== 8 * count) expect.fail(`${count}, ${pathBytes} at ${i}`);
  }

  outlook.undo(changes);

  expect(outlook.ephemeralUse(session)).toEqual({ count: 0, pathBytes: 0 });
});

// ── random writes: one side applies them late, the other at once ──────────────────────────────────

const sessions = [1n, 2n];
const anyone: Id = { scheme: 'world', id: 'anyone' };
const ann: Id = digestId('ann:pw');
const names = ['/a', '/b', '/a/a'];
/** With those that the first sequential creates make. */
const paths = [
  '/',
  ...names,
  ...names.flatMap((name) => [0, 1, 2].map((n) => `${name}000000000${n}`)),
];

type Ask =
  | { readonly op: 'multi'; readonly parts: MultiPart[] }
  | { readonly op: 'setACL'; readonly request: { path: string; acl: Acl[]; version: number } }
  | { readonly op: 'closeSession' };

interface Step {
  readonly ask: Ask;
  readonly session: number;
  /** Whether it has proved that it is ann. */
  readonly isAnn: boolean;
  /** Of the writes under way, how many are applied behind it. */
  readonly applied: number;
}

/** A tree, and the writes under way to it. */
class Side {
  readonly tree = new Tree({ extendedTypes: true, digest: true });
  readonly outlook = new Outlook(this.tree);
  readonly #prepare = new Prepare(this.tree, this.outlook, new Auth(), {
    enforceQuota: false,
    reconfigEnabled: false,
    limits: limitsOf(),
  });
  readonly #underWay: (() => void)[] = [];

  /** What will be done about it: a txn's body, or an error's number. */
  take({ ask, session, isAnn }: Step, zxid: number): TxnBody | number {
    const sessionId = sessions[session]!;
    const asker = { sessionId, sessionClosing: false, ids: isAnn ? [ann] : [] };
    const head = { clientId: sessionId, cxid: zxid, zxid, timeMs: 1_000 + zxid };
    const changes = noChanges();
    this.outlook.begin(head);
    const prepared = this.#prepared(ask, asker, changes);
    const isError = typeof prepared === 'number';
    const body: TxnBody = isError ? { type: 'error', txn: { err: prepared } } : prepared;
    const foretold = isError ? undefined : this.outlook.digest;
    this.#underWay.push(() => {
      this.tree.apply(head, body, changes.first);
      if (foretold !== undefined) expect(this.tree.digest!.equals(foretold)).toBe(true);
      this.outlook.settle(changes);
    });
    return prepared;
  }

  #prepared(ask: Ask, asker: Asker, changes: Changes): TxnBody | number {
    switch (ask.op) {
      case 'multi':
        return prepareMulti(this.#prepare, this.outlook, ask.parts, asker, changes);
      case 'setACL':
        return this.#prepare.setACL(ask.request, asker, changes);
      case 'closeSession':
        return this.#prepare.closeSession(asker.sessionId, changes);
    }
  }

  apply(count = Number.POSITIVE_INFINITY): void {
    for (const apply of this.#underWay.splice(0, count)) apply();
  }

  /** What the outlook says of every path, and of what each session will own. */
  get foreseen(): unknown {
    return picture(this.outlook);
  }

  /** What the tree says of them. */
  get settled(): unknown {
    return picture(new Outlook(this.tree));
  }
}

function picture(outlook: Outlook): unknown {
  const nodes = paths.map((path) => {
    const change = outlook.get(path);
    if (change === undefined) return undefined;
    const { version, cversion, aversion, childCount, dataBytes, acl, owner, landedOwner } = change;
    const { czxid, pzxid, ctimeMs } = change;
    const counts = { version, cversion, aversion, childCount, dataBytes };
    return { path, ...counts, acl, owner, landedOwner, czxid, pzxid, ctimeMs };
  });
  return { nodes, ephemerals: sessions.map((session) => outlook.ephemeralsOf(session).sort()) };
}

const path = fc.constantFrom(...names);
const acl = fc.constantFrom<Acl[]>(
  [...openAcl],
  [...openAcl],
  [{ perms: 31, id: ann }],
  [{ perms: 0b00111, id: anyone }],
);
const version = fc.constantFrom(-1, -1, -1, -1, -1, 0, 1);
const data = fc.constantFrom(null, Buffer.from('x'), Buffer.from('some'));
const creates = fc.record({ path, data, acl, flags: fc.constantFrom(0, 0, 1, 2, 3) });
const part: fc.Arbitrary<MultiPart> = fc.oneof(
  fc.record({ op: fc.constant('create' as const), request: creates }),
  fc.record({ op: fc.constant('create' as const), request: creates }),
  fc.record({ op: fc.constant('delete' as const), request: fc.record({ path, version }) }),
  fc.record({ op: fc.constant('setData' as const), request: fc.record({ path, data, version }) }),
  fc.record({ op: fc.constant('check' as const), request: fc.record({ path, version }) }),
  fc.record({
    op: fc.constant('createContainer' as const),
    request: fc.record({ path, data, acl, flags: fc.constant(4) }),
  }),
);
const step: fc.Arbitrary<Step> = fc.record({
  ask: fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        op: fc.constant('multi' as const),
        parts: fc.array(part, { minLength: 1, maxLength: 5 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        op: fc.constant('setACL' as const),
        request: fc.record({ path, acl, version }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('closeSession' as const) }) },
  ),
  session: fc.integer({ min: 0, max: 1 }),
  isAnn: fc.boolean(),
  applied: fc.constantFrom(0, 0, 0, 0, 0, 1, 2, 9),
});

test('whatever is under way, a write is checked against the tree as it will be, and nothing stays behind', {
  timeout: 120_000,
}, () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const late = new Side();
      const atOnce = new Side();

      for (const [at, each] of steps.entries()) {
        expect(late.take(each, at + 1)).toEqual(atOnce.take(each, at + 1));
        atOnce.apply();
        expect(late.foreseen).toEqual(atOnce.settled);
        late.apply(each.applied);
      }

      late.apply();
      expect(late.foreseen).toEqual(late.settled);
      for (const each of paths) expect(late.outlook.get(each)?.isUnderWay ?? false).toBe(false);
      for (const session of sessions) {
        const { count } = late.outlook.ephemeralUse(session);
        expect(count).toBe(late.tree.ephemeralsOf(session).size);
      }
    }),
    { numRuns: 300 },
  );
});
