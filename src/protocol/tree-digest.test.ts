import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  aversionCrcChange,
  childrenCrcChange,
  type DigestedStat,
  nodeCrc,
  nodeDigest,
  TreeDigest,
} from './tree-digest.ts';

const number = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
type FullStat = DigestedStat & { readonly mzxid: number; readonly mtimeMs: number };
const stat: fc.Arbitrary<FullStat> = fc.record({
  czxid: number,
  mzxid: number,
  pzxid: number,
  ctimeMs: number,
  mtimeMs: number,
  version: int,
  cversion: int,
  aversion: int,
  owner: fc.oneof(fc.constant(0n), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
});
const path = fc.oneof(
  fc.constantFrom('/', '/zookeeper', '/zookeeper/quota', '/zookeeperish', '/a', '/zürich/日本/😀'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }).map((name) => `/${name}`),
);
const data = fc.option(fc.uint8Array({ maxLength: 600 }));

/** From the record, by the runtime's own CRC. */
const plain = (at: string, bytes: Uint8Array | null, of: FullStat) =>
  nodeDigest(at, bytes, {
    czxid: BigInt(of.czxid),
    mzxid: BigInt(of.mzxid),
    pzxid: BigInt(of.pzxid),
    ctime: BigInt(of.ctimeMs),
    mtime: BigInt(of.mtimeMs),
    version: of.version,
    cversion: of.cversion,
    aversion: of.aversion,
    ephemeralOwner: of.owner,
  });

const share = (at: string, bytes: Uint8Array | null, of: FullStat) =>
  nodeCrc(at, bytes, of.mzxid, of.mtimeMs, of);

test('a share computed here is the one that the runtime computes', () => {
  fc.assert(
    fc.property(path, data, stat, (at, bytes, of) => {
      expect(share(at, bytes, of) >>> 0).toBe(plain(at, bytes, of));
    }),
  );
});

test('a share follows from the last one and the fields that changed', () => {
  fc.assert(
    fc.property(data, stat, number, int, int, (bytes, of, pzxid, cversion, aversion) => {
      const crc = share('/a', bytes, of);

      const children = crc ^ childrenCrcChange(of.pzxid, pzxid, of.cversion, cversion);
      const acl = crc ^ aversionCrcChange(of.aversion, aversion);

      expect(children >>> 0).toBe(plain('/a', bytes, { ...of, pzxid, cversion }));
      expect(acl >>> 0).toBe(plain('/a', bytes, { ...of, aversion }));
    }),
  );
});

test('what is below /zookeeper/ does not count, and the root has no path', () => {
  const blank = { czxid: 0, mzxid: 0, pzxid: 0, ctimeMs: 0, mtimeMs: 0, version: 0 };
  const of = { ...blank, cversion: 0, aversion: 0, owner: 0n };

  expect(share('/zookeeper/quota', Buffer.from('x'), of)).toBe(0);
  expect(share('/zookeeper', null, of)).not.toBe(0);
  expect(share('/', null, of)).toBe(share('', null, of));
});

test('a sum is that of all shares modulo 2^64, in any order', () => {
  fc.assert(
    fc.property(fc.array(int, { minLength: 1, maxLength: 50 }), fc.nat(), (crcs, seed) => {
      const sum = new TreeDigest();
      for (const crc of crcs) sum.add(crc);
      const expected = crcs.reduce((total, crc) => total + BigInt(crc >>> 0), 0n);
      expect(sum.value).toBe(BigInt.asIntN(64, expected));

      const removed = crcs[seed % crcs.length]!;
      sum.replace(removed, 7);
      expect(sum.value).toBe(BigInt.asIntN(64, expected - BigInt(removed >>> 0) + 7n));
    }),
  );
  const below = new TreeDigest();
  below.remove(1);
  expect(below.value).toBe(-1n);
});
