/** Scripts that once showed a difference, cut down to what matters. Each was a bug of ours. */

import type { ProfileName } from './profiles.ts';
import type { Call, Command, Script } from './script.ts';

export interface Scene {
  readonly name: string;
  readonly profile: ProfileName;
  readonly script: Script;
}

export const connect: Extract<Command, { kind: 'connect' }> = {
  kind: 'connect',
  slot: 0,
  timeOut: 60_000,
  old: false,
};

export const call = (op: Call['op'], request: Call['request'], more: Partial<Call> = {}): Call => ({
  kind: 'call',
  slot: 0,
  op,
  request,
  ...more,
});

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];

export const make = (path: string, text: string, flags = 0): Call =>
  call('create', { path, data: Buffer.from(text), acl: open, flags });

export const setData = (path: string, text: string): Call =>
  call('setData', { path, data: Buffer.from(text), version: -1 });

export const script = (...commands: Command[]): Script => ({
  seed: 0,
  pipelined: false,
  commands: [connect, ...commands],
});

const quotaOf = (path: string, limits: string): Command[] => [
  make(`/zookeeper/quota${path}`, ''),
  make(`/zookeeper/quota${path}/zookeeper_limits`, limits),
  make(`/zookeeper/quota${path}/zookeeper_stats`, 'count=0,bytes=0'),
];

export const cases: readonly Scene[] = [
  {
    name: 'a sync says the path back as it came, null included',
    profile: 'usual',
    script: script(call('sync', null, { hex: 'ffffffff' })),
  },
  {
    name: 'getEphemerals trims its prefix as Java does',
    profile: 'usual',
    script: script(
      make('/a', '', 3),
      ...['/\u0001', '\u00a0', ' / ', '\u0000'].map((prefixPath) =>
        call('getEphemerals', { prefixPath }),
      ),
    ),
  },
  {
    name: 'a container with the flag of an ephemeral node has children behind its multi, not in it',
    profile: 'usual',
    script: script(
      call('multi', [
        { op: 'createContainer', request: { path: '/a', data: null, acl: open, flags: 1 } },
        { op: 'create', request: { path: '/a/b', data: null, acl: open, flags: 0 } },
      ]),
      call('multi', [
        { op: 'createContainer', request: { path: '/a', data: null, acl: open, flags: 1 } },
      ]),
      make('/a/b', ''),
    ),
  },
  {
    name: "a quota's usage keeps the keys that it does not count",
    profile: 'usual',
    script: script(
      make('/a', 'x'),
      ...quotaOf('/a', 'count=5,bytes=5'),
      setData('/zookeeper/quota/a/zookeeper_stats', 'z=1,count=1,bytes=1;countHardLimit=2'),
      make('/a/b', 'data'),
      call('getData', { path: '/zookeeper/quota/a/zookeeper_stats', watch: false }),
    ),
  },
  {
    name: "limits that can't be read refuse what is below them as a request that can't be read",
    profile: 'strict',
    script: script(
      make('/a', 'x'),
      ...quotaOf('/a', 'not a quota'),
      make('/a/b', 'data'),
      setData('/a', 'more'),
      call('delete', { path: '/a', version: -1 }),
    ),
  },
  {
    name: 'usage of the root is counted when it is set, and no more',
    profile: 'usual',
    script: script(
      make('/a', 'data'),
      make('/zookeeper/quota/zookeeper_stats', 'count=0,bytes=0'),
      make('/a/b', 'more'),
      call('getData', { path: '/zookeeper/quota/zookeeper_stats', watch: false }),
    ),
  },
  {
    name: 'sums of a quota that no long holds turn over',
    profile: 'strict',
    script: script(
      make('/a', 'x'),
      ...quotaOf('/a', 'count=-1,bytes=-1=;countHardLimit=9'),
      setData('/zookeeper/quota/a/zookeeper_stats', 'count=9223372036854775807,bytes=0'),
      make('/a/b', 'data'),
      call('getData', { path: '/zookeeper/quota/a/zookeeper_stats', watch: false }),
    ),
  },
];
