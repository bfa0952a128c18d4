import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  byBrokerAndPartition,
  chooseByKey,
  murmur2,
  type ProducerPartition,
  RoundRobin,
  Sticky,
} from './producer-choice.ts';

const at = (broker: number, partition: number): ProducerPartition => ({
  topic: 't',
  partition,
  name: `${broker}-${partition}`,
  broker,
});
const list = [at(1, 0), at(1, 1), at(2, 0)];
const names = (chosen: (ProducerPartition | null)[]) => chosen.map((one) => one?.name);

test('murmur2 gives what Kafka gives', () => {
  const known = {
    '21': -973932308,
    foobar: -790332482,
    'a-little-bit-long-string': -985981536,
    'a-little-bit-longer-string': -1486304829,
    lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8: -58897971,
    abc: 479470107,
  };

  for (const [key, hash] of Object.entries(known)) expect(murmur2(key)).toBe(hash);
});

test('the list is by broker, then by partition', () => {
  expect(names([at(10, 0), at(2, 10), at(2, 9)].sort(byBrokerAndPartition))).toEqual([
    '2-9',
    '2-10',
    '10-0',
  ]);
});

test('round robin goes through the list and round again, whatever comes and goes', () => {
  const robin = new RoundRobin();

  expect(names([1, 2, 3, 4].map(() => robin.choose(list)))).toEqual(['1-0', '1-1', '2-0', '1-0']);
  expect(robin.choose([])).toBeNull();
  expect(names([robin.choose(list.slice(2))])).toEqual(['2-0']);
  expect(new RoundRobin(0x7fff_ffff).choose(list)).toBe(list[1]);
});

test('a key keeps its partition', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 50 }), (key, count) => {
      const all = Array.from({ length: count }, (_, i) => at(1, i));

      expect(chooseByKey(key, all)).toBe(chooseByKey(Buffer.from(key), all));
      expect(all).toContain(chooseByKey(key, all));
    }),
  );
  expect(chooseByKey('k', [])).toBeNull();
});

test('sticky stays for a batch, then goes elsewhere, and leaves what is gone at once', () => {
  const sticky = new Sticky({ recordsMax: 2, random: () => 0 });

  expect(names([1, 2, 3, 4].map(() => sticky.choose(list)))).toEqual(['1-0', '1-0', '1-1', '1-1']);
  expect(names([sticky.choose(list)])).toEqual(['1-0']);
  expect(names([sticky.choose(list.slice(1))])).toEqual(['1-1']);
  sticky.batchEnded();
  expect(names([sticky.choose(list)])).toEqual(['1-0']);
  expect(sticky.choose([])).toBeNull();
  expect(names([new Sticky({ recordsMax: 1 }).choose([list[0]!])])).toEqual(['1-0']);
});
