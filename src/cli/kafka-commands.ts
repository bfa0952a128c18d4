/**
 * `drover kafka …`: brokers, topics, controller, groups and lag of any cluster with ZooKeeper, 0.7 to 3.9.
 *
 * Looks and changes nothing, unless --write says so. The cluster's chroot is the server's, as in
 * `--server zk1:2181/kafka`.
 */

import type { Client } from '../client/index.ts';
import { type Generation, listGroups, type OffsetSource } from '../kafka/index.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError, exitCodes } from './exit-codes.ts';
import { generationOf, readCluster } from './kafka-cluster.ts';
import {
  brokersView,
  controllerView,
  readPending,
  topicsView,
  topicView,
  type ViewOptions,
} from './kafka-cluster-views.ts';
import {
  type GroupView,
  groupsView,
  groupView,
  lagsOf,
  lagView,
  ownersView,
  readGroup,
} from './kafka-groups.ts';
import { openOffsets } from './kafka-lag.ts';
import { present, type View } from './kafka-view.ts';

interface Asked {
  readonly context: Context;
  readonly client: Client;
  readonly words: readonly string[];
  readonly options: OptionValues;
  readonly generation: Generation;
  /** Options for a view of now. */
  now(): ViewOptions;
}

type Action = (asked: Asked) => Promise<number>;

/** A view that needs nothing but the session. */
function viewed(
  look: (client: Client, options: ViewOptions, word?: string) => Promise<View>,
): Action {
  return ({ context, client, words, options, now }) =>
    present(context, options, () => look(client, now(), words[0]));
}

const actions: Readonly<Record<string, Action>> = {
  brokers: viewed(brokersView),
  topics: viewed(topicsView),
  topic: viewed((client, options, word) => topicView(client, needed(word, 'topic TOPIC'), options)),
  controller: viewed(controllerView),
  groups: viewed(groupsView),
  group: viewed((client, options, word) => groupView(client, needed(word, 'group GROUP'), options)),
  owners: viewed((client, options, word) => ownersView(client, word, options)),
  lag: (asked) =>
    withSource(asked, (source) => {
      const { context, options, client, words } = asked;
      const told = new Set<string>();
      const onUnknown = (why: string) => {
        if (!told.has(why)) context.output.tell(`lag is unknown: ${why}`);
        told.add(why);
      };
      return present(context, options, () =>
        lagView(client, words[0], source, { ...asked.now(), onUnknown }),
      );
    }),
  offsets: async (asked) => {
    const { context, client, words, options, now } = asked;
    const [action, group] = words;
    if (action !== 'reset') {
      return present(context, options, () =>
        groupView(client, needed(action, 'offsets GROUP, or offsets reset GROUP'), now()),
      );
    }
    const name = needed(group, 'offsets reset GROUP --to OFFSET');
    const { resetGroup, ruleOf } = await import('./kafka-changes.ts');
    const rule = ruleOf(options);
    const needsSource = 'toTimeMs' in rule || ('to' in rule && typeof rule.to === 'string');
    const isAsked = typeof options.ndjson === 'string' || typeof options.brokers === 'string';
    const reset = (source: OffsetSource | null) =>
      resetGroup(context, client, name, source, options, now());
    const isFree = !needsSource && !isAsked;
    const code = await (isFree ? reset(null) : withSource(asked, reset));
    return followed(asked, code, () => groupView(client, name, now()));
  },
  elect: async (asked) => {
    const { context, client, words, options, now } = asked;
    const { elect } = await import('./kafka-changes.ts');
    const code = await elect(context, client, words, options, now());
    return followed(asked, code, () => controllerView(client, now()));
  },
  reassign: async (asked) => {
    const { context, client, words, options, now } = asked;
    const { reassign } = await import('./kafka-changes.ts');
    const code = await reassign(context, client, words, options, now());
    return followed(asked, code, () => controllerView(client, now()));
  },
  doctor: (asked) => withSource(asked, (source) => doctor(asked, source)),
};

/** `--watch` behind a change goes on with what becomes of it. */
async function followed(
  { context, options }: Asked,
  code: number,
  look: () => Promise<View>,
): Promise<number> {
  return options.watch === true && code === exitCodes.ok ? present(context, options, look) : code;
}

export const kafkaActions: readonly string[] = Object.keys(actions);

export async function kafka(
  context: Context,
  [action = '', ...words]: readonly string[],
  options: OptionValues,
): Promise<number> {
  const run = Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (run === undefined) {
    throw new CommandError('usage', `there is drover kafka ${kafkaActions.join(', ')}`);
  }
  const { generation: given } = options;
  if (given !== undefined && given !== '0.7' && given !== '0.8') {
    throw new CommandError('usage', '--generation: 0.7, or 0.8 for all after it, is wanted');
  }
  const client = await context.client();
  const generation = given ?? (await generationOf(client));
  const now = () => ({ generation, nowMs: Date.now() });
  return run({ context, client, words, options, generation, now });
}

async function withSource(
  { context, client, options, generation }: Asked,
  work: (source: OffsetSource | null) => Promise<number>,
): Promise<number> {
  const { brokers } = await readCluster(client, { generation, only: [] });
  const source = await openOffsets(context, options, generation === '0.7' ? [] : brokers);
  try {
    return await work(source);
  } finally {
    await source?.close();
  }
}

async function doctor(asked: Asked, source: OffsetSource | null): Promise<number> {
  const { context, client, options, now } = asked;
  const { doctorView } = await import('./kafka-doctor.ts');
  return present(context, options, async () => {
    const viewOptions = now();
    const cluster = await readCluster(client, viewOptions);
    const groups: GroupView[] = [];
    for (const name of await listGroups(client))
      groups.push(await readGroup(client, name, cluster));
    const { nowMs } = viewOptions;
    const lags = await lagsOf(groups, source, { nowMs, onUnknown: () => {} });
    return doctorView({ cluster, pending: await readPending(client), groups, lags, nowMs });
  });
}

function needed(word: string | undefined, usage: string): string {
  if (word !== undefined) return word;
  throw new CommandError('usage', `it is drover kafka ${usage}`);
}
