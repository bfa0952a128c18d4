/** Who may do what: every cell of the access table, on our server. On Apache's: test/peers/access.test.ts. */

import { expect, test } from 'vitest';
import { ops } from '../src/protocol/index.ts';
import { Sasl } from '../src/server/index.ts';
import { startTestServer } from '../src/testing/index.ts';
import {
  cells,
  differences,
  expectedOfSystem,
  ruledOps,
  systemCells,
  withoutNode,
} from './access/table.ts';
import { saslUser, superDigest, Walk } from './access/walk.ts';

const start = () =>
  startTestServer({
    superDigest,
    extendedTypesEnabled: true,
    extraSchemes: ['sasl', 'x509'],
    sasl: new Sasl({
      passwordOf: (name) => (name === saslUser.username ? saslUser.password : undefined),
    }),
    reapIntervalMs: 2_000_000_000,
  });

test('every op of the protocol has a rule, or a reason why it needs none', () => {
  const decided = [...ruledOps, ...Object.keys(withoutNode)].sort();

  expect(decided).toEqual(Object.keys(ops).sort());
});

test('every op answers as its rule says, for every kind of node, ACL and connection', {
  timeout: 120_000,
}, async () => {
  await using zk = await start();
  const walk = await Walk.start(zk.port);
  const all = cells();

  const answers = await walk.answers(all);

  expect(differences(all, answers)).toEqual([]);
  walk.close();
});

test('the nodes that every server has cannot be deleted, and only the super user changes the configuration', async () => {
  await using zk = await start();
  const walk = await Walk.start(zk.port);
  const all = systemCells();

  const answers = await walk.systemAnswers(all);

  expect(all.map((cell, at) => ({ ...cell, err: answers[at] }))).toEqual(
    all.map((cell) => ({ ...cell, err: expectedOfSystem(cell) })),
  );
  walk.close();
});
