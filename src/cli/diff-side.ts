/**
 * One side of a comparison: a subtree on a server, or one out of a file or a folder.
 *
 * In: where it is. Out: its nodes, parents before children and those in the order of their names, each
 * with what there is to compare. A subtree on a server is walked, and only a few nodes of it are held at
 * a time. A file holds its nodes in another order, so all of it is held: up to `heldBytesMax`, and more
 * is refused.
 */

import type { Acl } from '../client/index.ts';
import type { Context } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './output.ts';
import { type FilePlace, isFilePlace, openPlace, openSource, placeOf } from './places.ts';
import { visitSubtree } from './subtree.ts';
import { isServersOwn, type TreeNode } from './tree-node.ts';

export interface DiffNode {
  /** Below the root, without a slash before it; the root itself is empty. */
  readonly name: string;
  /** Undefined: not known, and so no difference. */
  readonly data: Buffer | null | undefined;
  /** Undefined, as above. */
  acl(): Promise<readonly Acl[] | undefined>;
}

export interface DiffSide {
  readonly nodes: AsyncGenerator<DiffNode, void, undefined>;
  close(): Promise<void>;
}

const heldBytesMax = 512 * 1024 * 1024;
/** What a node takes besides its name and data, about. */
const aroundBytes = 500;

/** ZooKeeper's own nodes are compared only between servers: no file has them. */
export async function openSides(
  context: Context,
  texts: readonly [string, string],
): Promise<[DiffSide, DiffSide]> {
  const places = texts.map((text) => placeOf(context, text));
  const withoutOwn = places.some(isFilePlace);
  const opened: DiffSide[] = [];
  try {
    for (const place of places) {
      opened.push(
        isFilePlace(place)
          ? await fileSide(context, place)
          : await serverSide(context, place, withoutOwn),
      );
    }
  } catch (error) {
    await Promise.all(opened.map((side) => side.close()));
    throw error;
  }
  return opened as [DiffSide, DiffSide];
}

async function serverSide(
  context: Context,
  place: Parameters<typeof openPlace>[1],
  withoutOwn: boolean,
): Promise<DiffSide> {
  const { signal } = context;
  const { client, path: root, close } = await openPlace(context, place);
  async function* nodes(): AsyncGenerator<DiffNode, void, undefined> {
    for await (const { path, data } of visitSubtree(client, root, { signal, withData: true })) {
      const isOwn = client.chroot === '' && isServersOwn(path);
      if (withoutOwn && isOwn && path !== root) continue;
      const name = root === '/' ? path.slice(1) : path.slice(root.length + 1);
      yield { name, data, acl: async () => (await client.getAcl(path, { signal })).acl };
    }
  }
  return { nodes: nodes(), close };
}

async function fileSide(context: Context, place: FilePlace): Promise<DiffSide> {
  const { output, signal } = context;
  const source = await openSource(context, place, {});
  async function* nodes(): AsyncGenerator<DiffNode, void, undefined> {
    const held = new Map<string, TreeNode>();
    let bytes = 0;
    for await (const node of source.nodes(signal)) {
      const name = node.path.slice(1);
      if (held.has(name)) {
        throw new CommandError('data', `${escaped(place.name)} has ${escaped(node.path)} twice`);
      }
      held.set(name, node);
      bytes += (node.data?.length ?? 0) + 2 * node.path.length + aroundBytes;
      output.status(() => `${held.size} nodes of ${escaped(place.name)}`);
      if (bytes > heldBytesMax) {
        throw new CommandError(
          'refused',
          `${escaped(place.name)} is more than ${heldBytesMax >> 20} MiB, which is held in memory; cp --dry-run compares it too, and holds little`,
        );
      }
    }
    if (!held.has('')) yield { name: '', data: undefined, acl: async () => undefined };
    for (const name of [...held.keys()].sort(compareNames)) {
      const { data, acl } = held.get(name)!;
      yield { name, data, acl: async () => acl };
    }
  }
  return { nodes: nodes(), close: () => source.close() };
}

/** Name by name, as the walks go; the root, whose name is empty, comes first. */
export function compareNames(a: string, b: string): number {
  const [namesA, namesB] = [a.split('/'), b.split('/')];
  for (const [i, name] of namesA.entries()) {
    const other = namesB[i];
    if (other === undefined) return 1;
    if (name !== other) return name < other ? -1 : 1;
  }
  return namesA.length - namesB.length;
}
