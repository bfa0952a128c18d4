/**
 * A server of our own with a very large tree: 10^6 nodes in all, of which 10^5 are children of one node,
 * 10^5 places in the line for one lock, and 10^4 topics; nodes of nearly 1 MB beside them. It has a process
 * of its own, so that who measures the console does not measure the server too.
 *
 *   node --import tsx large-tree.ts        sends its address to its parent once the tree is there
 */
import { gzipSync } from 'node:zlib';
import { connect } from '../src/client/index.ts';
import { startServer } from '../src/server/index.ts';

const batch = 500;
const batchesAtOnce = 16;
const megabyte = 1_000_000;

function* paths(): Generator<string> {
  const number = (at: number) => String(at).padStart(10, '0');
  yield '/long';
  for (let at = 0; at < 100_000; at += 1) yield `/long/n${(at * 7919) % 100_000}`;
  yield '/locks';
  yield '/locks/busy';
  for (let at = 0; at < 100_000; at += 1) yield `/locks/busy/lock-${number(at)}`;
  for (const path of ['/brokers', '/brokers/ids', '/brokers/topics', '/consumers']) yield path;
  for (let at = 0; at < 10_000; at += 1) yield `/brokers/topics/topic-${at}`;
  yield '/wide';
  for (let folder = 0; folder < 790; folder += 1) {
    yield `/wide/${folder}`;
    for (let at = 0; at < 1_000; at += 1) yield `/wide/${folder}/n${at}`;
  }
}

const server = await startServer({
  port: 0,
  inMemory: true,
  fourLetterWords: '*',
  limits: { connectionsPerAddressMax: 0 },
});
const client = await connect(server.address);
let some: string[] = [];
let pending: Promise<unknown>[] = [];
const flush = async (isLast: boolean) => {
  pending.push(client.multi(some.map((path) => ({ op: 'create' as const, path }))));
  some = [];
  if (!isLast && pending.length < batchesAtOnce) return;
  await Promise.all(pending);
  pending = [];
};
for (const path of paths()) if (some.push(path) === batch) await flush(false);
await flush(true);
const rows = Array.from({ length: 12_000 }, (_, at) => ({
  at,
  name: `row ${at}`,
  tags: ['a', 'b'],
}));
const json = JSON.stringify(rows).slice(0, megabyte - 1_000);
await client.create('/large');
for (const [name, data] of [
  ['text', Buffer.alloc(megabyte, 'line of text\n')],
  ['json', Buffer.from(`${json.slice(0, json.lastIndexOf('},'))}}]`)],
  ['bytes', Buffer.alloc(megabyte, Buffer.from([0, 255, 7, 128]))],
  ['zipped', gzipSync(Buffer.alloc(megabyte, 'line of text\n'))],
] as const) {
  await client.create(`/large/${name}`, data);
}
await client.close();
process.on('disconnect', () => process.exit());
process.send?.(server.address);
