/**
 * Many scripts, one after the other, on one pair of servers. On a difference: the script is cut down
 * on fresh pairs, and a report names seed, script, commands and what each server said.
 */

import type { TestServerOptions } from '../../src/testing/index.ts';
import type { ZooKeeperPeer } from '../peers/zookeeper.ts';
import type { Difference } from './compare.ts';
import { generate } from './generate.ts';
import { type ProfileName, profiles } from './profiles.ts';
import { seedOf } from './random.ts';
import { printCommand, printScript, type Script } from './script.ts';
import { Pair } from './servers.ts';
import { shrink } from './shrink.ts';

export interface CampaignOptions {
  readonly peer: ZooKeeperPeer;
  readonly profile: ProfileName;
  readonly seed: number;
  readonly ops: number;
  /** The first script's number, to come back to one. */
  readonly from?: number;
  /** Goes on after a difference, until there were so many. */
  readonly differencesMax?: number;
  readonly shrinks?: boolean;
  /** What ours is told besides: a fault, to see that it is found. */
  readonly ours?: TestServerOptions;
  readonly progress?: (done: { ops: number; scripts: number; differences: number }) => void;
  readonly report?: (text: string) => void;
}

export interface CampaignResult {
  readonly ops: number;
  readonly scripts: number;
  readonly lines: number;
  readonly reports: readonly string[];
  readonly allowed: ReadonlyMap<string, number>;
  /** How often Apache answered which op with which code, and told of which event. */
  readonly tally: ReadonlyMap<string, number>;
}

/** A server is not left to grow for ever: a fresh pair after so many scripts. */
const scriptsPerPair = 3_000;

export async function campaign(options: CampaignOptions): Promise<CampaignResult> {
  const { peer, profile, seed, ours, from = 0, differencesMax = 1 } = options;
  // Each profile has scripts of its own.
  const salt = Object.keys(profiles).indexOf(profile) * 1_000_003;
  const reports: string[] = [];
  const allowed = new Map<string, number>();
  const tally = new Map<string, number>();
  let ops = 0;
  let lines = 0;
  let script = from;
  let pair: Pair | undefined;
  try {
    for (; ops < options.ops && reports.length < differencesMax; script++) {
      if (pair !== undefined && (script - from) % scriptsPerPair === 0) {
        await pair[Symbol.asyncDispose]();
        pair = undefined;
      }
      pair ??= await Pair.start(peer, profile, ours);
      const played = generate(seedOf(seed + salt, script), profiles[profile].enforceQuota);
      const comparison = await pair.run(played);
      ops += played.commands.length;
      lines += comparison.lines;
      for (const [kind, count] of comparison.tally) tally.set(kind, (tally.get(kind) ?? 0) + count);
      for (const [name, count] of comparison.allowed) {
        allowed.set(name, (allowed.get(name) ?? 0) + count);
      }
      options.progress?.({ ops, scripts: script - from + 1, differences: reports.length });
      if (comparison.difference === undefined) continue;
      await pair[Symbol.asyncDispose]();
      pair = undefined;
      const text = await explain(options, script, played, comparison.difference);
      reports.push(text);
      options.report?.(text);
    }
  } finally {
    await pair?.[Symbol.asyncDispose]();
  }
  return { ops, scripts: script - from, lines, reports, allowed, tally };
}

async function explain(
  { peer, profile, seed, ours, shrinks = true }: CampaignOptions,
  number: number,
  script: Script,
  first: Difference,
): Promise<string> {
  let shortest = script;
  let difference = first;
  let repeats = false;
  if (shrinks) {
    let pair: Pair | undefined;
    const fails = async (candidate: Script): Promise<boolean> => {
      pair ??= await Pair.start(peer, profile, ours);
      const comparison = await pair.run(candidate);
      if (comparison.difference === undefined) return false;
      difference = comparison.difference;
      await pair[Symbol.asyncDispose]();
      pair = undefined;
      return true;
    };
    repeats = await fails(script);
    if (repeats) shortest = await shrink(script, fails);
    await pair?.[Symbol.asyncDispose]();
  }
  const command = shortest.commands[difference.command];
  return [
    `A difference: seed ${seed}, script ${number}, profile ${profile}.`,
    shrinks ? (repeats ? '' : 'It did not come again on fresh servers.') : '',
    repeats ? printScript(shortest) : '',
    `on link ${difference.link}, at ${command === undefined ? 'the end' : printCommand(command)}`,
    `  Apache: ${difference.apache}`,
    `  ours:   ${difference.ours}`,
  ]
    .filter((line) => line !== '')
    .join('\n');
}
