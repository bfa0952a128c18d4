/** The access table on a real server: the rules that ours is held to are Apache's own. */

import { expect, test } from 'vitest';
import { cells, differences, expectedOfSystem, systemCells } from '../access/table.ts';
import { saslUser, Walk } from '../access/walk.ts';
import { findZooKeepers, startApache } from './zookeeper.ts';

const { found, missing } = await findZooKeepers();
// 3.8 answers `exists` without a permission, and other ops differently too.
const peer = found.find(({ name }) => name.startsWith('apache'));

if (peer === undefined) {
  for (const { name, how } of missing) test.skip(`${name} is missing: ${how}`, () => {});
}

test.skipIf(peer === undefined)(
  'every op answers as its rule says',
  {
    timeout: 240_000,
  },
  async () => {
    await using apache = await startApache(peer!, {
      sasl: { users: { [saslUser.username]: saslUser.password } },
      config: {
        'authProvider.x509': 'org.apache.zookeeper.server.auth.X509AuthenticationProvider',
      },
      jvm: ['-Dzookeeper.forceSync=no', '-Dznode.container.checkIntervalMs=2000000000'],
    });
    const walk = await Walk.start(apache.port);
    // No client sends a deleteContainer.
    const all = cells().filter(({ op }) => op !== 'deleteContainer');
    const ofSystem = systemCells();

    const answers = await walk.answers(all);
    const systemAnswers = await walk.systemAnswers(ofSystem);

    expect(differences(all, answers)).toEqual([]);
    expect(systemAnswers).toEqual(ofSystem.map(expectedOfSystem));
    walk.close();
  },
);
