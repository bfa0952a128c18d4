import { expect, test } from 'vitest';
import { encode, type Type } from '../jute/index.ts';
import { type OpName, ops } from '../protocol/index.ts';
import { ManualClock } from '../support/index.ts';
import { Engine } from './engine.ts';
import { framed, greeting, NoWire } from './fixtures.ts';

/** Seeded, so that a failure can be had again: the seed is in the test's name. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const open = [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }];
const path = '/a';
const create = { path, data: Buffer.from('x'), acl: open, flags: 0 };
/** One of each op that a link may ask for, to start from. */
const samples: Partial<Record<OpName, unknown>> = {
  create,
  create2: { ...create, path: '/b', flags: 3 },
  createContainer: { ...create, path: '/c', flags: 4 },
  createTTL: { ...create, path: '/d', flags: 5, ttl: 1_000n },
  delete: { path, version: -1 },
  exists: { path, watch: true },
  getData: { path, watch: true },
  setData: { path, data: Buffer.from('yy'), version: -1 },
  getACL: { path },
  setACL: { path, acl: open, version: -1 },
  getChildren: { path: '/', watch: true },
  getChildren2: { path: '/', watch: true },
  sync: { path },
  multi: [
    { op: 'create', request: create },
    { op: 'delete', request: { path, version: -1 } },
  ],
  multiRead: [{ op: 'getData', request: { path, watch: false } }],
  removeWatches: { path, type: 3 },
  setWatches: { relativeZxid: 0n, dataWatches: [path], existWatches: [path], childWatches: [path] },
  addWatch: { path, mode: 1 },
  auth: { type: 0, scheme: 'digest', auth: Buffer.from('u:p') },
  getEphemerals: { prefixPath: '/' },
  whoAmI: {},
  ping: {},
};

const requests = Object.entries(samples).map(([name, request]) => {
  const head = Buffer.alloc(8);
  head.writeInt32BE(7);
  head.writeInt32BE(ops[name as OpName].code, 4);
  return framed(head, encode(ops[name as OpName].request as Type<unknown>, request));
});

test.each([1, 2, 3])(
  'frames with bytes changed break nothing but their link (seed %i)',
  async (seed) => {
    const random = randomOf(seed);
    const engine = new Engine({
      clock: new ManualClock(),
      tickTimeMs: 2_000,
      minSessionTimeoutMs: 4_000,
      maxSessionTimeoutMs: 40_000,
      extendedTypesEnabled: true,
      enforceQuota: true,
    });
    let failure: Error | undefined;
    engine.onFailed((error) => {
      failure = error;
    });
    let connection = engine.accept(new NoWire());
    for (let i = 0; i < 4_000; i++) {
      if (!connection.isLive) connection = engine.accept(new NoWire());
      if (connection.state === 'greeting') {
        connection.receive(greeting);
        await new Promise(setImmediate);
      }
      const frame = Buffer.from(requests[random(requests.length)]!);
      for (let flips = random(4); flips > 0; flips--) {
        // Mostly behind the length, or hardly any frame would get as far as being read.
        const at = random(20) === 0 ? random(4) : 4 + random(frame.length - 4);
        frame[at] = [0, 1, 0x2f, 0x7f, 0x80, 0xff, random(256)][random(7)]!;
      }
      const cut = random(15) === 0 ? random(frame.length) : frame.length;
      connection.receive(frame.subarray(0, cut));
      if (cut < frame.length) connection.receive(frame.subarray(cut));
      if (i % 50 === 0) await new Promise(setImmediate);
    }
    await new Promise(setImmediate);

    expect(failure).toBeUndefined();
    expect(engine.isServing).toBe(true);
    await engine.stop();
  },
);
