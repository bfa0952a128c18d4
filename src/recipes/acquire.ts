/**
 * Standing in a line until it is our turn, or until the caller has had enough: what all locks do.
 *
 * Out: a grant, or an error, and then neither node nor watch is left. While there is a link, the error
 * comes after they are gone. Without one it comes at once, and they go as soon as there is a link again,
 * or with the session.
 */

import { hostname } from 'node:os';
import { ArgumentError } from '../client/index.ts';
import { pathFault } from '../protocol/index.ts';
import type { Clock } from '../support/index.ts';
import { type Contender, describe } from './contenders.ts';
import { checkSignal, Deadline, type WaitOptions } from './deadline.ts';
import type { Grant } from './grant.ts';
import type { JoinOptions, Line, Place, Rule } from './line.ts';
import { LockTimeoutError } from './lock-timeout-error.ts';
import { whileLinked } from './while-linked.ts';

/** What a node says of its owner unless told otherwise, so that a time-out can name it. */
export const defaultData = `${hostname()}:${process.pid}`;

/** How long a time-out may take to find out who was in the way. */
const askHoldersMs = 2_000;
/** Holders that are looked up for a message. */
const holdersMax = 10;

/** Waits for our turn by the rule. Rejects with a `LockTimeoutError` when `timeoutMs` are over. */
export async function acquire(
  line: Line,
  rule: Rule,
  join: JoinOptions,
  wait: WaitOptions,
  clock: Clock,
): Promise<Grant> {
  const deadline = new Deadline(wait, clock);
  const signal = deadline.limit;
  let place: Place | undefined;
  try {
    signal?.throwIfAborted();
    place = await line.join(signal ? { ...join, signal } : join);
    return await place.turn(rule, signal);
  } catch (error) {
    const isLate = deadline.isLate && error === signal?.reason;
    // Asked before we leave, so that the answer is of the line in which we waited.
    const late = isLate ? lateError(line, rule, wait.timeoutMs!, clock) : undefined;
    if (place !== undefined) await whileLinked(line.client, place.leave());
    throw (await late) ?? error;
  } finally {
    deadline.stop();
  }
}

/** Our turn at once, or null. The signal is for a server that does not answer. */
export async function tryAcquire(line: Line, rule: Rule, join: JoinOptions): Promise<Grant | null> {
  const { signal } = join;
  if (signal !== undefined) checkSignal(signal);
  signal?.throwIfAborted();
  const place = await line.join(join);
  try {
    if ((await place.ahead(rule, signal)) === null) {
      place.grant.check();
      return place.grant;
    }
  } catch (error) {
    await whileLinked(line.client, place.leave());
    throw error;
  }
  await place.leave();
  return null;
}

/** Runs the work and lets go, whatever comes of it. Rejects when it was lost meanwhile. */
export async function holding<G extends Pick<Grant, 'check' | 'release'>, T>(
  grant: G,
  work: (grant: G) => Promise<T> | T,
): Promise<T> {
  let result: T;
  try {
    result = await work(grant);
  } catch (error) {
    // What the work says counts for more than that letting go failed: the session's end does that too.
    await grant.release().catch(() => {});
    throw error;
  }
  try {
    grant.check(); // who returns as if nothing had happened has not listened to the signal
  } finally {
    await grant.release();
  }
  return result;
}

/** Those whose turn it is, by the rule. */
export function holderNames(names: readonly string[], rule: Rule): string[] {
  return names.filter((_, at) => rule(names, at) === null);
}

export function checkLockPath(path: unknown, argument = 'path'): asserts path is string {
  if (typeof path !== 'string') throw new ArgumentError(argument, 'a string is wanted');
  const fault = pathFault(path);
  if (fault !== null) throw new ArgumentError(argument, fault);
}

async function lateError(
  line: Line,
  rule: Rule,
  timeoutMs: number,
  clock: Clock,
): Promise<LockTimeoutError> {
  let holders: Contender[] = [];
  let waiting: number | undefined;
  let options: ErrorOptions = {};
  if (line.client.state.name === 'connected') {
    try {
      const limit = { timeoutMs: askHoldersMs };
      const names = await line.names(limit);
      const held = holderNames(names, rule);
      holders = await describe(line, held.slice(0, holdersMax), clock.wallMs(), limit);
      waiting = names.length - held.length;
    } catch (error) {
      options = { cause: error }; // the time is over all the same; the message says that nobody answered
    }
  }
  return new LockTimeoutError(line.path, timeoutMs, holders, waiting, options);
}
