import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planLayout } from './group-plan-nodes.ts';
import {
  type ConsumerRegistration,
  formatOwner,
  LayoutError,
  type LayoutProblem,
  layout07,
  layout08,
  layoutMetaq,
  ownerOf,
  parseBrokerPartition,
  rowOf,
  steady,
} from './index.ts';

const bytes = (text: string) => Buffer.from(text);
const json = (value: object) => bytes(JSON.stringify(value));
const at = '/somewhere';

test('a path and its names lead to each other, for every row of every layout', () => {
  for (const layout of [layout07, layout08, layoutMetaq]) {
    for (const [name, row] of Object.entries(layout)) {
      const names = Object.fromEntries(
        [...row.path.matchAll(/\[([^\]]+)\]/g)].map(([, one], i) => [one, `${i + 1}0`]),
      );
      const path = (row.at as (names: object) => string)(names);

      expect(row.match(path)).toEqual(names);
      expect(rowOf(layout, path)).toEqual({ name, names });
    }
  }
  expect(rowOf(layout08, '/brokers/nothing/of/the/kind')).toBeNull();
});

test('names that a path cannot hold are encoded as Kafka encodes them', () => {
  const path = layout08.userConfig.at({ user: 'CN=a b/c*' });

  expect(path).toBe('/config/users/CN%3Da%20b%2Fc%2A');
  expect(layout08.userConfig.match(path)).toEqual({ user: 'CN=a b/c*' });
});

test('brokers are read in every version that was ever written', () => {
  const parse = (data: object) => layout08.broker.parse(json(data), at);
  const common = { host: 'h', port: 9092, jmx_port: 9999, timestamp: '1403061899859' };

  expect(parse({ version: 1, ...common })).toEqual({
    version: 1,
    endpoints: [{ listener: 'PLAINTEXT', protocol: 'PLAINTEXT', host: 'h', port: 9092 }],
    host: 'h',
    port: 9092,
    jmxPort: 9999,
    timestampMs: 1403061899859,
    rack: null,
    features: {},
  });
  expect(
    parse({ version: 2, ...common, endpoints: ['PLAINTEXT://h:9092', 'SSL://[::1]:9093'] })
      .endpoints,
  ).toMatchObject([{ port: 9092 }, { listener: 'SSL', protocol: 'SSL', host: '::1', port: 9093 }]);
  expect(parse({ version: 3, ...common, endpoints: ['SSL://:1'], rack: 'r' })).toMatchObject({
    rack: 'r',
    endpoints: [{ host: null }],
  });
  expect(
    parse({
      version: 5,
      host: null,
      port: -1,
      jmx_port: -1,
      timestamp: 1403061899859,
      endpoints: ['INSIDE://a-1.b_c:9092'],
      listener_security_protocol_map: { INSIDE: 'SASL_SSL' },
      features: { f: { min_version: 1, max_version: 2 } },
      and: 'more',
    }),
  ).toMatchObject({
    host: null,
    endpoints: [{ listener: 'INSIDE', protocol: 'SASL_SSL', host: 'a-1.b_c', port: 9092 }],
    features: { f: { max_version: 2 } },
    timestampMs: 1403061899859,
  });
});

test('a broker is written as Kafka writes it, and in the older version that was chosen', () => {
  const broker = {
    version: 5,
    endpoints: [{ listener: 'PLAINTEXT', protocol: 'PLAINTEXT', host: 'h', port: 9092 }],
    host: 'h',
    port: 9092,
    jmxPort: -1,
    timestampMs: 7,
    rack: null,
    features: {},
  };

  expect(layout08.broker.format(broker)).toBe(
    '{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"port":9092,"host":"h","version":5,"timestamp":"7"}',
  );
  expect(layout08.broker.format(broker, 1)).toBe(
    '{"jmx_port":-1,"timestamp":"7","host":"h","version":1,"port":9092}',
  );
  expect(() => layout08.broker.format(broker, 6)).toThrow(/1 to 5/);
  expect(layout07.broker.format(broker)).toBe('h-7:h:9092');
});

const golden = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../test/golden/kafka/brokers.json'), 'utf8'),
) as { readonly registrations: readonly { readonly release: string; readonly text: string }[] };

test.for(golden.registrations)(
  'a broker of $release is read, and written again letter by letter',
  ({ text }) => {
    const broker = layout08.broker.parse(bytes(text), at);

    expect(layout08.broker.format(broker, broker.version)).toBe(text);
  },
);

test('0.7: the nodes of the document are read', () => {
  expect(layout07.broker.parse(bytes('mota29-1394675777000:mota29:9092'), at)).toMatchObject({
    host: 'mota29',
    port: 9092,
    timestampMs: 1394675777000,
  });
  expect(layout07.topicBroker.parse(bytes('5'), at)).toBe(5);
  expect(layout07.consumer.parse(bytes('{ "topic1": 1 ,"topic2":2}'), at).subscription).toEqual(
    new Map([
      ['topic1', 1],
      ['topic2', 2],
    ]),
  );
  expect(layout07.consumer.parse(bytes('*3*a*b'), at)).toMatchObject({
    pattern: 'white_list',
    subscription: new Map([['a*b', 3]]),
  });
  expect(layout07.consumer.parse(bytes('!1!x!y'), at).pattern).toBe('black_list');
  expect(layout07.offset.parse(bytes('9223372036854775807'), at)).toBe(9223372036854775807n);
  expect(parseBrokerPartition('29-4')).toEqual({ broker: 29, partition: 4 });
});

test.for([
  [layout08.consumer, '{"version":1,"subscription":{"a/b":1},"pattern":"static"}', /a\/b/],
  [layout08.consumer, '{"version":1,"subscription":{"":1},"pattern":"static"}', /no name/],
  [layout08.consumer, '..', /\.\./],
  [layout08.consumer, '{"version":1,"subscription":{"t":10001},"pattern":"static"}', /10000/],
  [layout08.consumer, '{"version":1,"subscription":{"t.*":10001},"pattern":"white_list"}', /10000/],
  [layout07.consumer, '{ "../t": 1 }', /\.\./],
  [layout07.consumer, '*10001*t.*', /10000/],
  [layoutMetaq.consumer, 't,a/b', /a\/b/],
  [layout07.topicBroker, '200001', /200000/],
  [layoutMetaq.sharePub, '{"numParts":200001}', /200000/],
  [planLayout.memberPlan, '{"epoch":1,"partitions":{"..":{"0":[0]}}}', /\.\./],
  [planLayout.memberPlan, '{"epoch":1,"partitions":{"t":{"0":["a/b"]}}}', /a\/b/],
  [
    planLayout.memberPlan,
    '{"epoch":1,"partitions":{"t":{"0":[[0,1000000]]}}}',
    /200000 partitions/,
  ],
  [
    planLayout.memberPlan,
    `{"epoch":1,"partitions":{"t":{"0":[${'[0,99999],'.repeat(300)}0]}}}`,
    /200000 partitions in all/,
  ],
  [planLayout.memberPlan, '{"epoch":1,"partitions":{"t":{"0":[[-9,-1]]}}}', /no such run/],
] as const)(
  'what no node can be called, and numbers without end, are refused: %#',
  ([row, text, why]) => {
    expect(() => row.parse(bytes(text), at)).toThrow(why);
  },
);

test('a filter is no name: it may hold what a path may not', () => {
  const text = '{"version":1,"subscription":{"a/b|..":10000},"pattern":"black_list"}';

  expect([...layout08.consumer.parse(bytes(text), at).subscription]).toEqual([['a/b|..', 10_000]]);
});

test('0.7: registrations go out as 0.7 wrote them', () => {
  const registration = (text: string) => layout07.consumer.parse(bytes(text), at);

  for (const text of ['{ "t1": 2,"t2": 1 }', '*3*a.*', '!1!b']) {
    expect(layout07.consumer.format(registration(text))).toBe(text);
  }
});

test('topics are read in every version, in the order of their partitions', () => {
  const parse = (data: object) => layout08.topic.parse(json(data), at);

  expect(parse({ version: 1, partitions: { 10: [1], 2: [2, 1] } })).toEqual({
    version: 1,
    topicId: null,
    partitions: new Map([
      [2, steady([2, 1])],
      [10, steady([1])],
    ]),
  });
  expect(
    parse({
      version: 3,
      topic_id: 'QyP0pmuZQRWpgqtaxhQ-sA',
      partitions: { 0: [3, 1, 2] },
      adding_replicas: { 0: [3] },
      removing_replicas: { 0: [2] },
    }),
  ).toMatchObject({
    topicId: 'QyP0pmuZQRWpgqtaxhQ-sA',
    partitions: new Map([[0, { replicas: [3, 1, 2], adding: [3], removing: [2] }]]),
  });
});

test('topics and states are written in the form of Kafka 3.9', () => {
  const topic = { version: 3, topicId: 'x', partitions: new Map([[0, steady([1, 2])]]) };
  const state = { leader: 1, leaderEpoch: 0, controllerEpoch: 1, isr: [1, 2], isRecovering: false };

  expect(layout08.topic.format(topic)).toBe(
    '{"partitions":{"0":[1,2]},"topic_id":"x","adding_replicas":{},"removing_replicas":{},"version":3}',
  );
  expect(layout08.topic.format(topic, 1)).toBe('{"partitions":{"0":[1,2]},"version":1}');
  expect(layout08.partitionState.format(state)).toBe(
    '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}',
  );
  expect(layout08.partitionState.format({ ...state, isRecovering: true })).toContain(
    '"leader_recovery_state":1',
  );
});

test('everything written is read back the same', () => {
  const ids = fc.uniqueArray(fc.integer({ min: 0, max: 2 ** 31 - 1 }), {
    minLength: 1,
    maxLength: 5,
  });
  const set = fc.record({ replicas: ids, adding: ids, removing: ids });
  fc.assert(
    fc.property(
      fc.dictionary(fc.nat(99_999).map(String), set),
      fc.nat(),
      ids,
      (sets, epoch, isr) => {
        const partitions = new Map(
          Object.entries(sets)
            .map(([key, value]) => [Number(key), value] as const)
            .sort(([a], [b]) => a - b),
        );
        const topic = { version: 3, topicId: null, partitions };
        const state = {
          leader: 1,
          leaderEpoch: epoch,
          controllerEpoch: 2,
          isr,
          isRecovering: true,
        };

        expect(layout08.topic.parse(bytes(layout08.topic.format(topic)!), at)).toEqual(topic);
        const written = layout08.partitionState.format(state)!;
        expect(layout08.partitionState.parse(bytes(written), at)).toEqual(state);
      },
    ),
  );
});

test('the controller, its epoch and the cluster are read in all their forms', () => {
  const parse = (text: string) => layout08.controller.parse(bytes(text), at);

  expect(parse('3')).toMatchObject({ brokerId: 3 });
  expect(parse('{"version":1,"brokerid":3,"timestamp":"1403061802981"}')).toEqual({
    brokerId: 3,
    timestampMs: 1403061802981,
    kraftControllerEpoch: -1,
  });
  expect(
    parse('{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'),
  ).toMatchObject({ kraftControllerEpoch: 5 });
  expect(layout08.controllerEpoch.parse(bytes('17'), at)).toBe(17);
  expect(layout08.clusterId.parse(bytes('{"version":"1","id":"abc"}'), at)).toBe('abc');
  expect(
    layout08.controller.format({ brokerId: 1, timestampMs: 5, kraftControllerEpoch: -1 }),
  ).toBe('{"version":2,"brokerid":1,"timestamp":"5","kraftControllerEpoch":-1}');
});

test('config changes are read in their three forms', () => {
  const parse = (text: string) => layout08.configChange.parse(bytes(text), at);

  expect(parse('{"version":2,"entity_path":"users/u/clients/c"}')).toBe('users/u/clients/c');
  expect(parse('{"version":1,"entity_type":"topics","entity_name":"t"}')).toBe('topics/t');
  expect(parse('"t"')).toBe('topics/t');
});

test('JSON whose backslashes nobody escaped is read', () => {
  const text = '{"version":1,"acls":[{"principal":"User:CN=\\+a","host":"*"}]}';

  expect(layout08.acl.parse(bytes(text), at)).toMatchObject({
    acls: [{ principal: 'User:CN=\\+a' }],
  });
});

test('consumers of other make are understood', () => {
  const parse = (text: string): ConsumerRegistration => layout08.consumer.parse(bytes(text), at);

  // kafka-node: a white list of plain names; kazoo-go: a time in seconds; pykafka: the bare topic.
  expect(
    parse('{"version":1,"subscription":{"b":1,"a":1},"pattern":"white_list","timestamp":"1"}'),
  ).toMatchObject({
    pattern: 'white_list',
    subscription: new Map([
      ['b', 1],
      ['a', 1],
    ]),
  });
  expect(
    parse('{"pattern":"static","subscription":{"t":1},"timestamp":1411294187,"version":1}')
      .timestampMs,
  ).toBe(1411294187000);
  expect(parse('my.topic-1')).toMatchObject({ subscription: new Map([['my.topic-1', 1]]) });
});

test('an owner is a consumer and perhaps a thread', () => {
  expect(ownerOf('g_host-1411-a8e438be-0')).toEqual({
    consumerId: 'g_host-1411-a8e438be',
    thread: 0,
  });
  expect(ownerOf('host:uuid')).toEqual({ consumerId: 'host:uuid', thread: null });
  expect(ownerOf('host-5', new Set(['host-5']))).toEqual({ consumerId: 'host-5', thread: null });
  expect(formatOwner({ consumerId: 'c', thread: 2 })).toBe('c-2');
});

test('MetaQ: addresses, shares and offsets', () => {
  expect(layoutMetaq.master.parse(bytes('meta://[::1]:8123'), at)).toEqual({
    host: '::1',
    port: 8123,
  });
  expect(layoutMetaq.sharePub.parse(bytes('{"numParts":3,"broker":"1-m"}'), at)).toEqual({
    numParts: 3,
    broker: '1-m',
  });
  expect(layoutMetaq.offset.parse(bytes('77-1024'), at)).toEqual({ messageId: 77n, offset: 1024n });
  expect(layoutMetaq.offset.parse(bytes('1024'), at)).toEqual({ messageId: null, offset: 1024n });
  expect(layoutMetaq.consumer.parse(bytes('t1,t2'), at).subscription.size).toBe(2);
});

test('garbage in any node is told with its path and stops nobody', () => {
  const garbage = ['', '{', 'null', '[]', '{"version":1}', '\u0000\u0001', '{"isr":"no"}'];
  const rows = [layout08.broker, layout08.topic, layout08.partitionState, layout08.controller];
  for (const row of rows) {
    for (const text of garbage) {
      const problems: LayoutProblem[] = [];

      expect(row.tryParse(bytes(text), '/the/path', (one) => problems.push(one))).toBeNull();

      expect(problems).toMatchObject([{ path: '/the/path', content: text }]);
      expect(() => row.parse(bytes(text), '/the/path')).toThrow(LayoutError);
    }
  }
});

test('whatever stands in a node, a reader gets a value or a problem', () => {
  const rows = [layout07, layout08, layoutMetaq].flatMap((layout) => Object.values(layout));
  const anything = fc.oneof(fc.string(), fc.json(), fc.constant(null));
  fc.assert(
    fc.property(fc.constantFrom(...rows), anything, (row, text) => {
      row.tryParse(text === null ? null : bytes(text), at, () => {});
    }),
    { numRuns: 2_000 },
  );
});
