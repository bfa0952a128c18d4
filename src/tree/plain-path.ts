/**
 * What most paths are, in one look: legal, and all of it printable ASCII, no name with a dot in front.
 *
 * In: a path. Out: whether it is such a one; then where its last name begins, and the hashes of the path
 * and of the one above it. Whatever else it is, `pathFault` and `pathHash` say.
 */

import { hashOf } from './path-hash.ts';

const slashUnit = 0x2f;
const dotUnit = 0x2e;

/** Room for the bytes of most paths. */
const scratch = new Uint8Array(256);

export class PlainPath {
  /** Where the last slash is. */
  slash = 0;
  hash = 0;
  parentHash = 0;

  /** False for any other, and then nothing here is of it. */
  read(path: string): boolean {
    const { length } = path;
    if (length < 2 || path.charCodeAt(0) !== slashUnit) return false;
    const bytes = length <= scratch.length ? scratch : new Uint8Array(length);
    bytes[0] = slashUnit;
    let slash = 0;
    let before = slashUnit;
    for (let i = 1; i < length; i++) {
      const unit = path.charCodeAt(i);
      if (unit < 0x20 || unit > 0x7e) return false;
      if (before === slashUnit && (unit === slashUnit || unit === dotUnit)) return false;
      if (unit === slashUnit) slash = i;
      bytes[i] = unit;
      before = unit;
    }
    if (before === slashUnit) return false;
    this.slash = slash;
    this.hash = hashOf(bytes, 0, length);
    this.parentHash = hashOf(bytes, 0, Math.max(slash, 1)); // of the root it is its slash
    return true;
  }
}
