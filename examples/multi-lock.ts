/** A transfer holds both accounts at once: all of the locks or none, whatever the order they are named in. */

import { connect } from 'drover';
import { MultiLock } from 'drover/recipes';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
const balance = new Map([
  ['alice', 100],
  ['bob', 100],
]);

async function transfer(from: string, to: string, amount: number): Promise<void> {
  // Two that name them the other way round do not wait for each other: both take them by their paths.
  const both = new MultiLock(zk, [`/accounts/${from}`, `/accounts/${to}`]);
  await both.hold(({ fencingTokens }) => {
    balance.set(from, balance.get(from)! - amount);
    balance.set(to, balance.get(to)! + amount);
    console.log(`${from} -> ${to}: ${amount}, under ${fencingTokens.length} tokens`);
  });
}

try {
  await Promise.all([transfer('alice', 'bob', 30), transfer('bob', 'alice', 10)]);
  console.log(Object.fromEntries(balance));
} finally {
  await zk.close();
}
