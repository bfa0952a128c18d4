/**
 * What a consumer wants to read: topics by name, or all that a filter allows.
 *
 * In: what a caller asks for, or what a member has registered. Out: threads for each topic. Filters are
 * Kafka's: commas mean "or", blanks and outer quotes are dropped, and the whole name must match. Only
 * the first key of a filter counts, as in Java's consumer. Internal topics are left out unless asked
 * for. JavaScript reads the expression, so a construct that only Java knows is refused here, and where
 * another member wrote it, that member counts as wanting nothing, and is reported.
 */

import { ArgumentError } from '../client/index.ts';
import {
  type ConsumerRegistration,
  type SubscriptionPattern,
  threadsMax,
} from './layout-consumer.ts';

/** Topics with one thread each, or with so many; or a filter. */
export type SubscriptionInput =
  | { readonly topics: readonly string[] | Readonly<Record<string, number>> }
  | { readonly whiteList: string; readonly threads?: number }
  | { readonly blackList: string; readonly threads?: number };

/** Topics of Kafka's own. */
export const internalTopics: ReadonlySet<string> = new Set([
  '__consumer_offsets',
  '__transaction_state',
]);

const topicPattern = /^[a-zA-Z0-9._-]{1,249}$/;

export function registrationOf(
  input: SubscriptionInput,
  timestampMs: number,
): ConsumerRegistration {
  if ('topics' in input) {
    const { topics } = input;
    const entries: [string, number][] = Array.isArray(topics)
      ? topics.map((topic: string) => [topic, 1])
      : Object.entries(topics as Record<string, number>);
    if (entries.length === 0) throw new ArgumentError('topics', 'at least one is wanted');
    for (const [topic, threads] of entries) {
      if (!topicPattern.test(topic) || topic === '.' || topic === '..') {
        throw new ArgumentError('topics', `"${topic}" is no name of a topic`);
      }
      checkThreads(threads);
    }
    return { pattern: 'static', subscription: new Map(entries), timestampMs };
  }
  const [pattern, filter]: [SubscriptionPattern, string] =
    'whiteList' in input ? ['white_list', input.whiteList] : ['black_list', input.blackList];
  const threads = input.threads ?? 1;
  checkThreads(threads);
  try {
    filterOf(filter);
  } catch (error) {
    throw new ArgumentError('filter', (error as Error).message);
  }
  // As Java's consumer: what is written is the expression, and not what somebody typed.
  return { pattern, subscription: new Map([[expressionOf(filter), threads]]), timestampMs };
}

function checkThreads(threads: number): void {
  if (Number.isInteger(threads) && threads >= 1 && threads <= threadsMax) return;
  throw new ArgumentError('threads', `1 to ${threadsMax} are wanted, not ${threads}`);
}

function expressionOf(raw: string): string {
  return raw
    .trim()
    .replaceAll(',', '|')
    .replaceAll(' ', '')
    .replace(/^["']+/, '')
    .replace(/["']+$/, '');
}

/** Throws what is wrong with it. */
export function filterOf(raw: string): (topic: string) => boolean {
  const text = expressionOf(raw);
  if (text === '') throw new Error('a filter that is empty matches nothing; .* matches all');
  const pattern = new RegExp(`^(?:${text})$`);
  return (topic) => pattern.test(topic);
}

/** Whether all topics must be known to say what it means. */
export function isFilter({ pattern }: ConsumerRegistration): boolean {
  return pattern !== 'static';
}

/** Threads for each topic. Throws where the filter of another member cannot be read. */
export function expand(
  registration: ConsumerRegistration,
  allTopics: readonly string[],
  includeInternal = false,
): ReadonlyMap<string, number> {
  if (registration.pattern === 'static') return registration.subscription;
  const [first] = registration.subscription;
  if (first === undefined) return new Map();
  const [raw, threads] = first;
  const matches = filterOf(raw);
  const wanted = registration.pattern === 'white_list';
  return new Map(
    allTopics
      .filter((topic) => matches(topic) === wanted)
      .filter((topic) => includeInternal || !internalTopics.has(topic))
      .map((topic) => [topic, threads]),
  );
}
