/** What a restart behind a kill -9 must not bring back, op by op: from the log alone, and over snapshots. */

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { digestId, openAcl, type RequestOf } from '../protocol/index.ts';
import { MovableClock, RawClient } from '../testing/index.ts';
import { type RunningServer, startServer } from './start-server.ts';

const folders: string[] = [];
const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'drover-restart-'));
  folders.push(made);
  return made;
};
afterEach(() => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true });
});

const acl = [...openAcl];
const secret = [{ perms: 31, id: digestId('ann:pw') }];
const node = (path: string, flags = 0): RequestOf<'create'> => ({
  path,
  data: Buffer.from('old'),
  acl,
  flags,
});
const set = (path: string, text = 'new', version = -1) => ({
  path,
  data: Buffer.from(text),
  version,
});
const gone = (path: string) => ({ path, version: -1 });
const login = { type: 0, scheme: 'digest', auth: Buffer.from('ann:pw') };

interface Stage {
  readonly server: RunningServer;
  readonly clock: MovableClock;
  /** Asks, and stays. */
  readonly client: RawClient;
  /** Whose session ends, or that is refused. */
  readonly other: RawClient;
}

interface Scene {
  /** In the snapshot, if one is taken before the op. */
  readonly before?: (stage: Stage) => Promise<unknown>;
  readonly op: (stage: Stage) => Promise<unknown>;
  /** On the server that was started on what the killed one left. */
  readonly after: (server: RunningServer, stage: Stage) => Promise<unknown>;
}

const missing = async (server: RunningServer, ...paths: string[]) => {
  const client = await RawClient.connect(server.port);
  for (const path of paths) {
    expect([path, await client.err('exists', { path, watch: false })]).toEqual([path, -101]);
  }
};
const refused = async (server: RunningServer, { sessionId, passwd }: RawClient) => {
  expect((await RawClient.connect(server.port, { sessionId, passwd })).sessionId).toBe(0n);
  expect(server.engine.sessions.get(sessionId)).toBeUndefined();
  expect(server.engine.tree.sessions.has(sessionId)).toBe(false);
};
const holds = async (server: RunningServer, path: string, text: string, version: number) => {
  const client = await RawClient.connect(server.port);
  const { data, stat } = await client.ask('getData', { path, watch: false });
  expect([data?.toString(), stat.version]).toEqual([text, version]);
};
const ephemeral = ({ other }: Stage) => other.ask('create', node('/e', 1));
const reaped = async ({ server, client }: Stage, path: string) => {
  expect(server.engine.reap(path)).toBe(true);
  while ((await client.err('exists', { path, watch: false })) === 0);
};

const scenes: Record<string, Scene> = {
  'a session that was closed, and its ephemeral nodes': {
    before: ephemeral,
    op: ({ other }) => other.ask('closeSession', {}),
    after: async (server, { other }) => {
      await refused(server, other);
      await missing(server, '/e');
    },
  },
  'a session that has expired, and its ephemeral nodes': {
    before: ephemeral,
    op: async ({ server, client, other }) => {
      server.engine.expire(server.engine.sessions.get(other.sessionId)!);
      await other.ended();
      await client.ping();
    },
    after: async (server, { other }) => {
      await refused(server, other);
      await missing(server, '/e');
    },
  },
  'a session that was made and closed': {
    op: async ({ server, client }) => {
      const brief = await RawClient.connect(server.port);
      await brief.ask('create', node('/brief', 1));
      await brief.ask('closeSession', {});
      await client.ask('create', node('/id', 0));
      await client.ask('setData', set('/id', String(brief.sessionId)));
    },
    after: async (server) => {
      const client = await RawClient.connect(server.port);
      const { data } = await client.ask('getData', { path: '/id', watch: false });
      expect(server.engine.tree.sessions.has(BigInt(data!.toString()))).toBe(false);
      await missing(server, '/brief');
    },
  },
  'a node that was deleted': {
    before: ({ client }) => client.ask('create', node('/a')),
    op: ({ client }) => client.ask('delete', gone('/a')),
    after: (server) => missing(server, '/a'),
  },
  'a node that was deleted by deleteContainer': {
    before: ({ client }) => client.ask('create', node('/a')),
    op: ({ client }) => client.ask('deleteContainer', { path: '/a' }),
    after: (server) => missing(server, '/a'),
  },
  'a container that was empty, and a node whose time was over': {
    before: async ({ client }) => {
      await client.ask('createContainer', node('/container', 4));
      await client.ask('createTTL', { ...node('/ttl', 5), ttl: 1n });
    },
    op: async (stage) => {
      await reaped(stage, '/container');
      await reaped(stage, '/ttl');
    },
    after: async (server) => {
      await missing(server, '/container', '/ttl');
      expect([...server.engine.tree.containers, ...server.engine.tree.ttls]).toEqual([]);
    },
  },
  'what was deleted and made again, as it was before': {
    before: async ({ client, other }) => {
      await other.ask('create', node('/a', 1));
      await client.ask('create', node('/b'));
      await client.ask('create', node('/b/child'));
    },
    op: async ({ client }) => {
      await client.ask('delete', gone('/a'));
      await client.ask('create', node('/a'));
      await client.ask('delete', gone('/b/child'));
      await client.ask('delete', gone('/b'));
      await client.ask('create', node('/b'));
    },
    after: async (server, { other }) => {
      await missing(server, '/b/child');
      const { sessionId, passwd } = other;
      const back = await RawClient.connect(server.port, { sessionId, passwd });
      expect((await back.ask('getEphemerals', { prefixPath: '/' })).ephemerals).toEqual([]);
      await back.ask('closeSession', {});
      await holds(server, '/a', 'old', 0);
    },
  },
  'data and version of before': {
    before: ({ client }) => client.ask('create', node('/a')),
    op: async ({ client }) => {
      await client.ask('setData', set('/a', 'between'));
      await client.ask('setData', set('/a', 'new', 1));
    },
    after: (server) => holds(server, '/a', 'new', 2),
  },
  'an ACL that was closed': {
    before: ({ client }) => client.ask('create', node('/a')),
    op: ({ client }) => client.ask('setACL', { path: '/a', acl: secret, version: 0 }),
    after: async (server) => {
      const client = await RawClient.connect(server.port);
      expect(await client.err('getData', { path: '/a', watch: false })).toBe(-102);
      await client.reply(client.send('auth', login, -4));
      expect((await client.ask('getACL', { path: '/a' })).stat.aversion).toBe(1);
    },
  },
  'the parts of a multi that failed': {
    before: ({ client }) => client.ask('create', node('/a')),
    op: ({ client }) =>
      client.reply(
        client.send('multi', [
          { op: 'setData', request: set('/a') },
          { op: 'create', request: node('/b') },
          { op: 'delete', request: gone('/missing') },
        ]),
      ),
    after: async (server) => {
      await missing(server, '/b');
      await holds(server, '/a', 'old', 0);
    },
  },
  'what a multi deleted': {
    before: ({ client }) => client.ask('create', node('/a')),
    op: ({ client }) =>
      client.ask('multi', [
        { op: 'setData', request: set('/a') },
        { op: 'delete', request: gone('/a') },
        { op: 'create', request: node('/b') },
        { op: 'delete', request: gone('/b') },
      ]),
    after: (server) => missing(server, '/a', '/b'),
  },
  'what was refused': {
    before: ({ client }) => client.ask('create', { ...node('/a'), acl: secret }),
    op: async ({ other }) => {
      expect(await other.err('create', node('/a/b'))).toBe(-102);
      expect(await other.err('setData', set('/a'))).toBe(-102);
      expect(await other.err('setACL', { path: '/a', acl, version: -1 })).toBe(-102);
      expect(await other.err('create', node('/none/b'))).toBe(-101);
    },
    after: async (server) => {
      const client = await RawClient.connect(server.port);
      expect(await client.err('getData', { path: '/a', watch: false })).toBe(-102);
      await client.reply(client.send('auth', login, -4));
      expect(await client.err('exists', { path: '/a/b', watch: false })).toBe(-101);
      expect((await client.ask('getData', { path: '/a', watch: false })).stat.version).toBe(0);
    },
  },
  'a number that a sequential node had': {
    before: ({ client }) => client.ask('create', node('/q')),
    op: async ({ client }) => {
      for (let n = 0; n < 3; n++) {
        const { path } = await client.ask('create', node('/q/n-', 2));
        await client.ask('delete', gone(path));
      }
    },
    after: async (server) => {
      const client = await RawClient.connect(server.port);
      expect((await client.ask('create', node('/q/n-', 2))).path).toBe('/q/n-0000000003');
    },
  },
  'what a connection has proved, and its watches': {
    before: async ({ client }) => {
      await client.ask('create', node('/a'));
      await client.ask('setACL', { path: '/a', acl: secret, version: -1 });
    },
    op: async ({ other }) => {
      await other.reply(other.send('auth', login, -4));
      await other.ask('getData', { path: '/a', watch: true });
      await other.ask('addWatch', { path: '/', mode: 1 });
    },
    after: async (server, { other }) => {
      const { sessionId, passwd } = other;
      const back = await RawClient.connect(server.port, { sessionId, passwd });
      expect(await back.err('getData', { path: '/a', watch: false })).toBe(-102);
      expect(server.engine.watches.count).toBe(0);
    },
  },
  'another session beside one that moved to another connection': {
    before: ephemeral,
    op: async ({ server, other }) => {
      const { sessionId, passwd } = other;
      await RawClient.connect(server.port, { sessionId, passwd, timeOut: 6_000 });
    },
    after: async (server, { other }) => {
      const { sessionId } = other;
      expect([...server.engine.sessions.values()].map(({ id }) => id)).toHaveLength(2);
      expect([...server.engine.tree.ephemeralsOf(sessionId)]).toEqual(['/e']);
    },
  },
};

const ways = [
  'from the log alone',
  'over a snapshot before it',
  'from a snapshot behind it',
] as const;

describe.each(ways)('a restart %s does not bring back', (way) => {
  test.each(Object.entries(scenes))('%s', async (_, { before, op, after }) => {
    const dataDir = folder();
    const clock = new MovableClock();
    const options = { port: 0, unsafeNoFsync: true, preallocBytes: 0, extendedTypesEnabled: true };
    await using server = await startServer({ ...options, dataDir, clock });
    const client = await RawClient.connect(server.port);
    const other = await RawClient.connect(server.port);
    const stage = { server, clock, client, other };
    await before?.(stage);
    if (way === 'over a snapshot before it') await server.persistence!.freshSnapshot();
    await op(stage);
    if (way === 'from a snapshot behind it') await server.persistence!.freshSnapshot();

    const left = copyOf(dataDir);
    await using restarted = await startServer({ ...options, dataDir: left });

    expect(restarted.engine.lastZxid).toBe(server.engine.lastZxid);
    await after(restarted, stage);
  });
});

/** What a process that is killed now leaves: its files as they are, and no lock that anybody holds. */
function copyOf(dataDir: string): string {
  const copy = folder();
  cpSync(dataDir, copy, {
    recursive: true,
    filter: (file) => !basename(file).startsWith('.drover-lock'),
  });
  return copy;
}
