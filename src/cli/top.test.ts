import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { Output } from './output.ts';
import type { ServerRow } from './server-facts.ts';
import { frameOf } from './top.ts';

function rowsOf(count: number): ServerRow[] {
  return Array.from({ length: count }, (_, i) => ({
    server: { host: `zk${i}`, port: 2181, name: `zk${i}:2181` },
    role: 'follower',
    version: '3.9.5',
    zxid: 1n,
    answerMs: 1,
    values: {},
  }));
}

/** The lines between the escapes. */
function linesOf(frame: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what is taken out
  return frame.replace(/\x1b\[[\d?]*[A-Za-z]/g, '').split('\r\n');
}

test('a terminal that calls its size 0 by 0, as script(1) makes one, is taken for 80 by 24', () => {
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 0, rows: 0 });
  const output = new Output({}, { stdout });

  const lines = linesOf(frameOf(rowsOf(1), [undefined], output));

  expect([output.columns, output.rows]).toEqual([80, 24]);
  expect(lines[1]).toMatch(/^SERVER +ROLE/);
  expect(lines[2]).toMatch(/^zk0:2181 +follower/);
});

test('no line is wider than the screen, and no frame is higher', () => {
  const lines = linesOf(frameOf(rowsOf(9), [], { columns: 30, rows: 6 }));

  expect(lines).toHaveLength(6);
  expect(Math.max(...lines.map((line) => line.length))).toBe(30);
  expect(lines.at(-1)).toBe('… 6 more');
  expect(lines.at(-2)).toMatch(/^zk2:2181/);
});

test('without a screen every line is whole', () => {
  const lines = frameOf(rowsOf(40), [], null).trimEnd().split('\n');

  expect(lines).toHaveLength(42);
});
