import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyOf } from '../kafka/index.ts';
import { javaLayout } from './java-layout.ts';
import {
  formatProgress,
  formatTopicPartitions,
  parseProgress,
  parseSeconds,
  parseTopicPartitions,
  type SeedTree,
  seedLayout,
} from './seed-layout.ts';

const plan = new Map([
  ['topic1', ['0', '1', '2']],
  ['topic2', ['0', '1']],
]);

test('topics and partitions are written as the document and as the Java program have them', () => {
  expect(seedLayout.formatPlan(plan)).toBe('topic1:0,1,2;\ntopic2:0,1;');
  expect(javaLayout.formatPlan(plan)).toBe('topic1:0,1,2;topic2:0,1;');
});

test('the text of the document itself is read', () => {
  const text = 'topic1:partition0,partition1;  \ntopic2:partition0;\n';
  const progress = 'topic1.partition0:60;topic1.partition1:0;\ntopic2.partition0:120;';

  expect([...parseTopicPartitions(text)]).toEqual([
    ['topic1', ['partition0', 'partition1']],
    ['topic2', ['partition0']],
  ]);
  expect(formatProgress(parseProgress(progress))).toBe(progress);
});

test('paths are those of the document and those of the Java program', () => {
  expect(seedLayout.paths('/r')).toMatchObject({
    coordinator: '/r/coordinator',
    topicPartitions: '/r/topic-partitions',
    progress: '/r/progress',
  });
  expect(javaLayout.paths('/r')).toMatchObject({
    leader: '/r/leader',
    coordinator: '/r/share/coordinator',
    topicPartitions: '/r/share/topic-partitions',
    progress: '/r/share/progress',
  });
});

test('the Java program’s progress is a node a partition, and a topic may hold dots', () => {
  const nodes: Record<string, string> = { 'a.b.0': '60', 'a.b.1': ' 120 ', junk: '5', 'c.0': 'x' };
  const tree: SeedTree = {
    get: (path) => ({ data: Buffer.from(nodes[path.replace('/r/share/progress/', '')] ?? '') }),
    children: () => Object.keys(nodes),
  };

  const found = javaLayout.readProgress(tree, javaLayout.paths('/r'));

  expect([...found]).toEqual([
    ['a.b/0', 60],
    ['a.b/1', 120],
  ]);
});

test('what is no time is no time', () => {
  expect(['', ' ', '-1', '1.5', '1e3', '99999999999999999999', '12a'].map(parseSeconds)).toEqual(
    Array(7).fill(null),
  );
  expect(parseSeconds('1700000060')).toBe(1_700_000_060);
});

test('names that the layout has no way to write are refused', () => {
  for (const topic of ['a:b', 'a;b', 'a,b', 'a b', '']) {
    expect(() => formatTopicPartitions(new Map([[topic, ['0']]]), '')).toThrow(/topic/);
  }
  expect(() => formatTopicPartitions(new Map([['t', ['0.1']]]), '')).toThrow(/partition/);
});

test('whatever is written is read again', () => {
  const name = fc.stringMatching(/^[a-zA-Z0-9._-]{1,20}$/);
  const partition = fc.nat(9_999).map(String);
  const plans = fc.uniqueArray(
    fc.tuple(name, fc.uniqueArray(partition, { minLength: 1, maxLength: 5 })),
    { selector: ([topic]) => topic, minLength: 1, maxLength: 5 },
  );
  fc.assert(
    fc.property(plans, fc.nat(2 ** 31 - 1), (topics, seconds) => {
      const keys = topics.flatMap(([topic, all]) =>
        all.map((each) => keyOf({ topic, partition: each })),
      );
      const progress = new Map(keys.map((key) => [key, seconds]));

      for (const between of ['', '\n'] as const) {
        const text = formatTopicPartitions(new Map(topics), between);
        expect([...parseTopicPartitions(text)]).toEqual(topics);
      }
      expect([...parseProgress(formatProgress(progress))]).toEqual([...progress]);
    }),
  );
});
