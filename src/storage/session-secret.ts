/**
 * The secret from which a server derives the passwords of its sessions, beside the data that it is for.
 *
 *   .drover-session-secret   one line of JSON, 0600:
 *     version          1
 *     secret           32 random bytes in hex
 *     apacheSessions   ids of sessions whose passwords follow Apache's rule; null: of all that live at the next start
 *     check            begins the SHA-256 of the two above
 *
 * It is written as a whole and put into place by a rename, so a crash leaves the old one or the new one.
 */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { ownPrefix, temporaryPrefix } from './file-names.ts';
import type { FileSystem } from './file-system.ts';

export interface SessionSecret {
  readonly secret: Buffer;
  readonly apacheSessions: ReadonlySet<bigint> | null;
}

const name = `${ownPrefix}session-secret`;
const version = 1;
export const secretBytes = 32;
/** Three million sessions. */
const fileBytesMax = 64 * 1024 * 1024;

/** Null where there is none; `damaged` where it can't be told what it was. */
export async function readSessionSecret(
  fs: FileSystem,
  folder: string,
): Promise<SessionSecret | 'damaged' | null> {
  const path = join(folder, name);
  if ((await fs.status(path)) === null) return null;
  const file = await fs.open(path, 'read');
  try {
    const size = await file.size();
    if (size > fileBytesMax) return 'damaged';
    const bytes = Buffer.alloc(size);
    await file.read(bytes, 0);
    return parsed(bytes.toString('utf8')) ?? 'damaged';
  } finally {
    await file.close();
  }
}

export async function writeSessionSecret(
  fs: FileSystem,
  folder: string,
  { secret, apacheSessions }: SessionSecret,
): Promise<void> {
  const path = join(folder, name);
  const temporary = join(folder, `${temporaryPrefix}session-secret`);
  if ((await fs.status(temporary)) !== null) await fs.remove(temporary);
  const hex = secret.toString('hex');
  const ids = apacheSessions === null ? null : [...apacheSessions].map(hexId);
  const fields = { version, secret: hex, apacheSessions: ids, check: checkOf(hex, ids) };
  try {
    const file = await fs.open(temporary, 'create');
    try {
      await file.write(Buffer.from(`${JSON.stringify(fields)}\n`), 0);
      await file.sync();
    } finally {
      await file.close();
    }
    await fs.rename(temporary, path);
    await fs.syncFolder(folder);
  } catch (error) {
    await fs.remove(temporary).catch(() => {});
    throw Object.assign(error as Error, { path }); // the system knows a number alone
  }
}

const hexId = (id: bigint) => BigInt.asUintN(64, id).toString(16);

function checkOf(secret: string, ids: readonly string[] | null): string {
  const text = JSON.stringify([secret, ids]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

function parsed(text: string): SessionSecret | undefined {
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { secret, apacheSessions: ids } = fields ?? {};
  if (fields?.version !== version || typeof secret !== 'string') return undefined;
  if (!/^[0-9a-f]{64}$/.test(secret)) return undefined;
  if (ids !== null && !isListOfIds(ids)) return undefined;
  if (fields.check !== checkOf(secret, ids)) return undefined;
  return {
    secret: Buffer.from(secret, 'hex'),
    apacheSessions:
      ids === null ? null : new Set(ids.map((id) => BigInt.asIntN(64, BigInt(`0x${id}`)))),
  };
}

function isListOfIds(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((id) => /^[0-9a-f]{1,16}$/.test(String(id)));
}
