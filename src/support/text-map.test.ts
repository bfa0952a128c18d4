import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TextMap } from './text-map.ts';

const text = fc
  .record({
    length: fc.constantFrom(0, 1, 15_999, 16_000, 16_001, 20_000),
    end: fc.string({ maxLength: 2 }),
  })
  .map(({ length, end }) => 'x'.repeat(length) + end);

test('it holds what a Map would, however long the texts are', () => {
  const steps = fc.array(fc.record({ text, deletes: fc.boolean() }), { maxLength: 30 });
  fc.assert(
    fc.property(steps, (all) => {
      const [map, model] = [new TextMap<number>(), new Map<string, number>()];
      for (const [i, { text, deletes }] of all.entries()) {
        if (deletes) expect(map.delete(text)).toBe(model.delete(text));
        else map.set(text, i);
        if (!deletes) model.set(text, i);
        expect(map.size).toBe(model.size);
      }
      for (const { text } of all) {
        expect(map.get(text)).toBe(model.get(text));
        expect(map.has(text)).toBe(model.has(text));
      }
      expect(new Map(map)).toEqual(model);
      expect(new Set(map.keys())).toEqual(new Set(model.keys()));
      map.clear();
      expect([...map]).toEqual([]);
    }),
    { numRuns: 50 },
  );
});

test('long texts that differ in nothing but half a character are different keys', () => {
  const map = new TextMap<number>();
  const long = 'x'.repeat(20_000);
  map.set(`${long}\ud800`, 1);
  map.set(`${long}\ud801`, 2);

  expect([map.get(`${long}\ud800`), map.get(`${long}\ud801`)]).toEqual([1, 2]);
});
