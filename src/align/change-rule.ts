/**
 * The rule of a group, changed by people while it runs: how the limit moves, and how far it may go.
 *
 *            limit                 hold
 *   free     ──────▶  moves on     none
 *   pause    ──────┤               where the limit stands: all read up to there, and wait
 *   step     ──────▶──────┤        by a period more, or by n; over a gap it goes to the next record
 *   continue ──────▶  moves on     none
 *
 * In: a group. Out: its rule before and after. Every change is a write of the one node that holds the
 * rule, refused by the server when somebody else came in between, and then thought over anew, a bounded
 * number of times. Who leads hears of it and tells everybody with the limit; nobody needs to be started
 * again, and since it is stored it outlives leaders and members.
 *
 * NOT promised: that the limit stops where it was when `pauseAlignment` looked. It stops where it is when
 * the leader hears; and whoever is before the limit still reads up to it.
 */

import { ArgumentError, isZkError } from '../client/index.ts';
import { ensurePath, LayoutError } from '../kafka/index.ts';
import { checkGroup } from './align-options.ts';
import { alignPaths, alignRoot, formatRule, parseLimit, parseRule } from './layout.ts';
import { nodeOf, readNode } from './read-node.ts';
import { boundaryAfter, ceilingOf, type Rule, type RuleInput, ruleOf, withHold } from './rule.ts';
import type { AlignClient } from './session.ts';
import { readAlignment } from './snapshot.ts';

export interface RootOption {
  /** The node that groups stand under. `/align`. */
  readonly root?: string;
}

export interface RuleChange {
  readonly before: Rule;
  /** As it is stored now. The same as before where nothing was to be changed. */
  readonly rule: Rule;
}

/** How often somebody may come between a look and a write. */
const triesMax = 10;
/** As far as a step may go: what is beyond is no step any more. */
const stepsMax = 1_000_000;

/**
 * Changes how the group's limit moves, while it runs: a smaller period for a replay, a larger one when
 * it has caught up, or none. Told to everybody with the next move; the limit never goes back by it, and
 * a group that is paused stays so.
 */
export async function setRule(
  client: AlignClient,
  group: string,
  input: RuleInput,
  { root = alignRoot }: RootOption = {},
): Promise<Rule> {
  checkGroup(group);
  const pace = ruleOf(input);
  await ensurePath(client, alignPaths(group, root).base);
  return change(client, group, root, async (before) => withHold(pace, before?.holdMs ?? null));
}

/** Nobody goes beyond where the limit stands, until it is continued. Where it is paused, nothing. */
export function pauseAlignment(
  client: AlignClient,
  group: string,
  { root = alignRoot }: RootOption = {},
): Promise<RuleChange> {
  return hold(client, group, root, async (rule) => {
    const limitMs = await limitOf(client, group, root);
    // A step under way ends here; a hold that lies before the limit holds it already.
    return Math.min(rule.holdMs ?? Number.POSITIVE_INFINITY, limitMs);
  });
}

/** The limit may go on by so many periods, and is held there. */
export async function stepAlignment(
  client: AlignClient,
  group: string,
  { root = alignRoot, periods = 1 }: RootOption & { readonly periods?: number } = {},
): Promise<RuleChange> {
  if (!Number.isInteger(periods) || periods < 1 || periods > stepsMax) {
    const wanted = `a whole number from 1 to ${stepsMax} is wanted`;
    throw new ArgumentError('periods', `${wanted}, not ${periods}`);
  }
  return hold(client, group, root, async (rule) => {
    const limitMs = await limitOf(client, group, root);
    const heldMs = rule.holdMs === undefined ? limitMs : ceilingOf(rule, limitMs);
    const slowestMs = (await readAlignment(client, group, { root }))?.slowest?.positionMs ?? heldMs;
    const { stepMs } = rule;
    return boundaryAfter(stepMs, Math.max(heldMs, slowestMs)) + (periods - 1) * stepMs;
  });
}

/** Nobody holds the group by hand any more. */
export function continueAlignment(
  client: AlignClient,
  group: string,
  { root = alignRoot }: RootOption = {},
): Promise<RuleChange> {
  return hold(client, group, root, async () => null);
}

async function hold(
  client: AlignClient,
  group: string,
  root: string,
  to: (rule: Rule) => Promise<number | null>,
): Promise<RuleChange> {
  checkGroup(group);
  let before: Rule | undefined;
  const rule = await change(client, group, root, async (found) => {
    if (found === null) throw new ArgumentError('group', `there is no group ${group}`);
    before = found;
    return withHold(found, await to(found));
  });
  return { before: before!, rule };
}

async function limitOf(client: AlignClient, group: string, root: string): Promise<number> {
  const limit = (await readNode(client, alignPaths(group, root).limit, parseLimit))?.value;
  if (limit?.isFinished) {
    throw new ArgumentError('group', `${group} has come to its end: there is nothing to hold`);
  }
  if (limit?.limitMs != null) return limit.limitMs;
  const why = `${group} has no limit yet: it can be held once each partition was read from`;
  throw new ArgumentError('group', why);
}

async function change(
  client: AlignClient,
  group: string,
  root: string,
  to: (before: Rule | null) => Promise<Rule>,
): Promise<Rule> {
  const { config } = alignPaths(group, root);
  for (let tries = 1; ; tries++) {
    const node = await nodeOf(client, config);
    const before = node && ruleIn(node.data, config);
    const rule = await to(before);
    const data = formatRule(rule);
    if (before !== null && formatRule(before) === data) return rule;
    try {
      if (node === null) await client.create(config, data);
      else await client.set(config, data, { version: node.stat.version });
      return rule;
    } catch (error) {
      const isRace = (['NO_NODE', 'NODE_EXISTS', 'BAD_VERSION'] as const).some((code) =>
        isZkError(error, code),
      );
      if (!isRace || tries === triesMax) throw error;
    }
  }
}

/** One that makes no sense is as good as none: a new one takes its place. */
function ruleIn(data: Buffer | null, path: string): Rule | null {
  try {
    return parseRule(data, path);
  } catch (error) {
    if (error instanceof LayoutError) return null;
    throw error;
  }
}
