/**
 * What stands at a node, as the journal notes it, and how much of a note it is.
 */

import { type Acl, type DataInput, openAcl, permissions, type StatView } from '../client/index.ts';
import { hex } from './words.ts';

export interface NodeNote {
  /** Base64; null is null. Left out: it was not for everybody. */
  readonly data?: string | null;
  readonly version: number;
  /** `[perms, scheme, id]`. Left out: it holds a hash of a password, or nobody looked. */
  readonly acl?: readonly (readonly [number, string, string])[];
  readonly aclVersion?: number;
  readonly mode: 'persistent' | 'container' | 'other';
  /** Of the write that left it so. */
  readonly zxid?: string;
}

/** As it was found. `data` is looked at only where everybody may read it. */
export function foundNote(
  data: Buffer | null,
  stat: StatView,
  acl: { readonly acl: readonly Acl[]; readonly stat: StatView },
): NodeNote {
  return {
    ...(mayKeep(acl.acl) && { data: textOf(data) }),
    version: stat.version,
    ...aclNote(acl.acl),
    aclVersion: acl.stat.aversion,
    mode: modeOf(stat),
    zxid: hex(stat.mzxid),
  };
}

export function createdNote(
  data: DataInput | undefined,
  { acl = openAcl, mode }: { acl?: readonly Acl[]; mode?: string },
  stat: StatView | null,
): NodeNote {
  return {
    ...(mayKeep(acl) && { data: textOf(data ?? null) }),
    version: 0,
    ...aclNote(acl),
    aclVersion: 0,
    mode: /^persistent(Sequential)?$/.test(mode ?? 'persistent') ? 'persistent' : 'other',
    ...(stat && { zxid: hex(stat.mzxid) }),
  };
}

export function setNotes(before: NodeNote | undefined, data: DataInput, stat: StatView) {
  const isNext = before?.version === stat.version - 1;
  const isOpen = before?.data !== undefined;
  return {
    ...(isNext && seen('before', before)),
    after: {
      ...before,
      ...(isOpen && { data: textOf(data) }),
      version: stat.version,
      mode: modeOf(stat),
      zxid: hex(stat.mzxid),
    },
  };
}

export function seen(name: 'before', note: NodeNote | undefined): { before?: NodeNote } {
  return note === undefined ? {} : { [name]: note };
}

function textOf(data: DataInput): string | null {
  if (data === null || data === undefined) return null;
  return (typeof data === 'string' ? Buffer.from(data) : Buffer.from(data)).toString('base64');
}

export function mayKeep(acl: readonly Acl[]): boolean {
  return acl.some(({ perms, id }) => id.scheme === 'world' && (perms & permissions.read) !== 0);
}

export function aclNote(acl: readonly Acl[]): Pick<NodeNote, 'acl'> {
  if (acl.some(({ id }) => id.scheme === 'digest' || id.scheme === 'auth')) return {};
  return { acl: acl.map(({ perms, id }) => [perms, id.scheme, id.id] as const) };
}

export function modeOf({ ephemeralOwner }: StatView): NodeNote['mode'] {
  if (ephemeralOwner === 0n) return 'persistent';
  return ephemeralOwner === -(1n << 63n) ? 'container' : 'other';
}

/** How much of a journal it is: its data, and its ACL. */
export function sizeOf(note: NodeNote | null | undefined): number {
  const aclBytes = note?.acl?.reduce((sum, [, scheme, id]) => sum + scheme.length + id.length, 0);
  return (note?.data?.length ?? 0) + (aclBytes ?? 0);
}
