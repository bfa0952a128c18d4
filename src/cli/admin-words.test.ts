/** What an AdminServer says, read as the four-letter words that it stands for. */

import { createServer, type Server as HttpServer } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { askAdmin, lastSnapshotMs, parsed } from './admin-words.ts';

const servers: HttpServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Answers each command with this text. */
async function admin(answers: Readonly<Record<string, string>>): Promise<number> {
  const server = createServer((request, response) => {
    const text = answers[(request.url ?? '').replace('/commands/', '')];
    response.statusCode = text === undefined ? 404 : 200;
    response.end(text ?? 'no');
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return (server.address() as { port: number }).port;
}

const here = { host: '127.0.0.1', port: 2181, name: '127.0.0.1:2181' };
const { signal } = new AbortController();

test('64-bit session ids stay whole', () => {
  const text =
    '{"a": 72059243409768448, "b": [ 72059243409768449, 7 ], "c": {"x":-1234567890123456789}}';

  expect(parsed(text)).toEqual({
    a: '72059243409768448',
    b: ['72059243409768449', 7],
    c: { x: '-1234567890123456789' },
  });
});

test('connections, ephemerals, watches and metrics read as cons, dump, wchc, wchp, wchs and mntr', async () => {
  const id = '72059243409768448';
  const port = await admin({
    connections: `{"connections":[{"remote_socket_address":"10.0.0.1:5","interest_ops":1,"session_id":${id},"packets_received":4,"last_operation":"PING"}],"secure_connections":[],"error":null}`,
    dump: `{"session_id_to_ephemeral_paths":{"${id}":["/a"]},"error":null}`,
    watches: `{"session_id_to_watched_paths":{"${id}":["/a","/x"]},"error":null}`,
    watches_by_path: `{"path_to_session_ids":{"/a":[${id}]},"error":null}`,
    watch_summary: '{"num_connections":1,"num_paths":2,"num_total_watches":3,"error":null}',
    monitor:
      '{"znode_count":6,"avg_latency":4.5,"nested":{"x":1},"command":"monitor","error":null}',
    last_snapshot: '{"zxid":"0","timestamp":1794761198,"error":null}',
  });
  const say = (word: string) => askAdmin(here, port, word, signal);

  const cons = await say('cons');
  expect(cons).toMatch(/^ \/10\.0\.0\.1:5\[1\]\(.*recved=4.*lop=PING.*sid=0x[0-9a-f]+\)$/m);
  const sid = /sid=(0x[0-9a-f]+)/.exec(cons)![1]!;
  expect(BigInt(sid)).toBe(BigInt(id));
  expect(await say('dump')).toContain(`${sid}:\n\t/a\n`);
  expect(await say('wchc')).toBe(`${sid}\n\t/a\n\t/x\n`);
  expect(await say('wchp')).toBe(`/a\n\t${sid}\n`);
  expect(await say('wchs')).toBe('1 connections watching 2 paths\nTotal watches:3\n');
  expect(await say('mntr')).toBe('zk_znode_count\t6\nzk_avg_latency\t4.5\n');
  expect(await lastSnapshotMs(here, port, signal)).toBe(1_794_761_198_000);
});

test('no answer, another status, no JSON and an error are each refused', async () => {
  const port = await admin({ dump: 'nonsense', connections: '{"error":"not allowed"}' });
  const ask = (word: string) => askAdmin(here, port, word, signal);

  await expect(ask('mntr')).rejects.toThrow('the AdminServer answered 404');
  await expect(ask('dump')).rejects.toThrow();
  await expect(ask('cons')).rejects.toThrow('the AdminServer: not allowed');
  await expect(ask('kill')).rejects.toThrow('has no kill');
});

test('a path with a line end in it makes no line of its own', async () => {
  const port = await admin({
    watches_by_path: '{"path_to_session_ids":{"/a\\n0x1:":[1]},"error":null}',
  });

  expect(await askAdmin(here, port, 'wchp', signal)).toBe('/a 0x1:\n\t0x1\n');
});
