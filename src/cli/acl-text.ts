/** ACLs as zkCli takes them: `scheme:id:perms`, several with commas between. */

import type { Acl } from '../client/index.ts';
import { permsOf } from '../protocol/index.ts';
import { CommandError } from './exit-codes.ts';
import { escaped } from './words.ts';

/** The id may hold colons, as a digest does: scheme and permissions are the outermost parts. */
export function parseAcl(text: string): Acl[] {
  return text.split(',').map((entry) => {
    const first = entry.indexOf(':');
    const last = entry.lastIndexOf(':');
    if (first === -1 || first === last) {
      throw new CommandError('usage', `${escaped(entry)} does not have the form scheme:id:perm`);
    }
    const perms = permsOf(entry.slice(last + 1));
    if (perms === null || perms === 0) {
      const given = escaped(entry.slice(last + 1));
      throw new CommandError('usage', `"${given}": permissions are letters out of cdrwa`);
    }
    return { perms, id: { scheme: entry.slice(0, first), id: entry.slice(first + 1, last) } };
  });
}
