/** The README's first program: a node, a watch, a change. */

import { connect } from 'drover';

const zk = await connect(process.env.ZK_SERVERS ?? '127.0.0.1:2181');
try {
  await zk.create('/greeting', 'hello');
  const changes = zk.watch('/greeting');
  await changes.ready;

  await zk.set('/greeting', 'hello, herd');

  for await (const { type, path } of changes) {
    const { data, stat } = await zk.get(path);
    console.log(type, path, String(data), `version ${stat.version}`);
    break;
  }
  await zk.delete('/greeting');
} finally {
  await zk.close();
}
