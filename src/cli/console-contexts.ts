/**
 * The contexts of the command line, for the console's page to switch between, and copies between them.
 *
 * Which are offered is decided when the console starts: all, none, or those that are named. Each is opened
 * as every command would open it, with its own credentials; one that was saved as read-only stays so.
 */

import type { Client, StatView } from '../client/index.ts';
import {
  ConsoleError,
  type ContextSources,
  type CopyLine,
  type OpenContext,
  type Written,
} from '../console/index.ts';
import type { Context, Target } from './command.ts';
import { readContexts } from './contexts.ts';
import { Copy, type CopySource } from './copy.ts';
import { CommandError } from './exit-codes.ts';
import { withoutServer } from './places.ts';
import { targetOf } from './target.ts';
import { joined, type TreeNode } from './tree-node.ts';
import { readTree, ZkTarget } from './tree-zk.ts';

export type Offered = 'all' | readonly string[];

/** As --contexts says; undefined: none. On this machine alone all of them, unless said otherwise. */
export function offeredContexts(given: unknown, isLoopback: boolean): Offered | undefined {
  if (given === undefined) return isLoopback ? 'all' : undefined;
  const words = String(given).split(',');
  if (words.length === 1 && words[0] === 'all') return 'all';
  if (words.length === 1 && words[0] === 'none') return undefined;
  if (words.every((word) => word !== '')) return words;
  throw new CommandError('usage', '--contexts: all, none, or names with commas between them');
}

export function contextSources(
  offered: Offered,
  environment: Context['environment'],
  open: (target: Target) => Promise<Omit<OpenContext, 'readOnly'>>,
): ContextSources {
  const isOffered = (name: string) => offered === 'all' || offered.includes(name);
  return {
    async list() {
      const { contexts } = await readContexts(environment);
      return Object.entries(contexts)
        .filter(([name]) => isOffered(name))
        .map(([name, { servers, readOnly }]) => ({
          ...{ name, servers, origin: `context ${name}`, readOnly: readOnly === true },
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    open: (name) =>
      foreseen(async () => {
        if (!isOffered(name) || !Object.hasOwn((await readContexts(environment)).contexts, name)) {
          throw new ConsoleError('NOT_FOUND', 'there is no such context');
        }
        const target = await targetOf({ context: name }, withoutServer(environment));
        const readOnly = target.readOnly ? `read-only: the context ${name} is kept so` : null;
        return { ...(await open(target)), readOnly };
      }),
  };
}

/** Copies into the servers of `client`. */
export function copyInto(client: Client, requestBytesMax: number) {
  return (line: CopyLine) =>
    foreseen(async () => {
      const { from, fromPath, toPath, onConflict, withAcl, dryRun, signal } = line;
      const source: CopySource = {
        name: fromPath,
        root: fromPath,
        nodes: (until) => readTree(from, fromPath, { signal: until, withoutAcl: !withAcl }),
      };
      const target = new NotingTarget(client, toPath, signal, line.onWritten);
      const copy = new Copy(source, target, {
        signal,
        onConflict,
        withoutAcl: !withAcl,
        mirrors: false,
        requestBytesMax,
        onStep(step, path) {
          if (step !== 'delete' && step !== 'same') line.onStep(step, joined(toPath, path));
        },
      });
      const { delete: _, ...counts } = dryRun ? await copy.look() : await copy.perform();
      return counts;
    });
}

/** Tells of everything it writes, with what was there. */
class NotingTarget extends ZkTarget {
  readonly #onWritten: (written: Written) => void;

  constructor(
    client: Client,
    root: string,
    signal: AbortSignal,
    onWritten: (written: Written) => void,
  ) {
    super(client, root, signal);
    this.#onWritten = onWritten;
  }

  override async create(node: TreeNode): Promise<void> {
    await super.create(node);
    this.#onWritten({ kind: 'created', path: joined(this.root, node.path) });
  }

  override async set(node: TreeNode, stat: StatView): Promise<void> {
    const path = joined(this.root, node.path);
    // It goes only over this very version, so that what is read here is what it replaces.
    const { data: before } = await this.client.get(path);
    await super.set(node, stat);
    this.#onWritten({ kind: 'changed', path, before, version: stat.version + 1 });
  }

  override async setAcl(node: TreeNode, stat: StatView): Promise<void> {
    await super.setAcl(node, stat);
    this.#onWritten({ kind: 'acl', path: joined(this.root, node.path) });
  }
}

/** What the command line says no to, as the console says it. */
async function foreseen<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof CommandError)) throw cause;
    throw new ConsoleError('CONFLICT', cause.message, { cause });
  }
}
