import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashOf, pathHash } from './path-hash.ts';
import { nextSlot, nodeAt, PathIndex, slotOf } from './path-index.ts';

/** FNV-1a with its usual start: what everybody can compute. */
function publicHash(path: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(path)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}

/** Either block of each pair leaves FNV-1a with the same hash, from where the pair before it left it. */
const pairs = ['9wlfa qqdha', '75zla epcpa', ...Array<string>(10).fill('05zla bpcpa')];

/** 4,096 names. */
function collidingPaths(): string[] {
  return pairs
    .map((pair) => pair.split(' '))
    .reduce((paths, blocks) => paths.flatMap((path) => blocks.map((b) => path + b)), ['/']);
}

test('names made to collide in a hash without a key have hashes of their own', () => {
  const paths = collidingPaths();

  expect(new Set(paths.map(publicHash)).size).toBe(1);
  // Of 4,096 random numbers of 32 bits two are the same in one run of 500, and five hardly ever.
  expect(new Set(paths.map((path) => pathHash(path))).size).toBeGreaterThan(4090);
});

test('a lookup in the path index stays short whatever names clients choose', () => {
  const index = new PathIndex();
  const hashes = collidingPaths().map((path) => pathHash(path));

  for (const [node, hash] of hashes.entries()) index.add(hash, node);

  let steps = 0;
  for (const [node, hash] of hashes.entries()) {
    const table = index.table(hash);
    for (let at = slotOf(table, hash); nodeAt(table, at) !== node; at = nextSlot(table, at)) {
      steps += 1;
    }
  }
  expect(steps / hashes.length).toBeLessThan(3); // with one hash for all: 2,048
});

test('the hash is HalfSipHash-1-3', () => {
  const bytes = Uint8Array.from({ length: 64 }, (_, i) => i);
  const key = { low: 0x03020100, high: 0x07060504 };
  const hashes = Array.from({ length: 10 }, (_, n) => hashOf(bytes, 0, n, key) >>> 0);

  expect(hashes).toEqual([
    0x5814c896, 0xe7e864ca, 0xbc4b0e30, 0x01539939, 0x7e059ea6, 0x88e3d89b, 0xa0080b65, 0x9d38d9d6,
    0x577999b1, 0xc839caed,
  ]);
  expect(hashOf(bytes, 0, 63, key) >>> 0).toBe(0x87178304);
});

test('a key of another process gives another hash', () => {
  const bytes = Buffer.from('/brokers/ids/1');

  const own = hashOf(bytes, 0, bytes.length);
  const others = [1, 2, 3].map((low) => hashOf(bytes, 0, bytes.length, { low, high: 0 }));

  expect(new Set([own, ...others]).size).toBe(4);
});

test('a path has the same hash as a string and as bytes, whatever its characters and length', () => {
  const paths = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 400 }),
    fc.string({ maxLength: 400 }),
  );
  fc.assert(
    fc.property(paths, fc.nat({ max: 5 }), (path, offset) => {
      const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(path)]);

      expect(hashOf(bytes, offset, bytes.length)).toBe(pathHash(path));
    }),
  );
});
