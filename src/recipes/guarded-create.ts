/**
 * Ephemeral nodes that are made only while something else is held, all of them or none.
 *
 * In: a grant, and names with a mark of their own. Out: their grants. One multi looks at the node of the
 * first grant and makes the others, so that a process that was stopped and has lost what it held makes
 * nothing when it wakes. When the reply is lost, the nodes are searched for by their marks.
 */

import { randomUUID } from 'node:crypto';
import { type Acl, type Client, type DataInput, isZkError } from '../client/index.ts';
import { childOf } from '../protocol/index.ts';
import { unbounded } from '../support/index.ts';
import { Grant, type GrantOptions } from './grant.ts';
import { watchNode } from './node-watch.ts';
import { NotHeldError } from './not-held-error.ts';
import { withParents } from './parents.ts';

export interface GuardedCreate extends GrantOptions {
  readonly parent: string;
  /** What comes after the mark; a number follows where `mode` asks for one. */
  readonly name: string;
  readonly count: number;
  readonly mode: 'ephemeral' | 'ephemeralSequential';
  readonly data: DataInput;
  readonly acl: readonly Acl[] | undefined;
}

/** How often it is tried again after a lost reply. */
const triesMax = 10;

export async function createUnder(
  client: Client,
  held: Grant,
  { parent, name, count, mode, data, acl, ...options }: GuardedCreate,
): Promise<Grant[]> {
  const marks = Array.from({ length: count }, () => `_c_${randomUUID()}-`);
  const ops = marks.map(
    (mark) =>
      ({
        op: 'create',
        path: childOf(parent, mark + name),
        mode,
        data,
        ...(acl && { acl }),
      }) as const,
  );
  const make = async (): Promise<string[]> => {
    let isUnknown = false;
    for (let tries = 1; ; tries++) {
      try {
        // Looked for before it is tried again, or given up: what is there must not be forgotten.
        const found = isUnknown ? await search(client, parent, marks) : null;
        if (found !== null) return found;
        isUnknown = false;
        return (await held.guard(ops)).map(({ path }) => path);
      } catch (error) {
        if (!isZkError(error) || !error.retryable || tries === triesMax) throw error;
        isUnknown ||= error.outcomeUnknown;
      }
    }
  };
  const paths = await withParents(client, childOf(parent, name), acl, make);
  return grantsOf(client, paths, options);
}

/** All of them or null: the multi took place or it did not. */
async function search(
  client: Client,
  parent: string,
  marks: readonly string[],
): Promise<string[] | null> {
  await client.barrier(unbounded); // another server may be behind the one that had the multi
  const names = await client.children(parent, unbounded);
  const found = marks.map((mark) => names.find((name) => name.startsWith(mark)));
  if (found.includes(undefined)) return null;
  return found.map((name) => childOf(parent, name!));
}

/** Reads each node, as servers before 3.9 give no Stat for what a multi made. All are held, or none is left. */
async function grantsOf(
  client: Client,
  paths: readonly string[],
  options: GrantOptions,
): Promise<Grant[]> {
  const opened = await Promise.allSettled(paths.map((path) => grantOf(client, path, options)));
  const grants = opened.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed === undefined) return grants;
  await Promise.all(paths.map((path) => client.discard(path).catch(() => {}))); // or the session's end does it
  for (const grant of grants) await grant.release();
  throw failed.reason;
}

async function grantOf(client: Client, path: string, options: GrantOptions): Promise<Grant> {
  const watched = await watchNode(client, path);
  if (watched === null) throw new NotHeldError(path, 'nodeDeleted');
  try {
    const grant = new Grant(client, { path, stat: watched.found.stat }, options);
    await grant.ready; // it watches the same node, by the same watch
    return grant;
  } finally {
    await watched.stop();
  }
}
