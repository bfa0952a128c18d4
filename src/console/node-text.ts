/** How nodes travel: Stat, ACL and data as the views have them. */

import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Acl, StatView as ZkStat } from '../client/index.ts';
import { permsOf, permsText } from '../protocol/index.ts';
import { ConsoleError } from './console-error.ts';
import type { AclEntry, Encoding, NodeKind, StatView } from './views.ts';

const unzip = promisify(gunzip);

/** A small file may unpack to a large one. */
const unpackedBytesMax = 1024 * 1024;

export function hex(value: bigint): string {
  return `0x${BigInt.asUintN(64, value).toString(16)}`;
}

export function statView(stat: ZkStat): StatView {
  return {
    czxid: hex(stat.czxid),
    mzxid: hex(stat.mzxid),
    pzxid: hex(stat.pzxid),
    ctimeMs: Number(stat.ctime),
    mtimeMs: Number(stat.mtime),
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ...ownerOf(stat.ephemeralOwner),
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
  };
}

const containerMark = -(1n << 63n);

/** The owner field says more than an owner (EphemeralType): a container, or how long a node may live. */
function ownerOf(owner: bigint): { owner: string | null; kind: NodeKind; ttlMs: number | null } {
  if (owner === 0n) return { owner: null, kind: 'persistent', ttlMs: null };
  if (owner === containerMark) return { owner: null, kind: 'container', ttlMs: null };
  const bits = BigInt.asUintN(64, owner);
  if (bits >> 56n === 0xffn && ((bits >> 40n) & 0xffffn) === 0n) {
    return { owner: null, kind: 'ttl', ttlMs: Number(bits & 0xff_ffff_ffffn) };
  }
  return { owner: hex(owner), kind: 'ephemeral', ttlMs: null };
}

/** A digest's hash can be tried against passwords elsewhere, and nobody needs to see it here. */
export function aclView(acl: readonly Acl[]): AclEntry[] {
  return acl.map(({ perms, id }) => ({
    scheme: id.scheme,
    id: id.scheme === 'digest' ? id.id.replace(/:.*$/s, ':…') : id.id,
    perms: permsText(perms),
  }));
}

/** What a page sent. A hash that was not shown is taken from the entry it stands for. */
export function aclOf(entries: readonly AclEntry[], before: readonly Acl[] = []): Acl[] {
  return entries.map(({ scheme, id, perms }) => {
    if (scheme !== 'digest' || !id.endsWith(':…'))
      return { perms: permsOf(perms) ?? 0, id: { scheme, id } };
    const user = id.slice(0, -1);
    const known = before.find((one) => one.id.scheme === 'digest' && one.id.id.startsWith(user));
    if (known === undefined) {
      throw new ConsoleError('BAD_INPUT', `${id}: the whole digest is wanted, as user:hash`);
    }
    return { perms: permsOf(perms) ?? 0, id: known.id };
  });
}

export function encodingOf(data: Buffer | null): Encoding {
  if (data === null || data.length === 0) return 'empty';
  if (data.length > 2 && data[0] === 0x1f && data[1] === 0x8b) return 'gzip';
  if (!isUtf8(data)) return 'binary';
  const text = data.toString('utf8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\x00-\x08\x0e-\x1f]/.test(text)) return 'binary';
  if (/^\s*[[{]/.test(text) && isJson(text)) return 'json';
  const isBase64 = /^[A-Za-z0-9+/]{24,}={0,2}$/.test(text) && text.length % 4 === 0;
  return isBase64 && /[A-Z]/.test(text) && /[a-z]/.test(text) && /\d/.test(text)
    ? 'base64'
    : 'text';
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export async function unpacked(data: Buffer | null): Promise<string | null> {
  if (data === null || encodingOf(data) !== 'gzip') return null;
  try {
    const bytes = await unzip(data, { maxOutputLength: unpackedBytesMax });
    return (bytes as Buffer).toString('base64');
  } catch {
    return null; // damaged, or it grows too large: the page shows the bytes as they are
  }
}
