/** What the console makes of what it sees: groups over a window, sessions in a circle, lines of servers. */

import { describe, expect, test } from 'vitest';
import { clientIn, groupsIn } from './clients.ts';
import { deadlocksIn } from './deadlocks.ts';
import { judge } from './groups.ts';
import type { ContenderView, RecipeView } from './views.ts';

describe('a group', () => {
  const trend = (...points: [offset: number, lag: number | null][]) =>
    points.map(([offset, lag], i) => ({ atMs: i * 10_000, offset, lag }));

  // biome-ignore format: a table is read down its columns
  test.each([
    ['nobody and nothing',         [],                                          0, 0, 'empty'],
    ['offsets without members',    trend([5, 1], [5, 1]),                       0, 3, 'stopped'],
    ['one look',                   trend([5, 10]),                              1, 3, 'unknown'],
    ['no lag',                     trend([5, 0]),                               1, 3, 'ok'],
    ['standing still, with a lag', trend([5, 10], [5, 20]),                     1, 3, 'stalled'],
    ['a lag that only grows',      trend([5, 10], [6, 20], [7, 30]),            1, 3, 'late'],
    ['a lag that shrinks',         trend([5, 30], [20, 20], [40, 10]),          1, 3, 'ok'],
    ['moving, lag unknown',        trend([5, null], [9, null]),                 1, 3, 'ok'],
    ['standing, lag unknown',      trend([5, null], [5, null]),                 1, 3, 'unknown'],
  ] as const)('with %s', (_, points, members, partitions, state) => {
    expect(judge(points, members, partitions).state).toBe(state);
  });

  test('that catches up is said when it will have', () => {
    expect(judge(trend([0, 30], [100, 20]), 1, 1)).toMatchObject({ ratePerS: 10, etaMs: 20_000 });
  });

  // biome-ignore format: a table is read down its columns
  test.each([
    ['nothing to read',            trend([5, 0]),                      1, 'caughtUp'],
    ['a lag that shrinks',         trend([5, 30], [20, 20], [40, 10]), 1, 'recovers'],
    ['a burst, and less since',    trend([5, 10], [20, 40], [40, 30], [60, 20], [80, 12]), 1, 'recovers'],
    ['a lag that grows',           trend([5, 10], [6, 20], [7, 30]),   1, 'never'],
    ['records under way',          trend([5, 1], [905, 4], [1_805, 3]), 1, 'caughtUp'],
    ['a lag that stays',           trend([5, 10], [9, 10]),            1, 'never'],
    ['nothing that moves',         trend([5, 10], [5, 10]),            1, 'never'],
    ['nobody to read',             trend([5, 10]),                     0, 'never'],
    ['nobody, and nothing to do',  trend([5, 0]),                      0, 'caughtUp'],
    ['a lag that nobody knows',    trend([5, null], [9, null]),        1, 'unknown'],
    ['too short a look',           trend([5, 10]),                     1, 'unknown'],
  ] as const)('with %s will it recover', (_, points, members, outlook) => {
    expect(judge(points, members, 3).outlook).toBe(outlook);
  });

  test('is judged by the last minutes, not by what was before', () => {
    const before = { atMs: 0, offset: 0, lag: 5 };
    const late = trend([900, 1_000], [950, 900]).map((point) => ({
      ...point,
      atMs: point.atMs + 3_600_000,
    }));

    expect(judge([before, ...late], 1, 1)).toMatchObject({ outlook: 'recovers', etaMs: 90_000 });
  });

  test('that falls behind has no such time', () => {
    expect(judge(trend([0, 10], [1, 20]), 1, 1).etaMs).toBeNull();
  });
});

describe('a deadlock', () => {
  const place = (session: string, state: ContenderView['state']): ContenderView => ({
    path: '',
    name: '',
    session,
    label: '',
    ageMs: 0,
    fencingToken: '0',
    side: null,
    state,
  });
  const lock = (path: string, holder: string, ...waiting: string[]): RecipeView => ({
    kind: 'lock',
    path,
    contenders: [place(holder, 'holds'), ...waiting.map((session) => place(session, 'waits'))],
    holding: 1,
    waiting: waiting.length,
    oldestWaitMs: null,
    size: null,
    note: null,
  });

  test('of two is found once, with what each holds and wants', () => {
    const [circle, ...more] = deadlocksIn([lock('/a', 'x', 'y'), lock('/b', 'y', 'x')]);

    expect(more).toEqual([]);
    expect(circle).toEqual(
      expect.arrayContaining([
        { session: 'x', holds: '/a', waitsFor: '/b' },
        { session: 'y', holds: '/b', waitsFor: '/a' },
      ]),
    );
  });

  test('of three is found, and those who merely wait for it are not in it', () => {
    const locks = [lock('/a', 'x', 'z'), lock('/b', 'y', 'x', 'w'), lock('/c', 'z', 'y')];

    const circles = deadlocksIn(locks);

    expect(circles).toHaveLength(1);
    expect(circles[0]!.map(({ session }) => session).sort()).toEqual(['x', 'y', 'z']);
  });

  test('is not where sessions wait in a line, or ask twice for what they hold', () => {
    expect(deadlocksIn([lock('/a', 'x', 'y'), lock('/b', 'y', 'z')])).toEqual([]);
    expect(deadlocksIn([lock('/a', 'x', 'x')])).toEqual([]);
  });
});

describe('what servers say', () => {
  test('of a client is read from a line of cons', () => {
    const line =
      ' /127.0.0.1:46816[1](queued=0,recved=4,sent=5,sid=0x100a0b,lop=PING,est=1700000000000,to=30000,lcxid=0x1,lzxid=0xff,lresp=12,llat=0,minlat=0,avglat=1,maxlat=7)';

    expect(clientIn(line)).toMatchObject({
      session: '0x100a0b',
      address: '127.0.0.1:46816',
      timeoutMs: 30_000,
      sinceMs: 1_700_000_000_000,
      lastOp: 'PING',
      received: 4,
      sent: 5,
      latencyAvgMs: 1,
      latencyMaxMs: 7,
    });
  });

  test('of IPv6, and of a link without a session, too', () => {
    expect(clientIn(' /[0:0:0:0:0:0:0:1]:4711[0](queued=0,recved=1,sent=0)')).toMatchObject({
      session: null,
      address: '[0:0:0:0:0:0:0:1]:4711',
    });
  });

  test('that makes no sense is left out', () => {
    for (const line of ['', 'Clients:', '<script>', 'x[1](', '/a[b](c)']) {
      expect([line, clientIn(line)]).toEqual([line, null]);
    }
  });

  test('of watches is read by path and by session', () => {
    const text = '/a\n\t0x1\n\t0x2\n/b\n\t0x1\n\n';

    expect([...groupsIn([{ server: 's', text }])]).toEqual([
      ['/a', ['0x1', '0x2']],
      ['/b', ['0x1']],
    ]);
  });
});
