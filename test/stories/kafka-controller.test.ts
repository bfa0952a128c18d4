import { expect, test, vi } from 'vitest';
import type { Client, MultiOp } from '../../src/client/index.ts';
import {
  Controller,
  ControllerMovedError,
  createTopic,
  deleteTopic,
  electPreferred,
  growTopic,
  layout08,
  layoutDrover,
  readController,
  readTopicNames,
  reassignPartitions,
} from '../../src/kafka/index.ts';
import { deferred } from '../../src/support/index.ts';
import { addBroker, eventually, loseReplies, multiOp, stateOf, type TestBroker } from '../kafka.ts';
import { startZk, type Zk } from '../zk.ts';

async function threeBrokers(zk: Zk): Promise<TestBroker[]> {
  const all: TestBroker[] = [];
  for (const id of [1, 2, 3]) {
    all.push(await addBroker(zk, id, { controller: { autoBalance: false } }));
    if (id === 1) await eventually(() => expect(all[0]!.broker.controller?.isActive).toBe(true));
  }
  return all;
}

const close = (brokers: readonly TestBroker[]) =>
  Promise.all(brokers.map(({ broker }) => broker.close({ handOverMs: 0 })));

const expectState = (client: Client, topic: string, partition: number, state: object) =>
  eventually(async () => expect(await stateOf(client, topic, partition)).toMatchObject(state));

test('a new topic gets its leaders, and every replica its role', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();

  await createTopic(admin, 't', {
    assignment: [
      [1, 2, 3],
      [2, 3, 1],
    ],
  });

  await expectState(admin, 't', 0, {
    leader: 1,
    isr: [1, 2, 3],
    leaderEpoch: 0,
    controllerEpoch: 1,
  });
  await expectState(admin, 't', 1, { leader: 2, isr: [2, 3, 1], leaderEpoch: 0 });
  await eventually(() => {
    expect(brokers[0]!.service.told.sort()).toEqual(['follow 2 t/1 @0', 'lead t/0 @0']);
    expect(brokers[2]!.service.told.sort()).toEqual(['follow 1 t/0 @0', 'follow 2 t/1 @0']);
  });
  const follower = brokers[2]!.service.follows.get('t/0')!;
  expect(follower.leaderBroker?.host).toBe('broker1');
  await close(brokers);
});

test('a dead leader is replaced from the ISR, leaves it, and does not lead again by returning', async () => {
  await using zk = await startZk();
  const [one, two, three] = (await threeBrokers(zk)) as [TestBroker, TestBroker, TestBroker];
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2, 3, 1]] });
  await expectState(admin, 't', 0, { leader: 2 });
  await eventually(() => expect(two.service.leads.size).toBe(1));
  const { signal } = two.service.leads.get('t/0')!;

  await two.client.close();

  // One step for the election, which takes the dead out of the ISR by itself.
  await expectState(admin, 't', 0, { leader: 3, isr: [3, 1], leaderEpoch: 1 });
  expect(signal.aborted).toBe(true);
  expect(two.broker.state.name).toBe('failed');
  await eventually(() => expect(three.service.leads.has('t/0')).toBe(true));

  const back = await addBroker(zk, 2, { controller: false });
  await eventually(() => expect(back.service.told).toEqual(['follow 3 t/0 @1']));
  await close([one, three, back]);
});

test('the last of the ISR stays in it, and leads again when it is back', async () => {
  await using zk = await startZk();
  const [one, two, three] = (await threeBrokers(zk)) as [TestBroker, TestBroker, TestBroker];
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2]] });
  await expectState(admin, 't', 0, { leader: 2 });

  await two.client.close();
  await expectState(admin, 't', 0, { leader: -1, isr: [2], leaderEpoch: 1 });

  const back = await addBroker(zk, 2, { controller: false });
  await expectState(admin, 't', 0, { leader: 2, isr: [2], leaderEpoch: 2 });
  await eventually(() => expect(back.service.told.at(-1)).toBe('lead t/0 @2'));
  await close([one, three, back]);
});

test('an unclean election takes a replica that is behind, where the topic allows it', async () => {
  await using zk = await startZk();
  const [one, two, three] = (await threeBrokers(zk)) as [TestBroker, TestBroker, TestBroker];
  const admin = await zk.witness();
  const config = { 'unclean.leader.election.enable': 'true' };
  await createTopic(admin, 't', { assignment: [[2, 3]], config });
  await createTopic(admin, 'safe', { assignment: [[2, 3]] });
  await eventually(() => expect(two.service.leads.size).toBe(2));
  await two.service.leads.get('t/0')!.changeIsr([2]);
  await two.service.leads.get('safe/0')!.changeIsr([2]);

  await two.client.close();

  await expectState(admin, 't', 0, { leader: 3, isr: [3], isRecovering: true });
  await expectState(admin, 'safe', 0, { leader: -1, isr: [2] });
  const results = await one.broker.controller!.electLeaders(
    [{ topic: 'safe', partition: 0 }],
    'unclean',
  );
  expect(results).toEqual([{ at: { topic: 'safe', partition: 0 }, failed: null }]);
  await expectState(admin, 'safe', 0, { leader: 3, isr: [3], isRecovering: true });
  await close([one, three]);
});

test('when the controller dies another is elected, with a higher epoch, and goes on', async () => {
  await using zk = await startZk();
  const [one, two, three] = (await threeBrokers(zk)) as [TestBroker, TestBroker, TestBroker];
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[1, 2]] });
  await expectState(admin, 't', 0, { leader: 1 });

  await one.client.close();

  await eventually(async () => {
    const { brokerId, epoch } = await readController(admin);
    expect(epoch).toBe(2);
    expect([2, 3]).toContain(brokerId);
  });
  // The replica that died leaves first, then a leader is elected: two epochs, as in Kafka.
  await expectState(admin, 't', 0, { leader: 2, isr: [2], leaderEpoch: 2, controllerEpoch: 2 });
  await createTopic(admin, 'u', { assignment: [[3, 2]] });
  await expectState(admin, 'u', 0, { leader: 3, controllerEpoch: 2 });
  await close([two, three]);
});

test('a controller that lost its session has resigned before another session begins', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const controller = new Controller(client, { brokerId: 1, autoBalance: false });
  controller.start();
  await eventually(() => expect(controller.isActive).toBe(true));
  const heard: string[] = [];
  controller.on('state', ({ name }) => heard.push(name));
  client.on('session', () => heard.push('new session'));
  client.sessionSignal.addEventListener('abort', () => {
    heard.push(controller.isActive ? 'active after the end' : 'resigned in the same tick');
  });

  await zk.expire(client);
  await eventually(() => expect(controller.state).toEqual({ name: 'active', epoch: 2 }));

  expect(heard.slice(0, 3)).toEqual(['standby', 'resigned in the same tick', 'new session']);
  await controller.close();
});

test('whatever a controller of the past sends is refused as a whole', async () => {
  await using zk = await startZk();
  const [one, two, three] = (await threeBrokers(zk)) as [TestBroker, TestBroker, TestBroker];
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[1, 2, 3]] });
  await expectState(admin, 't', 0, { leader: 1 });

  // Another was elected, and the one of the past has not heard of it: its next write is its last.
  await admin.set(layout08.controllerEpoch.at(), '7');
  await expect(
    one.broker.controller!.electLeaders([{ topic: 't', partition: 0 }], 'preferred'),
  ).resolves.toEqual([]);
  await expect(one.broker.controller!.handOver(1)).rejects.toThrow(ControllerMovedError);

  expect(await stateOf(admin, 't', 0)).toMatchObject({ leader: 1, leaderEpoch: 0 });
  expect(one.broker.controller!.isActive).toBe(false);
  await close([one, two, three]);
});

test('an election whose reply was lost is won all the same, once', async () => {
  await using zk = await startZk();
  const client = await zk.connect({ renew: true });
  const controller = new Controller(client, { brokerId: 1, autoBalance: false });
  const lost = loseReplies(zk, multiOp);

  controller.start();

  await eventually(() => expect(controller.state).toEqual({ name: 'active', epoch: 1 }));
  expect(lost.left).toBe(0);
  expect(await readController(client)).toMatchObject({ brokerId: 1, epoch: 1 });
  await controller.close();
});

test.for(['beforeElection', 'multi'] as const)(
  'a controller that is closed at %s of an election gives up what it wins',
  async (step) => {
    await using zk = await startZk();
    const admin = await zk.witness();
    const client = await zk.connect({ renew: true });
    const [begun, goOn] = [deferred(), deferred()];
    const holdUp = async () => {
      begun.resolve();
      await goOn.promise;
    };
    const multi = client.multi.bind(client);
    const controller = new Controller(client, {
      brokerId: 1,
      ...(step === 'beforeElection' && { beforeElection: holdUp }),
    });
    if (step === 'multi') {
      vi.spyOn(client, 'multi').mockImplementationOnce(async (ops) => {
        await holdUp();
        return multi(ops) as never;
      });
    }
    controller.start();
    await begun.promise;

    const closing = controller.close();
    goOn.resolve();
    await closing;

    expect(controller.state).toEqual({ name: 'stopped' });
    expect(await admin.exists(layout08.controller.at())).toBeNull();
    expect(client.load.watches).toBe(0);
  },
);

test('two controllers of one client are two: the second waits for the first', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using one = new Controller(client, { brokerId: 1 });
  one.start();
  await eventually(() => expect(one.isActive).toBe(true));
  await using two = new Controller(client, { brokerId: 2 });

  two.start();
  await two.settled();
  await one.settled();

  expect(one.state).toEqual({ name: 'active', epoch: 1 });
  expect(two.state).toEqual({ name: 'standby', controller: 1 });
  await one.close();
  await eventually(() => expect(two.state).toEqual({ name: 'active', epoch: 2 }));
});

test('replies lost all along change nothing of what comes out', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  const lost = loseReplies(zk, multiOp, { times: 12, every: 3 });

  await createTopic(admin, 't', { partitions: 6, replicationFactor: 3, startIndex: 0 });
  for (let partition = 0; partition < 6; partition++) {
    await expectState(admin, 't', partition, { leader: (partition % 3) + 1 });
  }
  await brokers[2]!.client.close();
  for (let partition = 0; partition < 6; partition++) {
    await eventually(async () => {
      const { leader, isr } = await stateOf(admin, 't', partition);
      expect([1, 2]).toContain(leader);
      expect([...isr].sort()).toEqual([1, 2]);
    });
  }
  const back = await addBroker(zk, 3, { controller: false });
  await deleteTopic(admin, 't');

  await eventually(async () => expect(await readTopicNames(admin)).toEqual([]));
  expect(lost.left).toBeLessThan(12);
  await close([brokers[0]!, brokers[1]!, back]);
});

test('a leader shrinks and grows its ISR, and the controller hears of it', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2, 1, 3]] });
  await eventually(() => expect(brokers[1]!.service.leads.size).toBe(1));
  const leader = brokers[1]!.service.leads.get('t/0')!;

  await leader.changeIsr([2, 3]);

  expect(leader.isr).toEqual([2, 3]);
  expect(await stateOf(admin, 't', 0)).toMatchObject({ isr: [2, 3], leaderEpoch: 0 });
  // Told through a node that the controller takes away when it has read it.
  await eventually(async () => {
    const { cversion, numChildren } = (await admin.exists(layout08.isrChanges.at()))!;
    expect([cversion, numChildren]).toEqual([2, 0]);
  });
  await Promise.all([leader.changeIsr([2]), leader.changeIsr([2, 1, 3])]);
  expect(await stateOf(admin, 't', 0)).toMatchObject({ isr: [2, 1, 3] });
  await expect(leader.changeIsr([2, 9])).rejects.toThrow(/isr: some of 2,1,3/);
  await close(brokers);
});

test('a leader that is none any more cannot change the ISR', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2, 3]] });
  await eventually(() => expect(brokers[1]!.service.leads.size).toBe(1));
  const zombie = brokers[1]!.service.leads.get('t/0')!;
  const path = layout08.partitionState.at({ topic: 't', partition: 0 });
  const state = { ...(await stateOf(admin, 't', 0)), leader: 3, leaderEpoch: 1 };

  const change = admin.set(path, layout08.partitionState.format(state)!);

  await expect(change.then(() => zombie.changeIsr([2]))).rejects.toMatchObject({ code: 'FENCED' });
  await eventually(() => expect(brokers[2]!.service.leads.has('t/0')).toBe(true));
  expect(await stateOf(admin, 't', 0)).toMatchObject({ leader: 3, isr: [2, 3] });
  await close(brokers);
});

test('the preferred replica leads again when asked, and the request is taken away', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2, 3]] });
  await expectState(admin, 't', 0, { leader: 2 });
  await brokers[1]!.client.close();
  await expectState(admin, 't', 0, { leader: 3, isr: [3] });
  const back = await addBroker(zk, 2, { controller: false });
  await eventually(() => expect(brokers[2]!.service.leads.size).toBe(1));
  await brokers[2]!.service.leads.get('t/0')!.changeIsr([3, 2]);

  await electPreferred(admin, [
    { topic: 't', partition: 0 },
    { topic: 'none', partition: 9 },
  ]);

  await expectState(admin, 't', 0, { leader: 2, isr: [3, 2], leaderEpoch: 2 });
  await eventually(async () => {
    expect(await admin.exists(layout08.preferredElection.at())).toBeNull();
  });
  await close([brokers[0]!, brokers[2]!, back]);
});

test('a topic grows where it left off', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { partitions: 2, replicationFactor: 2, startIndex: 0 });
  await expectState(admin, 't', 1, { leader: 2 });

  await growTopic(admin, 't', { partitions: 4 });

  await expectState(admin, 't', 2, { leader: 3, leaderEpoch: 0 });
  await expectState(admin, 't', 3, { leader: 1, leaderEpoch: 0 });
  await expect(growTopic(admin, 't', { partitions: 4 })).rejects.toThrow(/a larger number/);
  await close(brokers);
});

test.for(['gets its id', 'is moved'] as const)(
  'a topic that grows in the moment in which it %s has grown',
  async (moment) => {
    await using zk = await startZk();
    const brokers = await threeBrokers(zk);
    const admin = await zk.witness();
    const path = layout08.topic.at({ topic: 't' });
    const { client, broker } = brokers[0]!;
    const multi = client.multi.bind(client);
    let isGrown = false;
    const growFirst = async (ops: readonly MultiOp[]) => {
      if (!isGrown && ops.some((one) => one.op === 'set' && one.path === path)) {
        isGrown = true;
        await growTopic(admin, 't', { partitions: 2, assignment: [[2]] });
      }
      return multi(ops) as never;
    };
    if (moment === 'gets its id') {
      vi.spyOn(client, 'multi').mockImplementation(growFirst);
      await admin.create(path, '{"version":1,"partitions":{"0":[1]}}');
    } else {
      await createTopic(admin, 't', { assignment: [[1]] });
      await expectState(admin, 't', 0, { leader: 1 });
      vi.spyOn(client, 'multi').mockImplementation(growFirst);
      await broker.controller!.reassign({ topic: 't', partition: 0 }, [1, 3]);
    }

    await expectState(admin, 't', 1, { leader: 2 });
    expect(isGrown).toBe(true);
    const { partitions } = layout08.topic.parse((await admin.get(path)).data, path);
    expect(partitions.get(0)!.replicas).toEqual(moment === 'is moved' ? [1, 3] : [1]);
    await close(brokers);
  },
);

test('a topic is deleted when every replica is, and leaves nothing', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', {
    assignment: [
      [1, 2],
      [2, 3],
    ],
  });
  await expectState(admin, 't', 1, { leader: 2 });

  await deleteTopic(admin, 't');

  await eventually(async () => {
    expect(await readTopicNames(admin)).toEqual([]);
    expect(await admin.children(layout08.deleteTopics.at())).toEqual([]);
    expect(await admin.children('/config/topics')).toEqual([]);
    expect(await admin.children(layoutDrover.deletions.at())).toEqual([]);
  });
  expect(brokers[0]!.service.told.at(-1)).toBe('delete t/0');
  expect(brokers[1]!.service.told.slice(-2).sort()).toEqual(['delete t/0', 'delete t/1']);
  await close(brokers);
});

test('a topic with a dead replica waits for it to come back before it is deleted', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2, 3]] });
  await expectState(admin, 't', 0, { leader: 2 });
  await brokers[2]!.client.close();
  await expectState(admin, 't', 0, { isr: [2] });

  await deleteTopic(admin, 't');
  await eventually(() => expect(brokers[1]!.service.told.at(-1)).toBe('delete t/0'));
  await brokers[0]!.broker.settled();
  expect(await readTopicNames(admin)).toEqual(['t']);

  const back = await addBroker(zk, 3, { controller: false });
  await eventually(async () => expect(await readTopicNames(admin)).toEqual([]));
  expect(back.service.told.at(-1)).toBe('delete t/0');
  await close([brokers[0]!, brokers[1]!, back]);
});

test('what an earlier life of a broker said of a deletion counts for nothing', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2]] });
  await expectState(admin, 't', 0, { leader: 2 });
  let goOn: () => void = () => {};
  const stop = brokers[1]!.service.stopReplica.bind(brokers[1]!.service);
  brokers[1]!.service.stopReplica = async (replica) => {
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    stop(replica);
  };

  await deleteTopic(admin, 't');
  const answer = layoutDrover.deleted.at({ topic: 't', broker: 2 });
  await eventually(() => admin.create(answer, '1'));
  await eventually(async () => {
    expect((await admin.exists(layoutDrover.deletion.at({ topic: 't' })))?.numChildren).toBe(1);
  });
  await admin.sync('/');
  await brokers[0]!.client.sync('/');
  await brokers[0]!.broker.controller!.settled();
  expect(await readTopicNames(admin)).toEqual(['t']);

  goOn();
  await eventually(async () => expect(await readTopicNames(admin)).toEqual([]));
  await close(brokers);
});

test('a broker that came back before anybody looked is taken for dead, and then for new', async () => {
  await using zk = await startZk();
  const one = await addBroker(zk, 1, { controller: { autoBalance: false } });
  await eventually(() => expect(one.broker.controller!.isActive).toBe(true));
  const admin = await zk.witness();
  const data = '{"version":1,"host":"h","port":1}';
  await admin.create('/brokers/ids/2', data, { mode: 'ephemeral' });
  await createTopic(admin, 't', { assignment: [[2, 1]] });
  await createTopic(admin, 'u', { assignment: [[2]] });
  await expectState(admin, 't', 0, { leader: 2, isr: [2, 1] });
  await expectState(admin, 'u', 0, { leader: 2 });

  await admin.multi([
    { op: 'delete', path: '/brokers/ids/2' },
    { op: 'create', path: '/brokers/ids/2', mode: 'ephemeral', data },
  ]);

  await expectState(admin, 't', 0, { leader: 1, isr: [1], leaderEpoch: 1 });
  await expectState(admin, 'u', 0, { leader: 2, isr: [2], leaderEpoch: 2 });
  await close([one]);
});

test('where topics may not be deleted the request is taken away and nothing happens', async () => {
  await using zk = await startZk();
  const one = await addBroker(zk, 1, { controller: { deleteTopics: false } });
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[1]] });
  await expectState(admin, 't', 0, { leader: 1 });

  await deleteTopic(admin, 't');

  await eventually(async () =>
    expect(await admin.children(layout08.deleteTopics.at())).toEqual([]),
  );
  expect(await readTopicNames(admin)).toEqual(['t']);
  expect(one.service.told).toEqual(['lead t/0 @0']);
  await close([one]);
});

test('a partition moves to other brokers once these are in sync', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[1, 2]] });
  await eventually(() => expect(brokers[0]!.service.leads.size).toBe(1));

  await reassignPartitions(admin, [{ topic: 't', partition: 0, replicas: [3, 2] }]);

  const path = layout08.topic.at({ topic: 't' });
  await eventually(async () => {
    const { partitions } = layout08.topic.parse((await admin.get(path)).data, path);
    expect(partitions.get(0)).toEqual({ replicas: [3, 2, 1], adding: [3], removing: [1] });
    // The move begins a new epoch of the leader: one that has not heard of it may change nothing.
    const role = brokers[0]!.service.leads.get('t/0');
    expect([role?.leaderEpoch, role?.replicas]).toEqual([1, [3, 2, 1]]);
    expect(brokers[2]!.service.follows.get('t/0')?.leader).toBe(1);
  });
  await brokers[0]!.service.leads.get('t/0')!.changeIsr([1, 2, 3]);

  await expectState(admin, 't', 0, { leader: 3, isr: [2, 3] });
  await eventually(async () => {
    const { partitions } = layout08.topic.parse((await admin.get(path)).data, path);
    expect(partitions.get(0)).toEqual({ replicas: [3, 2], adding: [], removing: [] });
    expect(await admin.exists(layout08.reassign.at())).toBeNull();
    expect(brokers[0]!.service.told.at(-1)).toBe('delete t/0');
    expect(brokers[2]!.service.leads.has('t/0')).toBe(true);
  });
  await close(brokers);
});

test('a move that begins while a broker looks at the topic is not missed by it', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2]] });
  const { client, service } = brokers[1]!;
  await eventually(() => expect(service.leads.size).toBe(1));
  const path = layout08.topic.at({ topic: 't' });
  const { data } = await admin.get(path);
  const read = client.get.bind(client);
  const reading = deferred();
  const moving = deferred();
  vi.spyOn(client, 'get').mockImplementation(async (at, options) => {
    const found = await read(at, options);
    if (at === path) {
      reading.resolve();
      await moving.promise;
    }
    return found;
  });

  const toldReplicas: (readonly number[])[] = [];
  const { becomeLeader } = service;
  vi.spyOn(service, 'becomeLeader').mockImplementation((role) => {
    toldReplicas.push(role.replicas); // as of the moment in which it is told
    becomeLeader.call(service, role);
  });

  await admin.set(path, data!); // makes it look: at the replicas of before the move, and the state of after
  await reading.promise;
  await brokers[0]!.broker.controller!.reassign({ topic: 't', partition: 0 }, [2, 3]);
  await expectState(admin, 't', 0, { leaderEpoch: 1 });
  moving.resolve();

  await eventually(() => expect(service.leads.get('t/0')?.replicas).toEqual([2, 3]));
  await service.leads.get('t/0')!.changeIsr([2, 3]);
  await expectState(admin, 't', 0, { isr: [2, 3] });
  expect(service.told).toEqual(['lead t/0 @0', 'lead t/0 @1']);
  expect(toldReplicas).toEqual([[2, 3]]);
  await close(brokers);
});

test('who leads a partition knows its replicas as they are, also when the last to go are gone', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2, 1]] });
  const { service } = brokers[1]!;
  await eventually(() => expect(service.leads.size).toBe(1));
  const path = layout08.topic.at({ topic: 't' });
  const text = String((await admin.get(path)).data);
  expect(text).toContain('[2,1]');

  // The last step of a move: the topic's node alone, no state and no epoch.
  await admin.set(path, text.replace('[2,1]', '[2]'));

  await eventually(() => expect(service.leads.get('t/0')?.replicas).toEqual([2]));
  await expect(service.leads.get('t/0')!.changeIsr([2, 1])).rejects.toThrow(/some of 2,/);
  expect(service.told).toEqual(['lead t/0 @0']);
  await close(brokers);
});

test('a move goes on under a new controller, and can be turned round', async () => {
  await using zk = await startZk();
  const brokers = await threeBrokers(zk);
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2]] });
  await eventually(() => expect(brokers[1]!.service.leads.size).toBe(1));
  await brokers[0]!.broker.controller!.reassign({ topic: 't', partition: 0 }, [3]);
  await brokers[0]!.client.close();
  const next = await eventually(() => {
    const found = brokers.slice(1).find(({ broker }) => broker.controller!.isActive);
    expect(found).toBeDefined();
    return found!;
  });

  await next.broker.controller!.reassign({ topic: 't', partition: 0 }, null);

  const path = layout08.topic.at({ topic: 't' });
  const { partitions } = layout08.topic.parse((await admin.get(path)).data, path);
  expect(partitions.get(0)).toEqual({ replicas: [2], adding: [], removing: [] });
  await expect(
    next.broker.controller!.reassign({ topic: 't', partition: 0 }, [2, 9]),
  ).rejects.toThrow(/brokers 9 .* do not live/);
  await close(brokers.slice(1));
});

test('garbage in nodes is told with its path, and all else goes on', async () => {
  await using zk = await startZk();
  const admin = await zk.witness();
  const problems: string[] = [];
  const one = await addBroker(zk, 1, { onProblem: ({ path }) => problems.push(path) });
  await eventually(() => expect(one.broker.controller!.isActive).toBe(true));

  await admin.create('/brokers/topics/bad', '{"partitions":');
  await admin.create('/brokers/ids/what', 'nonsense');
  await admin.create('/isr_change_notification/isr_change_', '?', { mode: 'persistentSequential' });
  await admin.create('/admin/preferred_replica_election', 'x');
  await createTopic(admin, 'good', { assignment: [[1]] });

  await expectState(admin, 'good', 0, { leader: 1 });
  await eventually(async () => {
    expect(problems).toContain('/brokers/topics/bad');
    expect(problems).toContain('/brokers/ids/what');
    expect(problems).toContain('/admin/preferred_replica_election');
    expect(await admin.exists('/admin/preferred_replica_election')).toBeNull();
    expect(await admin.children('/isr_change_notification')).toEqual([]);
  });
  expect(one.broker.controller!.isActive).toBe(true);
  await close([one]);
});

test('leaders go back to where they should be by themselves when too many are elsewhere', async () => {
  await using zk = await startZk();
  const one = await addBroker(zk, 1, { controller: { autoBalance: { firstMs: 1, everyMs: 20 } } });
  await eventually(() => expect(one.broker.controller!.isActive).toBe(true));
  const two = await addBroker(zk, 2, { controller: false });
  const admin = await zk.witness();
  await createTopic(admin, 't', { assignment: [[2, 1]] });
  await expectState(admin, 't', 0, { leader: 2 });
  await two.broker.close();
  await expectState(admin, 't', 0, { leader: 1, isr: [1] });

  const back = await addBroker(zk, 2, { controller: false });
  await eventually(() => expect(one.service.leads.size).toBe(1));
  await one.service.leads.get('t/0')!.changeIsr([1, 2]);

  await expectState(admin, 't', 0, { leader: 2, isr: [1, 2] });
  await close([one, back]);
});
