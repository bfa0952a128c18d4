/**
 * The layout of the Java program that the document describes, so that both can share a group.
 *
 *   root/leader/electing0000000003        ephemeral, empty       the lowest number leads
 *   root/share/coordinator                1700000060             the end of the present period; at first its start
 *   root/share/topic-partitions           t1:0,1,2;t2:0,1;
 *   root/share/progress/t1.0              1700000060, ephemeral  a node a partition
 *
 * Times are whole seconds, which the Java program reads as 32-bit numbers: later than January 2038 is
 * refused here, since it would stop quietly there. It makes coordinator and topic-partitions as
 * ephemeral nodes of whoever comes first, and they go with that one. Ours are persistent: the program
 * only looks whether they are there, and sets them.
 */

import { type Client, isZkError } from '../client/index.ts';
import { keyOf, partitionOf } from '../kafka/index.ts';
import {
  formatTopicPartitions,
  parseSeconds,
  progressName,
  type SeedLayout,
  textOf,
} from './seed-layout.ts';

/** Where the Java program keeps its nodes; it can't be told otherwise. */
export const javaRoot = '/kafka-consumer-coordinator';

export const javaLayout: SeedLayout = {
  name: 'java',
  beginsAtStart: true,
  secondsMax: 2 ** 31 - 1,
  paths: (root) => ({
    leader: `${root}/leader`,
    coordinator: `${root}/share/coordinator`,
    topicPartitions: `${root}/share/topic-partitions`,
    progress: `${root}/share/progress`,
    folders: [root, `${root}/leader`, `${root}/share`, `${root}/share/progress`],
  }),
  formatPlan: (plan) => formatTopicPartitions(plan, ''),
  readProgress(tree, { progress }) {
    const found = new Map<string, number>();
    for (const name of tree.children(progress)) {
      const id = progressName(name);
      const seconds = parseSeconds(textOf(tree.get(`${progress}/${name}`)?.data));
      if (id !== null && seconds !== null) found.set(keyOf(id), seconds);
    }
    return found;
  },
  async writeProgress(client, { progress: parent }, progress) {
    const writes = [...progress].map(([key, seconds]) => {
      const { topic, partition } = partitionOf(key);
      return writeOne(client, `${parent}/${topic}.${partition}`, String(seconds));
    });
    await Promise.all(writes);
  },
};

/** How often somebody may come between a look and a write. */
const triesMax = 10;

/**
 * Makes the node ours. One of an earlier session, ours or somebody's who had the partition before, would
 * go with that session and take the progress along, so it is replaced.
 */
async function writeOne(client: Client, path: string, data: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const stat = await client.exists(path);
    const mode = 'ephemeral';
    try {
      if (stat === null) await client.create(path, data, { mode });
      else if (stat.ephemeralOwner === client.sessionId) await client.set(path, data);
      else
        await client.multi([
          { op: 'delete', path, version: stat.version },
          { op: 'create', path, data, mode },
        ]);
      return;
    } catch (error) {
      const isRace = ['NO_NODE', 'NODE_EXISTS', 'BAD_VERSION'].some((code) =>
        isZkError(error, code as 'NO_NODE'),
      );
      if (!isRace || tries === triesMax) throw error;
    }
  }
}
