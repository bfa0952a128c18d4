/**
 * The nodes above what a recipe makes: containers, as Curator makes them, which the server takes away
 * when they have stood empty for a while.
 *
 * That may happen at any moment, also between our making one and our using it. So whoever makes a node
 * does it through `withParents`, which makes what is missing again, a bounded number of times.
 */

import { type Acl, type Client, isZkError } from '../client/index.ts';
import { parentOf } from '../protocol/index.ts';

/** How often what needs the parents is tried again when they were taken away under it. */
const triesMax = 10;

/** Runs `work`, which makes `path`; when it finds no parent, makes all above `path` and runs it again. */
export async function withParents<T>(
  client: Client,
  path: string,
  acl: readonly Acl[] | undefined,
  work: () => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      const parent = parentOf(path);
      if (!isZkError(error, 'NO_NODE') || parent === null || parent === '/') throw error;
      if (tries === triesMax) throw error;
      await withParents(client, parent, acl, () => makeContainer(client, parent, acl));
    }
  }
}

/** Makes a node, and whichever are missing above it, as containers. There already is fine. */
export async function ensureNode(
  client: Client,
  path: string,
  acl: readonly Acl[] | undefined,
): Promise<void> {
  await withParents(client, path, acl, () => makeContainer(client, path, acl));
}

async function makeContainer(
  client: Client,
  path: string,
  acl: readonly Acl[] | undefined,
): Promise<void> {
  for (const mode of ['container', 'persistent'] as const) {
    try {
      await client.create(path, '', { mode, ...(acl && { acl }) });
      return;
    } catch (error) {
      // A lost reply leaves it open whether it is there; whoever needs it finds out.
      if (isZkError(error, 'NODE_EXISTS') || (isZkError(error) && error.outcomeUnknown)) return;
      if (!isZkError(error, 'UNIMPLEMENTED') || mode === 'persistent') throw error;
    }
  }
}
