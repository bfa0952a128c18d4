/** `drover demo kafka`, played once and quickly: every scene comes, and nothing is left. */

import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runInProcess } from './cli-run.ts';

test('a controller dies and is replaced, groups rebalance, and one member is slow', {
  timeout: 120_000,
}, async () => {
  const { code, records, err } = await runInProcess('127.0.0.1:1', [
    ...['demo', 'kafka', '--rounds', '1', '--pace', '0', '--json'],
  ]);

  expect(err).toBe('');
  expect(code).toBe(0);
  expect(records.map(({ scene }) => scene)).toEqual([
    ...['server', 'brokers', 'topics', 'groups', 'join', 'joined', 'kill', 'replaced'],
    ...['returned', 'elected', 'crash', 'taken', 'left', 'lag'],
  ]);
  const [first, killed, next] = ['brokers', 'kill', 'replaced'].map((scene) =>
    records.find((record) => record.scene === scene),
  );
  expect(killed.broker).toBe(first.controller);
  expect(next.controller).not.toBe(first.controller);
  expect(next.epoch).toBe(first.epoch + 1);
  expect(records.at(-1).produced).toBeGreaterThan(0);
  expect(existsSync(records[0].directory)).toBe(false);
});

test('Ctrl-C ends it, with nothing left', { timeout: 60_000 }, async () => {
  const ended = new AbortController();

  const { code, records } = await runInProcess('127.0.0.1:1', ['demo', 'kafka', '--json'], {
    signal: ended.signal,
    onOut: (out) => {
      if (out.includes('"scene":"groups"')) ended.abort();
    },
  });

  expect(code).toBe(0);
  expect(existsSync(records[0].directory)).toBe(false);
});

test('there is no other demo', async () => {
  const said = await runInProcess('127.0.0.1:1', ['demo', 'chess']);

  expect(said.code).toBe(2);
  expect(said.err).toContain('there is drover demo kafka');
});
