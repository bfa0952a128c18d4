import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { delayMaxMs, ManualClock, systemClock } from './clock.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('a manual clock stands still until it is moved', () => {
  const clock = new ManualClock(50, 1_000);

  expect([clock.nowMs(), clock.wallMs(), clock.nextDueMs]).toEqual([50, 1_000, null]);
  clock.advance(7);
  expect([clock.nowMs(), clock.wallMs()]).toEqual([57, 1_007]);
});

test('timers fire in the order of their due time, and of their setting where that is equal', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -2, max: 20 }), { maxLength: 30 }),
      fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 8 }),
      (delays, steps) => {
        const clock = new ManualClock();
        const fired: { timer: number; atMs: number }[] = [];
        delays.forEach((delay, timer) => {
          clock.after(delay, () => fired.push({ timer, atMs: clock.nowMs() }));
        });
        for (const step of steps) clock.advance(step);

        const untilMs = steps.reduce((sum, step) => sum + step, 0);
        const due = delays
          .map((delay, timer) => ({ timer, atMs: Math.max(0, delay) }))
          .filter(({ atMs }) => steps.length > 0 && atMs <= untilMs)
          .sort((a, b) => a.atMs - b.atMs || a.timer - b.timer);
        expect(fired).toEqual(due);
        expect(clock.pending).toBe(delays.length - due.length);
        expect(clock.nowMs()).toBe(untilMs);
      },
    ),
  );
});

test('a timer set while one fires is part of the same move when it is due within it', () => {
  const clock = new ManualClock();
  const heard: string[] = [];
  clock.after(10, () => {
    heard.push(`first at ${clock.nowMs()}`);
    clock.after(5, () => heard.push(`second at ${clock.nowMs()}`));
    clock.after(6, () => heard.push('third'));
  });

  clock.advance(15);

  expect(heard).toEqual(['first at 10', 'second at 15']);
  expect(clock.nextDueMs).toBe(16);
});

test('a cancelled timer does not fire, also when another of the same moment cancels it', () => {
  const clock = new ManualClock();
  const fire = vi.fn();
  const alone = clock.after(1, fire);
  clock.after(2, () => atTheSameMoment.cancel());
  const atTheSameMoment = clock.after(2, fire);

  alone.cancel();
  alone.cancel();
  clock.advance(5);

  expect(fire).not.toHaveBeenCalled();
  expect(clock.pending).toBe(0);
});

test('time never goes back, even when a timer moves the clock itself', () => {
  const clock = new ManualClock();
  clock.after(1, () => clock.advance(100));

  clock.advance(10);
  expect(clock.nowMs()).toBe(101);

  clock.advance(-50);
  expect(clock.nowMs()).toBe(101);
});

test('the calendar can be set back, and time goes on', () => {
  const clock = new ManualClock(0, 1_000);
  clock.advance(10);

  clock.setWall(500);
  clock.advance(1);

  expect([clock.nowMs(), clock.wallMs()]).toEqual([11, 501]);
});

test('a delay longer than setTimeout takes is waited for all the same, in several steps', () => {
  vi.useFakeTimers();
  try {
    const [late, cancelled, never] = [vi.fn(), vi.fn(), vi.fn()];
    systemClock.after(2.5 * delayMaxMs, late);
    const timer = systemClock.after(2.5 * delayMaxMs, cancelled);
    const endless = systemClock.after(Infinity, never);

    vi.advanceTimersByTime(2.4 * delayMaxMs);
    timer.cancel();
    expect(late).not.toHaveBeenCalled();
    vi.advanceTimersByTime(delayMaxMs);

    expect(late).toHaveBeenCalledOnce();
    endless.cancel();
    expect([cancelled.mock.calls.length, never.mock.calls.length]).toEqual([0, 0]);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('setTimeout is asked for no more than it takes, and for nothing negative', () => {
  const asked = vi.spyOn(globalThis, 'setTimeout');

  for (const delayMs of [2 ** 31, Number.POSITIVE_INFINITY, -5, 1.2]) {
    systemClock.after(delayMs, () => {}).cancel();
  }

  expect(asked.mock.calls.map(([, delayMs]) => delayMs)).toEqual([delayMaxMs, delayMaxMs, 0, 2]);
});

test('the system clock fires, unless cancelled, and its time only grows', async () => {
  const before = systemClock.nowMs();
  const cancelled = vi.fn();
  systemClock.after(1, cancelled).cancel();

  await new Promise<void>((resolve) => {
    systemClock.after(2, resolve);
  });

  expect(cancelled).not.toHaveBeenCalled();
  expect(systemClock.nowMs()).toBeGreaterThan(before);
  expect(Math.abs(systemClock.wallMs() - Date.now())).toBeLessThan(1_000);
});

test('a background timer does not keep the process alive', () => {
  const handles: NodeJS.Timeout[] = [];
  const real = globalThis.setTimeout;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((fire: () => void, delayMs?: number) => {
    const handle = real(fire, delayMs);
    handles.push(handle);
    return handle;
  }) as typeof setTimeout);

  const timers = [systemClock.after(1_000, () => {}, true), systemClock.after(1_000, () => {})];

  expect(handles.map((handle) => handle.hasRef())).toEqual([false, true]);
  for (const timer of timers) timer.cancel();
});
