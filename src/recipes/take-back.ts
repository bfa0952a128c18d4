/**
 * Takes a node of our own away, of which it is not known whether it is there, or still ours.
 *
 * Nobody asks again behind this: so it asks itself, through any outage that the session lives through and
 * through moments of overload. Who has called off what the node was for does not wait for it without a link.
 */

import type { Client, StatView } from '../client/index.ts';
import { Backoff, type Clock, unbounded } from '../support/index.ts';
import { isPassing } from './passing.ts';
import { pause, retryBackoff } from './pause.ts';

/** How often it is asked whose the node is. */
const looksMax = 10;

export async function takeBack(
  client: Client,
  path: string,
  isOurs: (stat: StatView) => boolean | Promise<boolean>,
  clock: Clock,
): Promise<void> {
  if (await isThere(client, path, isOurs, clock)) await client.discard(path);
}

async function isThere(
  client: Client,
  path: string,
  isOurs: (stat: StatView) => boolean | Promise<boolean>,
  clock: Clock,
): Promise<boolean> {
  const backoff = new Backoff(retryBackoff);
  for (let looks = 1; ; looks++) {
    try {
      const stat = await client.exists(path, unbounded);
      return stat !== null && (await isOurs(stat));
    } catch (error) {
      const { name } = client.state;
      const isOver = name === 'closed' || name === 'authFailed' || name === 'expired';
      if (!isPassing(error) || isOver || looks === looksMax) throw error;
      await pause(clock, backoff.next(), client.sessionSignal);
    }
  }
}
