/**
 * `drover align … --layout seed|java`: beside who knows the nodes of the coordinator's document alone, or
 * those of the Java program. A run shares its limit with them; `watch` shows them without any run of ours.
 */

import {
  boundaryAt,
  readSeedAlignment,
  type SeedSnapshot,
  type SharedLimit,
} from '../align/index.ts';
import { frames } from './align-frames.ts';
import type { AlignInput } from './align-input.ts';
import { spanOf } from './align-span.ts';
import { momentOf, windowOf } from './align-words.ts';
import type { Context, OptionValues } from './command.ts';
import { CommandError } from './exit-codes.ts';
import type { View } from './kafka-view.ts';
import { escaped } from './output.ts';

type Kind = SharedLimit['kind'];

function kindOf({ layout }: OptionValues): Kind {
  if (layout === 'seed' || layout === 'java') return layout;
  throw new CommandError('usage', '--layout: seed or java is wanted');
}

const rootOf = ({ layoutRoot }: OptionValues) =>
  layoutRoot === undefined ? {} : { root: String(layoutRoot) };

/** What a run shares its limit with; undefined where it shares it with nobody. */
export async function sharedOf(
  options: OptionValues,
  input: AlignInput,
  periodMs: number,
): Promise<SharedLimit | undefined> {
  if (options.layout === undefined) {
    const odd = ['layoutRoot', 'layoutStart', 'others'].find((name) => options[name] !== undefined);
    if (odd === undefined) return undefined;
    throw new CommandError('usage', '--layout: seed or java is wanted with it');
  }
  const kind = kindOf(options);
  const { fromMs } = windowOf(options);
  const startMs =
    momentOf('--layout-start', options.layoutStart) ??
    (fromMs === undefined ? await firstMs(input, periodMs) : boundaryAt(periodMs, fromMs));
  const others = othersOf((options.others ?? []) as readonly string[]);
  return { kind, startMs, others, ...rootOf(options) };
}

/** The period of the first record: known from files alone. */
async function firstMs(input: AlignInput, periodMs: number): Promise<number> {
  const span = await spanOf(input);
  if (span !== null) return boundaryAt(periodMs, span.startMs);
  throw new CommandError('usage', '--layout-start: where does the first period begin?');
}

/** `clicks=0,1`: partitions that others read. */
function othersOf(words: readonly string[]): Record<string, string[]> {
  const others: Record<string, string[]> = {};
  for (const word of words) {
    const [topic, list, ...rest] = word.split('=');
    if (!topic || !list || rest.length > 0) {
      throw new CommandError('usage', `--others: TOPIC=0,1 is wanted, not ${escaped(word)}`);
    }
    others[topic] = [...(others[topic] ?? []), ...list.split(',')];
  }
  return others;
}

export async function watchLayout(context: Context, options: OptionValues): Promise<number> {
  const layout = kindOf(options);
  const client = await context.client();
  return frames(context, options, async () => {
    const seen = await readSeedAlignment(client, { layout, ...rootOf(options) });
    if (seen === null) throw nothingThere(layout, options);
    return viewOf(seen);
  });
}

function nothingThere(layout: Kind, options: OptionValues): CommandError {
  const where = escaped(String(options.layoutRoot ?? '/kafka-consumer-coordinator'));
  const why = `nobody keeps the ${layout} layout there; --layout-root says where`;
  return new CommandError('refused', `${where}: ${why}`);
}

export function viewOf(seen: SeedSnapshot): View {
  const { limitMs, partitions, members } = seen;
  const time = (ms: number | null) => (ms === null ? '-' : new Date(ms).toISOString());
  const name = (key: string) => escaped(key.replace(/\/([^/]*)$/, '-$1'));
  const late = partitions.filter(({ isWaiting }) => !isWaiting);
  const [leader] = members;
  return {
    parts: [
      [
        `limit ${time(limitMs)}`,
        `${partitions.length - late.length} of ${partitions.length} partitions have reached it`,
        `${members.length} in the election`,
        leader === undefined ? 'nobody leads' : `${escaped(leader.name)} leads`,
      ].join(' · '),
      ...(late.length === 0 ? [] : [`held back by ${late.map(({ key }) => name(key)).join(', ')}`]),
      {
        heads: ['PARTITION', 'STATE', 'REACHED'],
        rows: partitions.map(({ key, isWaiting, reachedMs }) => [
          name(key),
          isWaiting ? 'waiting' : 'reading',
          time(reachedMs),
        ]),
      },
    ],
    records: [
      {
        ...seen,
        members: members.map((one) => ({ ...one, sessionId: `0x${one.sessionId.toString(16)}` })),
      },
    ],
  };
}
