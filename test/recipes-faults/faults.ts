/** Which fault comes next, by chance that can be had again, and how a request or its reply gets lost. */

import type { LinkFrame } from '../../src/testing/index.ts';
import { loseRequest, opCodes } from '../faults.ts';
import type { Links } from './links.ts';

// biome-ignore format: a table is read down its columns
const weights = { cut: 20, reset: 8, request: 20, reply: 22, expire: 12, partition: 6, pause: 8, kill: 4 } as const;
export type FaultKind = keyof typeof weights;

export function pickKind(dice: number): FaultKind {
  const all = Object.entries(weights) as [FaultKind, number][];
  let left = dice * all.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [kind, weight] of all) {
    left -= weight;
    if (left < 0) return kind;
  }
  return 'cut';
}

const lossyOps = Object.values(opCodes);

/** The next request of some op, or the reply to it, does not arrive, and the link goes. */
export function lose(what: 'request' | 'reply', link: Links, dice: number): void {
  const code = lossyOps[Math.floor(dice * lossyOps.length)]!;
  if (what === 'request') loseRequest(link, code);
  else loseReply(link, code);
}

function loseReply(link: Links, code: number): void {
  const asked = new Set<string>();
  const key = ({ connection, bytes }: LinkFrame) => `${connection} ${bytes.readInt32BE(0)}`;
  link.onFrame = (frame) => {
    if (frame.index === 0) return 'pass';
    if (frame.direction === 'toServer') {
      if (frame.bytes.readInt32BE(4) === code) asked.add(key(frame));
      return 'pass';
    }
    if (!asked.has(key(frame))) return 'pass';
    link.onFrame = undefined;
    return 'cut';
  };
}
