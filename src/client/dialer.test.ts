import { createServer, type Server } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { ManualClock, systemClock } from '../support/index.ts';
import { type Host, hostText } from './connection-string.ts';
import { ConnectError, Dialer, type DialerOptions } from './dialer.ts';

const open: Server[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) {
    await new Promise((resolve) => server.close(resolve));
  }
});

/** Takes connections and says nothing. */
async function listen(): Promise<Host> {
  const server = createServer((socket) => socket.on('error', () => {}).resume());
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { name: '127.0.0.1', port: (server.address() as { port: number }).port };
}

/** Nobody listens there, for as long as the test lasts. */
async function dead(): Promise<Host> {
  const host = await listen();
  await new Promise((resolve) => open.pop()!.close(resolve));
  return host;
}

function dialer(hosts: readonly Host[], options: Partial<DialerOptions> = {}): Dialer {
  return new Dialer({
    hosts,
    frameBytesMax: 1_000,
    attemptTimeoutMs: 5_000,
    sessionTimeoutMs: 30_000,
    roundsMax: 1,
    backoffFirstMs: 1,
    backoffMaxMs: 1,
    clock: systemClock,
    ...options,
  });
}

const forever = new AbortController().signal;

/** Fires the timers of a clock that stands still, as they are set, until the work is done. */
async function run<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  done.catch(() => {});
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    const { nextDueMs } = clock;
    // Tries to connect are limited too; that limit must not be reached while the kernel answers.
    if (nextDueMs !== null && nextDueMs - clock.nowMs() < 1_000) {
      clock.advance(nextDueMs - clock.nowMs());
    }
  }
  return done;
}

test('a server that takes us in is found among dead ones', async () => {
  const alive = await listen();
  const hosts = [await dead(), await dead(), alive];

  const transport = await dialer(hosts).next(forever);

  expect(transport.endpoint).toEqual({ host: alive, address: '127.0.0.1' });
  transport.close(new Error('done'));
});

test('when the rounds are used up the error names every host and why it failed', async () => {
  const hosts = [await dead(), { name: 'no-such.invalid', port: 2181 }];
  const lookup = vi.fn(async () =>
    Promise.reject(new Error('getaddrinfo ENOTFOUND no-such.invalid')),
  );

  const error = await dialer(hosts, { roundsMax: 2, lookup })
    .next(forever)
    .catch((why) => why);

  expect(error).toBeInstanceOf(ConnectError);
  expect(error.code).toBe('CONNECT_FAILED');
  expect(error.message).toMatch(/^no server took us in, in 2 rounds: /);
  expect(error.message).toContain(`${hostText(hosts[0]!)} connect ECONNREFUSED`);
  expect(error.message).toContain('no-such.invalid:2181 getaddrinfo ENOTFOUND no-such.invalid');
  expect(error.attempts).toHaveLength(2);
  expect(lookup).toHaveBeenCalledTimes(2);
});

test('a name that resolves to nothing says so, and what a peer says is made safe to print', async () => {
  const lookup = async (name: string) => {
    if (name === 'empty.test') return [];
    throw new Error('bad\u001b[31m news\u202e');
  };
  const hosts = ['empty.test', 'evil.test'].map((name) => ({ name, port: 1 }));

  const error = await dialer(hosts, { lookup })
    .next(forever)
    .catch((why) => why);

  expect(error.message).toContain('empty.test:1 empty.test resolves to no address');
  expect(error.message).toContain('evil.test:1 bad\\u001b[31m news\\u202e');
});

test('a name is resolved anew on every try, so that a server may move', async () => {
  const alive = await listen();
  const addresses = [['127.0.0.2'], ['127.0.0.2', '127.0.0.1']];
  const lookup = vi.fn(async () => addresses.shift()!.map((address) => ({ address })));
  const it = dialer([{ name: 'zk.test', port: alive.port }], { roundsMax: 5, lookup });

  const transport = await it.next(forever);

  expect(transport.endpoint.address).toBe('127.0.0.1');
  expect(lookup).toHaveBeenCalledTimes(2);
  expect(lookup).toHaveBeenCalledWith('zk.test');
  transport.close(new Error('done'));
});

test('once a server had us, the other addresses of its name are asked for anew', async () => {
  const alive = await listen();
  const addresses = [['127.0.0.1', '127.0.0.2'], ['127.0.0.1']];
  const lookup = vi.fn(async () => addresses.shift()!.map((address) => ({ address })));
  const hosts = [{ name: 'zk.test', port: alive.port }];
  const it = dialer(hosts, { roundsMax: 5, lookup, random: () => 0.9 });
  (await it.next(forever)).close(new Error('lost, much later'));
  it.succeeded();

  const transport = await it.next(forever);

  expect(transport.endpoint.address).toBe('127.0.0.1');
  expect(it.attempts).toEqual([]);
  expect(lookup).toHaveBeenCalledTimes(2);
  transport.close(new Error('done'));
});

test('hosts are tried in an order of chance, and in another the next round', async () => {
  const names = Array.from({ length: 8 }, (_, i) => `host-${i}.test`);
  const tried: string[] = [];
  const lookup = async (name: string) => {
    tried.push(name);
    throw new Error('down');
  };
  const hosts = names.map((name) => ({ name, port: 1 }));
  let seed = 7;
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };

  await dialer(hosts, { roundsMax: 2, lookup, random })
    .next(forever)
    .catch(() => {});

  const [first, second] = [tried.slice(0, 8), tried.slice(8)];
  expect([...first].sort()).toEqual(names);
  expect([...second].sort()).toEqual(names);
  expect(first).not.toEqual(names);
  expect(second).not.toEqual(first);
});

test('it waits after a round, twice as long each time up to the longest, and not before the first', async () => {
  const clock = new ManualClock();
  const at: number[] = [];
  const lookup = async () => {
    at.push(clock.nowMs());
    throw new Error('down');
  };
  const options = { clock, lookup, roundsMax: 6, backoffFirstMs: 100, backoffMaxMs: 400 };
  const it = dialer([{ name: 'zk.test', port: 1 }], { ...options, random: () => 1 - 2 ** -40 });

  await expect(run(clock, it.next(forever))).rejects.toThrow(/in 6 rounds/);

  expect(at.map((ms) => Math.round(ms))).toEqual([0, 100, 300, 700, 1_100, 1_500]);
});

/** When each try is made while a session of this timeout may be saved, and nobody answers. */
async function triesToSave(timeoutMs: number, options: Partial<DialerOptions> = {}) {
  const clock = new ManualClock();
  const over = new AbortController();
  clock.after(timeoutMs, () => over.abort(new Error('the session is over')));
  const at: number[] = [];
  const lookup = async () => {
    at.push(clock.nowMs());
    throw new Error('down');
  };
  const saving = () => ({ leftMs: timeoutMs - clock.nowMs(), timeoutMs });
  const waits = { roundsMax: Number.POSITIVE_INFINITY, backoffFirstMs: 50, backoffMaxMs: 5_000 };
  const it = dialer([{ name: 'zk.test', port: 1 }], {
    clock,
    lookup,
    saving,
    ...waits,
    ...options,
  });
  const error = await run(clock, it.next(over.signal)).catch((why) => why);
  return { at, error, endedMs: clock.nowMs() };
}

test.each([400, 2_000, 4_000, 6_000, 10_000, 30_000, 120_000])(
  'while a session of %i ms may be saved, a server that is back is asked soon, and also in its last moments',
  async (timeoutMs) => {
    for (const random of [() => 0, () => 1 - 2 ** -40, Math.random]) {
      const { at, endedMs } = await triesToSave(timeoutMs, { random });

      const waits = at.map((ms, i) => (at[i + 1] ?? timeoutMs) - ms);
      expect(endedMs).toBe(timeoutMs);
      expect(Math.max(...waits)).toBeLessThanOrEqual(Math.max(20, Math.min(1_000, timeoutMs / 10)));
      expect(waits.at(-1)).toBeLessThanOrEqual(20);
      expect(waits.at(-1)).toBeGreaterThan(0);
      expect(at.length).toBeLessThan(30 + (2 * timeoutMs) / Math.min(1_000, timeoutMs / 10));
    }
  },
);

test('the tries that are made to save a session use up no rounds', async () => {
  const random = () => 1 - 2 ** -40;
  const options = { roundsMax: 8, backoffMaxMs: 800, random };

  const plain = await triesToSave(4_000, { ...options, saving: undefined });
  const saving = await triesToSave(4_000, options);

  expect(plain.error).toBeInstanceOf(ConnectError);
  expect(saving.error.message).toBe(plain.error.message);
  expect(saving.endedMs).toBeCloseTo(plain.endedMs);
  expect(saving.at.length).toBeGreaterThan(plain.at.length);
});

test('a wait that was cut into pieces is forgotten once a server took us in', async () => {
  const clock = new ManualClock();
  const at: number[] = [];
  const lookup = async () => {
    at.push(clock.nowMs());
    throw new Error('down');
  };
  let left: number | undefined = 1_000;
  const saving = () => (left === undefined ? left : { leftMs: left, timeoutMs: 1_000 });
  const waits = { backoffFirstMs: 800, backoffMaxMs: 800, random: () => 1 - 2 ** -40 };
  const it = dialer([{ name: 'zk.test', port: 1 }], {
    clock,
    lookup,
    saving,
    roundsMax: 9,
    ...waits,
  });
  const enough = new AbortController();
  clock.after(150, () => enough.abort());
  await run(clock, it.next(enough.signal)).catch(() => {});
  expect(at.map(Math.round)).toEqual([0, 100]);

  it.succeeded();
  left = undefined;
  at.length = 0;
  const again = new AbortController();
  clock.after(1_000, () => again.abort());
  await run(clock, it.next(again.signal)).catch(() => {});

  expect(at.map((ms) => Math.round(ms - at[0]!))).toEqual([0, 800]);
});

test('after a server took us in, the count of rounds and the waits start anew', async () => {
  const clock = new ManualClock();
  const alive = await listen();
  const it = dialer([await dead(), alive], { clock, roundsMax: 3, backoffFirstMs: 100 });

  for (let links = 0; links < 20; links++) {
    const transport = await run(clock, it.next(forever));
    transport.close(new Error('lost'));
    it.succeeded();
  }

  expect(it.attempts).toEqual([]);
});

test('what is left of a round in which a server took us in is no round over all hosts', async () => {
  const alive = await listen();
  const it = dialer([alive, await dead()], { roundsMax: 1, random: () => 0.9 });
  (await it.next(forever)).close(new Error('lost'));
  it.succeeded();

  const transport = await it.next(forever);

  expect(transport.endpoint.host).toEqual(alive);
  transport.close(new Error('done'));
});

test('a handshake that fails counts as a try that failed', async () => {
  const alive = await listen();
  const it = dialer([alive], { roundsMax: 2 });

  for (let tries = 0; tries < 2; tries++) {
    const transport = await it.next(forever);
    transport.close(new Error('done'));
    it.failed(transport.endpoint, new Error('spoke nonsense'));
  }

  await expect(it.next(forever)).rejects.toThrow(`${hostText(alive)} spoke nonsense`);
});

test('an address that does not answer is given up after its share of time', async () => {
  const clock = new ManualClock();
  const host = await listen();
  const it = dialer([host], { clock, attemptTimeoutMs: 3_000 });

  const next = it.next(forever);
  // The kernel's answer can't be read before this function gives way to the event loop.
  for (let turn = 0; turn < 100; turn++) await Promise.resolve();
  clock.advance(3_000);

  await expect(next).rejects.toThrow(`${hostText(host)} did not answer within 3000 ms`);
  expect(clock.pending).toBe(0);
});

test('a host that was asked and says nothing is named too, for as long as it is silent', async () => {
  const clock = new ManualClock();
  const host = await listen();
  const it = dialer([host], { clock, attemptTimeoutMs: 60_000 });

  const transport = await it.next(forever);
  clock.advance(3_000);
  const { message } = new ConnectError('nobody', it.soFar);
  it.succeeded();
  transport.close(new Error('done'));

  expect(message).toBe(`nobody: ${hostText(host)} has not answered for 3000 ms`);
  expect(it.soFar).toEqual([]);
});

test('an address has a share of the session timeout, by all addresses that are known, and a moment at least', async () => {
  const there = await listen();
  const names = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ name: `h${i}.test`, port: there.port }));
  const share = { attemptTimeoutMs: undefined, lookup: async () => addresses };
  const addresses = [{ address: '127.0.0.1' }, { address: '127.0.0.1' }];

  const two = dialer(names(2), share);
  expect(two.attemptTimeoutMs).toBe(10_000);
  for (const expected of [7_500, 7_500, 6_000]) {
    const transport = await two.next(forever);
    transport.close(new Error('seen'));
    expect(two.attemptTimeoutMs).toBe(expected);
  }

  const many = dialer(names(50), { ...share, sessionTimeoutMs: 1_000 });
  expect(many.attemptTimeoutMs).toBe(100);
  expect(dialer(names(2)).attemptTimeoutMs).toBe(5_000);
});

test('a silent address has no more than its share of what is left of the session', () => {
  const hosts = ['a.test', 'b.test', 'c.test'].map((name) => ({ name, port: 1 }));
  const limit = (leftMs: number, options: Partial<DialerOptions> = {}) => {
    const saving = () => ({ leftMs, timeoutMs: 30_000 });
    return dialer(hosts, { attemptTimeoutMs: undefined, saving, ...options }).attemptTimeoutMs;
  };

  expect([30_000, 9_000, 1_500, 120, 0].map((leftMs) => limit(leftMs))).toEqual([
    7_500, 3_000, 500, 100, 100,
  ]);
  expect(limit(9_000, { attemptTimeoutMs: 2_000 })).toBe(2_000);
  expect(limit(3_000, { attemptTimeoutMs: 2_000 })).toBe(1_000);
});

test('a name that takes too long to resolve is given up, so that other hosts have their turn', async () => {
  const clock = new ManualClock();
  const lookup = () => new Promise<never>(() => {});
  const it = dialer([{ name: 'slow.test', port: 1 }], { clock, lookup, attemptTimeoutMs: 3_000 });

  const next = it.next(forever);
  next.catch(() => {});
  await vi.waitFor(() => expect(clock.pending).toBeGreaterThan(0));
  clock.advance(3_000);

  await expect(next).rejects.toThrow('slow.test:1 was not resolved within 3000 ms');
});

test.each(['while a name is resolved', 'while it waits'] as const)(
  'it can be called off %s, and leaves nothing behind',
  async (when) => {
    const clock = new ManualClock();
    const isSlow = when === 'while a name is resolved';
    const lookup = vi.fn(() =>
      isSlow ? new Promise<never>(() => {}) : Promise.reject(new Error('x')),
    );
    const it = dialer([{ name: 'zk.test', port: 1 }], { clock, lookup, roundsMax: 9 });
    const abort = new AbortController();
    const next = it.next(abort.signal);
    next.catch(() => {});
    await vi.waitFor(() => expect(isSlow ? lookup.mock.calls.length : clock.pending).toBe(1));

    abort.abort(new Error('closed'));

    await expect(next).rejects.toThrow('closed');
    expect(clock.pending).toBe(0);
  },
);
