import { expect, test, vi } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { lookAtMany } from './looks.ts';
import { NotingClient, WriteNotes } from './write-notes.ts';

const large = 'x'.repeat(900_000);
const paths = Array.from({ length: 80 }, (_, i) => `/n${i}`);
const deletes = paths.map((path) => ({ op: 'delete', path }) as const);

test('of many large nodes that go at once, no more are read than can be noted', async () => {
  await using server = await startTestServer();
  await server.load(Object.fromEntries(paths.map((path) => [path, large])));
  const notes = new WriteNotes();
  await using client = new NotingClient(server.address, {}, () => notes);
  const get = vi.spyOn(client, 'get');
  await client.multi(deletes);

  expect(get).toHaveBeenCalledTimes(1);
  expect(notes.count).toBe(80);
  expect(notes.writes.map(({ op, path }) => [op, path])).toEqual([['delete', '/n0']]);
  expect(Buffer.from(notes.writes[0]!.before!.data!, 'base64').toString()).toBe(large);
});

test('of small nodes all are noted, what they had and their ACL', async () => {
  await using server = await startTestServer();
  await server.load(Object.fromEntries(paths.map((path) => [path, `data of ${path}`])));
  const notes = new WriteNotes();
  await using client = new NotingClient(server.address, {}, () => notes);
  await client.multi(deletes);

  const found = notes.writes.map(({ before }) => Buffer.from(before!.data!, 'base64').toString());
  expect(found).toEqual(paths.map((path) => `data of ${path}`));
  expect(notes.writes[79]!.before!.acl).toEqual([[31, 'world', 'anyone']]);
});

test('what may not be looked at, or is gone, leaves a gap, and the rest is in its place', async () => {
  await using server = await startTestServer();
  await server.load({ '/a': '1', '/hidden': '2', '/c': '3' });
  await using client = await connect(server.address);
  await client.setAcl('/hidden', [{ perms: 8, id: { scheme: 'world', id: 'anyone' } }]);

  const room = { writes: 10, bytes: 1_000 };
  const notes = await lookAtMany(client, ['/a', '/gone', '/hidden', '/c'], room, {});
  const shown = notes.map((note) => note?.data && Buffer.from(note.data, 'base64').toString());

  expect(shown).toEqual(['1', undefined, undefined, '3']);
  expect((await lookAtMany(client, ['/a', '/c'], { writes: 1, bytes: 99 }, {})).length).toBe(1);
  expect(await lookAtMany(client, ['/a'], { writes: 1, bytes: 0 }, {})).toEqual([]);
});
