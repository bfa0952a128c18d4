import { expect, test } from 'vitest';
import {
  type BarrierError,
  type GatheringMember,
  GatheringQueue,
} from '../../src/recipes/index.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { failureOf, opCodes } from '../faults.ts';
import { startZk } from '../zk.ts';

const failure = failureOf<BarrierError>;

test('nobody starts before all are there; then each starts when the one before it has left', async () => {
  await using zk = await startZk();
  const clients = await Promise.all([zk.connect(), zk.connect(), zk.witness()]);
  const log: string[] = [];
  const work = async (member: GatheringMember, name: string) => {
    const { position } = await member.turn();
    log.push(`${name} at ${position}`);
    await clients[2]!.sync('/');
    log.push(`${name} done`);
    await member.leave();
  };
  const queues = clients.map((client) => new GatheringQueue(client, '/queue', { size: 3 }));

  const running = [];
  for (const [i, name] of ['a', 'b'].entries()) running.push(work(await queues[i]!.join(), name));
  await expect.poll(() => queues[2]!.waiting()).toHaveLength(2);
  for (let i = 0; i < 5; i++) await clients[0]!.sync('/');
  expect(log).toEqual([]);
  running.push(work(await queues[2]!.join(), 'c'));
  await Promise.all(running);

  expect(log).toEqual(['a at 0', 'a done', 'b at 1', 'b done', 'c at 2', 'c done']);
  expect(await clients[2]!.children('/queue/gathered')).toEqual([]);
  expect((await clients[2]!.children('/queue')).sort()).toEqual(['gathered', 'num']);
  expect(String((await clients[2]!.get('/queue/num')).data)).toBe('3');
  await expect.poll(() => clients.map((client) => client.load.watches)).toEqual([0, 0, 0]);
});

test('the size is what num says, or else the queue itself, whatever a member brings', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await client.create('/one/num', '2\n', { parents: true });
  await client.create('/two', '4');
  await client.create('/bad', 'many');

  expect(await new GatheringQueue(client, '/one', { size: 7 }).size()).toBe(2);
  expect(await new GatheringQueue(client, '/two', { size: 7 }).size()).toBe(4);
  expect((await failure(new GatheringQueue(client, '/bad').join())).code).toBe('NO_SIZE');
  expect((await failure(new GatheringQueue(client, '/none').join())).code).toBe('NO_SIZE');
  expect(() => new GatheringQueue(client, '/x', { size: 0 })).toThrow('size');
});

test('more than fit into one group form the next', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const queue = new GatheringQueue(client, '/queue', { size: 2 });
  const members: GatheringMember[] = [];
  for (let i = 0; i < 5; i++) members.push(await queue.join({ data: `${i}` }));

  const groups = await Promise.all(members.slice(0, 4).map((member) => member.gathered()));

  expect(groups.map(({ position }) => position)).toEqual([0, 1, 0, 1]);
  expect(groups[0]!.members).toEqual([members[0]!.name, members[1]!.name]);
  expect(groups[3]!.members).toEqual([members[2]!.name, members[3]!.name]);
  expect(await queue.waiting()).toEqual([members[4]!.name]);
  const late = await failure(members[4]!.gathered({ timeoutMs: 50 }));
  expect(late.message).toContain('1 are waiting');
  await Promise.all(members.map((member) => member.leave()));
  await expect.poll(() => client.children('/queue/gathered')).toEqual([]);
});

test('a member whose session ends is not counted before, and skipped after', async () => {
  await using zk = await startZk();
  const [dies, witness] = [await zk.connect(), await zk.witness()];
  const [theirs, queue] = [
    new GatheringQueue(dies, '/queue', { size: 2 }),
    new GatheringQueue(witness, '/queue'),
  ];
  const early = await theirs.join();
  const waiting = failure(early.gathered());
  await zk.expire(dies);
  expect((await waiting).code).toBe('NOT_HELD');
  expect(early.signal.aborted).toBe(true);

  const again = await zk.connect();
  const first = await new GatheringQueue(again, '/queue').join();
  const second = await queue.join();
  await Promise.all([first.gathered(), second.gathered()]);
  const turn = second.turn();
  await zk.expire(again);

  expect(await turn).toMatchObject({ position: 1 });
  await second.leave();
  await expect.poll(() => witness.children('/queue/gathered')).toEqual([]);
});

test('a group whose last member died is taken away by those who gather next', async () => {
  await using zk = await startZk();
  const [dying, client] = [await zk.connect(), await zk.witness()];
  const size = 2;
  const old = new GatheringQueue(dying, '/queue', { size });
  for (const member of [await old.join(), await old.join()]) await member.gathered();
  await dying.close();
  expect(await client.children('/queue/gathered')).toHaveLength(1);

  const queue = new GatheringQueue(client, '/queue', { size });
  const members = [await queue.join(), await queue.join()];
  const groups = await Promise.all(members.map((member) => member.gathered()));

  expect(groups.map(({ position }) => position)).toEqual([0, 1]);
  const [left, ...others] = await client.children('/queue/gathered');
  expect(others).toEqual([]);
  const { data } = await client.get(`/queue/gathered/${left}`);
  expect(JSON.parse(String(data))).toEqual(members.map(({ name }) => name));
  for (const member of members) await member.leave();
});

test('a wait that is called off leaves no watch, and leaving leaves no node', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const queue = new GatheringQueue(client, '/queue', { size: 2 });
  const member = await queue.join();
  const abort = new AbortController();

  const waiting = failure(member.turn({ signal: abort.signal }));
  await expect.poll(() => client.load.watches).toBeGreaterThan(1);
  abort.abort(new Error('enough'));
  await member.leave();
  await member.leave();

  expect((await waiting).message).toBe('enough');
  await expect.poll(() => client.load.watches).toBe(0);
  expect(await queue.waiting()).toEqual([]);
});

test('while members come, go and lose their links, no member is ever in two groups', async () => {
  await using zk = await startZk();
  const options = { backoff: { firstMs: 1, maxMs: 5 } };
  const clients = await Promise.all([1, 2, 3, 4, 5, 6].map(() => zk.connect(options)));
  const queues = clients.map((client) => new GatheringQueue(client, '/queue', { size: 3 }));
  let replies = 0;
  zk.link.onFrame = ({ direction, index }) =>
    direction === 'toClient' && index > 0 && ++replies % 67 === 0 ? 'cut' : 'pass';
  const groups = new Map<string, string>();
  const clashes: string[] = [];

  await Promise.all(
    queues.map(async (queue, i) => {
      for (let round = 0; round < 6; round++) {
        const member = await queue.join();
        if ((i + round) % 4 === 0) {
          await member.leave(); // one that does not stay
          continue;
        }
        const found = await member.turn({ timeoutMs: 300 }).catch((error) => {
          if (error.code === 'TIMEOUT') return null;
          throw error;
        });
        const group = found?.members.join();
        for (const name of found?.members ?? []) {
          if ((groups.get(name) ?? group) !== group) clashes.push(name);
          groups.set(name, group!);
        }
        await member.leave();
      }
    }),
  );

  expect(clashes).toEqual([]);
  expect(groups.size).toBeGreaterThan(3);
}, 60_000);

test('where the node for the groups was never made, or was deleted, it is made', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const queue = new GatheringQueue(client, '/queue', { size: 2 });
  let looks = 0;
  zk.link.onFrame = ({ index, direction, bytes }) => {
    if (index === 0 || direction !== 'toServer' || !bytes.includes('/gathered')) return 'pass';
    const op = bytes.readInt32BE(4);
    if (op === opCodes.children) looks += 1;
    return op === opCodes.create && zk.link.stats.cuts === 0 ? 'cut' : 'pass';
  };

  const first = await queue.join();
  const gathered = first.gathered();
  await expect.poll(() => witness.exists('/queue/gathered')).not.toBeNull();
  await witness.delete('/queue/gathered');
  await expect.poll(() => witness.exists('/queue/gathered')).not.toBeNull();
  for (let trips = 0; trips < 20; trips++) await client.exists('/');
  const asked = looks;
  const second = await new GatheringQueue(witness, '/queue').join();

  expect((await second.gathered()).members).toEqual((await gathered).members);
  expect(asked).toBeLessThan(15);
});

test('the time for a turn is one, for the group and for those before it together', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const clock = new MovableClock();
  const queue = new GatheringQueue(client, '/queue', { size: 2, clock });
  const first = await queue.join();
  const second = await queue.join();
  zk.link.pause('toClient');
  const turn = failure(second.turn({ timeoutMs: 60_000 }));
  clock.advance(30_000);
  zk.link.resume('toClient');
  await first.gathered();
  for (let i = 0; i < 5; i++) await client.sync('/'); // now it waits for the first

  clock.advance(30_000);

  expect(await turn).toMatchObject({ code: 'TIMEOUT' });
});
