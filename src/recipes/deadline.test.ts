import { expect, test } from 'vitest';
import { ManualClock } from '../support/index.ts';
import { Deadline } from './deadline.ts';

test('the time ends the wait, and says so', () => {
  const clock = new ManualClock();
  const deadline = new Deadline({ timeoutMs: 100 }, clock);

  clock.advance(40);
  expect([deadline.leftMs, deadline.signal.aborted]).toEqual([60, false]);
  clock.advance(60);

  expect([deadline.leftMs, deadline.isLate, deadline.signal.aborted]).toEqual([0, true, true]);
  expect(deadline.signal.reason).toMatchObject({ name: 'TimeoutError' });
});

test('the caller ends the wait, with its own reason; stop lets go of timer and signal', () => {
  const clock = new ManualClock();
  const [given, stopped] = [new AbortController(), new AbortController()];
  const deadline = new Deadline({ timeoutMs: 100, signal: given.signal }, clock);
  const other = new Deadline({ timeoutMs: 100, signal: stopped.signal }, clock);

  given.abort('enough');
  other.stop();
  deadline.stop();
  stopped.abort();

  expect([deadline.isLate, deadline.signal.reason]).toEqual([false, 'enough']);
  expect(other.signal.aborted).toBe(false);
  expect(clock.pending).toBe(0);
  expect(new Deadline({ signal: given.signal }, clock).signal.reason).toBe('enough');
});

test('what is no signal or time is refused', () => {
  expect(() => new Deadline({ timeoutMs: Number.NaN })).toThrow(/timeoutMs/);
  expect(() => new Deadline({ timeoutMs: '5' as unknown as number })).toThrow(/timeoutMs/);
  expect(() => new Deadline({ signal: {} as AbortSignal })).toThrow(/signal/);
});
