/** The nodes that a group stands on, made by whoever joins first. */

import { isZkError } from '../client/index.ts';
import { connected, ensurePath } from '../kafka/index.ts';
import { Backoff, type Clock, pause } from '../support/index.ts';
import { type AlignPaths, formatRule } from './layout.ts';
import type { Rule } from './rule.ts';
import { type AlignClient, isPassing } from './session.ts';

/** Tried again for as long as there is a session to try it in. */
export async function prepareGroup(
  client: AlignClient,
  paths: AlignPaths,
  rule: Rule,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff({ firstMs: 20, maxMs: 2_000 });
  for (;;) {
    try {
      if ((await connected(client, signal)) === undefined) return;
      // Persistent, all of them: what an election makes above its nodes would go when it is empty.
      await ensurePath(client, paths.members);
      await Promise.all([ensurePath(client, paths.cuts), ensurePath(client, paths.election)]);
      await createRule(client, paths, rule);
      return;
    } catch (error) {
      if (!isPassing(error)) throw error;
      await pause(clock, backoff.next(), signal);
    }
  }
}

/** The rule that is stored counts for more than the one that a member brings. */
async function createRule(client: AlignClient, paths: AlignPaths, rule: Rule): Promise<void> {
  try {
    await client.create(paths.config, formatRule(rule));
  } catch (error) {
    if (!isZkError(error, 'NODE_EXISTS')) throw error;
  }
}
