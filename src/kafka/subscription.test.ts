import { expect, test } from 'vitest';
import { consumerIdOf, isGenerated } from './consumer-id.ts';
import { memberPlanContent } from './group-plan-nodes.ts';
import { partitionNumber, sortPartitions } from './partition.ts';
import { expand, filterOf, registrationOf } from './subscription.ts';

const all = ['a', 'ab', 'b', 'orders', '__consumer_offsets'];
const names = (filter: Parameters<typeof registrationOf>[0], internal = false) => [
  ...expand(registrationOf(filter, 0), all, internal).keys(),
];

test('a white list matches whole names; commas mean or, blanks and outer quotes mean nothing', () => {
  expect(names({ whiteList: 'a' })).toEqual(['a']);
  expect(names({ whiteList: ' "a, orders" ' })).toEqual(['a', 'orders']);
  expect(names({ whiteList: "'a.*'" })).toEqual(['a', 'ab']);
  expect(names({ whiteList: '.*' })).toEqual(['a', 'ab', 'b', 'orders']);
  expect(names({ whiteList: '.*' }, true)).toEqual(all);
});

test('a black list is all that does not match', () => {
  expect(names({ blackList: 'a.*,b' })).toEqual(['orders']);
});

test('threads are counted for each topic', () => {
  expect([...expand(registrationOf({ topics: { a: 2, b: 1 } }, 0), [])]).toEqual([
    ['a', 2],
    ['b', 1],
  ]);
  expect([...expand(registrationOf({ whiteList: 'a|b', threads: 3 }, 0), all)]).toEqual([
    ['a', 3],
    ['b', 3],
  ]);
});

test('of a filter with several keys only the first counts, as in Java', () => {
  const written = new Map([
    ['a', 1],
    ['b', 1],
  ]);
  const registration = { pattern: 'white_list', subscription: written, timestampMs: null } as const;

  expect([...expand(registration, all).keys()]).toEqual(['a']);
});

test('what cannot be a subscription is refused, and says which argument', () => {
  expect(() => registrationOf({ topics: [] }, 0)).toThrow(/topics/);
  expect(() => registrationOf({ topics: ['a/b'] }, 0)).toThrow(/a\/b/);
  expect(() => registrationOf({ topics: { a: 0 } }, 0)).toThrow(/threads/);
  expect(() => registrationOf({ whiteList: '(' }, 0)).toThrow(/filter/);
  expect(() => filterOf(' ')).toThrow(/matches all/);
});

test('a filter that would keep a backtracking engine busy for ever is matched at once', () => {
  const topics = ['a'.repeat(249), ...all];
  const written = (filter: string) =>
    ({ pattern: 'white_list', subscription: new Map([[filter, 1]]), timestampMs: null }) as const;

  expect([...expand(written('(a+)+b'), topics).keys()]).toEqual(['ab']);
  expect([...expand(written('(a|a)*b|(.*a){12}c'), topics).keys()]).toEqual(['ab', 'b']);
});

test('a filter means what it means to Java, or is refused by name', () => {
  const topics = ['api-v1', 'a]b', 'logs.eu', 'LOGS.eu', 'x1'];
  const wanted = (filter: string) => topics.filter(filterOf(filter));

  expect(wanted('api\\-v1, logs\\..*')).toEqual(['api-v1', 'logs.eu']);
  expect(wanted('"[A-Z]+[.]eu|\\w\\d"')).toEqual(['LOGS.eu', 'x1']);
  expect(wanted('a]b')).toEqual(['a]b']);
  expect(wanted('(logs)')).toEqual([]);
  for (const [filter, why] of [
    ['(?i)logs.*', /flags/],
    ['logs(?!.*eu)', /look-ahead/],
    ['\\Qlogs.eu\\E', /quotation/],
    ['[a-z&&[^x]]+', /intersection/],
    ['(a)\\1', /back-reference/],
    ['a*+', /possessive/],
    ['a{1,2}', /\{ has no count/], // the comma has become "or", as in Java's consumer
  ] as const) {
    expect(() => filterOf(filter), filter).toThrow(why);
    expect(() => filterOf(filter), filter).toThrow(/cannot use the filter/);
  }
});

test('a filter is bounded in its length, its size and its work', () => {
  const topics = Array.from({ length: 20_000 }, (_, i) =>
    (i * 2_654_435_761).toString(2).replaceAll('0', 'a').replaceAll('1', 'b').repeat(5),
  );
  const matches = filterOf('.*a[ab]{80}c');

  expect(() => filterOf(`${'"'.repeat(1_000_000)}a`)).toThrow(/1000001 characters/);
  expect(() => filterOf('((a{900}){900}){900}')).toThrow(/too large/);
  expect(() => topics.filter(matches)).toThrow(/too much work/);
});

test('an id is made by the rule of the documents, zeros and all', () => {
  const uuid = '0000002a-0000-4000-8000-000000000000';
  const id = consumerIdOf({ group: 'g', wallMs: 1_411_294_187_842.7, host: 'h-1', uuid });

  expect(id).toBe('g_h-1-1411294187842-0000002a');
  expect([id, 'g_mine', 'g_h-1-2'].map(isGenerated)).toEqual([true, false, false]);
  expect(consumerIdOf({ group: 'g', consumerId: 'me', wallMs: 0 })).toBe('g_me');
  expect(() => consumerIdOf({ group: 'a/b', wallMs: 0 })).toThrow(/group/);
  expect(() => consumerIdOf({ group: 'g', consumerId: '', wallMs: 0 })).toThrow(/consumerId/);
});

test('a part of a plan is written in runs, and read back', () => {
  const partitions = new Map([
    ['t/0', 0],
    ['t/1', 0],
    ['t/2', 0],
    ['t/7', 0],
    ['t/8', 1],
    ['u/29-0', 0],
  ]);

  const text = memberPlanContent.format({ epoch: 3, partitions })!;

  expect(JSON.parse(text)).toEqual({
    version: 1,
    epoch: 3,
    partitions: { t: { 0: [[0, 2], 7], 1: [8] }, u: { 0: ['29-0'] } },
  });
  expect(memberPlanContent.parse(text)).toEqual({ epoch: 3, partitions });
  for (const bad of ['{}', '{"epoch":1,"partitions":{"t":{"0":[[0,99999999]]}}}', 'x', '[]']) {
    expect(() => memberPlanContent.parse(bad)).toThrow();
  }
});

test('partitions sort by number, and as text where brokers count for themselves', () => {
  expect(sortPartitions(['10', '9', '1'])).toEqual(['1', '9', '10']);
  expect(sortPartitions(['0-2', '0-10', '0-1'])).toEqual(['0-1', '0-10', '0-2']);
  expect(partitionNumber({ topic: 't', partition: '29-3' })).toBe(3);
  expect(() => partitionNumber({ topic: 't', partition: 'x' })).toThrow(/partition/);
});
