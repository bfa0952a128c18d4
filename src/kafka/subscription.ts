/**
 * What a consumer wants to read: topics by name, or all that a filter allows.
 *
 * In: what a caller asks for, or what a member has registered. Out: threads for each topic. Filters are
 * Kafka's: commas mean "or", blanks and outer quotes are dropped, and the whole name must match. Only
 * the first key of a filter counts, as in Java's consumer. Internal topics are left out unless asked
 * for. Filters are matched in linear time, since any member may write one and every member matches it.
 * They are read as Java reads them; what `support/pattern-syntax.ts` does not support is refused by name,
 * and where another member wrote it, that member counts as wanting nothing, and is reported.
 */

import { ArgumentError } from '../client/index.ts';
import { expression, PatternError } from '../support/index.ts';
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

/** Several hundred topics by name. */
const filterCharsMax = 10_000;

/** The work that one filter may take for all topics together: half a second at the worst. */
const filterStepsMax = 5_000_000;

function expressionOf(raw: string): string {
  if (raw.length > filterCharsMax) {
    throw new Error(
      `the filter has ${raw.length} characters; at most ${filterCharsMax} are allowed`,
    );
  }
  return unquoted(raw.trim().replaceAll(',', '|').replaceAll(' ', ''));
}

function unquoted(text: string): string {
  let [first, end] = [0, text.length];
  const isQuote = (at: number) => text[at] === '"' || text[at] === "'";
  while (first < end && isQuote(first)) first += 1;
  while (end > first && isQuote(end - 1)) end -= 1;
  return text.slice(first, end);
}

/** Throws what is wrong with it, and so does what it returns when the filter takes too much work. */
export function filterOf(raw: string): (topic: string) => boolean {
  const text = expressionOf(raw);
  if (text === '') throw new Error('the filter is empty and matches nothing; .* matches all');
  const refuse = (cause: unknown): never => {
    if (!(cause instanceof PatternError)) throw cause;
    const shown = text.length > 100 ? `${text.slice(0, 100)}…` : text;
    throw new Error(`cannot use the filter ${JSON.stringify(shown)}: ${cause.message}`, { cause });
  };
  try {
    const pattern = expression(text, { whole: true, stepsMax: filterStepsMax });
    return (topic) => {
      try {
        return pattern.test(topic);
      } catch (error) {
        return refuse(error);
      }
    };
  } catch (error) {
    return refuse(error);
  }
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
