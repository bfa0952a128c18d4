/** `drover align`: which of its actions is meant, and the small ones. */

import {
  alignPaths,
  continueAlignment,
  durationMs,
  parseRule,
  pauseAlignment,
  type Rule,
  type RuleChange,
  rewindAlignment,
  setRule,
  stepAlignment,
} from '../align/index.ts';
import { ArgumentError, type Client, isZkError } from '../client/index.ts';
import { groupOf, momentOf, noGroup, ruleText } from './align-words.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { escaped } from './output.ts';
import { within } from './within.ts';

type Action = (
  context: Context,
  words: readonly string[],
  options: OptionValues,
) => Promise<number>;

const actions: Readonly<Record<string, Action>> = {
  plan: async (context, words, options) =>
    (await import('./align-plan.ts')).plan(context, withInputs(words, options)),
  run: async (context, words, options) => {
    await refuseReadOnly(context, 'run');
    return (await import('./align-run.ts')).run(context, withInputs(words, options));
  },
  watch: async (context, [group], options) =>
    options.layout === undefined
      ? (await import('./align-watch.ts')).watch(context, groupOf(options, group), options)
      : (await import('./align-layout.ts')).watchLayout(context, options),
  'set-period': setPeriod,
  pause: (context, [group], options) =>
    hold(context, 'pause', groupOf(options, group), pauseAlignment),
  step,
  continue: (context, [group], options) =>
    hold(context, 'continue', groupOf(options, group), continueAlignment),
  stop,
  rewind,
  forget,
};

export async function align(
  context: Context,
  [action = '', ...words]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const found = Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (found !== undefined) return found(context, words, options);
  const known = Object.keys(actions).join(', ');
  throw new CommandError('usage', `align ${escaped(action)}: it is one of ${known}`);
}

/** `--input a=x b=y` is the same as `--input a=x --input b=y`. */
function withInputs(words: readonly string[], options: OptionValues): OptionValues {
  const odd = words.find((word) => !word.includes('='));
  if (odd !== undefined) {
    throw new CommandError('usage', `${escaped(odd)}: TOPIC=DIR is wanted, or a flag`);
  }
  const inputs = [...((options.input ?? []) as readonly string[]), ...words];
  return { ...options, input: inputs };
}

/** `align set-period G 5m`, or `--group G --period 5m`. */
async function setPeriod(
  context: Context,
  words: readonly string[],
  options: OptionValues,
): Promise<number> {
  await refuseReadOnly(context, 'set-period');
  const [group, period] = options.group === undefined ? words : [String(options.group), words[0]];
  const given = period ?? options.period;
  if (given === undefined) {
    throw new CommandError('usage', 'align set-period GROUP DURATION, as 5m');
  }
  const periodMs = durationMs('period', String(given));
  const lookAhead = within(options.lookAhead, '--look-ahead', 0, 1_000, 0);
  return change(context, groupOf(options, group), (client, name) =>
    setRule(client, name, { period: periodMs, lookAhead }),
  );
}

/** `align step G 3`, or `--group G 3`: so many periods more, and then it is held. */
async function step(
  context: Context,
  words: readonly string[],
  options: OptionValues,
): Promise<number> {
  const [group, count] = options.group === undefined ? words : [String(options.group), words[0]];
  const periods = within(count, 'align step GROUP PERIODS', 1, 1_000_000, 1);
  return hold(context, 'step', groupOf(options, group), (client, name) =>
    stepAlignment(client, name, { periods }),
  );
}

/** Held, or let go, by hand. Told as it is stored; who leads hears of it. */
async function hold(
  context: Context,
  action: string,
  group: string,
  to: (client: Client, group: string) => Promise<RuleChange>,
): Promise<number> {
  await refuseReadOnly(context, action);
  return change(
    context,
    group,
    async (client, name) => (await refusing(() => to(client, name))).rule,
  );
}

/** Switches alignment off: nobody waits any more. What was caught up stays in step by itself. */
async function stop(
  context: Context,
  [group]: readonly string[],
  options: OptionValues,
): Promise<number> {
  await refuseReadOnly(context, 'stop');
  return change(context, groupOf(options, group), (client, name, { stepMs }) =>
    setRule(client, name, { off: true, step: stepMs }),
  );
}

async function change(
  context: Context,
  group: string,
  to: (client: Client, group: string, before: Rule) => Promise<Rule>,
): Promise<number> {
  const client = await context.client();
  const before = await ruleOfGroup(client, group);
  const rule = await to(client, group, before);
  if (context.output.isJson) context.output.record({ group, before, rule });
  else context.output.line(`${escaped(group)}: ${ruleText(before)} → ${ruleText(rule)}`);
  return exitCodes.ok;
}

async function ruleOfGroup(client: Client, group: string): Promise<Rule> {
  const { config } = alignPaths(group);
  try {
    return parseRule((await client.get(config)).data, config);
  } catch (error) {
    if (!isZkError(error, 'NO_NODE')) throw error;
    throw noGroup(group);
  }
}

/** `align rewind G`, `align rewind G 2026-11-01T03:40Z`: the limit goes back to a cut, and all with it. */
async function rewind(
  context: Context,
  words: readonly string[],
  options: OptionValues,
): Promise<number> {
  await refuseReadOnly(context, 'rewind');
  const [word, date] = options.group === undefined ? words : [String(options.group), words[0]];
  const group = groupOf(options, word);
  const toMs = momentOf('align rewind GROUP DATE', date ?? options.to);
  const client = await context.client();
  await ruleOfGroup(client, group);
  const where = toMs === null ? 'before its limit' : `up to ${new Date(toMs).toISOString()}`;
  const question = `set ${escaped(group)} back to its last cut ${where}? What was read after it comes again`;
  if (!(await context.confirm(question, options))) return exitCodes.declined;
  const done = await refusing(() => rewindAlignment(client, group, toMs === null ? {} : { toMs }));
  const { before, limitMs, earlier } = done;
  if (context.output.isJson) context.output.record({ group, before, limitMs, earlier });
  else {
    const time = (ms: number | null) => (ms === null ? '-' : new Date(ms).toISOString());
    context.output.line(`${escaped(group)}: limit ${time(before.limitMs)} → ${time(limitMs)}`);
    const last = earlier.at(-1);
    if (last !== undefined) context.output.tell(`the cut before that is at ${time(last)}`);
  }
  return exitCodes.ok;
}

/** What the group does not allow as it is, is no mistake in the command line. */
async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ArgumentError) || error.argument === 'periods') throw error;
    throw new CommandError('refused', error.message);
  }
}

/** Takes away all that is known of a group, so that the next run begins anew. */
async function forget(
  context: Context,
  [word]: readonly string[],
  options: OptionValues,
): Promise<number> {
  await refuseReadOnly(context, 'forget');
  const group = groupOf(options, word);
  const client = await context.client();
  await ruleOfGroup(client, group);
  const { base, members } = alignPaths(group);
  const live = await client.children(members).catch((error) => {
    if (isZkError(error, 'NO_NODE')) return [];
    throw error;
  });
  if (live.length > 0) {
    const who = live.map(escaped).join(', ');
    throw new CommandError('refused', `${escaped(group)} is running: ${who}; stop them first`);
  }
  const question = `forget how far ${escaped(group)} has come?`;
  if (!(await context.confirm(question, options))) return exitCodes.declined;
  const nodes = await client.deleteRecursive(base);
  if (context.output.isJson) context.output.record({ group, nodes });
  else context.output.line(`${escaped(group)} is forgotten`);
  return exitCodes.ok;
}

/** Some actions write and some only look, so the table's own check does not do. */
async function refuseReadOnly(context: Context, action: string): Promise<void> {
  const { readOnly, origin } = await context.target();
  if (!readOnly) return;
  const where = origin === 'default' ? 'this' : origin;
  throw new CommandError('refused', `align ${action} writes, and ${where} is read-only`);
}
