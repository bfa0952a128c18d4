import { expect, test, vi } from 'vitest';
import { GroupMember } from '../../src/recipes/group-member.ts';
import { Membership, type MembershipChange } from '../../src/recipes/membership.ts';
import { Roster } from '../../src/recipes/roster.ts';
import { ephemeralsOf, reached, startZk } from '../zk.ts';

/** Everything that a loop over changes sees, as text, as it comes. */
function told(group: AsyncIterable<MembershipChange>): string[] {
  const seen: string[] = [];
  void (async () => {
    for await (const { type, member } of group) {
      seen.push(`${member.name} ${type}${member.data?.length ? ` ${member.data}` : ''}`);
    }
    seen.push('end');
  })().catch((error) => seen.push(`error ${error.code}`));
  return seen;
}

test('who joins, changes and leaves is told, each with data, session and age', async () => {
  await using zk = await startZk();
  const [watching, joining] = [await zk.connect(), await zk.connect()];
  await using group = new Membership(watching, '/group');
  const seen = told(group);
  await group.ready;

  const a = await group.join('a', { data: 'first' });
  const b = await new Membership(joining, '/group').join('b');
  await vi.waitFor(() => expect(group.members.map(({ name }) => name)).toEqual(['a', 'b']));
  await a.set('second');
  await vi.waitFor(() => expect(String(group.get('a')!.data)).toBe('second'));
  const [first, second] = group.members;
  await b.close();
  await vi.waitFor(() => expect(seen).toHaveLength(4));

  expect(seen).toEqual(['a joined first', 'b joined', 'a updated second', 'b left']);
  expect([first!.sessionId, second!.sessionId]).toEqual([watching.sessionId, joining.sessionId]);
  expect(first!.version).toBe(1);
  expect(first!.incarnation).toBeLessThan(second!.incarnation);
  expect(group.ageMs(first!)).toBeGreaterThanOrEqual(0);
});

test('a loop that begins late sees those who are there, then what changes', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  await using group = new Membership(client, '/group');
  await group.join('a');
  const b = await group.join('b');
  await vi.waitFor(() => expect(group.members).toHaveLength(2));

  const seen = told(group);
  await b.close();

  await vi.waitFor(() => expect(seen).toEqual(['a joined', 'b joined', 'b left']));
});

test('a member whose session ends is told as left, and as joined when it is back', async () => {
  await using zk = await startZk();
  const [client, witness] = [
    await zk.connect({ renew: true, sessionTimeoutMs: 4_000 }),
    await zk.witness(),
  ];
  await using member = new GroupMember(client, '/group', 'a', { data: 'x' });
  await using group = new Membership(witness, '/group');
  await Promise.all([member.ready, group.ready]);
  await vi.waitFor(() => expect(group.members).toHaveLength(1));
  const before = group.get('a')!;
  const seen = told(group);

  await zk.expire(client);

  await vi.waitFor(() => expect(seen).toEqual(['a joined x', 'a left x', 'a joined x']));
  expect(group.get('a')!.incarnation).toBeGreaterThan(before.incarnation);
  await vi.waitFor(() => expect(member.members.map(({ name }) => name)).toEqual(['a']));
});

test('what happens while the link is away is told when it is back, and the list says that it was old', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await using others = new Membership(witness, '/group');
  const gone = await others.join('gone');
  const same = await others.join('same', { data: '1' });
  await others.join('stays');
  await using group = new Membership(client, '/group');
  await group.ready;
  const seen = told(group);
  expect(group.isCurrent).toBe(true);
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  expect(group.isCurrent).toBe(false);
  await gone.close();
  await same.set('2');
  await others.join('new');
  expect(group.members.map(({ name }) => name)).toEqual(['gone', 'same', 'stays']);
  const { frames } = zk.link.stats;
  await zk.link.accept();
  await vi.waitFor(() => expect(group.isCurrent).toBe(true));

  expect(seen.slice(0, 3)).toEqual(['gone joined', 'same joined 1', 'stays joined']);
  expect(seen.slice(3).sort()).toEqual(['gone left', 'new joined', 'same updated 2']);
  // Handshake, watches, a fence or two, the list, and two reads: nobody asks for those who stayed.
  const asked = zk.link.stats.frames.toServer - frames.toServer;
  expect(asked).toBeLessThan(10);
});

test('a group that nobody has made yet is empty, and watched all the same', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await using group = new Membership(client, '/not/yet');
  await group.ready;
  expect(group.members).toEqual([]);

  await new Membership(witness, '/not/yet').join('a');

  await vi.waitFor(() => expect(group.members.map(({ name }) => name)).toEqual(['a']));
});

test('the whole group is deleted under its members: they come back', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await using member = new GroupMember(client, '/group', 'a');
  await vi.waitFor(() => expect(member.members).toHaveLength(1));
  const { incarnation } = member.members[0]!;

  await witness.deleteRecursive('/group');

  await vi.waitFor(() => expect(member.members[0]?.incarnation).toBeGreaterThan(incarnation));
  expect(await witness.children('/group')).toEqual(['a']);
});

test('closing takes every watch and every node away', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const members = ['a', 'b', 'c'].map((name) => new GroupMember(client, '/group', name));
  await Promise.all(members.map(({ ready }) => ready));
  await vi.waitFor(() => expect(members[0]!.members).toHaveLength(3));

  await Promise.all(members.map((member) => member.close()));

  expect(client.load.watches).toBe(0);
  expect(await ephemeralsOf(client)).toEqual([]);
});

test.each(['before it is ready', 'while the link is away'] as const)(
  'closing %s leaves nothing behind either',
  async (when) => {
    await using zk = await startZk();
    const [client, witness] = [await zk.connect(), await zk.witness()];
    await new Membership(witness, '/group').join('other');
    const member = new GroupMember(client, '/group', 'a');
    member.ready.catch(() => {});
    if (when === 'while the link is away') {
      await member.ready;
      zk.link.refuse();
      zk.link.cut();
      await reached(client, 'suspended');
    }

    await member.close();
    await zk.link.accept();

    await vi.waitFor(async () => expect(await witness.children('/group')).toEqual(['other']));
    await vi.waitFor(() => expect(client.load.watches).toBe(0));
  },
);

test('a group ends with its client, and the loop says why', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const group = new Membership(client, '/group');
  await group.ready;
  const seen = told(group);

  await zk.expire(client);

  await vi.waitFor(() => expect(seen).toEqual(['error SESSION_EXPIRED']));
  await group.close();
});

test('a member that may not be read does not hide the others', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/group');
  await witness.create('/group/hidden', '', {
    acl: [{ perms: 8, id: { scheme: 'world', id: 'anyone' } }],
  });

  await using group = new Membership(client, '/group');
  await group.ready;
  await group.join('a');

  await vi.waitFor(() => expect(group.members.map(({ name }) => name)).toEqual(['a']));
  await witness.delete('/group/hidden');
});

test.each([['', 'x/y', '..', 'a\u0000b']].flat())('the name %j is refused', async (name) => {
  await using zk = await startZk();
  const group = new Membership(await zk.connect(), '/group');

  await expect(group.join(name)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await group.close();
});

test('a group that changes while its client is closing does not keep the client from it', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect({ closeTimeoutMs: 1_000 }), await zk.witness()];
  await using others = new Membership(witness, '/group');
  await others.join('other');
  const member = new GroupMember(client, '/group', 'a');
  await member.ready;
  const seen = told(member);
  // The goodbye is on its way, and meanwhile there is news: whoever asks for more is refused.
  zk.link.pause('toServer');
  const closing = client.close();
  const { frames } = zk.link.stats;
  await others.join('new');
  await zk.link.until((now) => now.frames.toClient > frames.toClient);
  zk.link.resume('toServer');

  await closing;

  await vi.waitFor(() => expect(seen.at(-1)).toMatch(/^error|^end/));
  await member.close();
});

test('a view is called current again only once it has caught up with all that was missed', async () => {
  await using zk = await startZk();
  const [client, witness] = [await zk.connect(), await zk.witness()];
  await witness.create('/list');
  for (let i = 0; i < 20; i++) await witness.create(`/list/n${i}`, 'old');
  const views: string[][] = [];
  const look = () => [...roster.entries.values()].map(({ name, data }) => `${name} ${data}`).sort();
  const onCurrent = (isCurrent: boolean) => void (isCurrent && views.push(look()));
  await using roster = new Roster(client, '/list', { onCurrent });
  await roster.ready;
  zk.link.refuse();
  zk.link.cut();
  await reached(client, 'suspended');

  for (let i = 0; i < 10; i++) await witness.delete(`/list/n${i}`);
  for (let i = 10; i < 20; i++) await witness.set(`/list/n${i}`, 'new');
  await witness.create('/list/n20', 'new');
  await zk.link.accept();
  await vi.waitFor(() => expect(views).toHaveLength(2));

  const names = Array.from({ length: 11 }, (_, i) => `n${i + 10} new`);
  expect(views[1]).toEqual(names);
});

test('a signal ends the loop and the watch', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const abort = new AbortController();
  const group = new Membership(client, '/group', { signal: abort.signal });
  await group.ready;
  const seen = told(group);

  abort.abort();

  await vi.waitFor(() => expect(seen).toEqual(['end']));
  await group.close();
  expect(client.load.watches).toBe(0);
});

test('a signal ends a member, its loops and its watches', async () => {
  await using zk = await startZk();
  const client = await zk.connect();
  const enough = new AbortController();
  const member = new GroupMember(client, '/group', 'a', { signal: enough.signal });
  await member.ready;
  const changes: string[] = [];
  const loop = (async () => {
    for await (const { type } of member) changes.push(type);
  })();

  enough.abort();
  await loop;
  await member.close();

  expect(changes).toEqual(['joined']);
  expect(client.load.watches).toBe(0);
});
