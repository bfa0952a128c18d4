/**
 * A consumer group with nothing installed: records come from files, one file a partition, and the group
 * keeps itself in ZooKeeper as Kafka's own consumers did. A second member joins and takes its share; the
 * first leaves, and the second goes on where it stopped.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'drover';
import { Consumer, describeGroup, fixedTopics, NdjsonSource } from 'drover/kafka';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const directory = await mkdtemp(join(tmpdir(), 'consumer-group-'));
for (let partition = 0; partition < 4; partition++) {
  const lines = Array.from({ length: 1_000 }, (_, i) =>
    JSON.stringify({ timestamp: Date.now() + i, key: `k${i}`, value: `order ${partition}/${i}` }),
  );
  await writeFile(join(directory, `orders-${partition}.ndjson`), `${lines.join('\n')}\n`);
}

const seen = new Set<string>();
async function start(name: string) {
  const zk = await connect(servers, { renew: true, sessionTimeoutMs: 10_000 });
  const source = new NdjsonSource({ directory, batchRecordsMax: 50, pollMs: 20 });
  const consumer = new Consumer(zk, {
    group: 'billing',
    consumerId: name,
    subscribe: { topics: ['orders'] },
    topics: fixedTopics({ orders: 4 }), // without this: from /brokers/topics, as Kafka wrote it
    source,
    debounceMs: 50,
  });
  consumer.on('assigned', ({ topic, partition }) => console.log(name, 'reads', topic, partition));
  const loop = (async () => {
    for await (const batch of consumer) {
      // The loop looks at the clock before each record, and throws if it may be another member's by now.
      for (const record of batch) seen.add(String(record.value));
      await new Promise((done) => setTimeout(done, 5)); // the work
      await batch.commit();
    }
  })();
  const stop = async () => {
    await consumer.close();
    await loop;
    await source.close();
    await zk.close();
  };
  return { zk, consumer, stop };
}

const a = await start('a');
await a.consumer.settled();
const b = await start('b');
while (b.consumer.status().partitions.length < 2) await new Promise((done) => setTimeout(done, 20));
for (const { partition, owner } of (await describeGroup(b.zk, { group: 'billing' })).partitions) {
  console.log('orders', partition, 'is read by', owner);
}

await a.stop();
while (seen.size < 4_000) await new Promise((done) => setTimeout(done, 20));
const lags = b.consumer.status().partitions.map(({ partition, lag }) => `${partition}: ${lag}`);
console.log(`all ${seen.size} records were read; lag ${lags.sort().join(', ')}`);
await b.stop();
await rm(directory, { recursive: true });
