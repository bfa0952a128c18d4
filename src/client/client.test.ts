import { afterAll, afterEach, expect, test } from 'vitest';
import { ArgumentError } from '../support/index.ts';
import { Client, connect } from './client.ts';
import { unmarked } from './protected.ts';

/** Nobody answers there: what is refused here is refused before anything is sent. */
const client = new Client('127.0.0.1:1');

afterAll(() => client.close());

afterEach(() => {
  expect(client.load).toEqual({ inFlight: 0, waiting: 0, watches: 0 });
});

const any = <T>(value: unknown) => value as T;

test.each<[string, () => Promise<unknown>, RegExp]>([
  ['create: path', () => client.create('a'), /^path: a path must start with \//],
  [
    'create: mode',
    () => client.create('/a', '', { mode: any('forever') }),
    /^mode: must be one of persistent, .*, got "forever"/,
  ],
  [
    'create: a mode of JavaScript',
    () => client.create('/a', '', { mode: any('__proto__') }),
    /^mode: /,
  ],
  ['create: another', () => client.create('/a', '', { mode: any('constructor') }), /^mode: /],
  ['create: data', () => client.create('/a', any({})), /^data: /],
  ['create: acl', () => client.create('/a', '', { acl: [] }), /^acl: /],
  ['create: no ttl', () => client.create('/a', '', { mode: 'persistentTtl' }), /^ttlMs: /],
  [
    'create: ttl elsewhere',
    () => client.create('/a', '', { ttlMs: 5 }),
    /^ttlMs: mode persistent has none/,
  ],
  ['create: a slash at the end', () => client.create('/a/'), /^path: .* must not end with/],
  ['create with parents', () => client.create('a', '', { parents: true }), /^path: /],
  ['createProtected: path', () => client.createProtected('abc'), /^path: .* start with \/: "abc"/],
  ['createProtected: no path', () => client.createProtected(any(undefined)), /^path: a string/],
  ['createProtected: mode', () => client.createProtected('/a', '', { mode: any('x') }), /^mode: /],
  ['delete: path', () => client.delete(any(null)), /^path: a string is wanted, not null/],
  ['delete: version', () => client.delete('/a', { version: 0.5 }), /^version: /],
  ['discard: path', () => client.discard('//'), /^path: /],
  ['deleteRecursive: path', () => client.deleteRecursive(''), /^path: /],
  ['exists: path', () => client.exists('/a/../b'), /^path: /],
  [
    'exists: watch',
    () => client.exists('/a', { watch: any(true) }),
    /^watch: must be a function, got true/,
  ],
  ['get: path', () => client.get('/\ud800'), /^path: .*U\+D800/],
  ['get: watch', () => client.get('/a', { watch: any('x') }), /^watch: /],
  ['set: path', () => client.set('', 'x'), /^path: /],
  ['set: data', () => client.set('/a', any(5)), /^data: /],
  ['set: text', () => client.set('/a', '\udfff'), /^data: well-formed/],
  [
    'set: version',
    () => client.set('/a', 'x', { version: Number.NaN }),
    /^version: must be a number, got NaN/,
  ],
  ['children: path', () => client.children('x'), /^path: /],
  ['children: watch', () => client.children('/a', { watch: any(1) }), /^watch: /],
  ['childrenAndStat: path', () => client.childrenAndStat('x'), /^path: /],
  ['getAcl: path', () => client.getAcl('x'), /^path: /],
  ['setAcl: acl', () => client.setAcl('/a', any(undefined)), /^acl: /],
  ['setAcl: entry', () => client.setAcl('/a', [any({ perms: 99 })]), /^acl\[0\]\.perms: /],
  ['sync: path', () => client.sync('x'), /^path: /],
  ['multi: ops', () => client.multi(any<[]>('x')), /^ops: a list is wanted/],
  [
    'multi: op',
    () => client.multi([any({ op: 'get', path: '/a' })]),
    /^op: create, delete, set or check/,
  ],
  ['multi: nothing', () => client.multi([any(null)]), /^op: /],
  ['multi: path', () => client.multi([{ op: 'check', path: 'x' }]), /^path: /],
  [
    'multi: version',
    () => client.multi([{ op: 'delete', path: '/a', version: 2 ** 40 }]),
    /^version: /,
  ],
  ['multiRead: ops', () => client.multiRead(any<[]>({})), /^ops: a list is wanted/],
  [
    'multiRead: op',
    () => client.multiRead([any({ op: 'exists', path: '/a' })]),
    /^op: get or children/,
  ],
  ['multiRead: nothing', () => client.multiRead([any(undefined)]), /^op: get or children/],
  ['getEphemerals: prefix', () => client.getEphemerals('x'), /^prefix: /],
  ['countDescendants: path', () => client.countDescendants('x'), /^path: /],
  ['reconfig: nothing', () => client.reconfig(any(undefined)), /^reconfig: either joining/],
  ['reconfig: both', () => client.reconfig({ joining: [], members: [] }), /^reconfig: either/],
  [
    'reconfig: text',
    () => client.reconfig({ joining: any('server.1') }),
    /^joining: must be a list, got "server.1"/,
  ],
  [
    'reconfig: id',
    () => client.reconfig({ members: ['x'], fromConfig: any(5) }),
    /^fromConfig: must be a bigint, got 5/,
  ],
  ['addWatch: mode', () => client.addWatch('/a', any('toString'), () => {}), /^mode: /],
  ['addWatch: listener', () => client.addWatch('/a', 'persistent', any(undefined)), /^listener: /],
  ['removeWatches: kind', () => client.removeWatches('/a', { kind: any('__proto__') }), /^kind: /],
  [
    'create: the options of another client',
    () => client.create('/a', '', any({ ephemeral: true })),
    /^ephemeral: create has no such option\. Did you mean "mode: 'ephemeral'"\?/,
  ],
  [
    'create: data among the options',
    () => client.create('/a', '', any({ data: 'x' })),
    /^data: create has no such option/,
  ],
  [
    'create: options in place of the data',
    () => client.create('/a', any({ mode: 'ephemeral' })),
    /^data: .*create\(path, data, options\)/,
  ],
  [
    'get: a listener in place of the options',
    () =>
      client.get(
        '/a',
        any(() => {}),
      ),
    /^options: get takes an object of options, got a function/,
  ],
  [
    'multi: an unknown key',
    () => client.multi([any({ op: 'create', path: '/a', ephemeral: true })]),
    /^ephemeral: a multi's create/,
  ],
  [
    'multiRead: an unknown key',
    () => client.multiRead([any({ op: 'get', path: '/a', watch: true })]),
    /^watch: a multiRead's get/,
  ],
  [
    'watch: an unknown key',
    async () => client.watch('/a', any({ recursiv: true })),
    /Did you mean "recursive"\?/,
  ],
  [
    'connect: a missing unit',
    () => connect('a', any({ sessionTimeout: 5_000 })),
    /^sessionTimeout: connect has no such option\. Did you mean "sessionTimeoutMs"\?/,
  ],
  [
    'connect: text for a number',
    () => connect('a', any({ sessionTimeoutMs: '5000' })),
    /^sessionTimeoutMs: must be a number, got "5000"/,
  ],
  [
    'connect: backoff',
    () => connect('a', any({ backoff: { first: 1 } })),
    /^backoff\.first: .*Did you mean "firstMs"\?/,
  ],
  ['addAuth: scheme', () => client.addAuth('', 'x'), /^scheme: /],
  ['addAuth: proof', () => client.addAuth('digest', any(5)), /^data: |^auth: /],
  ['a deadline that is NaN', () => client.get('/a', { timeoutMs: Number.NaN }), /^timeoutMs: /],
  ['a deadline that is text', () => client.get('/a', { timeoutMs: any('5') }), /^timeoutMs: /],
  [
    'a signal that is none',
    () => client.get('/a', { signal: any({}) }),
    /^signal: must be an AbortSignal, got an object/,
  ],
  ['connect: servers', () => connect('a:b'), /^servers: /],
  ['connect: identity', () => connect('a', { identity: any({}) }), /^identity\.sessionId: /],
  ['connect: auth', () => connect('a', { auth: [{ scheme: any(1), auth: 'x' }] }), /^scheme: /],
])('%s is refused before it is sent', async (_, ask, why) => {
  const error = await ask().then(
    () => undefined,
    (reason) => reason,
  );

  expect(error).toBeInstanceOf(ArgumentError);
  expect(error.message).toMatch(why);
  expect(error.code).toBe('INVALID_ARGUMENT');
});

test('walk and watch refuse a bad path at once', () => {
  expect(() => client.walk('x')).toThrow(/^path: /);
  expect(() => client.watch('x')).toThrow(/^path: /);
});

test('a mark is taken off a name, and nothing else is', () => {
  const mark = '_c_01234567-89ab-cdef-0123-456789abcdef-';

  expect(unmarked(`${mark}lock-0000000001`)).toBe('lock-0000000001');
  expect(unmarked(mark)).toBe('');
  expect(unmarked('_c_lock-1')).toBe('_c_lock-1');
  expect(unmarked(`x${mark}lock`)).toBe(`x${mark}lock`);
});

test('closed, it says so, and there is no more', async () => {
  const closed = new Client('127.0.0.1:1');
  await closed.close();

  const ask = closed.get('/a');

  await expect(ask).rejects.toThrow(/SESSION_EXPIRED: .*: the client was closed \(getData \/a\)/);
  expect(closed.state.name).toBe('closed');
  expect(closed.sessionSignal.aborted).toBe(true);
  await expect(closed.connected()).rejects.toThrow('the client was closed');
  await expect(closed.addAuth('digest', 'a:b')).rejects.toThrow('the client was closed');
  await closed.close();
});
