/**
 * A group that keeps the document's nodes, or the Java program's, read from outside by a client that is
 * no member of it.
 *
 * In: where its nodes are. Out: what they said when they were read. They are read one after the other,
 * so the whole need not be of one moment.
 */

import { ArgumentError } from '../client/index.ts';
import { javaLayout, javaRoot } from './java-layout.ts';
import { childrenOf, nodeOf } from './read-node.ts';
import { parseSeconds, parseTopicPartitions, seedLayout, textOf } from './seed-layout.ts';
import type { AlignClient } from './session.ts';

export interface SeedSnapshot {
  readonly layout: 'seed' | 'java';
  readonly root: string;
  /** The end of the present period; before anybody was there the Java program has its start here. */
  readonly limitMs: number | null;
  readonly partitions: readonly {
    readonly key: string;
    /** The last limit that it has reached. Null: none. */
    readonly reachedMs: number | null;
    readonly isWaiting: boolean;
  }[];
  /** Who stands in the election, the leader first. */
  readonly members: readonly { readonly name: string; readonly sessionId: bigint }[];
}

/** Null: nothing of the kind is there. */
export async function readSeedAlignment(
  client: AlignClient,
  { layout, root = javaRoot }: { readonly layout: 'seed' | 'java'; readonly root?: string },
): Promise<SeedSnapshot | null> {
  const known = { seed: seedLayout, java: javaLayout }[layout];
  if (known === undefined) {
    throw new ArgumentError('layout', `seed or java is wanted, not ${String(layout)}`);
  }
  const paths = known.paths(root);
  const names = (await childrenOf(client, paths.progress)) ?? [];
  const wanted = [paths.coordinator, paths.topicPartitions, paths.progress];
  if (layout === 'java') for (const name of names) wanted.push(`${paths.progress}/${name}`);
  const nodes = new Map<string, { readonly data: Buffer | null }>();
  for (const path of wanted) {
    const node = await nodeOf(client, path);
    if (node !== null) nodes.set(path, node);
  }
  if (!nodes.has(paths.coordinator) && !nodes.has(paths.topicPartitions)) return null;
  const tree = { get: (path: string) => nodes.get(path), children: () => names };
  const reached = known.readProgress(tree, paths);
  const limit = parseSeconds(textOf(nodes.get(paths.coordinator)?.data));
  const plan = parseTopicPartitions(textOf(nodes.get(paths.topicPartitions)?.data));
  const keys = [...plan].flatMap(([topic, all]) => all.map((partition) => `${topic}/${partition}`));
  return {
    ...{ layout, root, limitMs: limit === null ? null : limit * 1_000 },
    partitions: keys.map((key) => {
      const seconds = reached.get(key) ?? null;
      const isWaiting = seconds !== null && limit !== null && seconds >= limit;
      return { key, reachedMs: seconds === null ? null : seconds * 1_000, isWaiting };
    }),
    members: await lineOf(client, paths.leader),
  };
}

async function lineOf(client: AlignClient, path: string): Promise<SeedSnapshot['members']> {
  const names = ((await childrenOf(client, path)) ?? []).sort();
  const members: { name: string; sessionId: bigint }[] = [];
  for (const name of names) {
    const stat = await client.exists(`${path}/${name}`);
    if (stat !== null) members.push({ name, sessionId: stat.ephemeralOwner }); // else it left in between
  }
  return members;
}
