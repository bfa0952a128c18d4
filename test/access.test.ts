/** Who may do what: every cell of the access table, on our server. On Apache's: test/peers/access.test.ts. */

import { expect, test } from 'vitest';
import { encode } from '../src/jute/index.ts';
import { MultiHeader, multiParts, type OpName, ops } from '../src/protocol/index.ts';
import { Sasl } from '../src/server/index.ts';
import { RawClient, startTestServer } from '../src/testing/index.ts';
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

/** Every number that an op may have, and some more, in the header of a request or of a part. */
const allCodes = Array.from({ length: 240 }, (_, at) => at - 20);

test('a number that names no op a connection may ask for is refused, and the connection ends', async () => {
  await using zk = await start();
  const asked = new Set<number>(
    (Object.keys(ops) as OpName[])
      .filter((op) => op !== 'createSession' && op !== 'check')
      .map((op) => ops[op].code),
  );

  for (const code of allCodes.filter((each) => !asked.has(each))) {
    const client = await RawClient.connect(zk.port);
    const body = encode(ops.delete.request, { path: '/a', version: -1 });
    expect([code, (await client.reply(client.sendRaw(code, body))).err]).toEqual([code, -6]);
    await client.ended();
  }

  expect(zk.tree()).toEqual({});
});

test('a multi with a part that has no place in it is refused whole', async () => {
  await using zk = await start();
  await zk.load({ '/a': '', '/b': '' });
  const client = await RawClient.connect(zk.port);
  const parts = new Set<number>(Object.values(multiParts).map(({ code }) => code));
  const header = (type: number) => encode(MultiHeader, { type, done: type === -1, err: -1 });
  const first = encode(ops.delete.request, { path: '/b', version: -1 });

  for (const code of allCodes.filter((each) => each !== -1 && !parts.has(each))) {
    // A path, and bytes enough for whatever else is read of it.
    const odd = Buffer.concat([encode(ops.sync.request, { path: '/a' }), Buffer.alloc(16)]);
    const body = [header(ops.delete.code), first, header(code), odd, header(-1)];
    const { err } = await client.reply(client.sendRaw(ops.multi.code, Buffer.concat(body)));
    expect([code, err]).toEqual([code, -5]);
  }

  expect(zk.tree()).toEqual({ '/a': '', '/b': '' });
});
