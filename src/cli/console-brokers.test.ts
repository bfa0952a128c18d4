/** Who is asked for the ends of partitions, and what is said while nobody can be. */

import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Client, connect } from '../client/index.ts';
import { type OffsetSource, ReaderError } from '../kafka/index.ts';
import { ManualClock } from '../support/index.ts';
import { startTestServer } from '../testing/index.ts';
import { askedBrokers, BrokerEnds } from './console-brokers.ts';

const id = { topic: 'orders', partition: '0' };
const broker = (endpoint: string) =>
  JSON.stringify({
    ...{ version: 4, host: null, port: -1, jmx_port: -1, timestamp: '1', endpoints: [endpoint] },
    listener_security_protocol_map: { PLAINTEXT: 'PLAINTEXT', SSL: 'SSL' },
  });

/** Answers, or refuses, as `refusal` says now. */
class Fake {
  readonly asked: (readonly string[])[] = [];
  refusal: ReaderError | null = null;
  isClosed = false;
  readonly open = async (addresses: readonly string[]): Promise<OffsetSource> => {
    this.asked.push(addresses);
    const answer = async <T>(value: T): Promise<T> => {
      if (this.refusal !== null) throw this.refusal;
      return value;
    };
    return {
      bounds: () => answer({ earliest: 0n, latest: 7n }),
      offsetForTime: () => answer(3n),
      close: async () => {
        this.isClosed = true;
      },
    };
  };
}

const register = (client: Client, endpoint: string) =>
  client.create('/brokers/ids/1', broker(endpoint), { mode: 'ephemeral', parents: true });

test('the brokers that stand in ZooKeeper are asked, once somebody wants to know', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  await register(client, 'PLAINTEXT://kafka.test:9092');
  const fake = new Fake();
  const ends = new BrokerEnds(client, 'registered', { open: fake.open });

  expect(fake.asked).toEqual([]);
  await expect.poll(() => ends.source).toBeDefined();

  expect(fake.asked).toEqual([['kafka.test:9092']]);
  expect(await ends.source!.bounds(id)).toEqual({ earliest: 0n, latest: 7n });
  await ends.close();
  expect([fake.isClosed, ends.source]).toEqual([true, undefined]);
});

// biome-ignore format: a table is read down its columns
test.each([
  ['nobody is to be asked',   'none',       null,                    /brokers are not asked.*--brokers registered/],
  ['no broker lives',         'registered', null,                    /no broker lives in ZooKeeper/],
  ['brokers want TLS',        'registered', 'SSL://kafka.test:9093', /without TLS and SASL/],
] as const)('it is said why lag is unknown when %s', async (_, brokers, endpoint, why) => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  if (endpoint !== null) await register(client, endpoint);
  const fake = new Fake();
  const ends = new BrokerEnds(client, brokers, { open: fake.open });

  expect(ends.source).toBeUndefined();
  await expect.poll(() => ends.why).toMatch(why);
  expect(fake.asked).toEqual([]);
  await ends.close();
});

test('it is said that kafkajs is missing, and why brokers do not answer', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  const missing = new BrokerEnds(client, ['a:1'], { open: async () => null });
  const refusing = new BrokerEnds(client, ['a:1'], {
    open: async () => {
      throw new ReaderError('SOURCE_FAILED', 'no broker can be asked: refused');
    },
  });

  for (const ends of [missing, refusing]) expect(ends.source).toBeUndefined();
  await expect.poll(() => missing.why).toMatch(/npm install kafkajs/);
  await expect.poll(() => refusing.why).toBe('no broker can be asked: refused');
  await missing.close();
  await refusing.close();
});

test('brokers that fell silent are looked for anew, and not more often than is good for them', async () => {
  await using server = await startTestServer();
  await using client = await connect(server.address);
  const clock = new ManualClock();
  const fake = new Fake();
  const ends = new BrokerEnds(client, ['a:1'], { open: fake.open, clock });
  await expect.poll(() => ends.source).toBeDefined();
  fake.refusal = new ReaderError('SOURCE_FAILED', 'gone');
  const ask = () => ends.source!.bounds(id);

  await expect(ask()).rejects.toThrow('gone');
  expect(ends.source).toBeDefined(); // a topic that is gone is refused alike
  clock.advance(10_000);
  await expect(ask()).rejects.toThrow('gone');
  expect([ends.source, ends.why, fake.asked.length]).toEqual([undefined, 'gone', 1]);
  clock.advance(9_999);
  expect(ends.source).toBeUndefined();
  await setImmediate(); // whoever begins to look does so after this
  expect(fake.asked).toHaveLength(1);
  clock.advance(1);
  fake.refusal = null;

  await expect.poll(() => ends.source).toBeDefined();
  expect(fake.asked).toHaveLength(2);
  await ends.close();
});

test('--brokers says who is asked', () => {
  expect(askedBrokers(undefined)).toBe('none');
  expect(askedBrokers('registered')).toBe('registered');
  expect(askedBrokers('none')).toBe('none');
  expect(askedBrokers('a:1, [::1]:2')).toEqual(['a:1', '[::1]:2']);
  expect(() => askedBrokers('a')).toThrow('--brokers: host:port,host:port is wanted, not "a"');
});
