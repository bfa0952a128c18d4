/** The nodes that a group stands on, made by whoever joins first; and the rule, changed by people. */

import { isZkError } from '../client/index.ts';
import { connected, ensurePath } from '../kafka/index.ts';
import { Backoff, type Clock, pause } from '../support/index.ts';
import { checkGroup } from './align-options.ts';
import { type AlignPaths, alignPaths, alignRoot, formatRule } from './layout.ts';
import { type Rule, type RuleInput, ruleOf } from './rule.ts';
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
    await client.create(paths.config, { data: formatRule(rule) });
  } catch (error) {
    if (!isZkError(error, 'NODE_EXISTS')) throw error;
  }
}

/**
 * Changes how the group's limit moves, while it runs: a smaller period for a replay, a larger one when
 * it has caught up, or none. Told to everybody with the next move; the limit never goes back by it.
 */
export async function setRule(
  client: AlignClient,
  group: string,
  input: RuleInput,
  { root = alignRoot }: { readonly root?: string } = {},
): Promise<Rule> {
  checkGroup(group);
  const rule = ruleOf(input);
  const { base, config } = alignPaths(group, root);
  await ensurePath(client, base);
  try {
    await client.set(config, formatRule(rule));
  } catch (error) {
    if (!isZkError(error, 'NO_NODE')) throw error;
    await client.create(config, { data: formatRule(rule) });
  }
  return rule;
}
