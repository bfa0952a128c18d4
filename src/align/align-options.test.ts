import { expect, test } from 'vitest';
import type { RecordSource } from '../kafka/index.ts';
import { type AlignOptions, settingsOf } from './align-options.ts';

const good = {
  ...{ group: 'g', source: {} as RecordSource, topics: { t: 1 }, mode: { period: '1m' } },
} as const;

const wrong: [options: Partial<Record<keyof AlignOptions, unknown>>, why: RegExp][] = [
  [{ group: 'a/b' }, /^group/],
  [{ topics: {} }, /^topics/],
  [{ mode: { period: '0s' } }, /^period/],
  [{ outOfOrder: -1 }, /^outOfOrder/],
  [{ idleAfter: 'soon' }, /^idleAfter/],
  [{ quarantine: 'ignore' }, /^quarantine/],
  [{ from: 'yesterday' }, /^from/],
  [{ from: 2, to: 1 }, /^to/],
  [{ batchRecordsMax: 0 }, /^batchRecordsMax/],
  [{ doubtShare: 2 }, /^doubtShare/],
  [{ eventTime: 'ts' }, /^eventTime/],
  [{ layout: 'other' }, /^layout/],
  [{ layout: 'java' }, /^layout: startMs, or from, is wanted/],
  [{ layout: 'java', from: 0, mode: { drift: '1m' } }, /^mode/],
];

test.for(wrong)('%o makes no sense, and is refused by name', ([options, why]) => {
  expect(() => settingsOf({ ...good, ...options } as AlignOptions)).toThrow(why);
});

test('what is not said has a value all the same', () => {
  expect(settingsOf(good)).toMatchObject({
    ...{ idleAfterMs: 30_000, allowanceMs: 0, quarantine: 'skip', batchRecordsMax: 500 },
    ...{ fromMs: null, toMs: null, shared: null, topicNames: ['t'] },
  });
});
