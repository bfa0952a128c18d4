import { expect, test } from 'vitest';
import { holderNames } from './acquire.ts';
import { inOrder } from './line.ts';
import { readersOrOneWriter, readWritePrefixes } from './read-write-rule.ts';

/** What may happen to a line of readers and writers: one joins, reads under its write lock, or leaves. */
type Step = { readonly line: readonly string[]; readonly what: string };

const name = (kind: string, who: number, number: number) =>
  `_c_${who}-__${kind}__${String(number).padStart(10, '0')}`;
const ownerOf = (node: string) => node.slice(3, node.indexOf('-'));
const isWriter = (node: string) => node.includes('__WRIT__');

function* steps(line: readonly string[], joined: number, clients: number): Generator<Step> {
  if (joined < clients) {
    for (const kind of ['READ', 'WRIT']) {
      yield { line: [...line, name(kind, joined, joined)], what: 'joined' };
    }
  }
  for (const node of line) {
    yield { line: line.filter((one) => one !== node), what: `left ${node}` };
  }
  const [first] = line;
  if (first !== undefined && isWriter(first)) {
    const read = first.replace('__WRIT__', '__READ__');
    if (!line.includes(read)) yield { line: [first, read, ...line.slice(1)], what: 'downgraded' };
  }
}

test('whatever up to five clients do in whatever order, a writer is alone, somebody always has it, and nobody loses it to another', () => {
  const clients = 5;
  const seen = new Set<string>();
  let looked = 0;
  const walk = (line: readonly string[], joined: number) => {
    const key = `${joined} ${line.join()}`;
    if (seen.has(key)) return;
    seen.add(key);
    const held = holderNames(line, readersOrOneWriter);
    for (const step of steps(line, joined, clients)) {
      looked += 1;
      const shuffled = inOrder([...step.line].reverse(), readWritePrefixes);
      expect(shuffled).toEqual(step.line); // whatever order the server lists them in
      const holders = holderNames(step.line, readersOrOneWriter);
      const owners = new Set(holders.map(ownerOf));
      if (holders.some(isWriter)) expect(owners.size, step.what).toBe(1);
      if (step.line.length > 0) expect(holders, step.what).not.toEqual([]);
      for (const node of held) {
        if (step.line.includes(node)) expect(holders, step.what).toContain(node);
      }
      for (const [at, node] of step.line.entries()) {
        const ahead = readersOrOneWriter(step.line, at);
        // Always somebody ahead, so that nobody waits in a circle.
        if (ahead !== null) expect(step.line.indexOf(ahead), node).toBeLessThan(at);
      }
      walk(step.line, step.what === 'joined' ? joined + 1 : joined);
    }
  };

  walk([], 0);

  expect(looked).toBeGreaterThan(500);
});

test('a reader waits for the nearest writer ahead, and never for a writer behind it', () => {
  const line = ['WRIT', 'READ', 'WRIT', 'READ', 'READ', 'WRIT'].map((kind, i) => name(kind, i, i));

  const waits = line.map((_, at) => readersOrOneWriter(line, at));

  expect(waits).toEqual([null, line[0], line[1], line[2], line[2], line[4]]);
});
