/** Access control lists: the usual ones, and how they are written and read by people. */

import { createHash } from 'node:crypto';
import { permissions } from './meaning.ts';
import type { Acl, Id } from './records.ts';

export const anyoneId: Id = { scheme: 'world', id: 'anyone' };
/** Whoever made the node, by every id that its link had proved. */
export const authId: Id = { scheme: 'auth', id: '' };

/** One and the same everywhere, so that most ACLs are known by their identity; and so it is frozen. */
export const openAcl: readonly Acl[] = Object.freeze([
  Object.freeze({ perms: permissions.all, id: Object.freeze(anyoneId) }),
]);
export const readOnlyAcl: readonly Acl[] = [{ perms: permissions.read, id: anyoneId }];
export const creatorAcl: readonly Acl[] = [{ perms: permissions.all, id: authId }];

const letters = 'rwcda';

/** 31 gives `cdrwa`, as zkCli prints it. */
export function permsText(perms: number): string {
  return [...'cdrwa'].filter((letter) => perms & (1 << letters.indexOf(letter))).join('');
}

/** `cdrwa` in any order gives 31; null for a letter that is none. */
export function permsOf(text: string): number | null {
  let perms = 0;
  for (const letter of text) {
    const bit = letters.indexOf(letter);
    if (bit === -1) return null;
    perms |= 1 << bit;
  }
  return perms;
}

/** The id under which `user:password` stands in an ACL: DigestAuthenticationProvider.generateDigest. */
export function digestId(userAndPassword: string, algorithm = 'sha1'): Id {
  const user = userAndPassword.split(':', 1)[0]!;
  const hash = createHash(algorithm).update(userAndPassword, 'utf8').digest('base64');
  return { scheme: 'digest', id: `${user}:${hash}` };
}
