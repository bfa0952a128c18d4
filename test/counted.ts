/** A load of every kind of packet, the same on any server, and what it is to be counted as. */

import { ops } from '../src/protocol/index.ts';
import { RawClient } from '../src/testing/index.ts';

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const node = (path: string, text = '') => ({ path, data: Buffer.from(text), acl: open, flags: 0 });
const proof = (scheme: string, text: string) => ({ type: 0, scheme, auth: Buffer.from(text) });
const authXid = -4;

/** Ends with a link that its client drops, which servers notice a little later. */
export async function beCounted(port: number): Promise<void> {
  const client = await RawClient.connect(port);
  await client.ask('create', node('/counted', 'x'));
  await client.err('create', node('/counted'));
  await client.ask('getData', { path: '/counted', watch: true });
  await client.ask('setData', { path: '/counted', data: Buffer.from('abc'), version: -1 });
  await client.ask('exists', { path: '/counted', watch: false });
  await client.err('getData', { path: '/none', watch: false });
  await client.ask('setWatches', {
    ...{ relativeZxid: 0n, dataWatches: ['/counted'], existWatches: [], childWatches: [] },
  });
  await client.ask('multi', [
    { op: 'create', request: node('/counted/m') },
    { op: 'delete', request: { path: '/counted/m', version: -1 } },
  ]);
  await client.ping();
  await client.err('auth', proof('digest', 'ann:pass'), authXid);
  await client.reply(client.sendRaw(ops.sasl.code, Buffer.alloc(4)));

  const unknown = await RawClient.connect(port);
  await unknown.reply(unknown.sendRaw(999, Buffer.alloc(0)));
  await unknown.ended();
  const refused = await RawClient.connect(port);
  await refused.err('auth', proof('nonsense', 'x'), authXid);
  await refused.ended();
  const stranger = await RawClient.connect(port, { sessionId: 4711n });
  await stranger.ended();
  for (const word of ['ruok', 'isro']) {
    const asking = await RawClient.dial(port);
    asking.write(Buffer.from(word));
    await asking.ended();
  }

  await client.ask('closeSession', {});
  await client.ended();
  const dropping = await RawClient.connect(port);
  dropping.close();
}

/** As Apache counts it. */
// biome-ignore format: a table is read down its columns
export const counts: Readonly<Record<string, number>> = {
  packets_received:            21,
  packets_sent:                23,
  bytes_received_count:       752,
  response_bytes:             406,
  watch_bytes:                 72,
  cnt_readlatency:              5,
  cnt_updatelatency:            9,
  connection_request_count:     5,
  connection_revalidate_count:  1,
  connection_drop_count:        1,
};
