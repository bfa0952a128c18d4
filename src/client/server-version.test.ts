/** The decision alone: what may go to a server of which nothing is known, and what an answer teaches. */

import { expect, test } from 'vitest';
import { type OpName, wireOf } from '../protocol/index.ts';
import type { Call } from './calls.ts';
import { OldServers, olderWords, ServerVersion, type Step } from './server-version.ts';

const address = '127.0.0.1:2181';
const noNode = wireOf('NO_NODE');
const unimplemented = wireOf('UNIMPLEMENTED');

function call(op: OpName, request: unknown = { path: '/a' }): Call {
  return {
    op,
    request: request as never,
    path: '/a',
    resolve: () => {},
    reject: () => {},
    retriesLeft: 0,
    xid: 0,
    sentMs: 0,
    settled: false,
  };
}

const multi = (...parts: OpName[]) =>
  call(
    'multi',
    parts.map((op) => ({ op, request: { path: '/a' } })),
  );

function server(old = new OldServers()) {
  const unknown: OpName[] = [];
  const version = new ServerVersion(address, old, (op) => unknown.push(op));
  return { version, old, unknown };
}

/** The question that goes first, as `Calls` would send it, answered. */
function answer(version: ServerVersion, step: Step, err: number): OpName {
  const question = step as Call;
  version.answered(question, err);
  question.onReply?.(err, undefined);
  return question.op;
}

test('what every server knows goes at once, and nothing is asked', () => {
  const { version } = server();

  for (const op of ['exists', 'setData', 'delete', 'getChildren2', 'closeSession'] as const) {
    expect(version.step(call(op), 5)).toBe('send');
  }
  expect(version.step(multi('check', 'setData', 'delete'), 5)).toBe('send');
});

test('the first create of a connection asks for /zookeeper/config, and waits for no more than that', () => {
  const { version } = server();
  const create = call('create2');

  const question = version.step(create, 5);
  expect((question as Call).request).toEqual({ path: '/zookeeper/config', watch: false });
  expect(version.step(create, 6)).toBe('wait');
  answer(version, question, 0);

  expect(version.step(create, 5)).toBe('send');
  for (const op of ['createContainer', 'createTTL', 'removeWatches', 'reconfig'] as const) {
    expect(version.step(call(op), 5)).toBe('send');
  }
  expect(version.step(multi('create2', 'createContainer'), 5)).toBe('send');
});

test('without that node a create goes in the words of 3.4, also in a multi', () => {
  const { version } = server();
  answer(version, version.step(call('create2'), 0), noNode);

  expect(version.step(call('create2'), 5)).toBe('sendOlder');
  expect(version.step(multi('check', 'create2'), 5)).toBe('sendOlder');
  expect(olderWords(call('create2')).op).toBe('create');
  expect(olderWords(multi('check', 'create2')).request).toMatchObject([
    { op: 'check' },
    { op: 'create' },
  ]);
});

test('what 3.4 has no words for is asked for by a read that goes alone', () => {
  const { version, unknown } = server();
  answer(version, version.step(call('create2'), 0), noNode);
  const container = call('createContainer');

  expect(version.step(container, 1)).toBe('wait');
  const question = version.step(container, 0);
  expect(version.step(call('exists'), 1)).toBe('wait');
  expect(answer(version, question, unimplemented)).toBe('checkWatches');

  expect(unknown).toEqual(['checkWatches']);
  for (const refused of [container, call('createTTL'), multi('create2', 'createContainer')]) {
    expect(version.step(refused, 0)).toBe('refuse');
  }
  expect(version.refusal(container).message).toContain(
    'createContainer needs ZooKeeper 3.5 or newer, and 127.0.0.1:2181 is older',
  );
  expect(version.refusal(multi('create2', 'createTTL')).message).toContain('createTTL needs');
  expect(version.step(call('create2'), 3)).toBe('sendOlder');
});

test('a server that was upgraded from 3.4, and so lacks the node, is asked in the words of 3.5', () => {
  const { version } = server();
  answer(version, version.step(call('create2'), 0), noNode);

  answer(version, version.step(call('createContainer'), 0), wireOf('NO_WATCHER'));

  expect(version.step(call('createContainer'), 5)).toBe('send');
  expect(version.step(call('create2'), 5)).toBe('send');
});

test('taking a watch away is worth no connection: 3.4 is not asked', () => {
  const { version } = server();
  answer(version, version.step(call('removeWatches'), 0), noNode);

  expect(version.step(call('removeWatches'), 5)).toBe('refuse');
});

test('the first op of 3.6 goes alone, and proves all others of 3.6', () => {
  const { version } = server();
  const first = call('addWatch');

  expect(version.step(first, 1)).toBe('wait');
  expect(version.step(first, 0)).toBe('send');
  expect(version.step(call('exists'), 1)).toBe('wait');
  expect(version.answered(first, 0)).toBe(false);

  for (const op of ['getAllChildrenNumber', 'multiRead', 'getEphemerals', 'create2'] as const) {
    expect(version.step(call(op), 5)).toBe('send');
  }
  expect(version.step(call('whoAmI'), 5)).toBe('wait');
});

test('an error other than UNIMPLEMENTED proves an op as well', () => {
  const { version, unknown } = server();
  const first = call('getAllChildrenNumber');
  version.step(first, 0);

  version.answered(first, noNode);

  expect(unknown).toEqual([]);
  expect(version.step(call('addWatch'), 5)).toBe('send');
});

test('what a server did not know is remembered for its next connection', () => {
  const { version, old, unknown } = server();
  const first = call('addWatch');
  version.step(first, 0);

  expect(version.answered(first, unimplemented)).toBe(true);
  const next = server(old).version;

  expect(unknown).toEqual(['addWatch']);
  expect(next.lacksPersistentWatches).toBe(true);
  for (const op of ['addWatch', 'getEphemerals', 'whoAmI'] as const) {
    expect(next.step(call(op), 5)).toBe('refuse');
  }
  expect(new ServerVersion('127.0.0.1:2182', old, () => {}).lacksPersistentWatches).toBe(false);
});

test('a server that was upgraded meanwhile is believed', () => {
  const old = new OldServers();
  old.remember(address, 5);
  const { version } = server(old);

  answer(version, version.step(call('createContainer'), 0), 0);

  expect(version.step(call('createContainer'), 5)).toBe('send');
  expect(version.lacksPersistentWatches).toBe(false);
  expect(old.of(address)).toBe(Number.POSITIVE_INFINITY);
});

test('persistent watches that are set again go alone', () => {
  const { version, unknown } = server();

  version.settingWatches();
  expect(version.step(call('exists'), 0)).toBe('wait');
  version.watchesSet(0);
  expect(version.step(call('addWatch'), 5)).toBe('send');

  const older = server();
  older.version.settingWatches();
  older.version.watchesSet(unimplemented);
  expect([unknown, older.unknown]).toEqual([[], ['setWatches2']]);
});

test('a call that could not be encoded holds up nobody', () => {
  const { version } = server();
  const broken = call('getEphemerals');
  version.step(broken, 0);

  version.notSent(broken);

  expect(version.step(call('exists'), 0)).toBe('send');
});

test('the memory of old servers has a bound', () => {
  const old = new OldServers();

  for (let i = 0; i < 1_000; i++) old.remember(`10.0.0.1:${i}`, 6);

  expect(old.of('10.0.0.1:0')).toBe(Number.POSITIVE_INFINITY);
  expect(old.of('10.0.0.1:999')).toBe(6);
});
