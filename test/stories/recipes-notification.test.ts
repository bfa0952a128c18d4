import { expect, test, vi } from 'vitest';
import { anyoneId, openAcl, permissions, readOnlyAcl } from '../../src/client/index.ts';
import { NotificationTopic } from '../../src/recipes/notification.ts';
import type { Subscription } from '../../src/recipes/notification-subscription.ts';
import { MovableClock } from '../../src/testing/index.ts';
import { loseReply, loseRequest, opCodes } from '../faults.ts';
import { ephemeralsOf, reached, startZk } from '../zk.ts';

const { read, write, create, admin } = permissions;
const noDeletesAcl = [{ perms: read | write | create | admin, id: anyoneId }];
const long = { timeout: 15_000, interval: 10 };

/** Hears everything, and acknowledges what it is told to. */
function hear(subscription: Subscription, isAcked: (text: string) => boolean = () => true) {
  const heard: string[] = [];
  const run = (async () => {
    for await (const message of subscription) {
      const text = String(message.data);
      heard.push(text);
      if (isAcked(text)) await message.ack();
    }
  })();
  run.catch(() => {}); // whoever waits for it hears of it
  return { heard, run };
}

test('all who listen hear it, in the order of sending, and the sender knows', async () => {
  await using zk = await startZk();
  const [sender, one, two] = [await zk.connect(), await zk.connect(), await zk.connect()];
  const topic = new NotificationTopic(sender, '/topic');
  await using a = new NotificationTopic(one, '/topic').subscribe('a');
  await using b = new NotificationTopic(two, '/topic').subscribe('b');
  await Promise.all([a.ready, b.ready]);
  const [hearsA, hearsB] = [hear(a), hear(b)];
  expect(await topic.subscribers()).toEqual(['a', 'b']);

  const texts = Array.from({ length: 20 }, (_, i) => `message ${i}`);
  const receipts = [];
  for (const text of texts) receipts.push(await topic.send(text));
  const hearings = await Promise.all(receipts.map((receipt) => receipt.all()));

  expect(hearings).toEqual(texts.map(() => ({ heard: ['a', 'b'], missing: [], isGone: false })));
  expect([hearsA.heard, hearsB.heard]).toEqual([texts, texts]);
  expect(sender.load.watches).toBe(0);
});

test.each(['request', 'reply'] as const)(
  'a message is sent though the %s by which an old one goes is lost',
  async (what) => {
    await using zk = await startZk();
    const sender = await zk.connect();
    const topic = new NotificationTopic(sender, '/topic', { keepMax: 1 });
    const { id } = await topic.send('one');
    if (what === 'request') loseRequest(zk.link, opCodes.multi);
    else loseReply(zk, opCodes.multi);

    const sent = await topic.send('two');

    expect(zk.link.stats.cuts).toBe(1);
    expect((await sender.children('/topic/messages')).filter((name) => name !== id)).toEqual([
      sent.id,
    ]);
  },
);

test('a message is sent though its sender may not take the old ones away', async () => {
  await using zk = await startZk();
  const [sender, owner] = [await zk.connect(), await zk.witness()];
  await owner.create('/topic');
  await owner.create('/topic/messages', '', { acl: noDeletesAcl });
  const topic = new NotificationTopic(sender, '/topic', { keepMax: 1 });

  const receipts = [await topic.send('one'), await topic.send('two')];

  const ids = receipts.map(({ id }) => id).sort();
  expect((await sender.children('/topic/messages')).sort()).toEqual(ids);
  await owner.setAcl('/topic/messages', openAcl);
});

test('by a deadline the sender knows who has heard and who has not', async () => {
  await using zk = await startZk();
  const [sender, client] = [await zk.connect(), await zk.connect()];
  const clock = new MovableClock();
  const topic = new NotificationTopic(sender, '/topic', { clock });
  await using quick = topic.subscribe('quick');
  await using deaf = new NotificationTopic(client, '/topic').subscribe('deaf');
  await Promise.all([quick.ready, deaf.ready]);
  hear(quick);
  const { heard } = hear(deaf, () => false);

  const receipt = await topic.send('x', { to: ['quick', 'deaf', 'absent'] });
  await vi.waitFor(async () => expect((await receipt.look()).heard).toEqual(['quick']), long);
  await vi.waitFor(() => expect(heard).toEqual(['x']), long);
  const waiting = receipt.all({ timeoutMs: 60_000 });
  await vi.waitFor(() => expect(sender.load.watches).toBeGreaterThan(0), long);
  await vi.waitFor(async () => {
    clock.advance(60_000);
    await expect(Promise.race([waiting, Promise.resolve('waits')])).resolves.not.toBe('waits');
  }, long);

  expect(await waiting).toEqual({ heard: ['quick'], missing: ['absent', 'deaf'], isGone: false });
});

test('one who comes late hears what is kept and what it has not acknowledged', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const topic = new NotificationTopic(client, '/topic');
  await topic.send('one');
  await topic.send('two');
  const first = topic.subscribe('late');
  const { heard } = hear(first, (text) => text === 'one');
  await vi.waitFor(() => expect(heard).toEqual(['one', 'two']), long);
  await first.close();
  const receipt = await topic.send('three', { to: ['late'] });

  await using second = topic.subscribe('late');
  const again = hear(second);
  await receipt.all();

  expect(again.heard).toEqual(['two', 'three']);
});

test('one who wants only what follows hears nothing of before', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const topic = new NotificationTopic(client, '/topic');
  await topic.send('before');
  await using subscription = topic.subscribe('a', { earlier: 'none' });
  await subscription.ready;
  const { heard } = hear(subscription);

  const receipt = await topic.send('after');
  await receipt.all();

  expect(heard).toEqual(['after']);
});

test('messages beyond the number that is kept go, and a receipt says so', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const topic = new NotificationTopic(client, '/topic', { keepMax: 3 });
  const first = await topic.send('0', { to: ['nobody'] });
  const waiting = first.all();

  for (let i = 1; i < 10; i++) await topic.send(String(i));

  expect(await client.children('/topic/messages')).toHaveLength(3);
  expect(await waiting).toEqual({ heard: [], missing: ['nobody'], isGone: true });
  await using late = topic.subscribe('late');
  const { heard } = hear(late);
  await vi.waitFor(() => expect(heard).toEqual(['7', '8', '9']), long);
});

test('messages that are too old go with the next send', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const topic = new NotificationTopic(client, '/topic', { keepMs: 1 });
  const { id } = await topic.send('old');

  await vi.waitFor(async () => {
    await topic.send('new');
    expect(await client.children('/topic/messages')).not.toContain(id);
  }, long);
});

test('what is sent while the link is away is heard when it is back, once', async () => {
  await using zk = await startZk();
  const [sender, client] = [await zk.witness(), await zk.connect()];
  const topic = new NotificationTopic(sender, '/topic');
  await using subscription = new NotificationTopic(client, '/topic').subscribe('a');
  await subscription.ready;
  const { heard } = hear(subscription);
  await (await topic.send('one')).all();
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  const receipt = await topic.send('two');
  expect((await receipt.look()).missing).toEqual(['a']);
  await zk.link.accept();
  await receipt.all();

  expect(heard).toEqual(['one', 'two']);
});

test('after a renewed session it listens again under its name, and hears what it missed', async () => {
  await using zk = await startZk();
  const sender = await zk.witness();
  const client = await zk.connect({ renew: true, sessionTimeoutMs: 4_000 });
  const topic = new NotificationTopic(sender, '/topic');
  await using subscription = new NotificationTopic(client, '/topic').subscribe('a');
  await subscription.ready;
  const { heard } = hear(subscription);
  await (await topic.send('one')).all();

  await zk.expire(client);
  const receipt = await topic.send('two', { to: ['a'] });
  await receipt.all();
  await vi.waitFor(async () => expect(await topic.subscribers()).toEqual(['a']), long);

  expect(heard).toEqual(['one', 'two']);
});

test('a name that is taken over is lost to the one who had it', async () => {
  await using zk = await startZk();
  const [one, two] = [await zk.connect(), await zk.witness()];
  const first = new NotificationTopic(one, '/topic').subscribe('a');
  await first.ready;
  const { run } = hear(first);

  await using second = new NotificationTopic(two, '/topic').subscribe('a');
  await second.ready;

  await expect(run).rejects.toMatchObject({ code: 'NODE_TAKEN' });
  await first.close();
});

test('a signal ends the loop with its reason, and the name is free', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  const abort = new AbortController();
  const topic = new NotificationTopic(client, '/topic');
  const subscription = topic.subscribe('a', { signal: abort.signal });
  await subscription.ready;
  const { run } = hear(subscription);

  abort.abort(new Error('enough'));

  await expect(run).rejects.toThrow('enough');
  await vi.waitFor(async () =>
    expect(await new NotificationTopic(witness, '/topic').subscribers()).toEqual([]),
  );
});

test('an acknowledgement of a message that is gone says so, and harms nothing', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const topic = new NotificationTopic(client, '/topic');
  await using subscription = topic.subscribe('a');
  await subscription.ready;
  const receipt = await topic.send('x');

  for await (const message of subscription) {
    expect([await message.ack(), await message.ack()]).toEqual([true, true]);
    await receipt.discard();
    expect(await message.ack()).toBe(false);
    break;
  }

  expect(await ephemeralsOf(client)).toEqual([]);
  expect(client.load.watches).toBe(0);
});

test.each([
  [{ keepMax: 0 }, /^keepMax/],
  [{ keepMs: 0 }, /^keepMs/],
])('%j is refused', async (options, message) => {
  await using zk = await startZk();
  const client = await zk.connect();

  expect(() => new NotificationTopic(client, '/topic', options)).toThrow(message);
  expect(() => new NotificationTopic(client, '/topic').subscribe('a/b')).toThrow(/^name/);
});

test('a subscription whose signal aborts, and whose node may not be deleted, harms nobody', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const abort = new AbortController();
  const subscription = new NotificationTopic(client, '/topic').subscribe('a', {
    signal: abort.signal,
  });
  await subscription.ready;
  await client.setAcl('/topic/subscribers', readOnlyAcl);
  const troubles: unknown[] = [];
  const onTrouble = (trouble: unknown) => troubles.push(trouble);
  process.on('unhandledRejection', onTrouble);

  abort.abort();
  await subscription.close();
  for (let i = 0; i < 5; i++) await client.sync('/'); // answered behind the delete
  process.off('unhandledRejection', onTrouble);

  expect(troubles).toEqual([]);
});
