/** `drover demo align`, played quickly: every scene comes, and nothing is left. */

import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bars } from '../src/cli/demo-align-picture.ts';
import { runInProcess } from './cli-run.ts';

const nobody = '127.0.0.1:1';

test('a partition runs dry, a member dies, and the others go on', { timeout: 90_000 }, async () => {
  const { code, records, err } = await runInProcess(nobody, [
    ...['demo', 'align', '--pace', '0', '--json'],
  ]);

  expect(err).toBe('');
  expect(code).toBe(0);
  const scenes = records.filter(({ scene }) => scene !== 'period');
  expect(scenes.map(({ scene }) => scene)).toEqual([
    ...['server', 'hint', 'joined', 'idle', 'crash', 'taken', 'back', 'end'],
  ]);
  const [joined, crash, taken, end] = ['joined', 'crash', 'taken', 'end'].map((scene) =>
    records.find((record) => record.scene === scene),
  );
  expect(new Set(Object.values(joined.owners)).size).toBe(3);
  expect(Object.values(taken.owners)).not.toContain(crash.member);
  expect(end.records).toBe(2_850);
  expect(records.filter(({ scene }) => scene === 'period').length).toBeGreaterThan(5);
  expect(existsSync(records[0].directory)).toBe(false);
});

test('it draws', { timeout: 90_000 }, async () => {
  const { out } = await runInProcess(nobody, ['demo', 'align', '--pace', '0']);

  expect(out).toMatch(/orders\/0 {2}(ann|bob|cid) {2}█+/);
  expect(out).toContain('has run dry');
});

test('Ctrl-C ends it, with nothing left', { timeout: 60_000 }, async () => {
  const ended = new AbortController();

  const { code, records } = await runInProcess(nobody, ['demo', 'align', '--json'], {
    signal: ended.signal,
    onOut: (out) => {
      if (out.includes('"scene":"joined"')) ended.abort();
    },
  });

  expect(code).toBe(0);
  expect(existsSync(records[0].directory)).toBe(false);
});

test('bars end where partitions are, and the limit stands where it is', () => {
  const at = (positionMs: number | null, state: string) => ({
    name: 'p',
    owner: 'o',
    state,
    positionMs,
  });
  const scale = { startMs: 0, endMs: 1_200_000, limitMs: 600_000, width: 20 };

  const drawn = bars([at(300_000, 'reading'), at(null, 'opening'), at(630_000, 'paused')], scale);

  expect(drawn).toEqual([
    'p  o  █████     ┊            reading',
    'p  o            ┊            opening',
    'p  o  ██████████┊            paused',
    '      00:00     00:10   00:20',
  ]);
});
