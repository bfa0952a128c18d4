import { expect, test } from 'vitest';
import { connect } from '../client/index.ts';
import { startTestServer } from '../testing/index.ts';
import { type BrokerState, startBroker } from './broker.ts';

const service = {
  becomeLeader() {},
  becomeFollower() {},
  stopReplica() {},
};

test.each(['SESSION_MOVED', 'SESSION_EXPIRED', 'THROTTLED_OP', 'CONNECTION_LOSS'] as const)(
  'a broker that is told %s while it registers anew tries again',
  async (code) => {
    await using zk = await startTestServer();
    const client = await connect(`127.0.0.1:${zk.port}`, { renew: true });
    const broker = await startBroker(client, {
      id: 1,
      endpoints: ['PLAINTEXT://h1:9092'],
      controller: false,
      service,
    });
    const states: BrokerState['name'][] = [];
    broker.on('state', ({ name }) => states.push(name));
    zk.failNext('multi', code);

    await zk.expire(client.sessionId!);

    await expect.poll(() => states).toEqual(['away', 'registered']);
    await broker.close();
    await client.close();
  },
);
