import { expect, test } from 'vitest';
import { type Client, connect, type WatchStream, ZkError } from '../../src/client/index.ts';
import {
  BrokerConflictError,
  createTopic,
  generateBrokerId,
  layout08,
  layoutDrover,
  prepareCluster,
  readBrokers,
  registerBroker,
  startBroker,
} from '../../src/kafka/index.ts';
import { deferred } from '../../src/support/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import {
  addBroker,
  eventually,
  loseReplies,
  multiOp,
  RecordingService,
  stateOf,
} from '../kafka.ts';
import { ephemeralsOf, startZk } from '../zk.ts';

const registration = (id: number) => ({
  version: 5,
  endpoints: [{ listener: 'PLAINTEXT', protocol: 'PLAINTEXT', host: `h${id}`, port: 9092 }],
  host: `h${id}`,
  port: 9092,
  jmxPort: -1,
  timestampMs: 1,
  rack: null,
  features: {},
});

test('a broker registers as Kafka does, and its epoch is the czxid', async () => {
  await using zk = await startZk();
  const { broker, client } = await addBroker(zk, 7, {
    endpoints: ['INSIDE://10.0.0.1:9092', 'SSL://[::1]:9093'],
    listenerProtocols: { INSIDE: 'PLAINTEXT' },
    rack: 'r1',
    controller: false,
  });

  const { data, stat } = await client.get('/brokers/ids/7');

  expect(JSON.parse(String(data))).toEqual({
    version: 5,
    host: '10.0.0.1',
    port: 9092,
    endpoints: ['INSIDE://10.0.0.1:9092', 'SSL://[::1]:9093'],
    listener_security_protocol_map: { INSIDE: 'PLAINTEXT', SSL: 'SSL' },
    rack: 'r1',
    features: {},
    jmx_port: -1,
    timestamp: expect.stringMatching(/^\d{13}$/),
  });
  expect(broker.epoch).toBe(stat.czxid);
  expect(stat).toMatchObject({ version: 1, ephemeralOwner: client.sessionId });
  await broker.close();
  expect(await client.exists('/brokers/ids/7')).toBeNull();
});

test('an id or an address that another broker has is an error that says whose', async () => {
  await using zk = await startZk();
  const { broker } = await addBroker(zk, 1, { controller: false });
  const client = await zk.connect({ renew: true });
  const start = (id: number, endpoint: string) =>
    startBroker(client, { id, endpoints: [endpoint], service: new RecordingService() });

  await expect(start(1, 'PLAINTEXT://other:9092')).rejects.toThrow(
    /\/brokers\/ids\/1 belongs to session 0x[0-9a-f]+.*another broker has this id/,
  );
  await expect(start(2, 'SSL://broker1:9092')).rejects.toThrow(
    /broker 1 says that it is at broker1:9092/,
  );
  expect(await readBrokers(client)).toMatchObject([{ id: 1 }]);
  expect(client.load.watches).toBe(0);
  expect(client.listenerCount('session')).toBe(0);
  await broker.close();
});

test('what an earlier life of the same broker left is waited for, but not for ever', async () => {
  await using zk = await startZk();
  const old = await zk.witness();
  const client = await zk.connect();
  await prepareCluster(client);
  const before = await registerBroker(old, 1, registration(1));

  await expect(registerBroker(client, 1, registration(1), { waitMs: 0 })).rejects.toThrow(
    /an earlier life of this broker/,
  );
  const again = registerBroker(client, 1, registration(1));
  await eventually(() => expect(client.load.watches).toBe(1));
  await old.close();

  expect(await again).toBeGreaterThan(before);
  expect(client.load.watches).toBe(0);
});

test('a reply that was lost is told from a conflict', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await prepareCluster(client);

  const lost = loseReplies(zk, multiOp);

  const epoch = await registerBroker(client, 1, registration(1));

  expect(lost.left).toBe(0);
  expect(await client.exists('/brokers/ids/1')).toMatchObject({ czxid: epoch, version: 1 });
  const other = await zk.connect();
  await expect(registerBroker(other, 1, registration(2))).rejects.toBeInstanceOf(
    BrokerConflictError,
  );
});

test('generated ids start above those that people choose, and never repeat', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await prepareCluster(client);

  const ids = await Promise.all([1, 2, 3].map(() => generateBrokerId(client)));

  expect(ids.sort()).toEqual([1001, 1002, 1003]);
  expect(await generateBrokerId(client, 5)).toBe(9);
});

test('a broker whose session ended has no roles until it is registered anew', async () => {
  await using zk = await startZk();
  const one = await addBroker(zk, 1, { controller: { autoBalance: false } });
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[1]] });
  await eventually(() => expect(one.service.leads.size).toBe(1));
  const first = one.service.leads.get('t/0')!;
  const epochs: bigint[] = [one.broker.epoch!];
  const states: string[] = [];
  one.broker.on('state', (state) => {
    states.push(state.name);
    if (state.name === 'registered') epochs.push(state.epoch);
    if (state.name === 'away') states.push(first.signal.aborted ? 'role over' : 'role held');
  });

  await zk.expire(one.client);

  await eventually(() => expect(one.service.leads.get('t/0')).not.toBe(first));
  await eventually(() => expect(one.broker.roles).toMatchObject([{ kind: 'leader' }]));
  expect(states.slice(0, 3)).toEqual(['away', 'role over', 'registered']);
  expect(epochs[1]).toBeGreaterThan(epochs[0]!);
  const next = one.service.leads.get('t/0')!;
  // The role of the old life is over for good: the new one has an epoch of its own.
  expect(next.leaderEpoch).toBeGreaterThan(first.leaderEpoch);
  expect(next.brokerEpoch).toBe(epochs[1]);
  await expect(first.changeIsr([1])).rejects.toThrow();
  await one.broker.close();
});

test('an election that is older than the registration makes nobody a leader', async () => {
  await using zk = await startZk();
  const admin = await zk.witness();
  await prepareCluster(admin);
  const state = { leader: 1, leaderEpoch: 3, controllerEpoch: 1, isr: [1], isRecovering: false };
  await admin.create('/brokers/topics/t', '{"version":1,"partitions":{"0":[1]}}');
  await admin.create(
    '/brokers/topics/t/partitions/0/state',
    layout08.partitionState.format(state)!,
    { parents: true },
  );

  const alone = await addBroker(zk, 1, { controller: false });
  await alone.broker.settled();
  expect(alone.service.told).toEqual([]);

  const other = await addBroker(zk, 2);
  await eventually(() => expect(alone.service.told).toEqual(['lead t/0 @4']));
  expect(await stateOf(admin, 't', 0)).toMatchObject({ leader: 1, leaderEpoch: 4, isr: [1] });
  await alone.broker.close();
  await other.broker.close();
});

test('a broker that leaves hands over what it leads before it goes', async () => {
  await using zk = await startZk();
  const one = await addBroker(zk, 1);
  await eventually(() => expect(one.broker.controller!.isActive).toBe(true));
  const two = await addBroker(zk, 2, { controller: false });
  const admin = await zk.witness();
  await createTopic(admin, 't', {
    assignment: [
      [2, 1],
      [1, 2],
    ],
  });
  await eventually(() => expect([one.service.leads.size, two.service.leads.size]).toEqual([1, 1]));
  const states: object[] = [];
  const changes = admin.watch('/brokers/topics/t/partitions/0/state');
  await changes.ready;

  await two.broker.close();

  await changes.next();
  states.push(await stateOf(admin, 't', 0), await stateOf(admin, 't', 1));
  expect(states).toMatchObject([
    { leader: 1, isr: [1], leaderEpoch: 1 },
    { leader: 1, isr: [1], leaderEpoch: 1 },
  ]);
  expect(await admin.children(layoutDrover.leavings.at())).toEqual([]);
  // Told that it follows before it was stopped: it had stopped leading while it was still there.
  expect(two.service.told).toContain('follow 1 t/0 @1');
  expect(two.service.told.slice(-2).sort()).toEqual(['stop t/0', 'stop t/1']);
  await changes.return?.();
  await one.broker.close();
});

test('a broker that lost two sessions before it could register again can still be closed', async () => {
  await using zk = await startZk();
  const admin = await zk.witness();
  const one = await addBroker(zk, 1);
  await eventually(() => expect(one.broker.controller!.isActive).toBe(true));
  const { data } = await admin.get('/brokers/ids/1');
  const states: string[] = [];
  one.broker.on('state', ({ name }) => states.push(name));

  // What looks like an earlier life of it is in the way: it waits, and so does its controller.
  zk.link.refuse();
  await zk.expire(one.client);
  await eventually(() => admin.create('/brokers/ids/1', data!));
  await zk.link.accept();
  for (let sessions = 0; sessions < 2; sessions++) {
    await eventually(() => expect(one.client.state.name).toBe('connected'));
    const { sessionSignal } = one.client;
    await zk.expire(one.client);
    await eventually(() => expect(sessionSignal.aborted).toBe(true));
  }
  await one.broker.close();

  expect(states).not.toContain('registered');
  expect(one.broker.state.name).toBe('closed');
});

test('closing leaves no watch, no node and no listener', async () => {
  await using zk = await startZk();
  const one = await addBroker(zk, 1);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[1]] });
  await eventually(() => expect(one.service.leads.size).toBe(1));

  await one.broker.close();

  await eventually(() => expect(one.client.load.watches).toBe(0));
  expect(await ephemeralsOf(one.client)).toEqual([]);
  expect(one.client.listenerCount('session')).toBe(0);
  expect(one.client.listenerCount('state')).toBe(0);
  expect(one.broker.state.name).toBe('closed');
});

test('a service that fails is called again, and records are never deleted for a node that is garbage', async () => {
  await using zk = await startZk();
  const admin = await zk.witness();
  const problems: string[] = [];
  const one = await addBroker(zk, 1, { onProblem: ({ why }) => problems.push(why) });
  let failures = 2;
  const lead = one.service.becomeLeader.bind(one.service);
  one.service.becomeLeader = (role) => {
    if (failures-- > 0) throw new Error('the disk is busy');
    lead(role);
  };

  await createTopic(admin, 't', { assignment: [[1]] });
  await eventually(() => expect(one.service.told).toEqual(['lead t/0 @0']));
  expect(problems.filter((why) => why === 'the disk is busy').length).toBe(2);

  await admin.set('/brokers/topics/t', '{"garbage"');
  await eventually(() => expect(problems.some((why) => why.includes('JSON'))).toBe(true));
  await one.broker.settled();
  expect(one.service.told).toEqual(['lead t/0 @0']);
  expect(one.service.leads.get('t/0')!.signal.aborted).toBe(false);
  await one.broker.close();
});

test('a client without renewal that loses its session is a broker that has failed', async () => {
  await using zk = await startZk();
  await using client = await connect(zk.address, { sessionTimeoutMs: 10_000 });
  const broker = await startBroker(client, {
    id: 1,
    endpoints: ['PLAINTEXT://h:1'],
    service: new RecordingService(),
  });

  await zk.expire(client);

  await eventually(() => expect(broker.state.name).toBe('failed'));
  expect(broker.roles).toEqual([]);
  await broker.close();
});

test('a topic that the server had no time for is looked at until it has, however long that takes', async () => {
  await using zk = await startZk();
  const admin = await zk.witness();
  const clock = new MovableClock();
  const one = await addBroker(zk, 1, { clock });
  const get = one.client.get.bind(one.client);
  let refusals = 10;
  one.client.get = (path, options) =>
    path === '/brokers/topics/t' && options === undefined && refusals-- > 0
      ? Promise.reject(new ZkError('THROTTLED_OP', { path }))
      : get(path, options);

  await createTopic(admin, 't', { assignment: [[1]] });

  await eventually(() => {
    clock.advance(5_000);
    expect(one.service.told).toEqual(['lead t/0 @0']);
  });
  await one.broker.close();
});

test('a broker that cannot see its topics any more has failed, and is not registered', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const fail = failingWatches(client);
  const service = new RecordingService();
  const broker = await startBroker(client, { id: 1, endpoints: ['PLAINTEXT://h:1'], service });

  fail(new Error('blind'));

  await eventually(() => expect(broker.state).toMatchObject({ name: 'failed' }));
  await eventually(async () => expect(await client.exists('/brokers/ids/1')).toBeNull());
  await broker.close();
});

test('who closes takes only its own registration away', async () => {
  await using zk = await startZk();
  const other = await zk.witness();
  const { broker } = await addBroker(zk, 1, { controller: false });
  await other.delete('/brokers/ids/1');
  const epoch = await registerBroker(other, 1, registration(1));

  await broker.close();

  expect(await other.exists('/brokers/ids/1')).toMatchObject({ czxid: epoch });
});

/** Streams of this client end with an error, from the call of what comes back on. */
function failingWatches(client: Client): (error: Error) => void {
  const failure = deferred<never>();
  failure.promise.catch(() => {}); // whoever watches has it
  const watch = client.watch.bind(client);
  client.watch = (path, options) => {
    const stream = watch(path, options);
    const next = () => Promise.race([stream.next(), failure.promise]);
    return { ready: stream.ready, [Symbol.asyncIterator]: () => ({ next }) } as WatchStream;
  };
  return failure.reject;
}
