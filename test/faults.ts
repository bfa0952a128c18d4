/** What stories break things by, and how they look at what is left on the server. */

import type { LinkFrame } from '../src/testing/index.ts';
import { fourLetterWord } from './peers/four-letter-word.ts';
import type { Zk } from './zk.ts';

/** Numbers of ops on the wire. */
export const opCodes = {
  delete: 2,
  getData: 4,
  children: 8,
  multi: 14,
  create: 15,
  createContainer: 19,
} as const;

/** Cuts the link when the first reply to a request of this op comes, which then does not arrive. */
export function loseReply(zk: Zk, code: number, times = 1): void {
  let left = times;
  const asked = new Set<string>();
  const key = ({ connection, bytes }: LinkFrame) => `${connection} ${bytes.readInt32BE(0)}`;
  zk.link.onFrame = (frame) => {
    if (frame.index === 0) return 'pass';
    if (frame.direction === 'toServer') {
      if (frame.bytes.readInt32BE(4) === code) asked.add(key(frame));
    } else if (left > 0 && asked.has(key(frame))) {
      left -= 1;
      return 'cut';
    }
    return 'pass';
  };
}

/** The paths of this story, without its chroot, on which the server itself holds a data watch. */
export async function watchedPaths(zk: Zk): Promise<string[]> {
  const [, port, chroot] = /:(\d+)(\/.*)$/.exec(zk.directAddress)!;
  const text = await fourLetterWord(Number(port), 'wchp');
  const paths = text.split('\n').filter((line) => line.startsWith(`${chroot}/`));
  return paths.map((path) => path.slice(chroot!.length)).sort();
}
