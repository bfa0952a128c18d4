import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import {
  delayMaxMs,
  hostClock,
  ManualClock,
  monotonicClock,
  systemClock,
  type TimeSources,
} from './clock.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
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

const clocks = { systemClock, monotonicClock };

test.each(Object.entries(clocks))(
  'a delay longer than setTimeout takes is waited for all the same, in several steps: %s',
  (_, clock) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
    const [late, cancelled, never] = [vi.fn(), vi.fn(), vi.fn()];
    clock.after(2.5 * delayMaxMs, late);
    const timer = clock.after(2.5 * delayMaxMs, cancelled);
    const endless = clock.after(Infinity, never);

    vi.advanceTimersByTime(2.4 * delayMaxMs);
    timer.cancel();
    expect(late).not.toHaveBeenCalled();
    vi.advanceTimersByTime(delayMaxMs);

    expect(late).toHaveBeenCalledOnce();
    endless.cancel();
    expect([cancelled.mock.calls.length, never.mock.calls.length]).toEqual([0, 0]);
    expect(vi.getTimerCount()).toBe(0);
  },
);

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

/** A host whose clocks the test moves: it runs, sleeps, and has its calendar set. */
class Host {
  #runMs = 5_000;
  #sleptMs = 0;
  #setMs = 0;
  /** Of the uptime, as the host tells it. */
  resolutionMs = 10;
  uptimeReads = 0;
  /** How long the process is stopped while it reads the uptime, each time. */
  stalls: number[] = [];

  readonly sources: TimeSources = {
    monotonicMs: () => this.#runMs,
    wallMs: () => Math.floor(1_700_000_000_000.3 + this.#runMs + this.#sleptMs + this.#setMs),
    uptimeMs: () => {
      this.uptimeReads += 1;
      const upMs = 86_400_123.456 + this.#runMs + this.#sleptMs;
      this.run(this.stalls.shift() ?? 0);
      return Math.floor(upMs / this.resolutionMs) * this.resolutionMs;
    },
  };
  readonly clock = hostClock(this.sources);

  run(ms: number): void {
    this.#runMs += ms;
  }

  sleep(ms: number): void {
    this.#sleptMs += ms;
  }

  setCalendar(byMs: number): void {
    this.#setMs += byMs;
  }
}

const hourMs = 3_600_000;

test('time in which the host slept counts, to within the resolution of its uptime', () => {
  const host = new Host();
  const startMs = host.clock.nowMs();

  host.run(1_000);
  host.sleep(hourMs);
  host.run(500);

  const passedMs = host.clock.nowMs() - startMs;
  expect(passedMs).toBeGreaterThanOrEqual(1_500 + hourMs);
  expect(passedMs).toBeLessThanOrEqual(1_500 + hourMs + 20);
});

test('each of several sleeps counts, also short ones', () => {
  const host = new Host();
  const startMs = host.clock.nowMs();

  for (let i = 0; i < 10; i++) {
    host.sleep(300);
    host.run(1_000);
    host.clock.nowMs();
  }

  const passedMs = host.clock.nowMs() - startMs;
  expect(passedMs).toBeGreaterThanOrEqual(13_000);
  expect(passedMs).toBeLessThanOrEqual(13_200);
});

test.each([hourMs, -hourMs, 60, -60, 1_000 * hourMs])(
  'a calendar that is set by %i ms moves nothing, and is asked about once',
  (byMs) => {
    const host = new Host();
    const startMs = host.clock.nowMs();
    const reads = host.uptimeReads;

    host.setCalendar(byMs);
    host.run(10);

    expect(host.clock.nowMs() - startMs).toBe(10);
    expect(host.clock.nowMs() - startMs).toBe(10);
    expect(host.uptimeReads).toBe(reads + 1);
  },
);

test('a sleep counts also when the calendar was set meanwhile, forwards or backwards', () => {
  for (const byMs of [2 * hourMs, -2 * hourMs]) {
    const host = new Host();
    const startMs = host.clock.nowMs();

    host.sleep(hourMs);
    host.setCalendar(byMs);

    expect(Math.floor((host.clock.nowMs() - startMs) / 100)).toBe(hourMs / 100);
  }
});

test('the calendar alone is read as long as nothing happens, and while NTP slews it', () => {
  const host = new Host();
  const reads = host.uptimeReads;
  const startMs = host.clock.nowMs();

  for (let second = 0; second < 3_600; second++) {
    host.run(1_000);
    host.setCalendar(0.5); // 500 ppm, the most that NTP does
    host.clock.nowMs();
  }

  expect(host.clock.nowMs() - startMs).toBe(hourMs);
  expect(host.uptimeReads - reads).toBeLessThan(40);
});

test('where the uptime comes in whole seconds a long sleep counts, and rounding does not', () => {
  const host = new Host();
  host.resolutionMs = 1_000;
  const startMs = host.clock.nowMs();

  for (let i = 0; i < 100; i++) {
    host.setCalendar(i % 2 === 0 ? 700 : -600);
    host.run(730);
    host.clock.nowMs();
  }
  expect(host.clock.nowMs() - startMs).toBe(73_000);

  host.sleep(hourMs);
  expect(host.clock.nowMs() - startMs).toBeGreaterThanOrEqual(73_000 + hourMs);
});

test('a process that is stopped in the middle of a look has not slept', () => {
  const host = new Host();
  const startMs = host.clock.nowMs();

  host.setCalendar(1_000);
  host.stalls = [4_000, 4_000];
  host.clock.nowMs();

  expect(host.clock.nowMs() - startMs).toBe(8_000);
});

test('a process that was stopped for long has not slept either: that time has counted', () => {
  const host = new Host();
  const startMs = host.clock.nowMs();
  const reads = host.uptimeReads;

  host.run(hourMs);

  expect(host.clock.nowMs() - startMs).toBe(hourMs);
  expect(host.uptimeReads).toBe(reads);
});

test('where no uptime can be read the clock goes on by the monotonic one', () => {
  const host = new Host();
  const clock = hostClock({ ...host.sources, uptimeMs: () => Number.NaN });
  const startMs = clock.nowMs();

  host.setCalendar(hourMs);
  host.sleep(hourMs);
  host.run(5);

  expect(clock.nowMs() - startMs).toBe(5);
});

test('a long timer fires within a second after a sleep that went over its time', () => {
  vi.useFakeTimers();
  const host = new Host();
  const fired: string[] = [];
  const pass = (ms: number) => {
    host.run(ms);
    vi.advanceTimersByTime(ms);
  };
  host.clock.after(10_000, () => fired.push('due'));
  host.clock.after(2 * hourMs, () => fired.push('later'));
  host.clock.after(20_000, () => fired.push('cancelled')).cancel();
  const cancelled = host.clock.after(20_000, () => fired.push('cancelled'));

  pass(2_000);
  host.sleep(hourMs);
  expect(fired).toEqual([]);
  cancelled.cancel();
  pass(1_001);

  expect(fired).toEqual(['due']);
  for (let seconds = 0; seconds < 3_600; seconds++) pass(1_000);
  expect(fired).toEqual(['due', 'later']);
  expect(vi.getTimerCount()).toBe(0);
});
