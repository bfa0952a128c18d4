/** A node that stays: taken away by hand or lost with a session, it is made again, and a watch tells of it. */

import { connect } from 'drover';
import { GroupMember, PersistentNode, PersistentWatcher } from 'drover/recipes';

const servers = process.env.ZK_SERVERS ?? '127.0.0.1:2181';
const [owner, other] = await Promise.all([
  connect(servers, { renew: true }), // a new session when the old one expires
  connect(servers),
]);
const watcher = new PersistentWatcher(other, '/presence', ({ type, path }) =>
  console.log('seen:', type, path),
);
const node = new PersistentNode(owner, '/presence', { mode: 'ephemeral', data: 'here' });
const member = new GroupMember(owner, '/group', 'one', { data: 'hello' });
try {
  await Promise.all([watcher.ready, node.ready, member.ready]);
  console.log(
    'members:',
    member.members.map(({ name }) => name),
  );
  const births = node[Symbol.asyncIterator](); // from now on
  await other.delete('/presence');
  const { value } = await births.next();
  console.log('made again, because it was:', value?.why);
  await births.return?.();
} finally {
  await Promise.all([watcher.close(), node.close(), member.close()]);
  await Promise.all([owner.close(), other.close()]);
}
