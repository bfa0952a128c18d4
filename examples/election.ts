/** Two candidates: one leads and resigns, the other takes over, and a page says who is master. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'drover';
import { askMaster, Election, ElectionObserver, MasterPage } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const [one, two] = [
  await connect(servers, { renew: true }),
  await connect(servers, { renew: true }),
];
const observer = new ElectionObserver(two, '/example/election');
const page = createServer(new MasterPage(observer).handle).listen(0, '127.0.0.1');
await once(page, 'listening');
const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}/`;

async function campaign(election: Election): Promise<void> {
  for await (const term of election) {
    console.log(`${term.id} leads, epoch 0x${term.epoch.toString(16)}`);
    if (!term.signal.aborted) await once(term.signal, 'abort'); // the work goes here
    console.log(`${term.id} stops: ${term.signal.reason.message}`);
  }
}

const first = new Election(one, '/example/election', { id: 'host-a' });
const second = new Election(two, '/example/election', { id: 'host-b' });
const runs = [campaign(first)];
const leaders = observer[Symbol.asyncIterator]();
while ((await leaders.next()).value?.id !== 'host-a');
runs.push(campaign(second));
while ((await first.candidates()).length < 2);

first.resign();
while ((await leaders.next()).value?.id !== 'host-b');
const { master, source, stale } = await askMaster(url);
console.log(`master by HTTP: ${master} (${source}${stale ? ', stale' : ''})`);

await Promise.all([first.close(), second.close()]);
await Promise.all(runs);
await observer.close();
page.close();
page.closeAllConnections();
await Promise.all([one.close(), two.close()]);
