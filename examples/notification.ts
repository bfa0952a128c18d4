/** A notice to all: who has heard it, who has not, and one who comes late. */

import { connect } from 'drover';
import { NotificationTopic, type Subscription } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
const topic = new NotificationTopic(zk, '/example/notices');

async function listen(subscription: Subscription): Promise<void> {
  for await (const message of subscription) {
    console.log(`${subscription.name} hears: ${message.data}`);
    await message.ack();
  }
}

const [a, b] = [topic.subscribe('host-a'), topic.subscribe('host-b')];
const runs = [listen(a), listen(b)];
await Promise.all([a.ready, b.ready]);

const receipt = await topic.send('reload your configuration', {
  to: ['host-a', 'host-b', 'host-c'],
});
const inTime = await receipt.all({ timeoutMs: 500 });
console.log('heard by', inTime.heard, 'not by', inTime.missing);

const c = topic.subscribe('host-c'); // late, and told all the same
runs.push(listen(c));
const all = await receipt.all();
console.log('heard by', all.heard);

await Promise.all([a.close(), b.close(), c.close()]);
await Promise.all(runs);
await zk.close();
