/** Values that many change and none overwrites: a shared text, a shared count, a 64-bit counter. */

import { connect } from 'drover';
import { AtomicLong, SharedCount, SharedValue } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
const motto = new SharedValue(zk, '/shared/motto', { seed: 'nothing lost' });
const limit = new SharedCount(zk, '/shared/limit', { seed: 3 });
const total = new AtomicLong(zk, '/shared/total');
try {
  console.log(await motto.update((text) => Buffer.from(`${text}, nothing silent`)).then(String));

  const seen = await limit.get();
  console.log('set if unchanged:', await limit.trySet(seen, seen.value + 1));
  console.log('and again:', await limit.trySet(seen, 99));

  await Promise.all(Array.from({ length: 20 }, () => total.add(5n, { triesMax: 100 })));
  console.log('total', await total.get());
} finally {
  await Promise.all([motto.close(), limit.close(), total.close()]);
  await zk.close();
}
