import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { FrameSplitter, ProtocolError, Reader, Writer } from '../jute/index.ts';
import { isZkError, type OpName, ops, wireOf, xidMax, ZkError } from '../protocol/index.ts';
import { type Call, Calls } from './calls.ts';
import { OldServers, ServerVersion } from './server-version.ts';

interface Made extends Call {
  readonly outcomes: unknown[];
}

function call(path: string, op: OpName = 'exists', more: Partial<Call> = {}): Made {
  const outcomes: unknown[] = [];
  const request = op === 'exists' ? { path, watch: false } : { path, version: -1 };
  return {
    op,
    request: request as never,
    path,
    resolve: (value) => outcomes.push(value),
    reject: (error) => outcomes.push(error),
    retriesLeft: 3,
    xid: 0,
    sentMs: 0,
    settled: false,
    outcomes,
    ...more,
  };
}

const read = (path: string) => call(path);
const write = (path: string) => call(path, 'delete');

function queues(options: { inFlightMax?: number; waitingMax?: number; firstXid?: number } = {}) {
  const calls = new Calls({ inFlightMax: 100, waitingMax: 1_000, ...options });
  const version = new ServerVersion('127.0.0.1:2181', new OldServers(), () => {});
  return {
    calls,
    version,
    /** The xid and path of each request that goes now. */
    send(nowMs = 0, frameBytesMax = 1_000_000) {
      const writer = new Writer();
      const isSent = calls.send(writer, nowMs, frameBytesMax, version);
      const sent: { xid: number; path: string }[] = [];
      new FrameSplitter(1 << 24, (bytes, start, end) => {
        const reader = new Reader(bytes, start, end);
        const xid = reader.int();
        reader.int();
        sent.push({ xid, path: reader.ustring() });
      }).push(Buffer.from(writer.written()));
      expect(isSent).toBe(sent.length > 0);
      return sent;
    },
    /** A reply with an error, or to a delete: neither has a body. */
    reply: (xid: number, err = 0) => calls.reply(xid, err, new Reader(), version),
  };
}

const paths = (sent: { path: string }[]) => sent.map(({ path }) => path);

test('calls go out in the order they came, and replies settle them in that order', () => {
  const { calls, send, reply } = queues();
  const all = ['/a', '/b', '/c'].map(write);
  for (const one of all) calls.add(one);

  const sent = send(5);
  for (const { xid } of sent) reply(xid);

  expect(sent).toEqual([
    { xid: 1, path: '/a' },
    { xid: 2, path: '/b' },
    { xid: 3, path: '/c' },
  ]);
  expect(all.map((one) => one.outcomes.length)).toEqual([1, 1, 1]);
  expect([calls.inFlight, calls.waiting]).toEqual([0, 0]);
});

test('a reply gives back when its request left', () => {
  const { calls, send, reply } = queues();
  calls.add(write('/a'));
  send(123);

  expect(reply(1)).toBe(123);
});

test('no more than inFlightMax are out at once, and a reply makes room for the next', () => {
  const { calls, send, reply } = queues({ inFlightMax: 2 });
  for (const path of ['/a', '/b', '/c', '/d']) calls.add(write(path));

  expect(paths(send())).toEqual(['/a', '/b']);
  expect(send()).toEqual([]);
  expect([calls.inFlight, calls.waiting]).toEqual([2, 2]);
  reply(1);
  expect(paths(send())).toEqual(['/c']);
});

test('when waitingMax wait, the next is refused and says that it was not sent', () => {
  const { calls } = queues({ waitingMax: 2 });
  calls.add(read('/a'));
  calls.add(read('/b'));

  const add = () => calls.add(write('/c'));

  expect(add).toThrow(/THROTTLED_OP.*2 calls wait in this process already; it was not sent/);
  try {
    add();
  } catch (error) {
    expect(isZkError(error, 'THROTTLED_OP') && error.outcomeUnknown).toBe(false);
  }
});

test('calls that were given up while they waited leave their room to others', () => {
  const { calls, send } = queues({ waitingMax: 2 });
  const gone = [read('/a'), read('/b')];
  for (const one of gone) {
    calls.add(one);
    calls.abandon(one, new Error('enough'));
  }

  calls.add(read('/c'));
  calls.add(read('/d'));

  expect(calls.waiting).toBe(2);
  expect(paths(send())).toEqual(['/c', '/d']);
});

test('xids wrap from 2^31-1 to 1, and never are 0 or negative', () => {
  const { calls, send, reply } = queues({ firstXid: xidMax - 1 });
  const all = ['/a', '/b', '/c', '/d'].map(write);
  for (const one of all) calls.add(one);

  const xids = send().map(({ xid }) => xid);
  for (const xid of xids) reply(xid);

  expect(xids).toEqual([xidMax - 1, xidMax, 1, 2]);
  expect(all.every((one) => one.outcomes.length === 1)).toBe(true);
});

test('a reply out of turn, or to nothing, is a ProtocolError', () => {
  const { calls, send, reply } = queues();
  expect(() => reply(1)).toThrow(/xid 1, and nothing was asked/);

  calls.add(read('/a'));
  calls.add(read('/b'));
  send();

  expect(() => reply(2)).toThrow(ProtocolError);
  expect(() => reply(2)).toThrow('a reply with xid 2, out of turn: 1 (exists) is next');
});

test('a reply that says more than its record is a ProtocolError, and the call is still open', () => {
  const { calls, version, send } = queues();
  const one = write('/a');
  calls.add(one);
  send();

  expect(() => calls.reply(1, 0, new Reader(Buffer.alloc(1)), version)).toThrow(ProtocolError);
  expect(one.outcomes).toEqual([]);
  calls.linkLost(new Error('dropped'));
  expect(one.outcomes).toEqual([expect.objectContaining({ code: 'CONNECTION_LOSS' })]);
});

test('a request longer than servers take is refused unsent, and others go on', () => {
  const { calls, send } = queues();
  const large = write(`/${'x'.repeat(1_000)}`);
  const small = write('/small');
  calls.add(large);
  calls.add(small);

  const sent = send(0, 500);

  expect(paths(sent)).toEqual(['/small']);
  expect(large.outcomes).toHaveLength(1);
  const [error] = large.outcomes as [ZkError];
  expect(error.code).toBe('BAD_ARGUMENTS');
  expect(error.message).toContain('the request takes 1017 bytes, and servers take 500 at most');
  expect(error.message).toContain('it was not sent');
  expect(error.outcomeUnknown).toBe(false);
});

test('requests that are refused unsent take no room from those behind them', () => {
  const { calls, send } = queues({ inFlightMax: 1 });
  const gone = read('/gone');
  for (const one of [write(`/${'x'.repeat(1_000)}`), gone, write('/small')]) calls.add(one);
  calls.abandon(gone, new Error('enough'));

  expect(paths(send(0, 500))).toEqual(['/small']);
});

test('a request that cannot be encoded fails by itself, and others go on', () => {
  const { calls, send } = queues();
  const broken = call('/a', 'setACL', { request: { path: '/a', acl: 5, version: -1 } as never });
  calls.add(broken);
  calls.add(write('/b'));

  const sent = send();

  expect(paths(sent)).toEqual(['/b']);
  expect(broken.outcomes).toEqual([expect.any(Error)]);
});

test('an error reply is a ZkError with op and path, and an unknown number is told as such', () => {
  const { calls, send, reply } = queues();
  const [known, unknown] = [read('/a'), read('/b')];
  calls.add(known);
  calls.add(unknown);
  send();

  reply(1, wireOf('NO_NODE'));
  reply(2, -9999);

  expect(known.outcomes).toEqual([
    expect.objectContaining({ code: 'NO_NODE', op: 'exists', path: '/a', outcomeUnknown: false }),
  ]);
  expect(unknown.outcomes[0]).toMatchObject({ code: 'API_ERROR' });
  expect((unknown.outcomes[0] as Error).message).toContain('error -9999');
});

test('onReply runs as the reply is taken, before the promise is settled', () => {
  const { calls, send, reply } = queues();
  const order: string[] = [];
  calls.add(
    call('/a', 'exists', {
      onReply: (err) => order.push(`onReply ${err}`),
      reject: () => order.push('rejected'),
    }),
  );
  send();

  reply(1, -101);

  expect(order).toEqual(['onReply -101', 'rejected']);
});

test('when the link breaks, reads wait again ahead of others and in order; writes have an unknown outcome', () => {
  const { calls, send } = queues();
  const [r1, w1, r2, later] = [read('/r1'), write('/w1'), read('/r2'), read('/later')];
  for (const one of [r1, w1, r2]) calls.add(one);
  send();
  calls.add(later);
  const cause = new Error('cut');

  calls.linkLost(cause);

  expect(w1.outcomes).toEqual([
    expect.objectContaining({ code: 'CONNECTION_LOSS', outcomeUnknown: true, cause, path: '/w1' }),
  ]);
  expect(send().map(({ xid, path }) => [xid, path])).toEqual([
    [4, '/r1'],
    [5, '/r2'],
    [6, '/later'],
  ]);
});

test('a read is sent again as often as it has retries, and then fails with a certain outcome', () => {
  const { calls, send } = queues();
  const one = call('/a', 'exists', { retriesLeft: 2 });
  calls.add(one);

  const sends = [0, 1, 2].map(() => {
    const { length } = send();
    calls.linkLost(new Error('cut'));
    return length;
  });

  expect(sends).toEqual([1, 1, 1]);
  expect(one.outcomes).toEqual([
    expect.objectContaining({ code: 'CONNECTION_LOSS', outcomeUnknown: false }),
  ]);
  expect(send()).toEqual([]);
});

test('a call given up before it is sent never is; one given up after still takes its reply', () => {
  const { calls, send, reply } = queues();
  const [unsent, sent, next] = [write('/unsent'), write('/sent'), write('/next')];
  calls.add(unsent);
  const why = new Error('enough');
  expect(calls.abandon(unsent, why)).toBe(true);
  calls.add(sent);
  calls.add(next);
  expect(paths(send())).toEqual(['/sent', '/next']);

  expect(calls.abandon(sent, why)).toBe(false);
  reply(1);
  reply(2);

  expect([unsent.outcomes, sent.outcomes]).toEqual([[why], [why]]);
  expect(next.outcomes).toHaveLength(1);
});

test('a read that was given up is not sent again after the link broke', () => {
  const { calls, send } = queues();
  const one = read('/a');
  calls.add(one);
  send();
  calls.abandon(one, new Error('enough'));

  calls.linkLost(new Error('cut'));

  expect(send()).toEqual([]);
  expect(one.outcomes).toHaveLength(1);
});

test('a read that waits to be sent again and is given up was not sent, and leaves its room to others', () => {
  const { calls, send, reply } = queues({ waitingMax: 3 });
  const all = ['/a', '/b', '/c'].map(read);
  for (const one of all) calls.add(one);
  send();
  calls.linkLost(new Error('cut'));
  expect([calls.waiting, calls.inFlight]).toEqual([3, 0]);

  expect(calls.abandon(all[0]!, new Error('enough'))).toBe(true);

  expect(calls.waiting).toBe(2);
  calls.add(read('/d'));
  expect(() => calls.add(read('/e'))).toThrow(/3 calls wait/);
  const sent = send();
  expect(paths(sent)).toEqual(['/b', '/c', '/d']);
  expect([calls.waiting, calls.inFlight]).toEqual([0, 3]);
  for (const { xid } of sent) reply(xid, wireOf('NO_NODE'));
  expect([calls.waiting, calls.inFlight]).toEqual([0, 0]);
});

test('a read that is sent again has a number of its own on the new link', () => {
  const { calls, send } = queues();
  calls.add(read('/a'));
  const [first] = send();
  calls.linkLost(new Error('cut'));

  const [second] = send();

  expect(second!.path).toBe('/a');
  expect(second!.xid).not.toBe(first!.xid);
});

test('the end of the session fails all: unknown for writes that left, certain for the rest', () => {
  const { calls, send } = queues({ inFlightMax: 2 });
  const [r, w, waiting] = [read('/r'), write('/w'), write('/waiting')];
  for (const one of [r, w, waiting]) calls.add(one);
  send();

  calls.sessionEnded('SESSION_EXPIRED', undefined, 'gone');

  const outcome = (one: Made) => (one.outcomes as ZkError[]).map((e) => [e.code, e.outcomeUnknown]);
  expect([r, w, waiting].map(outcome)).toEqual([
    [['SESSION_EXPIRED', false]],
    [['SESSION_EXPIRED', true]],
    [['SESSION_EXPIRED', false]],
  ]);
  expect([calls.inFlight, calls.waiting]).toEqual([0, 0]);
});

test('whatever happens in whatever order, each call is settled once and the bounds hold', () => {
  const step = fc.constantFrom('read', 'write', 'send', 'reply', 'refuse', 'lost', 'abandon');
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const { calls, send, reply } = queues({ inFlightMax: 4, waitingMax: 6 });
      const all: Made[] = [];
      let out: number[] = [];
      for (const [i, what] of steps.entries()) {
        if (what === 'read' || what === 'write') {
          const one = what === 'read' ? read(`/${i}`) : write(`/${i}`);
          try {
            calls.add(one);
            all.push(one);
          } catch (error) {
            expect(error).toBeInstanceOf(ZkError);
          }
        } else if (what === 'send') out.push(...send().map(({ xid }) => xid));
        else if (what === 'reply' || what === 'refuse') {
          const xid = out.shift();
          if (xid === undefined) continue;
          // A read's good reply would need a Stat; which error it is does not matter here.
          reply(xid, wireOf('NO_NODE'));
        } else if (what === 'lost') {
          calls.linkLost(new Error('cut'));
          out = [];
        } else {
          const victim = all[(i * 7) % Math.max(1, all.length)];
          if (victim) calls.abandon(victim, new Error('enough'));
        }
        expect(calls.inFlight).toBeLessThanOrEqual(4);
        expect(calls.waiting).toBeLessThanOrEqual(6 + 4); // reads that wait again come on top
        expect(calls.inFlight).toBe(out.length);
      }
      calls.sessionEnded('SESSION_EXPIRED', undefined);
      expect(all.map((one) => one.outcomes.length)).toEqual(all.map(() => 1));
    }),
    { numRuns: 300 },
  );
});

test('a long queue is worked off without moving it for every reply', () => {
  const { calls, send, reply } = queues({ inFlightMax: 50_000, waitingMax: 50_000 });
  const resolve = vi.fn();
  for (let i = 0; i < 50_000; i++) calls.add(call(`/${i}`, 'delete', { resolve }));

  for (const { xid } of send()) reply(xid);

  expect(resolve).toHaveBeenCalledTimes(50_000);
  expect(ops.delete.writes).toBe(true);
});
