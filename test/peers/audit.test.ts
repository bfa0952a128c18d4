/** The audit logs of ours and of a real Apache server, line by line, after the same changes. */

import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { ops } from '../../src/protocol/index.ts';
import { Audit, type RunningServer, startServer } from '../../src/server/index.ts';
import { RawClient } from '../../src/testing/index.ts';
import { findZooKeepers, startApache } from './zookeeper.ts';

const { found } = await findZooKeepers();
const peer = found.find(({ version }) => version.startsWith('3.9'));

async function change(address: string): Promise<void> {
  const client = await connect(address);
  const acl = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
  await client.create('/a');
  await client.create('/a/e', '', { mode: 'ephemeral' });
  await client.create('/a/s-', '', { mode: 'persistentSequential' });
  await client.create('/c', '', { mode: 'container' });
  await client.set('/a', 'x');
  await client.setAcl('/a', acl);
  await client.create('/a').catch(() => {});
  await client.delete('/none').catch(() => {});
  await client.setAcl('/none', acl).catch(() => {});
  await client.multi([
    { op: 'create', path: '/m' },
    { op: 'set', path: '/m', data: 'x' },
    { op: 'delete', path: '/m' },
  ]);
  await client.multi([{ op: 'create', path: '/a' }]).catch(() => {});
  await client.create(`/a/${'long'.repeat(100)}`);
  await client.close();
  const odd = await RawClient.connect(Number(address.split(':')[1]));
  await odd.err('multi', []);
  await odd.reply(odd.sendRaw(ops.create.code, Buffer.alloc(2)));
  await odd.reply(odd.sendRaw(ops.delete.code, Buffer.alloc(2)));
  await odd.reply(odd.sendRaw(ops.multi.code, Buffer.alloc(2)));
  odd.close();
}

const shape = (line: string) => line.replace(/0x[0-9a-f]+/g, 'HEX').trim();

test.skipIf(peer === undefined)('an audit log has the lines that Apache writes', async () => {
  await using apache = await startApache(peer!, {
    config: { 'audit.enable': 'true' },
    jvm: ['-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.audit=info'],
  });
  const own: string[] = [];
  const audit = new Audit(
    (line) => own.push(shape(line)),
    () => server.engine.auth,
  );
  await using server: RunningServer = await startServer({
    port: 0,
    inMemory: true,
    onCommitted: (call, applied) => audit.committed(call, applied),
    onRefused: (call) => audit.refused(call),
  });
  await change(server.address);
  await change(apache.address);
  const theirs = () =>
    apache
      .output()
      .split('\n')
      .filter((line) => line.includes('Slf4jAuditLogger') && !line.includes('operation=server'))
      .map((line) => shape(line.slice(line.indexOf(' - ') + 3)));
  for (let i = 0; i < 50 && theirs().length < own.length; i++) await delay(50);

  expect(own.length).toBeGreaterThan(12);
  expect(own).toEqual(theirs());
});
