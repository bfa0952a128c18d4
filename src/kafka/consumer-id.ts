/**
 * What a consumer is called: `group_host-millis-xxxxxxxx`, by Kafka's rule, or `group_` and a name of
 * the caller's.
 *
 * The eight digits are the first of a random UUID. Java prints its high half without leading zeros and
 * then takes eight characters, which fails for a rare UUID; here the zeros stay.
 */

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { ArgumentError } from '../client/index.ts';

const namePattern = /^[^/\s]+$/;

export interface ConsumerIdInput {
  readonly group: string;
  /** A name that stays the same over restarts. Two at once wait for each other. */
  readonly consumerId?: string;
  readonly wallMs: number;
  readonly host?: string;
  readonly uuid?: string;
}

export function consumerIdOf(input: ConsumerIdInput): string {
  const { group, consumerId, wallMs, host = hostname(), uuid = randomUUID() } = input;
  checkName('group', group);
  if (consumerId !== undefined) {
    checkName('consumerId', consumerId);
    return `${group}_${consumerId}`;
  }
  return `${group}_${host.replace(/[/\s]/g, '-')}-${Math.floor(wallMs)}-${uuid.slice(0, 8)}`;
}

/** Ids of this shape are made once and never again, so what stands in their node never changes. */
export function isGenerated(id: string): boolean {
  return /-\d{12,14}-[0-9a-f]{8}$/.test(id);
}

function checkName(argument: string, name: string): void {
  if (typeof name === 'string' && namePattern.test(name) && name !== '.' && name !== '..') return;
  throw new ArgumentError(argument, `a name without blanks or slashes is wanted, not "${name}"`);
}
