/**
 * Scripts of the first and last values of everything that a request or a node counts with: versions,
 * counters, quotas, timeouts. Random scripts come by few of these.
 */

import type { Scene } from './cases.ts';
import { call, connect, make, script, setData } from './cases.ts';
import { edgeCounters, edgeVersions, intMax, intMin } from './edge-data.ts';
import { oddTimeouts, open } from './generate-tables.ts';
import type { Call, Command } from './script.ts';

const names = Object.keys(edgeVersions);
const read = (path: string): Call => call('getData', { path, watch: false });

/** Each version that a request may name for each version that a node may have. */
const asked = [...new Set([...Object.values(edgeVersions), 1, 2, 7, -7])];

const limitsMax = 2n ** 63n - 1n;
const limitTexts = [
  'count=0,bytes=0',
  'count=1,bytes=1',
  'count=-1,bytes=-1',
  ...['count', 'bytes'].flatMap((what) => {
    const key = what === 'count' ? 'countHardLimit' : 'byteHardLimit';
    const values = [0n, 1n, 2n, 3n, -1n, -2n, limitsMax, -limitsMax - 1n];
    return values.map((value) => `count=-1,bytes=-1=;${key}=${value}`);
  }),
  'count=0,bytes=-1=;countHardLimit=5',
  'count=9,bytes=-1=;countHardLimit=0',
  'count=-1,bytes=0=;byteHardLimit=5',
  'count=-1,bytes=9=;byteHardLimit=0',
];

function underLimit(text: string, at: number): Command[] {
  const top = `/q${at}`;
  const quota = `/zookeeper/quota${top}`;
  const part = (op: 'create' | 'setData', path: string, data: Buffer | null) =>
    op === 'create'
      ? ({ op, request: { path, data, acl: open, flags: 0 } } as const)
      : ({ op, request: { path, data, version: -1 } } as const);
  return [
    make(top, ''),
    make(quota, ''),
    make(`${quota}/zookeeper_limits`, text),
    make(`${quota}/zookeeper_stats`, 'count=1,bytes=0'),
    setData(top, ''),
    setData(top, '1'),
    setData(top, '22'),
    setData(top, ''),
    call('create', { path: `${top}/none`, data: null, acl: open, flags: 0 }),
    make(`${top}/empty`, ''),
    make(`${top}/one`, '1'),
    make(`${top}/two`, '22'),
    setData(`${top}/empty`, '1'),
    call('multi', [part('setData', top, Buffer.from('1')), part('create', `${top}/m`, null)]),
    call('delete', { path: `${top}/none`, version: -1 }),
    read(`${quota}/zookeeper_stats`),
  ];
}

const reconnect = (timeOut: number, more: object = {}): Command => ({
  kind: 'reconnect',
  ...{ slot: 0, of: 0, password: 'right', timeOut, old: false, ahead: false },
  ...more,
});

const versions = names.flatMap((name) => {
  const path = `/version/${name}`;
  return [
    read(path),
    ...asked.flatMap((version): Call[] => [
      call('multi', [{ op: 'check', request: { path, version } }]),
      call('setData', { path, data: Buffer.from('new'), version }),
      read(path),
    ]),
    ...asked.map((version) => call('delete', { path, version })),
  ];
});

const aclVersions = names.flatMap((name) => {
  const path = `/aversion/${name}`;
  return [
    call('getACL', { path }),
    ...asked.map((version) => call('setACL', { path, acl: open, version })),
  ];
});

const counters = Object.keys(edgeCounters).flatMap((name) => {
  const path = `/counter/${name}`;
  return [
    call('getChildren2', { path, watch: false }),
    make(`${path}/a`, ''),
    call('exists', { path, watch: false }),
    call('delete', { path: `${path}/a`, version: -1 }),
    call('exists', { path, watch: false }),
    ...(name === 'half' ? [make(`${path}/s-`, '', 2), make(`${path}/s-`, '', 3)] : []),
    call('getChildren2', { path, watch: false }),
  ];
});

/** Each permission alone, all but each, none and all: what a stranger may do with them. */
const permissionSets = [0, 1, 2, 4, 8, 16, 30, 29, 27, 23, 15, 31];

const permitted = permissionSets.flatMap((perms): Command[] => {
  const path = `/p${perms}`;
  const acl = [{ perms, id: { scheme: 'world', id: 'anyone' } }];
  const request = { path: `${path}/new`, data: null, acl: open };
  const asks = [
    ...(['exists', 'getData', 'getChildren', 'getChildren2'] as const).map((op) =>
      call(op, { path, watch: false }),
    ),
    call('getACL', { path }),
    call('getAllChildrenNumber', { path }),
    call('multiRead', [{ op: 'getData', request: { path, watch: false } }]),
    call('multiRead', [{ op: 'getChildren', request: { path, watch: false } }]),
    call('multi', [{ op: 'check', request: { path, version: -1 } }]),
    call('setData', { path, data: Buffer.from('new'), version: -1 }),
    call('create', { ...request, flags: 0 }),
    call('create2', { ...request, flags: 2 }),
    call('createContainer', { ...request, path: `${path}/container`, flags: 4 }),
    call('createTTL', { ...request, path: `${path}/ttl`, flags: 5, ttl: 1_000_000n }),
    call('delete', { path: `${path}/child`, version: -1 }),
    call('setACL', { path, acl, version: -1 }),
  ];
  return [
    call('create', { path, data: Buffer.from('x'), acl: open, flags: 0 }),
    make(`${path}/child`, ''),
    call('setACL', { path, acl, version: -1 }),
    ...asks.map((ask): Call => ({ ...ask, slot: 1 })),
  ];
});

/** All of one profile's: the nodes of its directory are gone behind a script. */
export const edges: readonly Scene[] = [
  {
    name: 'versions turn over behind the last, and the counter of created children stands still at its end',
    profile: 'edges',
    script: script(...versions, ...aclVersions, ...counters),
  },
  {
    name: 'each op under each permission alone, all but each, none and all',
    profile: 'usual',
    script: script({ ...connect, slot: 1 }, ...permitted),
  },
  {
    name: 'limits of a quota, from none to the last',
    profile: 'strict',
    script: script(...limitTexts.flatMap(underLimit)),
  },
  {
    name: 'a timeout is negotiated anew with each connection, between 2 and 20 ticks',
    profile: 'usual',
    script: script(
      ...[...oddTimeouts, intMax, intMin].flatMap((timeOut): Command[] => [
        { ...connect, timeOut },
        reconnect(timeOut),
        reconnect(60_000),
        reconnect(timeOut, { old: true }),
        reconnect(timeOut, { password: 'wrong' }),
        connect,
      ]),
    ),
  },
  {
    name: 'the end of a TTL node',
    profile: 'usual',
    script: script(
      ...[0n, 1n, 2n ** 39n, 2n ** 40n - 1n, 2n ** 40n, limitsMax].flatMap((ttl, at) => [
        call('createTTL', { path: `/t${at}`, data: null, acl: open, flags: 5, ttl }),
        call('exists', { path: `/t${at}`, watch: false }),
      ]),
    ),
  },
  {
    name: 'deleteContainer of every kind of node, where every node is open',
    profile: 'usual',
    script: script(
      make('/leaf', ''),
      make('/above', ''),
      make('/above/child', ''),
      make('/ephemeral', '', 1),
      call('createContainer', { path: '/container', data: null, acl: open, flags: 4 }),
      make('/container/child', ''),
      call('createTTL', { path: '/ttl', data: null, acl: open, flags: 5, ttl: 1_000_000n }),
      ...[
        ...[
          '/leaf',
          '/above',
          '/ephemeral',
          '/container',
          '/container/child',
          '/container',
          '/ttl',
        ],
        ...['/missing', '/missing/child', '/', '', 'a', '/a/', '/zookeeper', '/zookeeper/quota'],
        ...['/zookeeper/config', '/zookeeper/x'],
      ].flatMap((path) => [
        call('deleteContainer', { path }),
        call('exists', { path, watch: false }),
      ]),
    ),
  },
];
