/**
 * What stands at nodes that are about to change, for the notes of who changes them.
 *
 * One is asked for data and ACL at once. Of many the ACLs come first: the Stat beside them says how much
 * data there is, so that no more of it is asked for than the notes have room for. A thousand nodes may
 * have a gigabyte, and a server closes a link to which it has too much to say.
 */

import type { Acl, CallOptions, Client, StatView } from '../client/index.ts';
import { foundNote, mayKeep, type NodeNote, sizeOf } from './node-note.ts';

/** What may still be noted: writes, and bytes. */
export interface Room {
  readonly writes: number;
  readonly bytes: number;
}

export function hasRoom({ writes, bytes }: Room): boolean {
  return writes > 0 && bytes > 0;
}

interface AclAndStat {
  readonly acl: readonly Acl[];
  readonly stat: StatView;
}

/** ACLs that are asked for at once. */
const aclsAtOnce = 256;

/** Undefined: it is not ours to know. */
export async function look(client: Client, path: string): Promise<NodeNote | undefined> {
  const [node, acl] = await Promise.all([
    client.get(path).catch(unknown),
    client.getAcl(path).catch(unknown),
  ]);
  return node && acl && foundNote(node.data, node.stat, acl);
}

/** Those at the beginning of the list, until they fill the room. */
export async function lookAtMany(
  client: Client,
  paths: readonly string[],
  room: Room,
  options: CallOptions,
): Promise<(NodeNote | undefined)[]> {
  const notes: (NodeNote | undefined)[] = [];
  let { writes, bytes } = room;
  while (notes.length < paths.length && hasRoom({ writes, bytes })) {
    const at = notes.length;
    const some = paths.slice(at, at + Math.min(aclsAtOnce, writes));
    notes.push(...(await lookAtSome(client, some, bytes, options)));
    writes -= notes.length - at;
    // By what was found and not by what was expected: where others made it less, there is room for more.
    for (let i = at; i < notes.length; i++) bytes -= paths[i]!.length + sizeOf(notes[i]);
  }
  return notes;
}

/** As many of them as are likely to fill the room, one at least. */
async function lookAtSome(
  client: Client,
  paths: readonly string[],
  bytes: number,
  options: CallOptions,
): Promise<(NodeNote | undefined)[]> {
  const acls = await Promise.all(paths.map((path) => client.getAcl(path, options).catch(unknown)));
  const looks: Promise<NodeNote | undefined>[] = [];
  let expected = 0;
  for (const [i, path] of paths.entries()) {
    if (expected >= bytes) break;
    expected += path.length + expectedBytes(acls[i]);
    looks.push(lookFurther(client, path, acls[i], options));
  }
  return Promise.all(looks);
}

/** In base64 it is a third more. */
function expectedBytes(acl: AclAndStat | undefined): number {
  if (acl === undefined) return 0;
  const dataBytes = mayKeep(acl.acl) ? Math.ceil(acl.stat.dataLength / 3) * 4 : 0;
  return dataBytes + sizeOf(foundNote(null, acl.stat, acl));
}

async function lookFurther(
  client: Client,
  path: string,
  acl: AclAndStat | undefined,
  options: CallOptions,
): Promise<NodeNote | undefined> {
  if (acl === undefined) return undefined;
  if (!mayKeep(acl.acl)) return foundNote(null, acl.stat, acl);
  const node = await client.get(path, options).catch(unknown);
  return node && foundNote(node.data, node.stat, acl);
}

/** Whatever is wrong, the write that follows says so; a look that fails only leaves a gap. */
function unknown(): undefined {
  return undefined;
}
