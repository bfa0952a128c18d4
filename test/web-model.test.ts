/** The page's parts that need no browser: the tree as rows, events from text, bytes as text, numbers. */
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromBase64, guess, show, toBase64 } from '../web/src/decode.ts';
import { ago, bytes, duration, visible } from '../web/src/format.ts';
import { EventParser } from '../web/src/sse-parser.ts';
import { pageRows, type TreeChild, TreeModel } from '../web/src/tree-model.ts';

const child = (parent: string, name: string, numChildren = 0): TreeChild => ({
  name,
  path: parent === '/' ? `/${name}` : `${parent}/${name}`,
  stat: { numChildren },
});
const named = (at: number) => `n${String(at).padStart(6, '0')}`;
const pageOf = (parent: string, page: number, total: number) =>
  Array.from({ length: Math.min(pageRows, total - page * pageRows) }, (_, at) =>
    child(parent, named(page * pageRows + at)),
  );

describe('the tree as rows', () => {
  test('an open branch stands between its parent and the next sibling', () => {
    const tree = new TreeModel<TreeChild>();
    tree.put('/', 3, 0, [child('/', 'a'), child('/', 'b', 2), child('/', 'c')]);
    tree.open('/b', 2);
    tree.put('/b', 2, 0, [child('/b', 'x'), child('/b', 'y')]);

    const rows = Array.from({ length: tree.size }, (_, at) => tree.rowAt(at));

    expect(rows.map(({ path, depth }) => `${depth}${path}`)).toEqual([
      '0/',
      '1/a',
      '1/b',
      '2/b/x',
      '2/b/y',
      '1/c',
    ]);
    expect(rows.map(({ path }) => tree.indexOf(path))).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('a page that was on its way while its branch changed is shown, and asked for again', () => {
    const tree = new TreeModel<TreeChild>();
    const before = tree.changes;
    tree.invalidate('/'); // told before the first page is there
    tree.put('/', 1, 0, [child('/', 'a')], before);

    expect(tree.rowAt(1).path).toBe('/a');
    expect(tree.wants(0, 9)).toEqual([{ path: '/', page: 0 }]);
    tree.put('/', 2, 0, [child('/', 'a'), child('/', 'b')], tree.changes);
    expect(tree.wants(0, 9)).toEqual([]);
    // A change elsewhere is no reason.
    const asOf = tree.changes;
    tree.open('/a');
    tree.invalidate('/a');
    tree.put('/', 2, 0, [child('/', 'a'), child('/', 'b')], asOf);
    expect(tree.wants(0, 9)).toEqual([]);
  });

  test('an open branch that was empty, and a root that could not be read, want their children', () => {
    const tree = new TreeModel<TreeChild>();
    expect(tree.wants(0, 9)).toEqual([{ path: '/', page: 0 }]);
    tree.put('/', 1, 0, [child('/', 'queue', 1)]);
    tree.open('/queue', 1);
    tree.put('/queue', 0, 0, []);
    expect(tree.wants(0, 9)).toEqual([]);

    tree.invalidate('/queue');

    expect(tree.wants(0, 9)).toEqual([{ path: '/queue', page: 0 }]);
    tree.put('/queue', 1, 0, [child('/queue', 'again')]);
    expect(tree.wants(0, 9)).toEqual([]);
  });

  test('a branch of many pages that is emptied is asked for once, and no more', () => {
    const tree = new TreeModel<TreeChild>();
    tree.put('/', 1, 0, [child('/', 'queue', 2 * pageRows)]);
    tree.open('/queue', 2 * pageRows);
    for (const page of [0, 1]) {
      tree.put('/queue', 2 * pageRows, page * pageRows, pageOf('/queue', page, 2 * pageRows));
    }
    tree.invalidate('/queue');
    tree.put('/queue', 0, pageRows, []);

    expect(tree.wants(0, 9)).toEqual([{ path: '/queue', page: 0 }]);
    tree.put('/queue', 0, 0, []);
    expect(tree.wants(0, 9)).toEqual([]);
  });

  test('of 300,000 children only the pages in view are wanted', () => {
    const tree = new TreeModel<TreeChild>();
    const total = 300_000;
    tree.put('/', total, 0, pageOf('/', 0, total));

    expect(tree.size).toBe(total + 1);
    expect(tree.wants(0, 50)).toEqual([]);
    expect(tree.wants(250_000, 250_050)).toEqual([
      { path: '/', page: 1249 },
      { path: '/', page: 1250 },
    ]);
    tree.put('/', total, 1250 * pageRows, pageOf('/', 1250, total));
    expect(tree.rowAt(250_001).path).toBe('/n250000');
    expect(tree.rowAt(100_000).child).toBeNull();
  });

  test('an open child moves with its siblings, and goes when it is gone', () => {
    const tree = new TreeModel<TreeChild>();
    tree.put('/', 2, 0, [child('/', 'b', 1), child('/', 'd')]);
    tree.open('/b', 1);
    tree.put('/b', 1, 0, [child('/b', 'x')]);

    tree.invalidate('/');
    expect(tree.wants(0, 9)).toEqual([{ path: '/', page: 0 }]);
    tree.put('/', 3, 0, [child('/', 'a'), child('/', 'b', 1), child('/', 'd')]);
    expect([1, 2, 3, 4].map((at) => tree.rowAt(at).path)).toEqual(['/a', '/b', '/b/x', '/d']);

    tree.put('/', 2, 0, [child('/', 'a'), child('/', 'd')]);
    expect([1, 2].map((at) => tree.rowAt(at).path)).toEqual(['/a', '/d']);
    expect(tree.size).toBe(3);
  });

  test('every row is found again by its path, whatever is open', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 8 }), (opened) => {
        const tree = new TreeModel<TreeChild>();
        const names = Array.from({ length: 10 }, (_, at) => `k${at}`);
        const fill = (path: string) =>
          tree.put(
            path,
            10,
            0,
            names.map((name) => child(path, name, 10)),
          );
        fill('/');
        let path = '';
        for (const at of opened) {
          const next = `${path}/k${at}`;
          tree.open(next, 10);
          fill(next);
          path = at % 2 === 0 ? next : '';
        }
        for (let at = 0; at < tree.size; at += 1)
          expect(tree.indexOf(tree.rowAt(at).path)).toBe(at);
        expect(() => tree.rowAt(tree.size - 1)).not.toThrow();
      }),
      { numRuns: 200 },
    );
  });
});

test('events are whole wherever the text is cut', () => {
  const text =
    'event: nodes\nid: 7\ndata: {"a":1}\n\n: beat\n\ndata: x\ndata: y\r\n\r\nevent: none\n\n';
  const whole = new EventParser().feed(text);

  expect(whole).toEqual([
    { kind: 'nodes', id: '7', data: '{"a":1}' },
    { kind: 'message', id: '7', data: 'x\ny' },
  ]);
  for (let cut = 0; cut <= text.length; cut += 1) {
    const parser = new EventParser();
    expect([...parser.feed(text.slice(0, cut)), ...parser.feed(text.slice(cut))]).toEqual(whole);
  }
});

describe('bytes as text', () => {
  const utf8 = (text: string) => new Uint8Array(new TextEncoder().encode(text));

  test('the view is chosen by what the bytes are', () => {
    expect(guess(utf8('{"a":1}'))).toBe('json');
    expect(guess(utf8('{not json'))).toBe('text');
    expect(guess(utf8('plain\ttext\n'))).toBe('text');
    expect(guess(new Uint8Array([0, 1, 2]))).toBe('hex');
    expect(guess(new Uint8Array([0xff, 0xfe]))).toBe('hex');
    expect(guess(new Uint8Array(gzipSync('x')))).toBe('gzip');
  });

  test('gzip is unfolded, and what is broken is said and shown as hex', async () => {
    const packed = new Uint8Array(gzipSync('{"packed":true}'));

    expect((await show(packed, 'gzip')).text).toContain('"packed": true');
    expect((await show(packed.slice(0, 12), 'gzip')).note).toContain("can't be unfolded");
  });

  test('long numbers are not changed by laying out JSON', async () => {
    const shown = await show(utf8('{"id":12345678901234567890}'), 'json');

    expect(shown.text).toContain('12345678901234567890');
    expect(shown.note).toContain('long numbers');
  });

  test('a megabyte is cut, and says so', async () => {
    const shown = await show(utf8('x'.repeat(1024 * 1024)), 'text');

    expect(shown.text.length).toBe(256 * 1024);
    expect(shown.note).toContain('256 K of 1024 K');
  });

  test('base64 there and back changes no byte', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70_000 }), (data) => {
        expect(fromBase64(toBase64(data))).toEqual(new Uint8Array(data));
      }),
      { numRuns: 50 },
    );
  });
});

test('characters that turn or hide text are shown as what they are', () => {
  expect(visible('a\u202eb\u0000c\u200bd')).toBe('a\\u202eb\\u0000c\\u200bd');
  expect(visible('späth/名前')).toBe('späth/名前');
});

test('numbers read as people say them', () => {
  expect([0, 999, 61_000, 300_000, 3_600_000 * 50].map(duration)).toEqual([
    '0 ms',
    '999 ms',
    '1 min 1 s',
    '5 min',
    '2 d 2 h',
  ]);
  expect([0, 1023, 1536, 1048576].map(bytes)).toEqual(['0 B', '1023 B', '1.5 KB', '1.0 MB']);
  expect([ago(null, 5), ago(1_000, 1_500), ago(1_000, 62_000), ago(9_000, 1_000)]).toEqual([
    '–',
    'now',
    '1 min 1 s ago',
    'now',
  ]);
});
