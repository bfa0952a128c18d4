/** A server whose data is older than what a session has seen, as after a restore from a backup. */

import { expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { Link } from '../../src/testing/index.ts';
import { findZooKeepers, startApache } from './zookeeper.ts';

const { found } = await findZooKeepers();

for (const peer of found) {
  test(`${peer.name} with older data is told of, and not asked in silence for ever`, async () => {
    await using newer = await startApache(peer);
    await using older = await startApache(peer);
    await using link = await Link.to({ host: '127.0.0.1', port: newer.port });
    const client = await connect(link.address, {
      connectRoundsMax: 3,
      backoff: { firstMs: 10, maxMs: 20 },
    });
    for (let i = 0; i < 100; i++) await client.create(`/${i}`);

    link.retarget({ host: '127.0.0.1', port: older.port });
    link.cut();
    while (client.state.name !== 'closed') {
      await new Promise((resolve) => client.once('state', resolve));
    }

    await expect(client.get('/')).rejects.toThrow(
      /its data is probably older than what this session has seen/,
    );
  });
}
