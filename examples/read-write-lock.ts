/** Many read, one writes; and the writer goes on reading without letting another writer in between. */

import { connect } from 'drover';
import { ReadWriteLock } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
try {
  const table = new ReadWriteLock(zk, '/locks/table');

  const readers = [await table.read.acquire(), await table.read.acquire()];
  console.log('readers together:', (await table.holders()).length);
  await Promise.all(readers.map((reader) => reader.release()));

  const owner = {}; // whoever it is that writes, and then reads what it wrote
  const write = await table.write.acquire({ owner });
  const next = table.write.hold(() => console.log('the next writer'));
  const read = await table.read.acquire({ owner });
  await write.release();
  console.log('the writer reads on, and the next one waits');
  await read.release();
  await next;
} finally {
  await zk.close();
}
