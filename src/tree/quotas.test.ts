import { expect, test } from 'vitest';
import { parseQuota, QuotaPaths, usageText } from './quotas.ts';

const max = '9223372036854775807';

test.each([
  ['count=1,bytes=2', 1n],
  [`count=${max}`, 2n ** 63n - 1n],
  ['count=-9223372036854775808', -(2n ** 63n)],
  [`count=+${'0'.repeat(100_000)}7`, 7n],
  ['count=9223372036854775808', undefined],
  ['count=-9223372036854775809', undefined],
  [`count=${'9'.repeat(100_000)}`, undefined],
  ['count=1.5', undefined],
  ['count=1,,;', 1n],
  ['count=', undefined],
  ['count==1', -1n],
])('%.40s has the count that Java reads: %s', (text, count) => {
  expect(parseQuota(Buffer.from(text))?.count).toBe(count);
});

test('what stands between and behind its pairs is read at once, however much', {
  timeout: 2_000,
}, () => {
  expect(parseQuota(Buffer.from(`count=1${','.repeat(200_000)}x`))).toBeNull();
  expect(parseQuota(Buffer.from(`count=1${'='.repeat(200_000)}x`))?.count).toBe(1n);
});

test('usage stays what Java can read, to the last digit', () => {
  const usage = parseQuota(Buffer.from(`count=${max},bytes=9007199254740993=;other=${max}`))!;

  expect(usageText(usage.count + 1n, usage.bytes + 1n, usage.others).toString()).toBe(
    `count=-9223372036854775808,bytes=9007199254740994=;other=${max}`,
  );
});

test('the longest quota above a path is found at once, however deep it is', {
  timeout: 2_000,
}, () => {
  const quotas = new QuotaPaths();
  const deep = '/a'.repeat(10_000);
  for (const path of ['/a/a', '/b', '/a/a/a', '/a/a/a', '/c/d/e']) quotas.add(path);

  for (let i = 0; i < 100; i++) expect(quotas.above(deep)).toBe('/a/a/a');
  quotas.delete('/a/a/a');
  quotas.delete('/never');
  for (let i = 0; i < 100; i++) expect(quotas.above(deep)).toBe('/a/a');
  expect([
    quotas.above('/a/a'),
    quotas.above('/b/x'),
    quotas.above('/a'),
    quotas.above('/ab'),
  ]).toEqual([...['/a/a', '/b', undefined, undefined]]);
});
