/**
 * What differs between two snapshots, node by node. The nodes stand in no particular order (Apache walks
 * hash sets), so one side is held in memory, as a hash per node, and the other streams past it.
 */

import { createHash } from 'node:crypto';
import type { Acl, StatPersisted } from '../protocol/index.ts';
import { type FileSystem, realFileSystem } from './file-system.ts';
import { dumpSnapshot } from './inspect.ts';
import { openAclId, type SnapshotNode } from './snapshot-format.ts';
import { zxidText } from './storage-error.ts';

export interface SnapshotDifference {
  readonly path: string;
  readonly kind: 'added' | 'removed' | 'changed';
  /** Of a change: in what. */
  readonly fields: readonly string[];
}

interface Held {
  readonly data: string;
  readonly acl: string;
  readonly stat: StatPersisted;
}

const statFields = [
  'czxid',
  'mzxid',
  'ctime',
  'mtime',
  'version',
  'cversion',
  'aversion',
  'ephemeralOwner',
  'pzxid',
] as const satisfies (keyof StatPersisted)[];

/** From `left` to `right`. Sessions are compared too: their path is `session 0x…`. */
export async function diffSnapshots(
  left: string,
  right: string,
  onDifference: (difference: SnapshotDifference) => void,
  fs: FileSystem = realFileSystem,
): Promise<void> {
  const nodes = new Map<string, Held>();
  const sessions = new Map<string, number>();
  await read(fs, left, sessions, (path, node) => void nodes.set(path, node));
  const sessionsRight = new Map<string, number>();
  await read(fs, right, sessionsRight, (path, node) => {
    const other = nodes.get(path);
    nodes.delete(path);
    if (other === undefined) return onDifference({ path, kind: 'added', fields: [] });
    const fields = fieldsThatDiffer(other, node);
    if (fields.length > 0) onDifference({ path, kind: 'changed', fields });
  });
  for (const path of nodes.keys()) onDifference({ path, kind: 'removed', fields: [] });
  for (const [path, timeoutMs] of sessionsRight) {
    const other = sessions.get(path);
    sessions.delete(path);
    if (other === undefined) onDifference({ path, kind: 'added', fields: [] });
    else if (other !== timeoutMs) onDifference({ path, kind: 'changed', fields: ['timeoutMs'] });
  }
  for (const path of sessions.keys()) onDifference({ path, kind: 'removed', fields: [] });
}

async function read(
  fs: FileSystem,
  path: string,
  sessions: Map<string, number>,
  onNode: (path: string, node: Held) => void,
): Promise<void> {
  const acls = new Map<number, string>();
  const aclText = (id: number) => (id === openAclId ? openText : (acls.get(id) ?? `${id}`));
  await dumpSnapshot(
    path,
    {
      session: (id, timeoutMs) => void sessions.set(`session ${zxidText(id)}`, timeoutMs),
      acl: (id, acl: Acl[]) => void acls.set(id, JSON.stringify(acl)),
      node: (node) => onNode(node.path || '/', hold(node, aclText)),
    },
    fs,
  );
}

/** The numbers of ACLs are each snapshot's own: -1 and a list of the same meaning are the same. */
const openText = JSON.stringify([{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]);

function hold({ data, acl, stat }: SnapshotNode, aclText: (id: number) => string): Held {
  // Null is not the same as empty to a client.
  const hash = data === null ? '' : createHash('sha1').update(data).digest('base64');
  // Copied: a Stat as it is read keeps the whole stretch in memory that it was read from.
  const copy = Object.fromEntries(statFields.map((field) => [field, stat[field]]));
  return { data: hash, acl: aclText(acl), stat: copy as StatPersisted };
}

function fieldsThatDiffer(left: Held, right: Held): string[] {
  const fields: string[] = statFields.filter((field) => left.stat[field] !== right.stat[field]);
  if (left.data !== right.data) fields.push('data');
  if (left.acl !== right.acl) fields.push('acl');
  return fields;
}
