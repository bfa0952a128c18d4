import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { StatView } from '../protocol/index.ts';
import { type CacheChange, type CachedNode, CacheLedger, type ReadToken } from './cache-ledger.ts';

interface Node {
  readonly czxid: bigint;
  readonly mzxid: bigint;
}
interface Event {
  readonly kind: 'event';
  readonly type: string;
  readonly path: string;
  readonly zxid: bigint;
}
interface Reply {
  readonly kind: 'reply';
  readonly token: ReadToken;
  readonly node: Node | undefined;
}

/** A server, a link on which everything keeps its order, and a cache that reads what it hears of. */
class World {
  readonly ledger = new CacheLedger();
  readonly tree = new Map<string, Node>();
  readonly asked: ReadToken[] = [];
  readonly link: (Event | Reply)[] = [];
  readonly arrived: Reply[] = [];
  readonly told: CacheChange[] = [];
  readonly hasZxids: boolean;
  zxid = 0n;

  constructor(hasZxids: boolean) {
    this.hasZxids = hasZxids;
  }

  write(path: string, deed: number): void {
    const node = this.tree.get(path);
    this.zxid += 1n;
    const { zxid } = this;
    if (node === undefined) {
      this.tree.set(path, { czxid: zxid, mzxid: zxid });
      this.link.push({ kind: 'event', type: 'created', path, zxid });
    } else if (deed === 0) {
      this.tree.delete(path);
      this.link.push({ kind: 'event', type: 'deleted', path, zxid });
    } else {
      this.tree.set(path, { ...node, mzxid: zxid });
      this.link.push({ kind: 'event', type: 'dataChanged', path, zxid });
    }
  }

  /** A look at a node that nobody has heard of a change of. */
  peek(path: string): void {
    this.ask(path);
  }

  /** The server answers what it was asked first. */
  serve(): void {
    const token = this.asked.shift();
    if (token) this.link.push({ kind: 'reply', token, node: this.tree.get(token.path) });
  }

  /** An event is heard as it comes; a reply is taken with the next turn. */
  deliver(): void {
    const item = this.link.shift();
    if (item === undefined) return;
    if (item.kind === 'reply') {
      this.arrived.push(item);
      return;
    }
    const zxid = this.hasZxids ? item.zxid : null;
    if (item.type === 'deleted') this.ledger.gone(item.path, zxid);
    else if (this.ledger.heard(item.path, zxid)) this.ask(item.path);
    this.told.push(...this.ledger.take());
  }

  turn(): void {
    for (const { token, node } of this.arrived.splice(0)) {
      this.ledger.release(token);
      if (token.isStale) continue;
      const isAgain =
        node === undefined
          ? this.ledger.missing(token)
          : this.ledger.read(cached(token.path, node), token);
      if (isAgain) this.ask(token.path);
      this.told.push(...this.ledger.take());
    }
  }

  ask(path: string): void {
    this.asked.push(this.ledger.reading(path));
  }

  settle(): void {
    while (this.asked.length > 0 || this.link.length > 0 || this.arrived.length > 0) {
      this.serve();
      this.deliver();
      this.turn();
    }
  }
}

function cached(path: string, { czxid, mzxid }: Node): CachedNode {
  return { path, data: null, stat: { czxid, mzxid, pzxid: czxid } as unknown as StatView };
}

test.for([true, false])(
  'whatever the interleaving, what is told adds up to the tree and keeps its order (zxids: %s)',
  (hasZxids) => {
    const write = fc.record({
      act: fc.constant('write' as const),
      path: fc.nat(2),
      deed: fc.nat(2),
    });
    const peek = fc.record({ act: fc.constant('peek' as const), path: fc.nat(2) });
    const pass = fc.record({
      act: fc.constantFrom('serve' as const, 'deliver' as const, 'turn' as const),
    });
    const step = fc.oneof(
      { arbitrary: write, weight: 3 },
      { arbitrary: peek, weight: 1 },
      { arbitrary: pass, weight: 8 },
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 100 }), (steps) => {
        const world = new World(hasZxids);
        for (const one of steps) {
          if (one.act === 'write') world.write(`/${one.path}`, one.deed);
          else if (one.act === 'peek') world.peek(`/${one.path}`);
          else world[one.act]();
        }
        world.settle();

        const mirror = new Map<string, CachedNode>();
        let last = 0n;
        for (const { type, path, node, zxid } of world.told) {
          expect(mirror.has(path)).toBe(type !== 'added');
          if (type === 'changed') {
            expect(node.stat.mzxid > mirror.get(path)!.stat.mzxid).toBe(true);
          }
          if (zxid !== null) {
            expect(zxid >= last).toBe(true);
            last = zxid;
          }
          if (type === 'removed') mirror.delete(path);
          else mirror.set(path, node);
        }
        const state = (nodes: Iterable<[string, Node]>) =>
          [...nodes].map(([path, { czxid, mzxid }]) => `${path} ${czxid} ${mzxid}`).sort();
        const expected = state(world.tree);
        expect(state([...mirror].map(([path, { stat }]) => [path, stat]))).toEqual(expected);
        expect(state([...world.ledger.nodes].map(([path, { stat }]) => [path, stat]))).toEqual(
          expected,
        );
      }),
      { numRuns: 2_000 },
    );
  },
);

test('a look finds what changed, went, and was made again while nobody listened', () => {
  const ledger = new CacheLedger();
  const look = (nodes: Record<string, [czxid: bigint, mzxid: bigint]>, pzxid: bigint) => {
    ledger.begin();
    ledger.listed('/', { pzxid } as StatView);
    for (const [path, [czxid, mzxid]] of Object.entries(nodes)) {
      ledger.read(cached(path, { czxid, mzxid }), ledger.reading(path));
    }
    expect(ledger.take()).toEqual([]);
    ledger.end();
    return ledger.take().map(({ type, path, zxid }) => `${type} ${path} ${zxid}`);
  };
  look({ '/same': [1n, 1n], '/changed': [2n, 2n], '/gone': [3n, 3n], '/again': [4n, 4n] }, 4n);

  const told = look({ '/same': [1n, 1n], '/changed': [2n, 9n], '/again': [7n, 7n] }, 7n);

  expect(told).toEqual([
    'removed /gone null',
    'removed /again null',
    'added /again 7',
    'changed /changed 9',
  ]);
});

test('memory is counted as nodes come, change and go', () => {
  const ledger = new CacheLedger();
  const put = (bytes: number, mzxid: bigint) => {
    const { path, stat } = cached('/a', { czxid: 1n, mzxid });
    ledger.read({ path, data: Buffer.alloc(bytes), stat }, ledger.reading(path));
    ledger.take();
  };

  put(100, 1n);
  const small = ledger.bytes;
  put(1_100, 2n);
  expect(ledger.bytes - small).toBe(1_000);
  ledger.gone('/a', 3n);
  ledger.take();

  expect([ledger.size, ledger.bytes]).toEqual([0, 0]);
});
